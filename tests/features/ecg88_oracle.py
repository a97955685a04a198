"""The 88 features of one channel of one ECG window, written from their formulas."""

import numpy as np
import pywt
from scipy import signal, stats

from expclr.features.rpeaks import find_rpeaks


def ecg88_loop(windows, sfreq):
    """(n, 88 c) of windows (n, c, t)."""
    return np.array([np.concatenate([one_channel(x, sfreq) for x in w]) for w in windows])


def one_channel(x, sfreq, peaks=None):
    y = filtered(x, sfreq)
    peaks = find_rpeaks(x, sfreq) if peaks is None else peaks
    before, after = int(0.2 * sfreq), int(0.4 * sfreq)
    peaks = [p for p in peaks if p - before >= 0 and p + after <= len(y)]
    if peaks:
        median = np.median([y[p - before : p + after] for p in peaks], axis=0)
        if abs(median.min()) > abs(median.max()):
            y, median = -y, -median
        y, median = y / median.max(), median / median.max()
        good = [checked(y, p, median, before, after, sfreq) for p in peaks]
    else:
        y, good = y / np.abs(y).max(), []
    rr = rr_values(np.array(good, float), sfreq)
    expected = np.ceil(len(x) / sfreq / rr[3])
    detection = [len(peaks) / expected, np.mean(np.isnan(good)) if peaks else np.nan]
    return [*waveform(y, sfreq), *wavelets(y, sfreq), *rr, *detection]


def filtered(x, sfreq):
    order = int(0.3 * sfreq)
    order += order % 2 == 0
    return signal.filtfilt(signal.firwin(order, [3, 45], pass_zero=False, fs=sfreq), [1], x)


def checked(y, peak, median, before, after, sfreq):
    """The peak, the best place near it, or NaN."""
    reach = round(0.1 * sfreq)
    core = median[before - reach : before + reach]

    def alike(p):
        if p - before < 0 or p + after > len(y):
            return -1
        return np.corrcoef(core, y[p - reach : p + reach])[0, 1]

    if alike(peak) >= 0.9:
        return peak
    best = max(range(peak - reach, peak + reach + 1), key=alike)
    return best if alike(best) >= 0.9 else np.nan


def waveform(y, sfreq):
    t = len(y)
    values = [y.min(), y.max(), y.mean(), np.median(y), y.std(), stats.skew(y), stats.kurtosis(y)]
    return [*values, np.linspace(0, (t - 1) / sfreq, t, endpoint=False).max()]


def wavelets(y, sfreq):
    t = len(y)
    length = 2 * t  # zeros on both sides even where t is a multiple of 16
    while length % 16:
        length += t
    left = (length - t) // 2
    padded = np.concatenate([np.zeros(left), y, np.zeros(length - t - left)])
    values = []
    for level in pywt.swtn(padded, "db4", 4):
        for part in "da":
            x = level[part][left : left + t]
            hertz, power = signal.welch(x, sfreq)
            for low, high in ((3, 10), (10, 30), (30, 45)):
                inside = (hertz >= low) & (hertz < high)
                values.append(power[inside].max() / np.trapezoid(power[inside], hertz[inside]))
            values.append(np.sum(np.log10(np.maximum(x**2, np.finfo(float).tiny))))
            values.append(higuchi(x))
    return values


def higuchi(x, k_max=9):
    t = len(x)
    log_length = []
    for k in range(1, k_max + 1):
        lengths = []
        for m in range(k):
            total = 0.0
            for i in range(1, (t - m) // k):
                total += abs(x[m + i * k] - x[m + (i - 1) * k])
            lengths.append(total * (t - 1) / ((t - m) / k * k) / k)
        log_length.append(np.log(np.mean(lengths)))
    return np.polyfit(np.log(1 / np.arange(1, k_max + 1)), log_length, 1)[0]


def rr_values(peaks, sfreq):
    if np.isfinite(peaks).sum() < 3:
        return [np.nan] * 38
    rri = np.diff(peaks) / sfreq
    first, second = np.diff(rri), np.diff(rri, n=2)
    rri, first, second = (x[np.isfinite(x)] for x in (rri, first, second))
    last = summary(second)
    values = [*summary(rri), *summary(first), *last[:5], *last[6:]]
    for ms in (1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 200, 400, 600, 800):
        # Half a microsecond beyond, so that an equal change is not above by rounding.
        above = sum(abs(change) > ms / 1000 + 5e-7 for change in first)
        values.append(100 * above / len(first) if len(first) else np.nan)
    return values


def summary(x):
    if not len(x):
        return [np.nan] * 8
    values = [x.min(), x.max(), x.mean(), np.median(x), x.std(ddof=1) if len(x) > 1 else np.nan]
    varies = x.max() - x.min() > 1e-9
    values += [stats.skew(x) if varies else np.nan, stats.kurtosis(x) if varies else np.nan]
    return [*values, np.sqrt(np.mean(x**2))]
