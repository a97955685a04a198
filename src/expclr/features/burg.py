"""Autoregressive coefficients by Burg's method, of many series at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["burg"]


Array = NDArray[np.float64]

ROUNDING = 1e-14  # an error this small, of the series' own size, is none


def burg(x: Array, *, order: int) -> Array:
    """The coefficients a_1..a_p of x_t + a_1 x_{t-1} + ... + a_p x_{t-p} = noise.

    A series that is predicted to within rounding before the order is reached (a constant,
    zeros) has reflection coefficients 0 from there on.

    Parameters
    ----------
    x : array (..., t)
    order : int
        p, less than t - 1.

    Returns
    -------
    array (..., p)

    References
    ----------
    Burg, Maximum entropy spectral analysis, 37th meeting of the SEG, 1967.

    Examples
    --------
    >>> x = 0.5 ** np.arange(200.0)
    >>> burg(x[None], order=1).round(2)
    array([[-0.8]])
    """
    forward, backward = x[..., 1:], x[..., :-1]
    floor = ROUNDING**2 * 2 * np.vecdot(x, x)
    a = _reflection(forward, backward, floor)
    while a.shape[-1] < order:
        k = a[..., -1:]
        forward, backward = (
            (forward + k * backward)[..., 1:],
            (backward + k * forward)[..., :-1],
        )
        k = _reflection(forward, backward, floor)
        a = np.concatenate([a + k * a[..., ::-1], k], axis=-1)
    return a


def _reflection(forward: Array, backward: Array, floor: Array) -> Array:
    energy = np.vecdot(forward, forward) + np.vecdot(backward, backward)
    with np.errstate(invalid="ignore"):
        k = np.where(energy > floor, -2 * np.vecdot(forward, backward) / energy, 0.0)
    return k[..., None]
