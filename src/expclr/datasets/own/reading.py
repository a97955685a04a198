"""A user's own source, whatever its form, as a stream of windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from expclr.datasets.own.blocks import Block
from expclr.datasets.own.tables import column_names, is_table
from expclr.errors import DataError

__all__ = ["Reading", "Stream", "open_stream"]


@dataclass(frozen=True)
class Reading:
    """How a source is read; the fields are those of :func:`expclr.datasets.own.prepare`.

    ``labels``, ``group`` and ``features`` name columns here; those in files of their own are
    joined later, and are ``apart`` from the recordings.
    """

    case: str | None = None
    time: str | None = None
    channels: tuple[str, ...] = ()
    labels: str | None = None
    group: str | None = None
    features: tuple[str, ...] = ()
    intervals: str | None = None
    sfreq: float | None = None
    length: int | None = None
    step: int | None = None
    apart: tuple[str, ...] = ()

    def named(self, role: str, path: str | Path) -> str | None:
        """The column for ``role``, "case" or "time": the one chosen, else one of that name."""
        taken = (*self.channels, *self.features, self.labels, self.group)
        chosen: str | None = getattr(self, role)
        if chosen is None and role not in taken and role in column_names(path):
            return role
        return chosen


@dataclass(frozen=True)
class Stream:
    """Blocks of windows, and fields of Windows that are complete when the blocks are through."""

    blocks: Iterator[Block]
    known: dict[str, Any] = field(default_factory=dict)


def open_stream(source: str | Path, reading: Reading, scratch: Path) -> Stream:
    """Look what ``source`` is, and start to read it."""
    from expclr.datasets.own import array_files, recording_files, wide_table

    path = Path(source)
    if not path.exists():
        raise DataError(f"no file or folder {path}: check the name")
    suffix = path.suffix.lower()
    if suffix in (".npz", ".npy") or (path / "X.npy").is_file():
        return array_files.stream(path, reading)
    if path.is_dir() or suffix in recording_files.SUFFIXES:
        return recording_files.stream(path, reading, scratch)
    if not is_table(path):
        raise DataError(
            f"{path} is of no known form: give an .npz or .npy, a .csv or .parquet, a folder with "
            "X.npy, or a folder of recordings (.csv, .parquet, .npy, .edf, .hea)"
        )
    if reading.length or reading.named("case", path) or reading.named("time", path):
        return recording_files.stream(path, reading, scratch)
    return wide_table.stream(path, reading)
