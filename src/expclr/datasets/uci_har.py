"""UCI HAR: 30 people with a phone at the waist, six activities, 561 published features."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from expclr.datasets.archive import Archive, open_archive
from expclr.datasets.source import Source
from expclr.datasets.store import load_pair, prepared, raw_folder
from expclr.datasets.text import number_table, whole_column
from expclr.errors import DataError
from expclr.features.har_signals import HAR_CHANNELS, HAR_SFREQ
from expclr.windows import Windows

__all__ = ["SOURCE", "feature_names", "load", "read"]

INNER = "UCI HAR Dataset.zip"
OUTER = "human+activity+recognition+using+smartphones.zip"
SOURCE = Source(
    {
        OUTER: (
            f"https://archive.ics.uci.edu/static/public/240/{OUTER}",
            "https://archive.ics.uci.edu/ml/machine-learning-databases/00240/"
            "UCI%20HAR%20Dataset.zip",  # the inner one, as good
        )
    },
    instead=(INNER, "UCI HAR Dataset", "train"),
)
VERSION = 1
LENGTH = 128


def load(root: str | Path | None = None) -> tuple[Windows, Windows]:
    """UCI Human Activity Recognition Using Smartphones, as published (Anguita 2013).

    9 channels of 128 samples at 50 Hz (body acceleration, angular velocity, total
    acceleration), the 561 published features, 6 activities, people as groups: 7352 windows of
    21 people to train and 2947 of 9 others to test.

    Parameters
    ----------
    root : path, optional
        Folder that holds ``uci_har/`` with the official zip, outer or inner, or the unpacked
        folder.

    Returns
    -------
    train, test : Windows
        Memory-mapped; the text is read once (some seconds) and kept in the cache.
    """
    source = _source(raw_folder("uci_har", root, wanted=f"{INNER!r} (or {OUTER!r})"))
    files = [source] if source.is_file() else _text_files(source)
    store = prepared("uci_har", files, {"version": VERSION}, lambda to: _build(source, to))
    return load_pair(store)


def _source(folder: Path) -> Path:
    """The unpacked folder if there is one, else the zip."""
    for place in (folder, folder / "UCI HAR Dataset"):
        if (place / "train").is_dir():
            return place
    zips = [folder / INNER, folder / OUTER, *sorted(folder.glob("*.zip"))]
    for path in zips:
        if path.is_file():
            return path
    raise DataError(f"no {INNER!r} and no folder 'UCI HAR Dataset' in {folder}: put one there")


def _text_files(folder: Path) -> list[Path]:
    """The files that are read, all of them part of the fingerprint."""
    names = ["features.txt", "activity_labels.txt"]
    for part in ("train", "test"):
        names += [f"{part}/{kind}_{part}.txt" for kind in ("X", "y", "subject")]
        names += [f"{part}/Inertial Signals/{name}_{part}.txt" for name in HAR_CHANNELS]
    return [folder / name for name in names]


def _build(source: Path, folder: Path) -> None:
    for part, windows in zip(("train", "test"), read(source), strict=True):
        windows.save(folder / part)


def read(source: Path) -> tuple[Windows, Windows]:
    """Read the text of the zip or the unpacked folder ``source``."""
    with (
        open_archive(source, INNER) as archive,
        tqdm(total=2 * (len(HAR_CHANNELS) + 1), desc="uci_har", unit="file", disable=None) as bar,
    ):
        known: dict[str, Any] = {
            "sfreq": HAR_SFREQ,
            "channel_names": HAR_CHANNELS,
            "feature_names": feature_names(_words(archive, "features.txt")),
            "class_names": _words(archive, "activity_labels.txt"),
            "name": "uci_har",
        }
        return _read(archive, "train", known, bar), _read(archive, "test", known, bar)


def _read(archive: Archive, part: str, known: dict[str, Any], bar: tqdm[Any]) -> Windows:
    people = _column(archive, f"{part}/subject_{part}.txt", highest=1_000_000)
    n, d = len(people), len(known["feature_names"])
    y = _column(archive, f"{part}/y_{part}.txt", highest=len(known["class_names"])) - 1
    _same_rows(archive, f"{part}/y_{part}.txt", len(y), n)
    F = _table(archive, f"{part}/X_{part}.txt", (n, d), np.float64, bar)
    X = np.empty((n, len(HAR_CHANNELS), LENGTH), np.float32)
    for c, channel in enumerate(HAR_CHANNELS):
        name = f"{part}/Inertial Signals/{channel}_{part}.txt"
        X[:, c] = _table(archive, name, (n, LENGTH), np.float32, bar)
    return Windows(X, F=F, y=y, group=people, **known)


def _table(
    archive: Archive, ending: str, shape: tuple[int, int], dtype: type, bar: tqdm[Any]
) -> NDArray[Any]:
    name = archive.find(ending)
    with archive.open(name) as file:
        table = number_table(file, archive.where(name), dtype=dtype)
    if table.shape[1] != shape[1]:
        what = f"{LENGTH} samples" if shape[1] == LENGTH else f"{shape[1]} names in features.txt"
        raise DataError(f"{archive.where(name)} has {table.shape[1]} columns for {what}")
    _same_rows(archive, name, len(table), shape[0])
    bar.update()
    return table


def _column(archive: Archive, ending: str, *, highest: int) -> NDArray[np.int64]:
    name = archive.find(ending)
    with archive.open(name) as file:
        return whole_column(file, archive.where(name), lowest=1, highest=highest)


def _same_rows(archive: Archive, name: str, rows: int, wanted: int) -> None:
    if rows != wanted:
        raise DataError(
            f"{archive.where(name)} has {rows} rows but the subject file has {wanted}: "
            "one row for each window is wanted"
        )


def _words(archive: Archive, ending: str) -> tuple[str, ...]:
    """The names of a numbered list ``1 name``, in the order of their numbers."""
    name = archive.find(ending)
    lines = archive.read(name).decode("utf-8", "replace").split("\n")
    entries = [line.strip().partition(" ") for line in lines if line.strip()]
    try:
        words = {int(number): word.strip() for number, _, word in entries}
    except ValueError as error:
        raise DataError(f"{archive.where(name)}: {error}; lines '1 name' are wanted") from error
    if sorted(words) != list(range(1, len(entries) + 1)) or not words:
        raise DataError(f"{archive.where(name)} is not numbered from 1 on without gaps")
    return tuple(words[i] for i in sorted(words))


def feature_names(published: tuple[str, ...]) -> tuple[str, ...]:
    """Make the published names unique: a name listed three times stands for X, Y and Z.

    Examples
    --------
    >>> feature_names(("f-bands-1,8", "f-mean", "f-bands-1,8", "f-bands-1,8"))
    ('f-bands-1,8-X', 'f-mean', 'f-bands-1,8-Y', 'f-bands-1,8-Z')
    """
    seen: dict[str, int] = {}
    names = []
    for name in published:
        seen[name] = seen.get(name, 0) + 1
        times = published.count(name)
        ending = "XYZ"[seen[name] - 1] if times == 3 else str(seen[name])
        names.append(name if times == 1 else f"{name}-{ending}")
    return tuple(names)
