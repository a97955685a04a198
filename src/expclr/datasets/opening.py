"""Data as a user names it: a folder, a file, or a dataset of the registry."""

from __future__ import annotations

from pathlib import Path

from expclr.datasets import DATASETS, load_dataset
from expclr.datasets.choices import split_choice
from expclr.errors import DataError, suggest
from expclr.windows import Windows, load_windows

__all__ = ["open_data", "open_part"]


def open_data(data: str) -> tuple[Windows, Windows | None]:
    """(train, test) of a dataset's name, or of a folder with train/ and test/; else (all, None).

    Options of a dataset may follow its name: ``ucr,problem=ECG5000``.
    """
    path = Path(data)
    if (path / "train").is_dir():
        test = path / "test"
        return Windows.load(path / "train"), Windows.load(test) if test.is_dir() else None
    if path.exists():
        return load_windows(path), None
    name, _ = split_choice(data)
    if name in DATASETS or (":" in name and not Path(name).suffix):
        return load_dataset(data)
    raise DataError(
        f"no data {data!r}: give a Windows folder, an .npz with the keys X, F, y, group, or a "
        f"dataset: {suggest(name, list(DATASETS))}"
    )


def open_part(data: str, part: str = "train") -> Windows:
    """One part of the data; all of it when it has no parts."""
    train, test = open_data(data)
    if part not in ("train", "test"):
        raise DataError(f"part is {part!r}: give 'train' or 'test'")
    if part == "test" and test is not None:
        return test
    return train
