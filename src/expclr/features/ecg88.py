"""ecg88: 88 features of one ECG channel: waveform, wavelets, RR intervals, detection."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.signal import fftconvolve, firwin

from expclr.errors import ConfigError, DataError
from expclr.features.beats import accepted, beats_inside, median_template, padded
from expclr.features.extractor import Extractor, Feature
from expclr.features.higuchi import higuchi
from expclr.features.per_channel import ChannelListing, ChannelValues
from expclr.features.rpeaks import DETECTOR, LOWEST_SFREQ, find_rpeaks
from expclr.features.rr import RR_LISTING, rr_features
from expclr.features.spectra import welch

__all__ = ["ecg88", "ecg88_values"]

Array = NDArray[np.float64]

PASS = (3.0, 45.0)
BANDS = {"low": (3.0, 10.0), "med": (10.0, 30.0), "high": (30.0, 45.0)}
WAVELET, LEVELS = "db4", 4
ZEROS = 112  # on each side before the wavelet transform: its filters reach 105 samples
SMALLEST = np.finfo(np.float64).tiny

_WAVEFORM = [
    Feature("min", "R", "Smallest value, in heights of the R peak"),
    Feature("max", "R", "Largest value, in heights of the R peak"),
    Feature("mean", "R", "Mean, in heights of the R peak"),
    Feature("median", "R", "Median, in heights of the R peak"),
    Feature("std", "R", "Standard deviation, in heights of the R peak"),
    Feature("skew", "", "Skewness of the values"),
    Feature("kurtosis", "", "Excess kurtosis of the values"),
    Feature("duration", "s", "Length of the window"),
]
_PARTS = {"d": "detail", "a": "approximation"}


def _wavelet_listing(part: str, level: int) -> list[Feature]:
    name = f"swt_{part}_{level}"
    words = f"the wavelet {_PARTS[part]} at level {level} (1 is the coarsest)"
    ratios = [
        Feature(
            f"{name}_{band}_power_ratio",
            "1/Hz",
            f"Highest power density over power from {low:g} to {high:g} Hz in {words}",
        )
        for band, (low, high) in BANDS.items()
    ]
    return [
        *ratios,
        Feature(f"{name}_energy_entropy", "", f"Sum of log10 of the squares of {words}"),
        Feature(f"{name}_higuchi_fractal", "", f"Higuchi fractal dimension of {words}"),
    ]


LISTING = (
    *(f._replace(name=f"full_waveform_{f.name}") for f in _WAVEFORM),
    *(f for i in range(1, LEVELS + 1) for part in _PARTS for f in _wavelet_listing(part, i)),
    *RR_LISTING,
    Feature("rpeak_detection_success", "", "R peaks found over R peaks that the median RR expects"),
    Feature("rpeak_rejected_fraction", "", "Share of the R peaks that look unlike the others"),
)


def ecg88_values(
    x: Array, sfreq: float, *, peaks: Sequence[NDArray[np.int64]] | None = None
) -> Array:
    """The 88 features (rows, 88) of x (rows, t); R peaks are looked for unless given."""
    t = x.shape[1]
    flat = x.max(axis=1) == x.min(axis=1)
    y = np.where(flat[:, None], 0.0, _band_pass(x, sfreq))
    found = [find_rpeaks(row, sfreq) for row in x] if peaks is None else peaks
    beats = beats_inside(padded(found), t, sfreq)
    median = median_template(y, beats, sfreq)
    with np.errstate(divide="ignore", invalid="ignore"):
        good = accepted(y, beats, median, sfreq)
        rr = rr_features(good, sfreq)
        detection = _detection(beats.there, good, rr[:, 3], t / sfreq)
        y = _scaled(y, median)
        F = np.concatenate([_waveform(y, sfreq), _wavelets(y, sfreq), rr, detection], axis=1)
    F[flat] = np.nan
    return F


def _band_pass(x: Array, sfreq: float) -> Array:
    """Zero-phase FIR filter: forwards and backwards are one symmetric kernel."""
    taps = int(0.3 * sfreq) | 1
    cut = PASS if _reached(PASS[1], sfreq) else PASS[:1]
    h = firwin(taps, cut, pass_zero=False, fs=sfreq)
    start = 2 * x[:, :1] - x[:, taps - 1 : 0 : -1]
    end = 2 * x[:, -1:] - x[:, -2 : -taps - 1 : -1]
    extended = np.concatenate([start, x, end], axis=1)
    y: Array = fftconvolve(extended, np.convolve(h, h[::-1])[None], mode="valid", axes=1)
    return y


def _scaled(y: Array, median: Array) -> Array:
    """R peaks upwards and of height 1; by the largest value where there is no beat."""
    low, high = median.min(axis=1), median.max(axis=1)
    height = np.where(np.abs(low) > np.abs(high), low, high)
    height = np.where(np.abs(height) > 0, height, np.abs(y).max(axis=1))
    return y / height[:, None]


def _waveform(y: Array, sfreq: float) -> Array:
    t = y.shape[1]
    mean = y.mean(axis=1)
    centred = y - mean[:, None]
    square = centred**2
    m2, m3, m4 = square.mean(axis=1), np.vecdot(square, centred) / t, np.vecdot(square, square) / t
    duration = np.full(len(y), (t - 1) / sfreq * (t - 1) / t)
    columns = [y.min(axis=1), y.max(axis=1), mean, np.median(y, axis=1), np.sqrt(m2)]
    return np.stack([*columns, m3 / m2**1.5, m4 / m2**2 - 3, duration], axis=1)


def _wavelets(y: Array, sfreq: float) -> Array:
    columns = []
    for approximation, detail in _stationary(y):
        for x in (detail, approximation):
            hertz, power = welch(x, sfreq, segment=256)
            columns += [_power_ratio(hertz, power, band, sfreq) for band in BANDS.values()]
            columns.append(np.log10(np.maximum(x**2, SMALLEST)).sum(axis=1))
            columns.append(higuchi(x))
    return np.stack(columns, axis=1)


def _stationary(y: Array) -> list[tuple[Array, Array]]:
    """Approximation and detail (rows, t) of each level, the coarsest first."""
    try:
        from pywt import swt
    except ImportError as error:
        raise ConfigError('ecg88 needs PyWavelets: pip install "expclr[ecg]"') from error
    t = y.shape[1]
    y = np.pad(y, ((0, 0), (ZEROS, ZEROS + -t % 2**LEVELS)))
    levels = swt(y, WAVELET, LEVELS, axis=1)
    return [(a[:, ZEROS : ZEROS + t], d[:, ZEROS : ZEROS + t]) for a, d in levels]


def _power_ratio(hertz: Array, power: Array, band: tuple[float, float], sfreq: float) -> Array:
    low, high = band
    inside = (hertz >= low) & (hertz < high)
    if not _reached(high, sfreq) or inside.sum() < 2:
        return np.full(len(power), np.nan)
    highest = power[:, inside].max(axis=1)
    return highest / np.trapezoid(power[:, inside], hertz[inside], axis=1)


def _detection(there: NDArray[np.bool_], good: Array, median_rri: Array, seconds: float) -> Array:
    found = there.sum(axis=1)
    expected = np.ceil(seconds / median_rri)
    rejected = found - np.isfinite(good).sum(axis=1)
    return np.stack([found / expected, rejected / found], axis=1)


def _reached(high: float, sfreq: float) -> bool:
    return sfreq > 2 * high


def _check(c: int, t: int, sfreq: float) -> list[str]:
    if sfreq <= 2 * PASS[0] or t < sfreq or t < 32:
        raise DataError(
            f"ecg88 wants at least a second (32 samples) at more than 6 Hz, got {t} samples "
            f"at {sfreq:g} Hz"
        )
    end = f"sfreq {sfreq:g} Hz ends at {sfreq / 2:g} Hz"
    lines = [
        f"{end}: the {band} power ratios ({low:g} to {high:g} Hz) are NaN"
        for band, (low, high) in BANDS.items()
        if not _reached(high, sfreq)
    ]
    if sfreq < LOWEST_SFREQ:
        lines.append(f"{end}: R peaks need 5 to 30 Hz, so that all that rests on them is NaN")
    return lines


ecg88 = Extractor(
    "ecg88",
    "3",
    ChannelListing(LISTING),
    ChannelValues(ecg88_values),
    _check,
    uses=f"R peaks by {DETECTOR}",
)
