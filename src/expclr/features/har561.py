"""har561: the 561 features of UCI HAR, from accelerometer and gyroscope windows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.errors import DataError
from expclr.features.burg import burg
from expclr.features.extractor import Extractor
from expclr.features.har_names import BANDS, har_features
from expclr.features.har_signals import HAR_CHANNELS, HAR_SFREQ, at_50_hz

__all__ = ["har561", "har561_values"]

Array = NDArray[np.float64]
Statistics = dict[str, Array]  # name -> (n, rows)

PER_HERTZ = 2.56  # bins of a published window of 128 samples, which the bands count in
_AXES = [slice(first, first + 3) for first in (0, 3, 6, 9, 12)]
_MAGNITUDES = [slice(row, row + 1) for row in (15, 15, 16, 17, 18)]  # gravity's repeats the body's
_WITH_SPECTRUM = np.r_[0:3, 6:9, 9:12, 15:19]


def har561_values(X: NDArray[Any], sfreq: float = HAR_SFREQ, *, next_sample: bool = False) -> Array:
    """The 561 features (n, 561) of X (n, 9, t): body_acc, body_gyro, total_acc, axes X, Y, Z.

    ``next_sample`` says that each window carries one sample more than it has, the first after
    its end, which the jerk at the last sample needs. Without it the jerk before is repeated.
    """
    whole = np.isfinite(X).all(axis=(1, 2))
    x = at_50_hz(np.where(whole[:, None, None], X, 0.0), sfreq)
    time = _time_signals(x, next_sample=next_sample)  # (n, 19, t)
    with np.errstate(divide="ignore", invalid="ignore"):
        F = np.concatenate([*_time_blocks(time), *_spectrum_blocks(time, sfreq), _angles(time)], 1)
    F[~whole] = np.nan
    return F


def _check(c: int, t: int, sfreq: float) -> list[str]:
    if c != len(HAR_CHANNELS):
        raise DataError(
            f"har561 wants {len(HAR_CHANNELS)} channels, {', '.join(HAR_CHANNELS)}, and got {c}: "
            "cut windows with expclr.features.har_windows(acc, gyro)"
        )
    if t * HAR_SFREQ / sfreq < 16:
        raise DataError(f"har561 wants windows of at least 0.32 s (16 samples at 50 Hz), got {t}")
    missing = [f"{low}-{high}" for low, high in BANDS if not _reached(high, sfreq)]
    if not missing:
        return []
    return [f"sfreq {sfreq:g} Hz ends at {sfreq / 2:g} Hz: bandsEnergy of bins {missing} is NaN"]


def _reached(high: int, sfreq: float) -> bool:
    return sfreq >= HAR_SFREQ or high <= sfreq / 2 * PER_HERTZ


def _time_signals(X: Array, *, next_sample: bool) -> Array:
    """Five signals of three axes, then the magnitudes of all but gravity."""
    body_acc, body_gyro, total_acc = X[:, 0:3], X[:, 3:6], X[:, 6:9]
    acc_jerk, gyro_jerk = (_jerk(x, next_sample) for x in (body_acc, body_gyro))
    t = acc_jerk.shape[-1]
    axes = [body_acc[..., :t], (total_acc - body_acc)[..., :t], acc_jerk]
    axes += [body_gyro[..., :t], gyro_jerk]
    norms = [np.sqrt((x**2).sum(axis=1, keepdims=True)) for x in (axes[0], *axes[2:])]
    return np.concatenate(axes + norms, axis=1)


def _jerk(x: Array, next_sample: bool) -> Array:
    difference = np.diff(x, axis=-1)
    if next_sample:
        return difference
    return np.concatenate([difference, difference[..., -1:]], axis=-1)


def _time_blocks(x: Array) -> list[Array]:
    statistics = _statistics(x)
    ar = burg(x, order=4)
    blocks = []
    for rows in _AXES:
        blocks += [_common(statistics, rows), ar[:, rows].reshape(len(x), -1)]
        blocks.append(_correlations(x[:, rows] - statistics["mean"][:, rows, None]))
    for rows in _MAGNITUDES:
        blocks += [_common(statistics, rows), ar[:, rows].reshape(len(x), -1)]
    return blocks


def _spectrum_blocks(x: Array, sfreq: float) -> list[Array]:
    x = x[:, _WITH_SPECTRUM]
    t = x.shape[-1]
    P = np.abs(np.fft.rfft(x - _mean(x)[..., None]))[..., 1 : t // 2 + 1] / (t // 2)
    k = np.arange(1, t // 2 + 1) * (PER_HERTZ * HAR_SFREQ / t)  # in bins of the published window
    statistics = _statistics(P)
    shape = _shape(P)  # (n, 13, 2)
    peak, mean_frequency = k[P.argmax(axis=-1)] - 1, (P @ k) / P.sum(axis=-1)
    blocks = []
    for rows in (slice(0, 3), slice(3, 6), slice(6, 9), *(slice(i, i + 1) for i in range(9, 13))):
        blocks += [_common(statistics, rows), peak[:, rows], mean_frequency[:, rows]]
        blocks.append(shape[:, rows].reshape(len(x), -1))
        if rows.stop <= 9:
            blocks.append(_band_energies(P[:, rows], k, sfreq).reshape(len(x), -1))
    return blocks


def _mean(x: Array) -> Array:
    # Rounding may move the mean of a flat signal off its value; then it would seem to vary.
    return np.clip(x.mean(axis=-1), x.min(axis=-1), x.max(axis=-1))


def _statistics(x: Array) -> Statistics:
    t = x.shape[-1]
    ordered = np.sort(x, axis=-1)
    mean = np.clip(x.mean(axis=-1), ordered[..., 0], ordered[..., -1])
    centred = x - mean[..., None]
    return {
        "mean": mean,
        "std": np.sqrt(np.vecdot(centred, centred) / (t - 1)),
        "mad": np.abs(centred).mean(axis=-1),
        "max": ordered[..., -1],
        "min": ordered[..., 0],
        "sma": np.abs(x).mean(axis=-1),
        "energy": np.vecdot(x, x) / t,
        "iqr": _hazen(ordered, 0.75) - _hazen(ordered, 0.25),
        "entropy": _image_entropy(ordered),
    }


def _common(statistics: Statistics, rows: slice) -> Array:
    columns = {name: values[:, rows] for name, values in statistics.items()}
    columns["sma"] = columns["sma"].sum(axis=1, keepdims=True)
    return np.concatenate(list(columns.values()), axis=1)


def _hazen(ordered: Array, q: float) -> Array:
    at = q * ordered.shape[-1] - 0.5
    below = int(at)
    low, high = ordered[..., below], ordered[..., below + 1]
    quantile: Array = low + (at - below) * (high - low)
    return quantile


def _image_entropy(ordered: Array) -> Array:
    """Base-2 entropy of 256 levels between 0 and 1, from the lengths of runs of sorted values."""
    t = ordered.shape[-1]
    levels = (np.clip(ordered, 0, 1) * 255 + 0.5).astype(np.int16).reshape(-1, t)
    new = np.ones(levels.shape, dtype=bool)
    np.not_equal(levels[:, 1:], levels[:, :-1], out=new[:, 1:])
    starts = np.flatnonzero(new)
    p = np.arange(1, t + 1) / t
    minus_p_log_p = np.r_[0.0, -p * np.log2(p)]
    runs = minus_p_log_p[np.diff(starts, append=levels.size)]
    entropy: Array = np.add.reduceat(runs, np.flatnonzero(starts % t == 0))
    return entropy.reshape(ordered.shape[:-1])


def _correlations(centred: Array) -> Array:
    energy = np.vecdot(centred, centred)
    pairs = ((0, 1), (0, 2), (1, 2))
    return np.stack(
        [
            np.vecdot(centred[:, i], centred[:, j]) / np.sqrt(energy[:, i] * energy[:, j])
            for i, j in pairs
        ],
        axis=1,
    )


def _shape(P: Array) -> Array:
    """Skewness and excess kurtosis side by side, (n, rows, 2)."""
    centred = P - _mean(P)[..., None]
    square = centred**2
    m2 = square.mean(axis=-1)
    m3, m4 = (np.vecdot(square, other) / P.shape[-1] for other in (centred, square))
    return np.stack([m3 / m2**1.5, m4 / m2**2 - 3], axis=-1)


def _band_energies(P: Array, k: Array, sfreq: float) -> Array:
    square = P**2
    energies = [
        square[..., (k > low - 0.5) & (k < high + 0.5)].mean(axis=-1)
        if _reached(high, sfreq)
        else np.full(P.shape[:-1], np.nan)
        for low, high in BANDS
    ]
    return np.stack(energies, axis=-1)


def _angles(x: Array) -> Array:
    means = x[:, :15].mean(axis=-1).reshape(len(x), 5, 3)
    gravity = means[:, 1:2]
    axes = np.broadcast_to(np.eye(3), (len(x), 3, 3))
    a = np.concatenate([means[:, [0, 2, 3, 4]], axes], axis=1)
    cross = np.linalg.norm(np.cross(a, gravity), axis=-1)
    return np.arctan2(cross, np.vecdot(a, gravity))


har561 = Extractor("har561", "1", har_features, har561_values, _check)
