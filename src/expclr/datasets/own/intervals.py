"""Labels that are given as stretches of time: recording, start, end, label."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.datasets.own.chunks import Chunk, seconds
from expclr.datasets.own.tables import column_names, read_table
from expclr.errors import DataError

__all__ = ["Intervals", "read_intervals"]


@dataclass(frozen=True, eq=False)
class Intervals:
    """Stretches of one recording, sorted, in seconds; the end is not part of them."""

    start: NDArray[np.float64]
    end: NDArray[np.float64]
    label: NDArray[Any]
    where: str

    def __post_init__(self) -> None:
        if (self.end <= self.start).any() or (self.start[1:] < self.end[:-1]).any():
            raise DataError(
                f"{self.where}: each interval must end after its start, and none may overlap"
            )

    def at(self, time: NDArray[np.float64]) -> NDArray[Any]:
        """The label of each moment, "" outside all intervals."""
        if not len(self.start):
            return np.full(len(time), "")
        row = np.searchsorted(self.start, time, side="right") - 1
        inside = (row >= 0) & (time < self.end[row])
        return np.where(inside, self.label[row], "")

    def mark(self, chunks: Iterable[Chunk], sfreq: float | None) -> Iterator[Chunk]:
        """Put the labels to the samples; without times, those count from the first sample."""
        first, last, done, step = np.inf, -np.inf, 0, 0.0 if sfreq is None else 1 / sfreq
        for chunk in chunks:
            time = chunk.time
            if time is None:
                time = self._counted(done, len(chunk), sfreq)
            elif len(time) > 1:
                step = float(np.median(np.diff(time)))
            done += len(chunk)
            first, last = min(first, float(time[0])), max(last, float(time[-1]))
            yield replace(chunk, label=self.at(time))
        margin = 1e-6 + step
        if len(self.start) and (self.start[0] < first - margin or self.end[-1] > last + margin * 2):
            raise DataError(
                f"{self.where}: labels from {self.start[0]:g} to {self.end[-1]:g} s lie outside "
                f"the recording, which goes from {first:g} to {last:g} s"
            )

    def _counted(self, done: int, count: int, sfreq: float | None) -> NDArray[np.float64]:
        if sfreq is None:
            raise DataError(f"{self.where}: give sfreq= or time=, so that intervals can be placed")
        return np.arange(done, done + count) / sfreq


def read_intervals(path: str | Path) -> dict[str, Intervals]:
    """The intervals of each recording in a table with the columns recording, start, end, label.

    Without the column ``recording`` all belong to one, which is named "".

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "labels.csv"
    >>> _ = path.write_text("recording,start,end,label\\nmonday,0,2.5,idle\\nmonday,2.5,9,busy\\n")
    >>> read_intervals(path)["monday"].at(np.array([1.0, 2.5, 10.0])).tolist()
    ['idle', 'busy', '']
    """
    words = ["start", "end", "label"]
    if "recording" in column_names(path):
        words.append("recording")
    table = read_table(path, (), words)
    start, end = (seconds(table[name], str(path)) for name in ("start", "end"))
    if not (np.isfinite(start).all() and np.isfinite(end).all()):
        raise DataError(f"{path}: every interval needs a start and an end")
    recording = table.get("recording", np.full(len(start), ""))
    found = {}
    for name in np.unique(recording).tolist():
        rows = np.flatnonzero(recording == name)
        rows = rows[np.argsort(start[rows], kind="stable")]
        found[name] = Intervals(start[rows], end[rows], table["label"][rows], f"{path}, {name}")
    return found
