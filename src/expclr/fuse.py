"""Embeddings and expert features as one vector, for when the features can be had at use time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Fusion", "fuse"]


@dataclass(frozen=True)
class Fusion:
    """Both parts centred and at the same total variance; missing features are the mean."""

    centre: NDArray[np.float32]  # (e + d,)
    scale: NDArray[np.float32]  # (e + d,)

    def __call__(self, Z: NDArray[Any], F: NDArray[Any]) -> NDArray[np.float32]:
        """(n, e), (n, d) -> (n, e + d)."""
        both = (np.hstack([Z, F]) - self.centre) * self.scale
        return np.nan_to_num(both, nan=0.0).astype(np.float32)


def fuse(Z: NDArray[Any], F: NDArray[Any]) -> Fusion:
    """Measure centre and scale of both parts on training windows.

    >>> Z, F = np.random.default_rng(0).normal(size=(9, 2)), np.ones((9, 3)) * np.arange(9)[:, None]
    >>> both = fuse(Z, F)(Z, F)
    >>> both.shape, bool(np.isclose(both[:, :2].var(0).sum(), both[:, 2:].var(0).sum()))
    ((9, 5), True)
    """
    parts = [np.asarray(part, np.float64) for part in (Z, F)]
    centre = np.concatenate([_mean(part) for part in parts])
    spread = [np.sqrt(np.nansum((part - _mean(part)) ** 2) / max(1, len(part))) for part in parts]
    scale = [
        np.full(p.shape[1], 1 / s if s > 0 else 1.0) for p, s in zip(parts, spread, strict=True)
    ]
    return Fusion(centre.astype(np.float32), np.concatenate(scale).astype(np.float32))


def _mean(part: NDArray[np.float64]) -> NDArray[np.float64]:
    count = (~np.isnan(part)).sum(0)
    return np.nansum(part, axis=0) / np.maximum(count, 1)
