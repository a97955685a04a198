"""MIT-BIH Arrhythmia Database: half an hour of ECG of 47 people, cut like afdb."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.datasets.parts import check_choice, features_key, held_out, split_key
from expclr.datasets.rhythms import (
    Cut,
    Rhythms,
    class_table,
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

__all__ = ["SOURCE", "TESTED", "load", "windows_per_class"]

SOURCE = Source(
    mirrors=(
        "https://physionet.org/files/mitdb/1.0.0/",
        "https://physionet-open.s3.amazonaws.com/mitdb/1.0.0/",
    ),
    wanted=tuple(f"[12][0-9][0-9].{s}" for s in ("dat", "hea", "atr")),
)

ONE_SUBJECT = {"201": "201-202", "202": "201-202"}  # cut from one tape of one man
TESTED = (
    *("103", "114", "116", "124", "203", "208", "219", "223", "234"),
    *("109", "113", "213", "231"),
)  # AFIB from 203 and 219, AFL from 203, J from 124; 222, with most AFL and J, is left to train
VERSION = 1


def load(
    root: str | Path | None = None,
    *,
    split: str | float | Sequence[str] = "fixed",
    fold: int = 0,
    other: str = "drop",
    scale: str = "zscore",
    features: str | None = None,
    length: int = 2500,
    random_state: int = 0,
) -> tuple[Windows, Windows]:
    """MIT-BIH Arrhythmia Database 1.0.0: 2 leads, 360 Hz made 250 Hz, people as groups.

    Windows begin at the first rhythm mark of a record and do not overlap; the class of each is
    the rhythm of most of its samples: AFIB, AFL, J (nodal) or N. Few people have AFIB, AFL or
    J, so report all five folds of "stratified-5fold". Records 201 and 202 are one man, the
    group "201-202". The first channel is lead MLII, which 114 has second; 102 and 104 have
    none, and V5 in its place. The second is V1, in some records V2, V4 or V5.

    Parameters
    ----------
    root : path, optional
        Folder that holds ``mitdb/`` with the .hea, .dat and .atr files; any of the 48 records.
    split : "fixed", "stratified-5fold", fraction or list of groups
        "fixed": the records ``TESTED`` are tested; "stratified-5fold": part ``fold`` of five
        is tested, each person in one; else the groups to test, or the fraction to draw.
    fold : int
        0 to 4, for "stratified-5fold".
    other : "drop" or "keep"
        What to do with windows of other rhythms: keep them as class ``other``.
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
    check_choice("other", other, ("drop", "keep"))
    check_choice("scale", scale, ("zscore", "millivolt"))
    check_choice("features", features, ("ecg88", None))
    check_choice("fold", fold, range(5))
    if length < 1:
        raise ConfigError(f"length is {length}: a positive number of samples is wanted")
    if isinstance(split, str):
        check_choice("split", split, ("fixed", "stratified-5fold"))
    records = _records(root)
    rhythms = _rhythms(other, length)
    options = {"split": split_key(split), "fold": fold if "5fold" in str(split) else None}
    options |= {"other": other, "scale": scale, "length": length, "version": VERSION}
    options |= {"features": features_key(features)}
    options |= {"random_state": None if isinstance(split, str) else random_state}

    def build(folder: Path) -> None:
        cuts = [cut_record(record, rhythms) for record in records]
        test = _tested(cuts, split, fold, random_state)
        save_parts(folder, cuts, rhythms, test=test, scale=scale, features=features)

    return load_pair(prepared("mitdb", record_files(records), options, build))


def windows_per_class(root: str | Path | None = None) -> str:
    """Windows per class and record of the fixed split, as a Markdown table."""
    rhythms = _rhythms("keep", 2500)
    cuts = [cut_record(record, rhythms) for record in _records(root)]
    return class_table(cuts, rhythms, test=_tested(cuts, "fixed", 0, 0))


def _records(root: str | Path | None) -> list[Path]:
    folder = raw_folder("mitdb", root, wanted="the .hea, .dat and .atr files")
    found = find_records(folder)
    records = [found[name] for name in sorted(found) if re.fullmatch("[12][0-9][0-9]", name)]
    if not records:
        raise DataError(f"no records 100.hea to 234.hea in {folder}: put the files there")
    return records


def _rhythms(other: str, length: int) -> Rhythms:
    return Rhythms(
        "mitdb",
        ("MLII", "V"),
        length=length,
        ratio=Fraction(25, 36),
        lead="MLII",
        other=other == "keep",
        subjects=ONE_SUBJECT,
    )


def _tested(cuts: Sequence[Cut], split: Any, fold: int, random_state: int) -> NDArray[np.bool_]:
    groups = [cut.group for cut in cuts]
    if split == "fixed":
        return np.isin(groups, TESTED)
    if split == "stratified-5fold":
        split = five_folds(cuts)[fold]
    return held_out(split, groups, random_state=random_state)
