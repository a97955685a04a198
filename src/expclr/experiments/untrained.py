"""Rows that nothing is trained for: expert features as they are, and random convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from expclr.encoders import ENCODERS
from expclr.encoders.scaled import ScaledEncoder
from expclr.engine import seeded
from expclr.fixed import compute_fixed
from expclr.windows import Windows

__all__ = ["available", "represent"]


def available(system: str) -> bool:
    """Whether this version has what the system needs."""
    return not system.startswith("rocket") or "rocket" in ENCODERS


def represent(
    system: str, train: Windows, test: Windows, *, seed: int, device: torch.device
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Representations of train and test windows."""
    if system == "raw_features":
        return _features(train, test)
    rocket = _rocket(train, test, seed, device)
    if system == "rocket":
        return rocket
    pairs = zip(rocket, _features(train, test), strict=True)
    both = [np.concatenate([Z, F.astype(Z.dtype)], axis=1) for Z, F in pairs]
    return both[0], both[1]


def _features(train: Windows, test: Windows) -> tuple[NDArray[Any], NDArray[Any]]:
    """The experts' features; a missing one is the median of train."""
    assert train.F is not None
    assert test.F is not None
    with np.errstate(all="ignore"):
        median = np.nan_to_num(np.nanmedian(train.F, axis=0))
    return tuple(np.where(np.isnan(F), median, F) for F in (train.F, test.F))  # type: ignore[return-value]


def _rocket(
    train: Windows, test: Windows, seed: int, device: torch.device
) -> tuple[NDArray[Any], NDArray[Any]]:
    _, c, t = train.X.shape
    with seeded(seed):
        encoder = ScaledEncoder(ENCODERS["rocket"](c, 2, length=t), c)
        encoder.fit(train, "standard")
        encoder.look(train)
    sides = [compute_fixed(encoder, w.X, w.lengths, device=device).numpy() for w in (train, test)]
    return sides[0].astype(np.float32), sides[1].astype(np.float32)
