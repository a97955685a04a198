"""The beats of many ECG windows at once: templates around R peaks, kept, moved or rejected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Beats", "accepted", "beats_inside", "median_template", "padded"]

Array = NDArray[np.float64]

BEFORE, AFTER = 0.2, 0.4  # seconds of a template before and after its R peak
REACH = 0.1  # seconds: half the width that is compared, and how far a peak may be moved
ALIKE = 0.9


class Beats(NamedTuple):
    """R peaks of each row, filled up with -1; the template around each lies inside the window."""

    at: NDArray[np.int64]  # (rows, k)
    there: NDArray[np.bool_]  # (rows, k)


def padded(peaks: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Positions of unequal number as rows (rows, k) filled up with -1."""
    k = max((len(p) for p in peaks), default=0)
    at = np.full((len(peaks), max(k, 1)), -1)
    for row, p in zip(at, peaks, strict=True):
        row[: len(p)] = np.sort(p)
    return at


def beats_inside(peaks: NDArray[np.int64], t: int, sfreq: float) -> Beats:
    """Drop the peaks whose template would leave the window."""
    there = (peaks >= int(BEFORE * sfreq)) & (peaks + int(AFTER * sfreq) <= t) & (peaks >= 0)
    return Beats(np.where(there, peaks, -1), there)


def median_template(y: Array, beats: Beats, sfreq: float) -> Array:
    """Median over the beats of each row, (rows, l); NaN in rows without a beat."""
    around = np.arange(-int(BEFORE * sfreq), int(AFTER * sfreq))
    templates = _cut(y, beats.at, around)  # (rows, k, l)
    templates[~beats.there] = np.inf
    ordered = np.sort(templates.transpose(0, 2, 1), axis=2)
    n = beats.there.sum(axis=1)
    rows = np.arange(len(y))
    low, high = (ordered[rows, :, np.maximum(i, 0)] for i in ((n - 1) // 2, n // 2))
    return np.where(n[:, None] > 0, (low + high) / 2, np.nan)


def accepted(y: Array, beats: Beats, median: Array, sfreq: float) -> Array:
    """R peaks as float positions (rows, k), in order; NaN for those rejected.

    A peak whose surroundings correlate less than 0.9 with the median template is moved to
    where they correlate most, up to 0.1 s away; if that is below 0.9 too, it is rejected.
    """
    before, after = int(BEFORE * sfreq), int(AFTER * sfreq)
    reach = min(round(REACH * sfreq), before, after)
    core = np.arange(-reach, reach)
    wanted = median[:, before + core]  # (rows, 2 reach)
    alike = _correlation(_cut(y, beats.at, core), wanted[:, None])
    at = np.where(beats.there, beats.at, np.nan)
    rows, columns = np.nonzero(beats.there & ~(alike >= ALIKE))
    peaks = beats.at[rows, columns]
    nearby = _cut(y[rows], peaks[:, None], np.arange(-2 * reach, 2 * reach))[:, 0]
    shifted = np.lib.stride_tricks.sliding_window_view(nearby, 2 * reach, axis=1)
    alike = _correlation(shifted, wanted[rows][:, None])  # (b, 2 reach + 1)
    place = peaks[:, None] + np.arange(-reach, reach + 1)
    inside = (place >= before) & (place + after <= y.shape[1]) & ~np.isnan(alike)
    alike = np.where(inside, alike, -1.0)
    best = np.arange(len(rows)), alike.argmax(axis=1)
    at[rows, columns] = np.where(alike[best] >= ALIKE, place[best], np.nan)
    return at


def _cut(y: Array, at: NDArray[np.int64], around: NDArray[np.int64]) -> Array:
    """Pieces (rows, k, l) of the rows of y around the positions (rows, k)."""
    index = np.clip(at[:, :, None] + around, 0, y.shape[1] - 1)
    return y[np.arange(len(y))[:, None, None], index]


def _correlation(x: Array, wanted: Array) -> Array:
    """Pearson's, along the last axis; x is not copied."""
    b = wanted - wanted.mean(axis=-1, keepdims=True)
    sums = x.sum(axis=-1)
    energy = np.vecdot(x, x) - sums * sums / x.shape[-1]
    return np.vecdot(x, b) / np.sqrt(energy * np.vecdot(b, b))
