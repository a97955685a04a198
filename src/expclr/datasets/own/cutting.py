"""From the samples of cases to windows: cut, or one window for each case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from expclr.datasets.npy import BLOCK, NpyWriter, npy_header
from expclr.datasets.own.blocks import Block
from expclr.datasets.own.chunks import Chunk
from expclr.errors import ConfigError, DataError

__all__ = ["check_padding", "cut_windows", "whole_cases"]

MOST_LABELS = 1000
LARGEST_WINDOW = 1 << 27  # bytes
MOST_PADDING = 20  # padded values for each real one, in stores of some size


def cut_windows(chunks: Iterable[Chunk], length: int, step: int) -> Iterator[Block]:
    """Windows of ``length`` samples every ``step``, none across two cases.

    The label of a window is the most frequent one of its samples (of two, the first in order),
    its features are their means.

    Examples
    --------
    >>> chunk = Chunk("a", np.arange(10.0)[:, None], label=np.array(["u"] * 5 + ["v"] * 5))
    >>> block = next(cut_windows([chunk], length=4, step=3))
    >>> block.X[:, 0].tolist(), block.label.tolist()
    ([[0.0, 1.0, 2.0, 3.0], [3.0, 4.0, 5.0, 6.0], [6.0, 7.0, 8.0, 9.0]], ['u', 'u', 'v'])
    """
    if length < 1 or step < 1:
        raise ConfigError(f"length is {length} and step {step}: whole numbers from 1 are wanted")
    left: Chunk | None = None
    skip = 0
    for chunk in chunks:
        if 4 * length * chunk.X.shape[1] > LARGEST_WINDOW:
            raise ConfigError(f"length is {length}: so long a window does not fit in memory")
        if left is not None and left.case == chunk.case:
            chunk = left.then(chunk)
        else:
            skip = 0
        chunk, skip = chunk.part(skip), max(0, skip - len(chunk))
        count = max(0, (len(chunk) - length) // step + 1)
        yield from _blocks(chunk, count, length, step)
        left, skip = chunk.part(count * step), skip + max(0, count * step - len(chunk))


def _blocks(chunk: Chunk, count: int, length: int, step: int) -> Iterator[Block]:
    """The first ``count`` windows of a chunk, so many at a time as fit."""
    if count == 0:
        return
    windows = sliding_window_view(chunk.X, length, axis=0)[::step]  # (k, c, t)
    F = None if chunk.F is None else sliding_window_view(chunk.F, length, axis=0)[::step]
    codes = None if chunk.label is None else _label_windows(chunk.label, length, step)
    size = max(1, BLOCK // (4 * length * chunk.X.shape[1]))
    for start in range(0, count, size):
        at = slice(start, min(start + size, count))
        k = at.stop - start
        yield Block(
            np.ascontiguousarray(windows[at], np.float32),
            F=None if F is None else _mean(F[at]),
            label=None if codes is None else _majority(codes[0], codes[1][at]),
            group=np.repeat(chunk.case if chunk.group is None else chunk.group, k),
            case=np.repeat(chunk.case, k),
        )


def _mean(values: NDArray[Any]) -> NDArray[np.float64]:
    """Mean along the last axis of what is not NaN; NaN where all is."""
    known = ~np.isnan(values)
    count = known.sum(axis=-1)
    total = np.where(known, values, 0.0).sum(axis=-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _label_windows(
    label: NDArray[Any], length: int, step: int
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    names, codes = np.unique(label, return_inverse=True)
    if len(names) > MOST_LABELS:
        raise DataError(
            f"the labels have {len(names)} different values ({', '.join(map(str, names[:3]))}, "
            "...): a column with few classes is wanted"
        )
    return names, sliding_window_view(codes, length)[::step]


def _majority(names: NDArray[Any], windows: NDArray[np.int64]) -> NDArray[Any]:
    votes = np.stack([(windows == code).sum(axis=1) for code in range(len(names))])
    return names[votes.argmax(axis=0)]


@dataclass
class _Cases:
    """What is known of each case, one entry each."""

    case: list[str] = field(default_factory=list)
    length: list[int] = field(default_factory=list)
    label: list[Any] = field(default_factory=list)
    group: list[str | None] = field(default_factory=list)
    total: list[Any] = field(default_factory=list)  # sum of the features over samples
    known: list[Any] = field(default_factory=list)  # samples where they are not NaN

    def add(self, chunk: Chunk, where: str) -> None:
        labels = [None] if chunk.label is None else np.unique(chunk.label).tolist()
        if not self.case or self.case[-1] != chunk.case:
            self.case.append(chunk.case)
            self.length.append(0)
            self.label.append(labels[0])
            self.group.append(chunk.group)
            self.total.append(0.0)
            self.known.append(0)
        if len(labels) > 1 or labels[0] != self.label[-1]:
            raise DataError(
                f"{where}: case {chunk.case} has the labels {', '.join(map(str, labels[:5]))} and "
                "more: give one label for each case, or cut it into windows with length="
            )
        self.length[-1] += len(chunk)
        if chunk.F is not None:
            self.total[-1] = self.total[-1] + np.nansum(chunk.F, axis=0)
            self.known[-1] = self.known[-1] + (~np.isnan(chunk.F)).sum(axis=0)

    def features(self, at: slice) -> NDArray[np.float64] | None:
        """Mean of each feature over the samples of a case."""
        total, known = np.array(self.total[at]), np.array(self.known[at])
        if total.ndim == 1:
            return None
        return np.where(known > 0, total / np.maximum(known, 1), np.nan)


def whole_cases(chunks: Iterable[Chunk], scratch: Path, where: str) -> Iterator[Block]:
    """One window for each case, padded at the end to the longest.

    How long that is shows at the last case only: the samples wait in a file in ``scratch``.
    """
    path = scratch / "samples.npy"
    cases = _write_samples(chunks, path, where)
    check_padding(cases.length, where)
    _check_window(cases, path, where)
    yield from _padded(cases, path)
    path.unlink()


def _write_samples(chunks: Iterable[Chunk], path: Path, where: str) -> _Cases:
    cases = _Cases()
    with ExitStack() as stack:
        writer: NpyWriter | None = None
        for chunk in chunks:
            writer = writer or stack.enter_context(NpyWriter(path, (chunk.X.shape[1],)))
            cases.add(chunk, where)
            writer.append(chunk.X)
    if not cases.case:
        raise DataError(f"{where} holds no case")
    return cases


def check_padding(lengths: Sequence[int] | NDArray[np.int64], where: str) -> None:
    """Refuse series whose padding would fill memory: one that is far longer than the rest."""
    padded, real = len(lengths) * int(max(lengths)), int(sum(lengths))
    if padded > max(1 << 26, MOST_PADDING * real):
        raise DataError(
            f"{where}: {len(lengths)} series of {min(lengths)} to {max(lengths)} samples would be "
            f"padded to {padded / real:.0f} times their size: cut them into windows"
        )


def _check_window(cases: _Cases, path: Path, where: str) -> None:
    """A window must fit in memory some times over."""
    at = int(np.argmax(cases.length))
    if cases.length[at] * path.stat().st_size // sum(cases.length) > LARGEST_WINDOW:
        raise DataError(
            f"{where}: case {cases.case[at]} of {cases.length[at]:,} samples is too long for one "
            "window: cut it into windows with length="
        )


def _padded(cases: _Cases, path: Path) -> Iterator[Block]:
    lengths = np.array(cases.length)
    n, t = len(lengths), int(lengths.max())
    with path.open("rb") as file:
        (_, c), _ = npy_header(file, str(path))
        size = max(1, BLOCK // (4 * c * t))
        for start in range(0, n, size):
            at = slice(start, min(start + size, n))
            X = np.zeros((at.stop - start, c, t), np.float32)
            for row, length in zip(X, lengths[at], strict=True):
                samples = np.fromfile(file, np.float32, int(length) * c)
                row[:, :length] = samples.reshape(length, c).T
            yield Block(
                X,
                F=cases.features(at),
                label=_rows(cases.label[at]),
                group=_rows(cases.group[at]),
                case=np.array(cases.case[at]),
                lengths=None if lengths.min() == t else lengths[at],
            )


def _rows(values: Sequence[Any]) -> NDArray[Any] | None:
    return None if values[0] is None else np.array(values)
