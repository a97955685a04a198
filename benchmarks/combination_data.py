"""The windows that encoders and objectives are compared on: splits, folds of records, features."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr import Windows
from expclr.experiments.study_data import VALIDATION, Study, open_study

DATASETS = ("uci_har", "hydraulic", "machine", "mitdb")
TWO_CLASSES = {"mitdb": ("AFIB", "N")}  # the first one is rare, and every fold has some of it
FOLDS, INNER_FOLDS = 5, 3
FEATURES = {"RR features": ("rri_", "pnn")}  # parts of their names

Array = NDArray[Any]


@lru_cache(4)
def opened(name: str, npz: Path | None, per_group: int | None = None) -> Study:
    """A dataset, of two of its classes where it has more than the question wants."""
    study = open_study(name, npz=npz, per_group=per_group)
    if name not in TWO_CLASSES:
        return study
    parts = [two_classes(w, TWO_CLASSES[name]) for w in (study.train, study.test)]
    return Study(study.name, *parts)


@lru_cache(8)
def parts(name: str, split: str, npz: Path | None, per_group: int | None) -> Study:
    """What is trained on and what is read.

    "fixed" or "fold 2"; inside of train "validation", "inner 1" or "held 3", a fifth of the groups
    that is drawn anew for each number.
    """
    study = opened(name, npz, per_group)
    if split == "fixed":
        return study
    if split == "validation":
        return Study(name, *study.parts("validation"))
    kind, number = split.split()
    if kind == "held":
        return Study(name, *study.train.split_by_group(VALIDATION, random_state=int(number)))
    windows, k = (together(study), FOLDS) if kind == "fold" else (study.train, INNER_FOLDS)
    read = dealt(windows, k) == int(number)
    return Study(name, *(windows.subset(np.flatnonzero(rows)) for rows in (~read, read)))


def two_classes(windows: Windows, names: tuple[str, ...]) -> Windows:
    codes = [windows.class_names.index(name) for name in names]
    kept = windows.subset(np.flatnonzero(np.isin(windows.y, codes)))
    return kept.with_(y=np.searchsorted(np.sort(codes), kept.y), class_names=tuple(sorted(names)))


def together(study: Study) -> Windows:
    """All windows, train's first."""
    whole = {
        field: np.concatenate([getattr(study.train, field), getattr(study.test, field)])
        for field in ("X", "F", "y", "group")
    }
    return study.train.with_(**whole)


def dealt(windows: Windows, k: int, *, random_state: int = 0) -> Array:
    """A fold for each window: whole records, dealt out in rounds of all folds in random order.

    Records with the first class come first, those with most of it at the head, so that each fold
    gets one of the k that have most; then all others by chance.
    """
    rng = np.random.default_rng(random_state)
    records = rng.permutation(np.unique(windows.group))
    rare = np.array([((windows.group == r) & (windows.y == 0)).sum() for r in records])
    order = records[np.argsort(-rare, kind="stable")]
    rounds = [rng.permutation(k) for _ in range(-(-len(order) // k))]
    fold_of = dict(zip(order, np.concatenate(rounds), strict=False))
    return np.array([fold_of[record] for record in windows.group])


def with_features(windows: Windows, kind: str) -> Windows:
    """Only the expert features of a kind; all of them where there are none of it."""
    names, wanted = windows.feature_names, FEATURES.get(kind, ())
    kept = [i for i, name in enumerate(names) if any(part in name for part in wanted)]
    if not kept:
        return windows
    assert windows.F is not None
    return windows.with_(F=windows.F[:, kept], feature_names=tuple(names[i] for i in kept))


def counts(study: Study) -> dict[str, Any]:
    """Windows of each class and the groups, of what is trained on and what is read."""
    found: dict[str, Any] = {"data": study.fingerprint, "split": study.split("test")}
    for name, windows in (("train", study.train), ("read", study.test)):
        classes = windows.class_names or tuple(str(code) for code in windows.classes)
        numbers = np.bincount(windows.y, minlength=len(classes)).tolist()
        records = sorted({str(group) for group in windows.group})
        shown = records if len(records) <= 40 else f"{len(records)} groups"
        found[name] = {"windows": len(windows), "groups": shown} | dict(
            zip(classes, numbers, strict=False)
        )
    return found
