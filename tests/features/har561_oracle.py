"""The 561 features of one window, signal by signal, written from their formulas."""

import numpy as np
from scipy import stats

BANDS = [
    *((1, 8), (9, 16), (17, 24), (25, 32), (33, 40), (41, 48), (49, 56), (57, 64)),
    *((1, 16), (17, 32), (33, 48), (49, 64), (1, 24), (25, 48)),
]


def har561_loop(windows):
    """(n, 561) of windows (n, 9, t + 1), each with the sample after its end."""
    return np.array([one_window(window) for window in windows])


def one_window(window):
    body_acc, body_gyro, total_acc = window[0:3], window[3:6], window[6:9]
    blocks = [body_acc[:, :-1], (total_acc - body_acc)[:, :-1], np.diff(body_acc)]
    blocks += [body_gyro[:, :-1], np.diff(body_gyro)]
    norms = [np.sqrt((block**2).sum(axis=0)) for block in blocks]
    norms[1] = norms[0]  # the original repeats the body's magnitude
    values = []
    for block in blocks:
        values += common(block)
        for axis in block:
            values += burg(axis, 4)
        values += [np.corrcoef(block[i], block[j])[0, 1] for i, j in ((0, 1), (0, 2), (1, 2))]
    for norm in norms:
        values += common([norm]) + burg(norm, 4)
    for block in (blocks[0], blocks[2], blocks[3]):
        spectra = [spectrum(axis) for axis in block]
        values += common(spectra) + shape_of(spectra)
        values += [np.mean(s[a - 1 : b] ** 2) for s in spectra for a, b in BANDS]
    for norm in (norms[0], norms[2], norms[3], norms[4]):
        values += common([spectrum(norm)]) + shape_of([spectrum(norm)])
    means = [block.mean(axis=1) for block in blocks]
    for a in (means[0], means[2], means[3], means[4], *np.eye(3)):
        values.append(np.arctan2(np.linalg.norm(np.cross(a, means[1])), a @ means[1]))
    return values


def common(axes):
    values = [x.mean() for x in axes]
    values += [x.std(ddof=1) for x in axes]
    values += [np.mean(np.abs(x - x.mean())) for x in axes]
    values += [x.max() for x in axes]
    values += [x.min() for x in axes]
    values += [sum(np.mean(np.abs(x)) for x in axes)]
    values += [np.mean(x**2) for x in axes]
    values += [np.subtract(*np.quantile(x, [0.75, 0.25], method="hazen")) for x in axes]
    return values + [entropy(x) for x in axes]


def entropy(x):
    levels = np.floor(np.clip(x, 0, 1) * 255 + 0.5)
    _, counts = np.unique(levels, return_counts=True)
    p = counts / len(x)
    return -np.sum(p * np.log2(p))


def burg(x, order):
    a = np.array([1.0])
    f, b = x[1:], x[:-1]
    for _ in range(order):
        k = -2 * np.sum(f * b) / np.sum(f**2 + b**2)
        a = np.append(a, 0) + k * np.append(a, 0)[::-1]
        f, b = (f + k * b)[1:], (b + k * f)[:-1]
    return list(a[1:])


def spectrum(x):
    return np.abs(np.fft.fft(x))[1 : len(x) // 2 + 1] / (len(x) // 2)


def shape_of(spectra):
    values = [int(np.argmax(s)) for s in spectra]
    values += [np.sum(np.arange(1, len(s) + 1) * s) / np.sum(s) for s in spectra]
    for s in spectra:
        values += [stats.skew(s), stats.kurtosis(s)]
    return values
