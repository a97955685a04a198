"""Extractors that look at each channel by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.features.extractor import Feature

__all__ = ["ChannelListing", "ChannelValues"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ChannelListing:
    """The features of one channel, repeated for each with its name in front."""

    features: tuple[Feature, ...]

    def __call__(self, channels: tuple[str, ...]) -> list[Feature]:
        return [
            Feature(f"{channel}_{f.name}", f.unit, f"{f.description} ({channel})")
            for channel in channels
            for f in self.features
        ]


@dataclass(frozen=True)
class ChannelValues:
    """A function f(x (rows, t), sfreq) -> (rows, d) as one of windows: (n, c, t) -> (n, c * d).

    A channel that holds NaN or inf has NaN for all its features; the others keep theirs.
    """

    function: Callable[[Array, float], Array]

    def __call__(self, X: NDArray[Any], sfreq: float) -> Array:
        n, c, t = X.shape
        x = X.reshape(n * c, t).astype(np.float64)
        whole = np.isfinite(x).all(axis=1)
        x[~whole] = 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            F = self.function(x, sfreq)
        F[~whole] = np.nan
        return F.reshape(n, -1)
