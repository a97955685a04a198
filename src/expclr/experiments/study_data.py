"""The data of a study: a dataset by name, with features, and the parts it is judged on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from expclr.errors import ConfigError, DataError, suggest
from expclr.windows import Windows

__all__ = ["ALIASES", "Study", "open_study", "read_parts", "thinned", "write_parts"]

ALIASES = {"har": "uci_har", "sleepedf": "sleep_edf", "waveform": "afdb"}  # the paper's names
EXTRACTORS = {"mitdb": "ecg88", "afdb": "ecg88", "sleep_edf": "eeg29"}
VALIDATION = 0.2  # of the training groups, as the paper's 20 %, but of whole subjects
_NAMES = ("channel_names", "feature_names", "class_names")


@dataclass(frozen=True)
class Study:
    """Train and test windows of a dataset, and the part of train that choices are made on.

    Examples
    --------
    >>> study = open_study("machine")
    >>> train, held = study.parts("validation")
    >>> set(train.group) & set(held.group), set(train.group) < set(study.train.group)
    (set(), True)
    """

    name: str
    train: Windows
    test: Windows

    @cached_property
    def validation(self) -> tuple[Windows, Windows]:
        """Train without a fifth of its groups, and that fifth."""
        return self.train.split_by_group(VALIDATION, random_state=0)

    def parts(self, part: str) -> tuple[Windows, Windows]:
        """What is trained on and what is read: "test", or "validation" inside train."""
        return self.validation if part == "validation" else (self.train, self.test)

    @cached_property
    def fingerprint(self) -> str:
        """Of both parts' contents."""
        return f"{self.train.fingerprint()}-{self.test.fingerprint()}"

    def split(self, part: str) -> str:
        """Twelve characters that tell which groups were trained on and which were read."""
        sides = [[] if w.group is None else np.unique(w.group).tolist() for w in self.parts(part)]
        sizes = [len(w) for w in self.parts(part)]
        return hashlib.sha256(repr((part, sides, sizes)).encode()).hexdigest()[:12]


def open_study(name: str, *, npz: str | Path | None = None, per_group: int | None = None) -> Study:
    """Open a dataset with its expert features and labels.

    Parameters
    ----------
    name : str
        A dataset, or the paper's name of one ("har", "sleepedf", "waveform").
    npz : path, optional
        Folder with ``<name>.npz`` of :func:`write_parts`, instead of the raw files.
    per_group : int, optional
        Only so many windows of each group, evenly spread: for trying things out.
    """
    name = ALIASES.get(name, name)
    if npz is not None:
        train, test = read_parts(Path(npz) / f"{name}.npz")
    else:
        train, test = _load(name)
    for part, windows in (("train", train), ("test", test)):
        if windows.F is None or windows.y is None or windows.group is None:
            raise DataError(f"{name}: the {part} part lacks features, labels or groups")
    if per_group is not None:
        train, test = thinned(train, per_group), thinned(test, per_group)
    return Study(name, train, test)


def _load(name: str) -> tuple[Windows, Windows]:
    from expclr.datasets import DATASETS, load_dataset

    if name not in DATASETS and ":" not in name:
        raise ConfigError(f"no dataset {name!r}: {suggest(name, [*DATASETS, *ALIASES])}")
    train, test = load_dataset(name)
    if train.F is None and name in EXTRACTORS:
        return _with_features(name, train, test, EXTRACTORS[name])
    return train, test


def _with_features(
    name: str, train: Windows, test: Windows, extractor: str
) -> tuple[Windows, Windows]:
    """Both parts with extracted features, computed once and kept in the cache."""
    from expclr.datasets.store import load_pair, prepared
    from expclr.features import features_of

    def build(folder: Path) -> None:
        for part, windows in (("train", train), ("test", test)):
            features_of(windows, extractor, n_jobs=-1).save(folder / part)

    known = {"extractor": extractor, "of": [train.fingerprint(), test.fingerprint()]}
    return load_pair(prepared(f"{name}-{extractor}", [], known, build))


def thinned(windows: Windows, per_group: int) -> Windows:
    """At most so many windows of each group, evenly spread over its classes.

    Examples
    --------
    >>> windows = Windows(np.zeros((6, 1, 4)), group=[0, 0, 0, 0, 1, 1], y=[0, 0, 1, 1, 0, 0])
    >>> thinned(windows, 2).y.tolist()
    [0, 1, 0, 0]
    """
    assert windows.group is not None
    kept = []
    for group in np.unique(windows.group):
        rows = np.flatnonzero(windows.group == group)
        if windows.y is not None:
            rows = rows[np.argsort(windows.y[rows], kind="stable")]
        steps = np.linspace(0, len(rows) - 1, min(per_group, len(rows))).round().astype(int)
        kept.append(np.sort(rows[steps]))
    return windows.subset(np.concatenate(kept))


def write_parts(path: str | Path, train: Windows, test: Windows) -> Path:
    """Write both parts into one compressed .npz: X in fine steps, F in half precision.

    Examples
    --------
    >>> import tempfile
    >>> part = Windows(np.ones((2, 1, 4)), F=np.ones((2, 3)), y=[0, 1], group=[0, 1], sfreq=8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     read_parts(write_parts(folder + "/two.npz", part, part))[0]
    Windows(2 windows, 1 channels x 4 timepoints, 3 features, 2 classes, 2 groups)
    """
    arrays: dict[str, Any] = {"X_step": _steps(train.X)}
    for part, windows in (("train", train), ("test", test)):
        assert windows.F is not None
        arrays[f"X_{part}"] = _coded(windows.X, arrays["X_step"])
        arrays[f"F_{part}"] = _half(windows.F)
        arrays[f"y_{part}"], arrays[f"group_{part}"] = windows.y, windows.group
    arrays |= {name: np.array(getattr(train, name), dtype=str) for name in _NAMES}
    arrays |= {"name": np.array(train.name), "sfreq": np.array(train.sfreq or np.nan)}
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)
    return Path(path)


def _steps(X: Any) -> Any:
    """A 256th of each channel's deviation, (c, 1): what windows are rounded to."""
    spread = np.asarray(X, dtype=np.float64).std(axis=(0, 2))[:, None]
    return (np.where(spread > 0, spread, 1) / 256).astype(np.float32)


def _coded(X: Any, steps: Any) -> Any:
    """Differences of neighbours in steps, low and high bytes apart, which compresses best.

    Windows with values beyond 128 deviations, or without all values, stay as they are.
    """
    whole = np.rint(np.asarray(X, dtype=np.float64) / steps)
    if not np.abs(whole).max(initial=0) < 2**15:
        return np.asarray(X)
    found = np.diff(whole.astype("<i2"), axis=2, prepend=np.int16(0)).astype("<i2")
    return np.moveaxis(found[..., None].view(np.uint8), -1, 0)  # (2, n, c, t)


def _decoded(held: Any, steps: Any) -> Any:
    if held.dtype != np.uint8:
        return held.astype(np.float32)
    differences = np.ascontiguousarray(np.moveaxis(held, 0, -1)).view("<i2")[..., 0]
    return np.cumsum(differences, axis=2, dtype=np.int16).astype(np.float32) * steps


def _half(values: Any) -> Any:
    """Half precision, unless a value is too large or a column too small for it."""
    values = np.asarray(values)
    largest = np.nanmax(np.abs(values), initial=0)
    if not largest < np.finfo(np.float16).max:
        return values.astype(np.float32)
    smallest = np.nanmax(np.abs(values).reshape(len(values), -1), axis=0, initial=0)
    lost = (smallest > 0) & (smallest < 1e-4)  # columns that half precision would make rough
    return values.astype(np.float32 if lost.any() else np.float16)


def read_parts(path: str | Path) -> tuple[Windows, Windows]:
    """Train and test of a file written by :func:`write_parts`."""
    try:
        with np.load(path, allow_pickle=False) as data:
            held = {key: data[key] for key in data.files}
    except FileNotFoundError as error:
        raise DataError(f"no file {path}: write it with python -m expclr.experiments.export") from (
            error
        )
    except Exception as error:  # numpy, zipfile and zlib each have their own errors
        raise DataError(f"{path} is not a readable .npz ({error}): write it again") from error
    missing = [k for k in ("X_train", "X_test") if k not in held]
    if missing:
        raise DataError(f"{path} has no {missing[0]}: write it with expclr.experiments.export")
    names = {name: tuple(held[name].tolist()) for name in _NAMES if name in held}
    sfreq = float(held.get("sfreq", np.nan))
    return _part(held, "train", names, sfreq), _part(held, "test", names, sfreq)


def _part(held: dict[str, Any], part: str, names: dict[str, Any], sfreq: float) -> Windows:
    F = held.get(f"F_{part}")
    return Windows(
        _decoded(held[f"X_{part}"], held.get("X_step")),
        F=None if F is None else F.astype(np.float32),
        y=held.get(f"y_{part}"),
        group=held.get(f"group_{part}"),
        sfreq=None if np.isnan(sfreq) else sfreq,
        name=str(held.get("name", "")),
        **names,
    )
