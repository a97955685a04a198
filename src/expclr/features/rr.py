"""Statistics of the intervals between heartbeats, of many windows at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from expclr.features.extractor import Feature

__all__ = ["RR_LISTING", "rr_features"]

Array = NDArray[np.float64]

MILLISECONDS = (1, *range(10, 101, 10), 200, 400, 600, 800)
FEWEST_BEATS = 3
_STATISTICS = {
    "min": "Smallest",
    "max": "Largest",
    "mean": "Mean",
    "median": "Median",
    "std": "Standard deviation of the",
    "skew": "Skewness of the",
    "kurtosis": "Excess kurtosis of the",
    "rms": "Root mean square of the",
}
_SERIES = {
    "rri": "interval between two beats",
    "diff_rri": "change from one interval to the next",
    "diff2_rri": "change of that change",
}


def _listing() -> list[Feature]:
    listing = [
        Feature(f"{series}_{name}", "" if name in ("skew", "kurtosis") else "s", f"{what} {words}")
        for series, words in _SERIES.items()
        for name, what in _STATISTICS.items()
        if (series, name) != ("diff2_rri", "skew")
    ]
    return listing + [
        Feature(f"pnn{ms:02d}", "%", f"Share of intervals that change by more than {ms} ms")
        for ms in MILLISECONDS
    ]


RR_LISTING = _listing()


def rr_features(peaks: Array, sfreq: float) -> Array:
    """The 38 features (rows, 38) of R peaks (rows, k) at sample positions, in order.

    A rejected peak is NaN, and the intervals on both its sides are left out. A row with fewer
    than 3 peaks is NaN.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        F = _columns(np.pad(peaks, ((0, 0), (0, 3)), constant_values=np.nan), sfreq)
    F[np.isfinite(peaks).sum(axis=1) < FEWEST_BEATS] = np.nan
    return F


def _columns(peaks: Array, sfreq: float) -> Array:
    samples = np.diff(peaks, axis=1)  # whole numbers, so that what is equal stays equal
    first, second = np.diff(samples, axis=1), np.diff(samples, n=2, axis=1)
    columns = [*_summary(samples / sfreq).values(), *_summary(first / sfreq).values()]
    columns += [v for name, v in _summary(second / sfreq).items() if name != "skew"]
    changes = np.isfinite(first).sum(axis=1)
    columns += [
        100 * (np.abs(first) > ms * sfreq / 1000).sum(axis=1) / changes for ms in MILLISECONDS
    ]
    return np.stack(columns, axis=1)


def _summary(values: Array) -> dict[str, Array]:
    """Statistics of each row over the values that are not NaN."""
    ordered = np.sort(values, axis=1)  # NaN last
    n = np.isfinite(values).sum(axis=1)
    rows = np.arange(len(values))
    low, high = ordered[:, 0], ordered[rows, np.maximum(n - 1, 0)]
    mean = np.clip(np.nansum(values, axis=1) / n, low, high)
    centred = np.nan_to_num(values - mean[:, None])
    m2, m3, m4 = ((centred**p).sum(axis=1) / n for p in (2, 3, 4))
    middle = ordered[rows, np.maximum(n - 1, 0) // 2] + ordered[rows, n // 2 - (n == 0)]
    return {
        "min": low,
        "max": high,
        "mean": mean,
        "median": middle / 2,
        "std": np.sqrt(m2 * n / np.where(n > 1, n - 1, np.nan)),
        "skew": m3 / m2**1.5,
        "kurtosis": m4 / m2**2 - 3,
        "rms": np.sqrt(np.nansum(values**2, axis=1) / n),
    }
