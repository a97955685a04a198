"""No training at all: what the untrained network gives."""

from __future__ import annotations

from torch import Tensor

from expclr.methods.base import Method

__all__ = ["RandomInit"]


class RandomInit(Method):
    """Leaves the encoder as it was drawn."""

    target = "none"
    trains = False

    def forward(self, z: Tensor, target: Tensor | None = None) -> Tensor:
        return z.sum() * 0
