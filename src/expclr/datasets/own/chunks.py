"""Cases (recordings, runs, patients) as they are read: some samples at a time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.errors import DataError

__all__ = ["Chunk", "Clock", "seconds"]

MOST_GAPS = 10  # rows put in for each row that is there; more means that the clock is misread


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive samples X (t, c) of one case, and what is known of them.

    ``time`` (t,) in seconds, ``label`` (t,) and ``F`` (t, d) go with the samples, ``group`` with
    the case.
    """

    case: str
    X: NDArray[Any]
    time: NDArray[np.float64] | None = None
    label: NDArray[Any] | None = None
    F: NDArray[Any] | None = None
    group: str | None = None

    def __len__(self) -> int:
        return len(self.X)

    def part(self, start: int, stop: int | None = None) -> Chunk:
        """The samples from ``start`` to ``stop``."""
        return self._each(lambda values: values[start:stop])

    def then(self, more: Chunk) -> Chunk:
        """This chunk with the next one of its case behind it."""
        after = iter([getattr(more, name) for name in _SAMPLES if getattr(self, name) is not None])
        return self._each(lambda values: np.concatenate([values, next(after)]))

    def _each(self, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Chunk:
        changed: dict[str, Any] = {
            name: change(values) for name in _SAMPLES if (values := getattr(self, name)) is not None
        }
        return replace(self, **changed)


_SAMPLES = ("X", "time", "label", "F")


@dataclass
class Clock:
    """Checks that times run evenly, and puts rows of NaN where samples are missing.

    The step is the median of the first chunk with two samples.
    """

    where: str
    longest: int
    step: float | None = None
    case: str | None = None
    last: float = 0.0

    def run(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """The chunks, evenly spaced and without their times."""
        for chunk in chunks:
            yield chunk if chunk.time is None else self._even(chunk, chunk.time)

    def _even(self, chunk: Chunk, time: NDArray[np.float64]) -> Chunk:
        if not np.isfinite(time).all():
            raise DataError(f"{self.where}: case {chunk.case} has samples without a time")
        before = self.last if self.case == chunk.case else None
        steps = np.diff(time) if before is None else np.diff(time, prepend=before)
        self.case, self.last = chunk.case, float(time[-1])
        if (steps <= 0).any():
            raise DataError(
                f"{self.where}: the times of case {chunk.case} do not increase: sort the rows by "
                "case and time"
            )
        if self.step is None and len(steps):
            self.step = float(np.median(steps))
        if self.step is None:
            return replace(chunk, time=None)
        jumps = self._jumps(steps / self.step, chunk.case)
        if before is None:
            self._check_pace(steps, chunk.case)
            jumps = np.concatenate([[1], jumps])
        return _with_gaps(chunk, np.minimum(jumps, self.longest + 2), self.where)

    def _check_pace(self, steps: NDArray[np.float64], case: str) -> None:
        """Half of all samples missing means that this case has a slower clock."""
        if len(steps) > 2 and self.step and np.median(steps) > 1.5 * self.step:
            raise DataError(
                f"{self.where}: case {case} has a sample every {np.median(steps):g} s, others "
                f"every {self.step:g} s: bring them to one rate"
            )

    def _jumps(self, ratio: NDArray[np.float64], case: str) -> NDArray[np.int64]:
        """Steps as whole multiples of the clock's."""
        ratio = np.minimum(ratio, 1e9)
        jumps = np.maximum(1, np.rint(ratio)).astype(np.int64)
        uneven = np.abs(ratio - jumps) > 0.3
        if uneven.sum() > 0.05 * len(uneven):
            raise DataError(
                f"{self.where}: case {case} is sampled unevenly, {uneven.sum()} of {len(uneven)} "
                f"steps are no multiple of {self.step:g} s: resample it first"
            )
        return jumps


def _with_gaps(chunk: Chunk, jumps: NDArray[np.int64], where: str) -> Chunk:
    """Put ``jumps - 1`` rows of NaN before each row; they carry its label and features."""
    total = int(jumps.sum())
    if total == len(jumps):
        return replace(chunk, time=None)
    if total > MOST_GAPS * len(jumps) + 1000:
        raise DataError(
            f"{where}: case {chunk.case} would be mostly gaps ({total - len(jumps)} missing "
            f"between {len(jumps)} samples): is its time column right?"
        )
    X = np.full((total, chunk.X.shape[1]), np.nan, np.float32)
    X[np.cumsum(jumps) - 1] = chunk.X
    label = None if chunk.label is None else np.repeat(chunk.label, jumps)
    F = None if chunk.F is None else np.repeat(chunk.F, jumps, axis=0)
    return replace(chunk, X=X, time=None, label=label, F=F)


def seconds(cells: NDArray[Any], where: str) -> NDArray[np.float64]:
    """Times as written: numbers, or dates such as 2024-05-01T12:00:00.02, of UTC unless they say.

    >>> seconds(np.array(["1970-01-01 00:00:01", "1970-01-01 01:00:01.5+01:00"]), "a.csv").tolist()
    [1.0, 1.5]
    """
    try:
        return cells.astype(np.float64)
    except ValueError:
        pass
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that numpy goes over to UTC, which is meant
            return cells.astype("datetime64[ns]").astype(np.int64) / 1e9
    except ValueError as error:
        raise DataError(f"{where}: {error}; times are numbers or ISO dates") from error
