"""The 29 features of one EEG epoch, written from their formulas."""

import numpy as np
from scipy import signal, stats

BANDS = [(0.5, 4), (4, 8), (8, 13), (12, 16), (13, 30)]


def eeg29_loop(windows, sfreq):
    """(n, 29 c) of windows (n, c, t)."""
    return np.array([np.concatenate([one_epoch(x, sfreq) for x in w]) for w in windows])


def one_epoch(x, sfreq):
    dx = np.diff(x)
    mobility = np.sqrt(np.var(dx) / np.var(x))
    values = [np.mean(x), np.std(x), stats.skew(x), stats.kurtosis(x), np.min(x), np.max(x)]
    values += [np.ptp(x), np.sqrt(np.mean(x**2))]
    above = x >= np.mean(x)
    values += [np.mean(above[1:] != above[:-1]) * sfreq, mobility * sfreq]
    values += [np.sqrt(np.var(np.diff(dx)) / np.var(dx)) / mobility, np.mean(np.abs(dx))]
    n = int(4 * sfreq)
    hertz, density = signal.welch(x, sfreq, window="hann", nperseg=n, noverlap=n // 2)
    power = [np.sum(density[(hertz >= a) & (hertz < b)]) / 4 for a, b in BANDS]
    inside = (hertz >= 0.5) & (hertz < 30)
    hertz, p = hertz[inside], density[inside] / np.sum(density[inside])
    total = np.sum(density[inside]) / 4
    delta, theta, alpha, _, beta = power
    values += [np.log10(b) for b in power] + [b / total for b in power]
    values += [delta / theta, theta / alpha, alpha / beta, (delta + theta) / (alpha + beta)]
    values += [-np.sum(p * np.log(p)) / np.log(len(p))]
    values += [hertz[np.flatnonzero(np.cumsum(p) >= 0.95)[0]], hertz[np.argmax(p)]]
    return values
