"""The filtered signals of UCI HAR, from one raw accelerometer and gyroscope recording."""

from __future__ import annotations

import logging
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expclr.arrays import numbers, positive
from expclr.errors import DataError

__all__ = ["HAR_CHANNELS", "HAR_SFREQ", "at_50_hz", "har_channels", "har_signals"]

log = logging.getLogger(__name__)

Array = NDArray[np.float64]

HAR_SFREQ = 50.0
HAR_CHANNELS = tuple(
    f"{signal}_{axis}" for signal in ("body_acc", "body_gyro", "total_acc") for axis in "xyz"
)


def har_signals(
    acc: ArrayLike, gyro: ArrayLike, *, sfreq: float = HAR_SFREQ
) -> dict[str, NDArray[np.float64]]:
    """Filter one continuous recording as the authors of UCI HAR did.

    Parameters
    ----------
    acc : array (t, 3)
        Accelerometer in g.
    gyro : array (t, 3)
        Gyroscope in rad/s, at the same timepoints.
    sfreq : float
        Sampling frequency; a recording at another rate than 50 Hz is resampled to it first.

    Returns
    -------
    dict of arrays (3, t)
        ``body_acc``, ``body_gyro``, ``total_acc``, ``gravity_acc``, ``body_acc_jerk`` and
        ``body_gyro_jerk`` at 50 Hz.

    Notes
    -----
    Noise: median of 3 samples (zeros beyond both ends), then a causal Butterworth low-pass of
    order 10 at 20 Hz (the dataset's read-me says 3; its signals say 10). Gravity: causal
    low-pass of order 3 at 0.3 Hz. The gyroscope loses its drift below 0.1 Hz, order 2. Jerk is
    the difference to the next sample, 0 at the last one, not divided by the time step.

    Across a gap (NaN) the filters see a straight line; all signals are NaN there.

    Examples
    --------
    >>> signals = har_signals(np.ones((200, 3)), np.zeros((200, 3)))
    >>> signals["body_acc"].shape
    (3, 200)
    """
    raw = _six_axes(acc, gyro)
    _warn_of_other_units(raw[:3])
    gap = np.asarray(~np.isfinite(raw).all(axis=0))
    x = at_50_hz(_bridged(raw, gap), sfreq)  # (6, t)
    x = _low_pass(_median(x), order=10, hertz=20.0)
    gravity = _low_pass(x[:3], order=3, hertz=0.3)
    drift = _low_pass(x[3:], order=2, hertz=0.1)
    if gap.any():
        nearest = np.arange(x.shape[1]) * len(gap) // x.shape[1]
        x[:, gap[nearest]] = np.nan
    body_acc, body_gyro = x[:3] - gravity, x[3:] - drift
    return {
        "body_acc": body_acc,
        "body_gyro": body_gyro,
        "total_acc": x[:3],
        "gravity_acc": gravity,
        "body_acc_jerk": np.diff(body_acc, append=body_acc[:, -1:]),
        "body_gyro_jerk": np.diff(body_gyro, append=body_gyro[:, -1:]),
    }


def har_channels(signals: dict[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """The nine channels of the dataset, (9, t), in the order of ``HAR_CHANNELS``."""
    return np.concatenate([signals[name] for name in ("body_acc", "body_gyro", "total_acc")])


def at_50_hz(x: Array, sfreq: float) -> Array:
    """Resample the last axis to 50 Hz."""
    from scipy.signal import resample_poly

    ratio = Fraction(HAR_SFREQ / positive(sfreq, "sfreq")).limit_denominator(1000)
    if ratio == 1:
        return x
    resampled: Array = resample_poly(x, ratio.numerator, ratio.denominator, axis=-1, padtype="line")
    return resampled


def _six_axes(acc: ArrayLike, gyro: ArrayLike) -> Array:
    sides = {"acc": numbers(acc, "acc"), "gyro": numbers(gyro, "gyro")}
    for what, values in sides.items():
        if values.ndim != 2 or values.shape[1] != 3 or len(values) < 2:
            raise DataError(
                f"{what} has shape {values.shape}: (t, 3) is wanted, a row for each timepoint"
            )
    if len(sides["acc"]) != len(sides["gyro"]):
        raise DataError(
            f"acc has {len(sides['acc'])} timepoints and gyro {len(sides['gyro'])}: "
            "bring both to the same clock first"
        )
    return np.concatenate(list(sides.values()), axis=1).T.astype(np.float64)


def _warn_of_other_units(acc: Array) -> None:
    size = float(np.nanmedian(np.linalg.norm(acc, axis=0))) if np.isfinite(acc).any() else 0.0
    if 5 < size < 20:
        log.warning("acc has a median size of %.1f: in m/s^2? Divide by 9.80665 to have g", size)


def _bridged(x: Array, gap: NDArray[np.bool_]) -> Array:
    if not gap.any():
        return x
    if gap.all():
        raise DataError("acc and gyro have no timepoint at which all six values are numbers")
    t = np.arange(len(gap))
    return np.stack([np.interp(t, t[~gap], axis[~gap]) for axis in x])


def _median(x: Array) -> Array:
    padded = np.pad(x, ((0, 0), (1, 1)))
    left, right = padded[:, :-2], padded[:, 2:]
    return np.maximum(np.minimum(left, right), np.minimum(x, np.maximum(left, right)))


def _low_pass(x: Array, *, order: int, hertz: float) -> Array:
    from scipy.signal import butter, sosfilt

    sections = butter(order, hertz, fs=HAR_SFREQ, output="sos")
    filtered: Array = sosfilt(sections, x, axis=-1)
    return filtered
