"""basic: 15 features of any signal, per channel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from expclr.errors import DataError
from expclr.features.extractor import Extractor, Feature
from expclr.features.per_channel import ChannelListing, ChannelValues

__all__ = ["basic"]

Array = NDArray[np.float64]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
LISTING = (
    Feature("mean", "x", "Mean"),
    Feature("std", "x", "Standard deviation"),
    Feature("min", "x", "Smallest value"),
    Feature("max", "x", "Largest value"),
    *(
        Feature(
            f"quantile_{round(100 * q):02d}", "x", f"Value that {q:.0%} of the samples are below"
        )
        for q in QUANTILES
    ),
    Feature("slope", "x/s", "Slope of the straight line that fits best"),
    Feature("crossing_rate", "1/s", "How often per second the signal crosses its mean"),
    Feature("dominant_frequency", "Hz", "Frequency of the highest peak of the spectrum"),
    Feature("spectral_centroid", "Hz", "Mean frequency, weighted by power"),
    Feature("spectral_entropy", "", "Evenness of the spectrum: 0 for one line, 1 for noise"),
    Feature("autocorrelation_time", "s", "Time after which the signal has forgotten itself to 1/e"),
)


def basic_values(x: Array, sfreq: float) -> Array:
    """The features (rows, d) of x (rows, t)."""
    # A flat signal must not seem to vary by the rounding of its mean.
    mean = np.clip(x.mean(axis=1), x.min(axis=1), x.max(axis=1))
    centred = x - mean[:, None]
    t = (np.arange(x.shape[1]) - (x.shape[1] - 1) / 2) / sfreq
    above = centred >= 0
    crossings = np.not_equal(above[:, 1:], above[:, :-1]).mean(axis=1) * sfreq
    columns = [mean, centred.std(axis=1), x.min(axis=1), x.max(axis=1)]
    columns += list(np.quantile(x, QUANTILES, axis=1))
    columns += [centred @ t / (t @ t), crossings]
    columns += _spectral(centred, sfreq)
    columns.append(_autocorrelation_time(centred) / sfreq)
    return np.stack(columns, axis=1)


def _spectral(centred: Array, sfreq: float) -> list[Array]:
    power = np.abs(np.fft.rfft(centred, axis=1)[:, 1:]) ** 2
    hertz = np.fft.rfftfreq(centred.shape[1], 1 / sfreq)[1:]
    share = power / power.sum(axis=1, keepdims=True)
    flat = np.isnan(share[:, 0])
    entropy = entr(share).sum(axis=1) / np.log(len(hertz))
    return [np.where(flat, np.nan, hertz[power.argmax(axis=1)]), share @ hertz, entropy]


def _autocorrelation_time(centred: Array) -> Array:
    """Samples until the autocorrelation is below 1/e, between two samples on a straight line."""
    t = centred.shape[1]
    power = np.abs(np.fft.rfft(centred, n=2 * t, axis=1)) ** 2
    correlation = np.fft.irfft(power, axis=1)[:, :t]
    correlation = correlation / correlation[:, :1]
    # A centred signal's correlations sum to -1/2, so one of them is below.
    after = np.maximum((correlation < 1 / np.e).argmax(axis=1), 1)
    rows = np.arange(len(centred))
    high, low = correlation[rows, after - 1], correlation[rows, after]
    time: Array = after - 1 + (high - 1 / np.e) / (high - low)
    return time


def _check(c: int, t: int, sfreq: float) -> list[str]:
    if t < 3:
        raise DataError(f"basic wants windows of at least 3 timepoints, got {t}")
    return []


basic = Extractor("basic", "1", ChannelListing(LISTING), ChannelValues(basic_values), _check)
