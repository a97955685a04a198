"""What every method has in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

__all__ = ["Batch", "Encode", "Method", "one_hot"]

Encode = Callable[[Tensor, "Tensor | None"], Tensor]


@dataclass(frozen=True)
class Batch:
    """What a training step sees of b windows."""

    x: Tensor  # (b, c, t)
    lengths: Tensor | None = None  # (b,)
    features: Tensor | None = None  # (b, d), NaN where missing
    labels: Tensor | None = None  # (b,), -1 where unknown

    def target(self, kind: str) -> Tensor | None:
        """The target a method of that kind is compared with."""
        return {"features": self.features, "labels": self.labels, "none": None}[kind]


class Method(nn.Module):
    """Something to minimise over embeddings; knows no device, rank or optimiser.

    A subclass names its ``target`` ("features", "labels" or "none") and its ``views`` and
    writes ``forward(z, target) -> scalar``. With two views z is (2b, e): first all of view 1,
    then all of view 2. A method with passes of its own overrides ``step``.
    """

    target: ClassVar[Literal["features", "labels", "none"]] = "features"
    views: ClassVar[int] = 1
    finetune: ClassVar[str] = "expclr"  # the method that goes on with few labels
    trains: ClassVar[bool] = True

    def prepare(self, target: Tensor | None, embedding_dim: int) -> None:
        """Look at the whole training target once, before the first step."""

    def step(self, encode: Encode, batch: Batch) -> Tensor:
        """Encode one batch and return its loss."""
        return self(encode(batch.x, batch.lengths), batch.target(self.target))


def one_hot(labels: Tensor, classes: int) -> Tensor:
    """Labels as features: (b,) -> (b, classes), a row of NaN where the label is -1.

    >>> one_hot(torch.tensor([1, -1]), 2)
    tensor([[0., 1.],
            [nan, nan]])
    """
    rows = torch.nn.functional.one_hot(labels.clamp_min(0), classes).float()
    return torch.where((labels >= 0)[:, None], rows, float("nan"))
