"""Windows in an .npz, in a folder of .npy files, or in one .npy."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.datasets.archive import Archive, open_archive
from expclr.datasets.npy import npy_blocks, npy_header
from expclr.datasets.own.blocks import Block
from expclr.datasets.own.reading import Reading, Stream
from expclr.errors import DataError

__all__ = ["read_rows", "stream"]

ALIASES = {
    "F": ("F", "features"),
    "label": ("y", "labels", "label"),
    "group": ("group", "groups", "subject"),
    "lengths": ("lengths",),
}
NAMES = ("channel_names", "feature_names", "class_names")


def stream(path: Path, reading: Reading) -> Stream:
    """X (n, c, t) or (n, t), and what lies beside it under its usual names."""
    for what in ("case", "time", "features", "length", "intervals"):
        if getattr(reading, what):
            raise DataError(f"{path} holds windows already: {what} is for tables and recordings")
    if path.suffix.lower() == ".npy":
        with open_archive(path.parent) as archive:
            return Stream(_blocks(path.parent, path.name, {}), _known(archive, {}, reading))
    with open_archive(path) as archive:
        names = {name.removesuffix(".npy"): name for name in archive.names if "/" not in name}
        if "X" not in names:
            raise DataError(f"{path} has {', '.join(names)}: an array X (n, c, t) is wanted")
        columns: dict[str, NDArray[Any]] = {}
        for key, aliases in ALIASES.items():
            found = [names[alias] for alias in aliases if alias in names]
            if found:
                columns[key] = _small(archive, found[0])
        _check_rows(archive, names["X"], columns)
        return Stream(_blocks(path, names["X"], columns), _known(archive, names, reading))


def _check_rows(archive: Archive, name: str, columns: dict[str, NDArray[Any]]) -> None:
    """One row for each window, and one value in it but for F."""
    with archive.open(name) as file:
        shape, _ = npy_header(file, archive.where(name))
    for key, values in columns.items():
        if shape[:1] != (len(values),):
            n = shape[0] if shape else 0
            raise DataError(f"{archive.path}: {key} has {len(values)} rows for {n} windows in X")
        if values.ndim > (2 if key == "F" else 1):
            raise DataError(
                f"{archive.path}: {key} has shape {values.shape}: one value for each window is "
                "wanted"
            )


def _blocks(path: Path, name: str, columns: dict[str, NDArray[Any]]) -> Iterator[Block]:
    done = 0
    with open_archive(path) as archive, archive.open(name) as file:
        for X in npy_blocks(file, archive.where(name), size=archive.size(name)):
            if X.ndim not in (2, 3) or X.dtype.kind not in "biuf":
                raise DataError(
                    f"{archive.where(name)} has rows of shape {X.shape[1:]} and type {X.dtype}: "
                    "numbers (n, c, t) or (n, t) are wanted"
                )
            at = slice(done, done + len(X))
            done += len(X)
            rows = {key: values[at] for key, values in columns.items()}
            yield Block(X if X.ndim == 3 else X[:, None], **rows)


def _known(archive: Archive, names: dict[str, str], reading: Reading) -> dict[str, Any]:
    known: dict[str, Any] = {"sfreq": reading.sfreq, "channel_names": reading.channels}
    for key in NAMES:
        if key in names and not known.get(key):
            known[key] = tuple(_small(archive, names[key]).astype(str).tolist())
    if reading.sfreq is None and "sfreq" in names:
        known["sfreq"] = float(_scalar(archive, names["sfreq"]))
    return known


def _small(archive: Archive, name: str) -> NDArray[Any]:
    content = archive.read(name)
    return read_rows(content, archive.where(name))


def read_rows(content: bytes, where: str) -> NDArray[Any]:
    """A whole array, from the bytes of its .npy."""
    return np.concatenate(list(npy_blocks(io.BytesIO(content), where, size=len(content))))


def _scalar(archive: Archive, name: str) -> float:
    try:
        return float(np.lib.format.read_array(io.BytesIO(archive.read(name)), allow_pickle=False))
    except (ValueError, TypeError, EOFError) as error:
        raise DataError(f"{archive.where(name)}: {error}; one number is wanted") from error
