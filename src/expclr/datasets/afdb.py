"""MIT-BIH Atrial Fibrillation Database: 23 people, ten hours of ECG each, four rhythms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.datasets.parts import check_choice, features_key, held_out, split_key
from expclr.datasets.rhythms import (
    Cut,
    Rhythms,
    cut_record,
    find_records,
    five_folds,
    record_files,
    save_parts,
)
from expclr.datasets.source import Source
from expclr.datasets.store import load_pair, prepared, raw_folder
from expclr.errors import ConfigError, DataError
from expclr.windows import Windows

__all__ = ["RECORDS", "SOURCE", "TRAINED", "load"]

SOURCE = Source(
    mirrors=(
        "https://physionet.org/files/afdb/1.0.0/",
        "https://physionet-open.s3.amazonaws.com/afdb/1.0.0/",
    ),
    wanted=tuple(f"0[0-9][0-9][0-9][0-9].{s}" for s in ("dat", "hea", "atr")),
)

RECORDS = (
    *("04015", "04043", "04048", "04126", "04746", "04908", "04936", "05091", "05121", "05261"),
    *("06426", "06453", "06995", "07162", "07859", "07879", "07910", "08215", "08219", "08378"),
    *("08405", "08434", "08455"),
)  # 00735 and 03665 have annotations but no signals
TRAINED = RECORDS[:18]
VERSION = 1


def load(
    root: str | Path | None = None,
    *,
    split: str | float | Sequence[str] = "paper",
    fold: int = 0,
    keep: str = "shortest",
    scale: str = "zscore",
    features: str | None = None,
    length: int = 2500,
    random_state: int = 0,
) -> tuple[Windows, Windows]:
    """MIT-BIH Atrial Fibrillation Database 1.0.0: 2 leads at 250 Hz, people as groups.

    Windows begin at the first rhythm mark of a record and do not overlap; the class of each is
    the rhythm of most of its samples: AFIB, AFL, J or N. Windows lie as all first ones of the
    records, then all second ones, and so on. "paper" with the rest at default gives 59922
    windows of 18 people to train and 16645 of 5 others to test.

    Parameters
    ----------
    root : path, optional
        Folder that holds ``afdb/`` with the .hea, .dat and .atr files.
    split : "paper", "grouped-5fold", fraction or list of records
        "paper": the first 18 sorted records to train (the original took them in the order of
        its file system, which nobody knows); "grouped-5fold": part ``fold`` of five is tested,
        each person in one; else the records to test, or the fraction to draw.
    fold : int
        0 to 4, for "grouped-5fold".
    keep : "shortest" or "all"
        Cut every record to the windows of the shortest, as the original did, or keep all.
    scale : "zscore" or "millivolt"
        "zscore": each channel by mean and standard deviation of its train windows.
    features : "ecg88" or None
        The expert features: 88 of each lead, which take minutes to compute, once.
    length : int
        Samples of a window.
    random_state : int
        Of a drawn split.

    Returns
    -------
    train, test : Windows
        Memory-mapped; prepared once and kept in the cache.
    """
    check_choice("keep", keep, ("shortest", "all"))
    check_choice("scale", scale, ("zscore", "millivolt"))
    check_choice("features", features, ("ecg88", None))
    check_choice("fold", fold, range(5))
    if length < 1:
        raise ConfigError(f"length is {length}: a positive number of samples is wanted")
    if isinstance(split, str):
        check_choice("split", split, ("paper", "grouped-5fold"))
    records = _records(raw_folder("afdb", root, wanted="the .hea, .dat and .atr files"), split)
    rhythms = Rhythms("afdb", ("ECG1", "ECG2"), length=length)
    options = {"split": split_key(split), "fold": fold if "5fold" in str(split) else None}
    options |= {"keep": keep, "scale": scale, "length": length, "version": VERSION}
    options |= {"features": features_key(features)}
    options |= {"random_state": None if isinstance(split, str) else random_state}

    def build(folder: Path) -> None:
        cuts = [cut_record(record, rhythms) for record in records]
        if keep == "shortest":
            cuts = _to_shortest(cuts)
        test = _tested(cuts, split, fold, random_state)
        save_parts(folder, cuts, rhythms, test=test, scale=scale, features=features)

    return load_pair(prepared("afdb", record_files(records), options, build))


def _records(folder: Path, split: Any) -> list[Path]:
    found = find_records(folder)
    there = [found[name] for name in RECORDS if name in found]
    missing = [name for name in RECORDS if name not in found]
    if missing and (not there or isinstance(split, str)):
        raise DataError(
            f"{folder} lacks the records {', '.join(missing)}: get them, or name the records to "
            "test with split=[...]"
        )
    return there


def _to_shortest(cuts: Sequence[Cut]) -> list[Cut]:
    n = min(len(cut.y) for cut in cuts)
    return [replace(cut, y=cut.y[:n]) for cut in cuts]


def _tested(cuts: Sequence[Cut], split: Any, fold: int, random_state: int) -> NDArray[np.bool_]:
    groups = [cut.group for cut in cuts]
    if split == "paper":
        return ~np.isin(groups, TRAINED)
    if split == "grouped-5fold":
        split = five_folds(cuts)[fold]
    return held_out(split, groups, random_state=random_state)
