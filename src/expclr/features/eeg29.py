"""eeg29: 29 features in time and frequency of one EEG epoch, per channel."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from expclr.errors import DataError
from expclr.features.extractor import Extractor, Feature
from expclr.features.per_channel import ChannelListing, ChannelValues
from expclr.features.spectra import welch

__all__ = ["BANDS", "eeg29"]

Array = NDArray[np.float64]

BANDS = {
    "delta": (0.5, 4.0),
    "theta": (4.0, 8.0),
    "alpha": (8.0, 13.0),
    "sigma": (12.0, 16.0),
    "beta": (13.0, 30.0),
}
LOWEST, HIGHEST = 0.5, 30.0
SECONDS = 4  # of a Welch segment

LISTING = (
    Feature("mean", "x", "Mean"),
    Feature("std", "x", "Standard deviation"),
    Feature("skewness", "", "Skewness: above 0 when high values reach further than low ones"),
    Feature("kurtosis", "", "Excess kurtosis: above 0 when rare values are large"),
    Feature("min", "x", "Smallest value"),
    Feature("max", "x", "Largest value"),
    Feature("peak_to_peak", "x", "Largest minus smallest value"),
    Feature("rms", "x", "Root of the mean square"),
    Feature("zero_crossing_rate", "1/s", "How often per second the signal crosses its mean"),
    Feature("hjorth_mobility", "1/s", "Hjorth mobility: mean frequency, as an angular rate"),
    Feature("hjorth_complexity", "", "Hjorth complexity: 1 for a sine, more for mixed waves"),
    Feature("mean_abs_difference", "x", "Mean absolute difference of neighbouring samples"),
    *(
        Feature(f"log_power_{band}", "log10(x^2)", f"Power from {low:g} to {high:g} Hz, as log10")
        for band, (low, high) in BANDS.items()
    ),
    *(
        Feature(f"relative_power_{band}", "", f"Share of the power that {band} has")
        for band in BANDS
    ),
    Feature("ratio_delta_theta", "", "Power of delta divided by theta"),
    Feature("ratio_theta_alpha", "", "Power of theta divided by alpha"),
    Feature("ratio_alpha_beta", "", "Power of alpha divided by beta"),
    Feature("ratio_slow_fast", "", "Power of delta and theta divided by alpha and beta"),
    Feature("spectral_entropy", "", "Evenness of the spectrum: 0 for one line, 1 for noise"),
    Feature("spectral_edge_95", "Hz", "Frequency below which 95 % of the power lies"),
    Feature("peak_frequency", "Hz", "Frequency of the highest power"),
)


def eeg29_values(x: Array, sfreq: float) -> Array:
    """The 29 features (rows, 29) of x (rows, t)."""
    low, high = x.min(axis=1), x.max(axis=1)
    mean = np.clip(x.mean(axis=1), low, high)  # a flat signal must not vary by rounding
    centred = x - mean[:, None]
    in_time = [mean, *_shape(centred), low, high, high - low, *_waves(centred, mean, sfreq)]
    return np.concatenate([np.stack(in_time, axis=1), _in_frequency(centred, sfreq)], axis=1)


def _shape(centred: Array) -> list[Array]:
    square = centred * centred
    t = centred.shape[1]
    m2 = np.vecdot(centred, centred) / t
    m3, m4 = np.vecdot(square, centred) / t, np.vecdot(square, square) / t
    return [np.sqrt(m2), m3 / m2**1.5, m4 / m2**2 - 3]


def _waves(centred: Array, mean: Array, sfreq: float) -> list[Array]:
    first = np.diff(centred, axis=1)
    second = np.diff(first, axis=1)
    variance = [_variance(x) for x in (centred, first, second)]
    mobility, of_first = (np.sqrt(b / a) * sfreq for a, b in pairwise(variance))
    above = centred >= 0
    crossings = np.count_nonzero(above[:, 1:] != above[:, :-1], axis=1) / first.shape[1]
    steps = np.abs(first, out=first).mean(axis=1)
    rms = np.sqrt(variance[0] + mean**2)
    return [rms, crossings * sfreq, mobility, of_first / mobility, steps]


def _variance(x: Array) -> Array:
    return np.vecdot(x, x) / x.shape[1] - x.mean(axis=1) ** 2


def _in_frequency(centred: Array, sfreq: float) -> Array:
    hertz, density = welch(centred, sfreq, segment=round(SECONDS * sfreq))
    width = hertz[1] - hertz[0]
    power = {
        band: density[:, (hertz >= low) & (hertz < high)].sum(axis=1) * width
        if _reached(high, sfreq)
        else np.full(len(density), np.nan)
        for band, (low, high) in BANDS.items()
    }
    inside = (hertz >= LOWEST) & (hertz < HIGHEST)
    hertz, density = hertz[inside], density[:, inside]
    total = density.sum(axis=1)
    share = density / total[:, None]
    delta, theta, alpha, _, beta = power.values()
    columns = [np.log10(np.where(p > 0, p, np.nan)) for p in power.values()]
    columns += [p / (total * width) for p in power.values()]
    columns += [delta / theta, theta / alpha, alpha / beta, (delta + theta) / (alpha + beta)]
    columns.append(entr(share).sum(axis=1) / np.log(len(hertz)))
    columns.append(hertz[(share.cumsum(axis=1) >= 0.95).argmax(axis=1)])
    columns.append(hertz[density.argmax(axis=1)])
    F = np.stack(columns, axis=1)
    F[total == 0] = np.nan
    return F


def _reached(high: float, sfreq: float) -> bool:
    return sfreq >= 2 * high


def _check(c: int, t: int, sfreq: float) -> list[str]:
    if t < sfreq / 2 or t < 8:
        raise DataError(
            f"eeg29 wants epochs of at least half a second (8 samples), got {t} samples"
        )
    missing = [
        f"{band} ({low:g} to {high:g} Hz)"
        for band, (low, high) in BANDS.items()
        if not _reached(high, sfreq)
    ]
    if len(missing) == len(BANDS):
        raise DataError(f"eeg29 wants more than 8 Hz, got sfreq {sfreq:g}: no band can be measured")
    if not missing:
        return []
    return [
        f"sfreq {sfreq:g} Hz ends at {sfreq / 2:g} Hz, so that {', '.join(missing)} cannot be "
        f"measured: its features are NaN, and shares are of {LOWEST:g} to {sfreq / 2:g} Hz"
    ]


eeg29 = Extractor("eeg29", "1", ChannelListing(LISTING), ChannelValues(eeg29_values), _check)
