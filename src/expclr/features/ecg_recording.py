"""ECG windows with their features, from a recording whose R peaks are found as a whole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expclr.arrays import numbers, positive
from expclr.errors import DataError
from expclr.features.ecg88 import ecg88, ecg88_values
from expclr.features.extractor import channel_names
from expclr.features.per_channel import ChannelValues
from expclr.features.rpeaks import find_rpeaks
from expclr.windows import Windows

__all__ = ["ecg_windows"]

PIECE = 32  # windows computed together


def ecg_windows(
    ecg: ArrayLike,
    sfreq: float,
    *,
    seconds: float = 10.0,
    step: float | None = None,
    starts: ArrayLike | None = None,
    channels: Sequence[str] = (),
) -> Windows:
    """Cut a recording into windows and compute the 88 features of each channel.

    R peaks are found in the whole recording, so that the detector has settled and no window
    begins without it; each window then takes those inside it.

    Parameters
    ----------
    ecg : array (c, t) or (t,)
    sfreq : float
        In Hz.
    seconds, step : float
        Length of the windows and from one start to the next; default without overlap.
    starts : array of int, optional
        First sample of each window, instead of ``step``.
    channels : sequence of str, optional
        Names, such as ("MLII", "V1").

    Examples
    --------
    >>> beats = np.tile(np.exp(-(((np.arange(200) - 100) / 4) ** 2)), 40)
    >>> windows = ecg_windows(beats, 250.0)
    >>> windows
    Windows(3 windows, 1 channels x 2500 timepoints, 88 features)
    >>> windows.F[0, windows.feature_names.index("ch0_rri_mean")]
    np.float64(0.8)
    """
    x = np.atleast_2d(numbers(ecg, "ecg")).astype(np.float64)
    if x.ndim != 2:
        raise DataError(f"ecg has shape {x.shape}: (channels, timepoints) is wanted")
    names = channel_names(tuple(channels) or len(x))
    length = round(seconds * positive(sfreq, "sfreq"))
    every = round((step or seconds) * sfreq)
    t = x.shape[1]
    first = np.arange(0, t - length + 1, every) if starts is None else np.asarray(starts)
    if not len(first) or first.min() < 0 or first.max() + length > t:
        raise DataError(f"windows of {length} samples do not fit a recording of {t} samples")
    ecg88.check(len(x), length, sfreq)
    peaks = [find_rpeaks(_bridged(channel), sfreq) for channel in x]
    X = np.stack([x[:, start : start + length] for start in first])
    blocks = [
        _features(X[i : i + PIECE], first[i : i + PIECE], peaks, sfreq)
        for i in range(0, len(X), PIECE)
    ]
    return Windows(
        X.astype(np.float32),
        F=np.concatenate(blocks),
        sfreq=sfreq,
        channel_names=names,
        feature_names=ecg88.names(names),
    )


def _features(
    X: NDArray[np.float64],
    starts: NDArray[np.int64],
    peaks: Sequence[NDArray[np.int64]],
    sfreq: float,
) -> NDArray[np.float64]:
    inside = [
        at[(at >= start) & (at < start + X.shape[2])] - start for start in starts for at in peaks
    ]

    def values(x: NDArray[np.float64], hertz: float) -> NDArray[np.float64]:
        return ecg88_values(x, hertz, peaks=inside)

    return ChannelValues(values)(X, sfreq)


def _bridged(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Straight lines across what is not finite."""
    good = np.isfinite(x)
    if good.all() or not good.any():
        return np.where(good, x, 0.0)
    return np.interp(np.arange(len(x)), np.flatnonzero(good), x[good])
