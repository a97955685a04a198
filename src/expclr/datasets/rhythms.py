"""Windows of heart rhythm from annotated ECG records: labels, cutting, folds, scaling."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from expclr.datasets.parts import save_part
from expclr.datasets.wfdb import read_wfdb, read_wfdb_annotations, read_wfdb_header
from expclr.errors import DataError

__all__ = [
    "Cut",
    "Rhythms",
    "class_table",
    "cut_record",
    "find_records",
    "five_folds",
    "record_files",
    "save_parts",
]

MARKS = {"(AFIB": "AFIB", "(AFL": "AFL", "(J": "J", "(NOD": "J", "(N": "N"}
CLASSES = ("AFIB", "AFL", "J", "N")  # the codes of the original, in its order
FOLDS = 5
BLOCK = 2048  # windows that are scaled at a time
_RHYTHM = 28  # the type of the annotations that mark a change of rhythm


@dataclass(frozen=True)
class Rhythms:
    """How the records of one database become windows."""

    name: str
    channel_names: tuple[str, ...]
    length: int = 2500
    ratio: Fraction = Fraction(1)
    sfreq: float = 250.0
    lead: str = ""
    other: bool = False
    subjects: Mapping[str, str] = field(default_factory=dict)

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes, with ``other`` when it is kept."""
        return (*CLASSES, "other") if self.other else CLASSES


@dataclass(frozen=True, eq=False)
class Cut:
    """A record as windows: where they begin, the class of each (-1 is dropped), whose they are."""

    record: Path
    first: int
    y: NDArray[np.int64]
    group: str

    @property
    def kept(self) -> NDArray[np.int64]:
        """The windows that have a class."""
        return np.flatnonzero(self.y >= 0)


def cut_record(record: Path, rhythms: Rhythms) -> Cut:
    """Label the whole windows of a record from its first rhythm mark on; reads no signal.

    The class of a window is the rhythm of most of its samples, the first one in a tie.
    """
    header = read_wfdb_header(record)
    _check_rate(header.path, header.sfreq * rhythms.ratio, rhythms.sfreq)
    marks = [a for a in read_wfdb_annotations(record) if a.code == _RHYTHM]
    marks.sort(key=lambda mark: mark.sample)
    if not marks or marks[-1].sample >= header.samples:
        where = f"its last rhythm mark at {marks[-1].sample}" if marks else "no rhythm mark"
        raise DataError(
            f"{record}.atr has {where}, {record.name} has {header.samples} samples: a mark inside "
            "the record is wanted"
        )
    first = marks[0].sample
    n = math.ceil((header.samples - first) * rhythms.ratio) // rhythms.length
    if n == 0:
        raise DataError(f"{record} is shorter than one window of {rhythms.length} samples")
    starts = [min(round((m.sample - first) * rhythms.ratio), n * rhythms.length) for m in marks]
    names = (*CLASSES, "other")
    codes = np.array([names.index(MARKS.get(m.text, "other")) for m in marks], np.int8)
    runs = np.diff(np.array([*starts, n * rhythms.length]))
    y = _majority(np.repeat(codes, runs).reshape(n, rhythms.length), len(names))
    if not rhythms.other:
        y[y == len(CLASSES)] = -1
    return Cut(record, first, y, rhythms.subjects.get(record.name, record.name))


def _check_rate(path: Path, got: float, wanted: float) -> None:
    if not math.isclose(got, wanted):
        raise DataError(
            f"{path} gives a sampling frequency of {got} Hz where {wanted} is wanted: is it a "
            "record of this database?"
        )


def _majority(codes: NDArray[np.int8], classes: int) -> NDArray[np.int64]:
    counts = np.stack([(codes == c).sum(axis=1) for c in range(classes)], axis=1)
    return counts.argmax(axis=1).astype(np.int64)


def five_folds(cuts: Sequence[Cut]) -> list[list[str]]:
    """The groups of five test parts: each group in one of them, the classes spread evenly.

    The same cuts give the same folds.
    """
    from sklearn.model_selection import StratifiedGroupKFold

    y = np.concatenate([cut.y[cut.kept] for cut in cuts])
    group = np.repeat([cut.group for cut in cuts], [len(cut.kept) for cut in cuts])
    if len(np.unique(group)) < FOLDS:
        raise DataError(f"{len(np.unique(group))} subjects: {FOLDS} folds need {FOLDS} at least")
    folds = StratifiedGroupKFold(FOLDS)
    return [sorted(set(group[test].tolist())) for _, test in folds.split(y, y, group)]


def find_records(folder: Path) -> dict[str, Path]:
    """The records in a folder and below it by name, the ones least deep first."""
    headers = sorted(folder.rglob("*.hea"), key=lambda path: (-len(path.parts), path))
    return {header.stem: header.with_suffix("") for header in headers}


def record_files(records: Sequence[Path]) -> list[Path]:
    """All files of the records, which must be there."""
    files = [r.with_name(r.name + end) for r in records for end in (".hea", ".dat", ".atr")]
    if missing := [file.name for file in files if not file.is_file()]:
        raise DataError(f"{files[0].parent} lacks {', '.join(missing)}: get the whole record")
    return files


def save_parts(
    folder: Path,
    cuts: Sequence[Cut],
    rhythms: Rhythms,
    *,
    test: NDArray[np.bool_],
    scale: str,
    features: str | None,
) -> None:
    """Save train and test; ``scale`` "zscore" uses mean and deviation of the train channels.

    The features are those of the signal in millivolts.
    """
    train = [cut for cut, held in zip(cuts, test, strict=True) if not held]
    tested = [cut for cut, held in zip(cuts, test, strict=True) if held]
    mean, std = _statistics(train, rhythms) if scale == "zscore" else (0.0, 1.0)

    def zscored(X: NDArray[np.float32]) -> NDArray[np.float32]:
        return ((X - mean) / std).astype(np.float32)

    for part, chosen in (("train", train), ("test", tested)):
        known = _known(part, chosen, rhythms)
        shape = (len(known["y"]), len(rhythms.channel_names), rhythms.length)
        pieces = _pieces(chosen, rhythms, f"{rhythms.name} {part}")
        blocks = [slice(first, first + BLOCK) for first in range(0, shape[0], BLOCK)]
        changes = [(rows, zscored) for rows in blocks] if scale == "zscore" else []
        save_part(folder / part, shape, pieces, known, features=features, changes=changes)


def _known(part: str, cuts: Sequence[Cut], rhythms: Rhythms) -> dict[str, Any]:
    n = sum(len(cut.kept) for cut in cuts)
    if n == 0:
        raise DataError(f"no window of {rhythms.name} {part} has one of the classes: split it anew")
    y, group = np.empty(n, np.int64), np.empty(n, object)
    for cut, rows in zip(cuts, _rows(cuts), strict=True):
        y[rows], group[rows] = cut.y[cut.kept], cut.group
    return {
        "y": y,
        "group": group.astype(str),
        "sfreq": rhythms.sfreq,
        "channel_names": rhythms.channel_names,
        "class_names": rhythms.class_names,
        "name": rhythms.name,
    }


def _rows(cuts: Sequence[Cut]) -> list[NDArray[np.int64]]:
    """Where the kept windows of each record go: all first windows, then all second ones, ..."""
    window = np.concatenate([cut.kept for cut in cuts])
    source = np.repeat(np.arange(len(cuts)), [len(cut.kept) for cut in cuts])
    position = np.empty(len(window), np.int64)
    position[np.lexsort((source, window))] = np.arange(len(window))
    return [position[source == i] for i in range(len(cuts))]


def _statistics(
    cuts: Sequence[Cut], rhythms: Rhythms
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of each channel, shaped (c, 1)."""
    c, count = len(rhythms.channel_names), 0
    total, square = np.zeros(c), np.zeros(c)
    for _, X in _pieces(cuts, rhythms, f"{rhythms.name} scale"):
        count += X.shape[0] * X.shape[2]
        total += X.sum(axis=(0, 2), dtype=np.float64)
        square += np.square(X, dtype=np.float64).sum(axis=(0, 2))
    mean = total / count
    std = np.sqrt(np.maximum(square / count - mean**2, 0))
    return mean[:, None], np.where(std > 0, std, 1.0)[:, None]


def _pieces(
    cuts: Sequence[Cut], rhythms: Rhythms, what: str
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    pairs = zip(cuts, _rows(cuts), strict=True)
    for cut, rows in tqdm(pairs, total=len(cuts), desc=what, unit="record", disable=None):
        yield rows, _signal_windows(cut, rhythms)


def _signal_windows(cut: Cut, rhythms: Rhythms) -> NDArray[np.float32]:
    """The kept windows of a record, (n, c, t)."""
    recording = read_wfdb(cut.record)
    names, c = recording.channel_names, len(rhythms.channel_names)
    if len(names) != c:
        raise DataError(f"{cut.record}.hea has the leads {names}: {c} leads are wanted")
    X = recording.X[_lead_order(names, rhythms), cut.first :]
    if missing := int(np.isnan(X).sum()):
        raise DataError(f"{cut.record}.dat has {missing} missing samples: leave this record out")
    if rhythms.ratio != 1:
        X = _resample(X, rhythms.ratio)
    n = len(cut.y)
    windows = X[:, : n * rhythms.length].reshape(c, n, rhythms.length).transpose(1, 0, 2)
    return np.ascontiguousarray(windows[cut.kept], np.float32)


def _lead_order(names: Sequence[str], rhythms: Rhythms) -> list[int]:
    """The channels in their file's order, but the leading one first where it is there."""
    return sorted(range(len(names)), key=lambda i: names[i] != rhythms.lead)


def _resample(X: NDArray[np.float32], ratio: Fraction) -> NDArray[np.float32]:
    from scipy.signal import resample_poly

    # an edge that goes on as a line: zeros there would ring at the electrode's offset
    padded: NDArray[np.float32] = resample_poly(
        X, ratio.numerator, ratio.denominator, axis=1, padtype="line"
    )
    return padded


def class_table(cuts: Sequence[Cut], rhythms: Rhythms, *, test: NDArray[np.bool_]) -> str:
    """Windows per class and record as a Markdown table."""
    names = rhythms.class_names
    counts = np.array([np.bincount(cut.y[cut.kept], minlength=len(names)) for cut in cuts])
    lines = [f"| record | part | {' | '.join(names)} | all |", "| --- " * (len(names) + 3) + "|"]
    for cut, held, row in zip(cuts, test, counts, strict=True):
        lines.append(_line(cut.record.name, "test" if held else "train", row))
    lines.append(_line("sum", "train", counts[~test].sum(axis=0)))
    lines.append(_line("sum", "test", counts[test].sum(axis=0)))
    return "\n".join(lines)


def _line(name: str, part: str, counts: NDArray[np.int64]) -> str:
    return f"| {name} | {part} | {' | '.join(map(str, counts))} | {counts.sum()} |"
