"""HAR windows with their 561 features, from the raw recording of any phone or watch."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expclr.errors import ConfigError, DataError
from expclr.features.har561 import har561, har561_values
from expclr.features.har_signals import HAR_CHANNELS, HAR_SFREQ, har_channels, har_signals
from expclr.windows import Windows

__all__ = ["har_scale", "har_windows"]


def har_windows(
    acc: ArrayLike,
    gyro: ArrayLike,
    *,
    sfreq: float = HAR_SFREQ,
    starts: ArrayLike | None = None,
    length: int = 128,
    step: int = 64,
) -> Windows:
    """Filter a recording, cut it into windows and compute their features.

    The features come from the continuous signals in double precision: on the recordings
    behind UCI HAR they are the published ones.

    Parameters
    ----------
    acc : array (t, 3)
        Accelerometer in g.
    gyro : array (t, 3)
        Gyroscope in rad/s, at the same timepoints.
    sfreq : float
        Of the recording; it is resampled to 50 Hz first.
    starts : array of int, optional
        First sample of each window, at 50 Hz; default every ``step`` samples.
    length, step : int
        Of the windows, in samples at 50 Hz; the dataset has 128 and 64.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> har_windows(rng.normal(size=(600, 3)), rng.normal(size=(600, 3)), sfreq=100.0)
    Windows(3 windows, 9 channels x 128 timepoints, 561 features)
    """
    signals = har_channels(har_signals(acc, gyro, sfreq=sfreq))
    t = signals.shape[1]
    first = np.arange(0, t - length + 1, step) if starts is None else np.asarray(starts)
    if not len(first) or first.min() < 0 or first.max() + length > t:
        raise DataError(
            f"windows of {length} samples do not fit a recording of {t} samples at 50 Hz"
            + ("" if starts is None else f" with starts from {first.min()} to {first.max()}")
        )
    longer = np.concatenate([signals, signals[:, -1:]], axis=1)  # jerk 0 at the very end
    X = np.stack([longer[:, start : start + length + 1] for start in first])
    return Windows(
        X[..., :-1],
        F=har561_values(X, next_sample=True),
        sfreq=HAR_SFREQ,
        channel_names=HAR_CHANNELS,
        feature_names=har561.names(HAR_CHANNELS),
    )


def har_scale(
    train: ArrayLike, test: ArrayLike, *, scaling: str = "train"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scale each feature to [-1, 1].

    ``scaling="train"`` takes smallest and largest value from the training part;
    ``"published"`` takes them from both parts together, as the published features do: then
    the training part knows something of the test part.

    Examples
    --------
    >>> train, test = har_scale([[0.0], [1.0]], [[2.0]])
    >>> train.ravel().tolist(), test.ravel().tolist()
    ([-1.0, 1.0], [3.0])
    """
    if scaling not in ("train", "published"):
        raise ConfigError(f"scaling is {scaling!r}: 'train' or 'published' is wanted")
    parts = np.asarray(train, np.float64), np.asarray(test, np.float64)
    known = parts[0] if scaling == "train" else np.concatenate(parts)
    low, high = np.fmin.reduce(known, axis=0), np.fmax.reduce(known, axis=0)
    span = np.where(high > low, high - low, 1.0)
    scaled = [2 * (part - low) / span - 1 for part in parts]
    return scaled[0], scaled[1]
