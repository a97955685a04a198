"""Fractal dimension of a signal by Higuchi's method, of many signals at once."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["higuchi"]

Array = NDArray[np.float64]


def higuchi(x: Array, *, k_max: int = 9) -> Array:
    """Slope of log L_k over log 1/k, k = 1..k_max: 1 for a smooth line, 2 for noise.

    L_k is the mean over m = 0..k-1 of the length of the curve x_m, x_{m+k}, x_{m+2k}, ...,

    ``sum_{i=1}^{floor((t-m)/k)-1} |x_{m+ik} - x_{m+(i-1)k}| * (t-1) / (((t-m)/k) k) / k``.

    Parameters
    ----------
    x : array (..., t)
    k_max : int

    Returns
    -------
    array (...)

    References
    ----------
    Higuchi, Approach to an irregular time series on the basis of the fractal theory,
    Physica D 31, 1988.

    Examples
    --------
    >>> higuchi(np.arange(1000.0)).round(2)
    np.float64(1.01)
    """
    log_k = np.log(np.arange(1, k_max + 1))
    log_length = np.log(np.stack([_length(x, k) for k in range(1, k_max + 1)], axis=-1))
    slope = log_k.mean() - log_k
    dimension: Array = log_length @ slope / (slope @ slope)
    return dimension


def _length(x: Array, k: int) -> Array:
    step = x[..., k:] - x[..., :-k]
    length: Array = np.abs(step, out=step) @ _weights(x.shape[-1], k)
    return length


@lru_cache(maxsize=256)
def _weights(t: int, k: int) -> Array:
    """What |x_{j+k} - x_j| counts in L_k, for j = 0..t-k-1."""
    j = np.arange(t - k)
    m = j % k
    last = m + ((t - m) // k - 2) * k
    return np.where(j <= last, (t - 1) / (t - m) / k / k, 0.0)
