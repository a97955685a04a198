"""What every method has in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from expclr.errors import ConfigError, DataError

__all__ = ["Batch", "Encode", "Method", "View", "one_hot", "unchanged"]

Encode = Callable[[Tensor, "Tensor | None"], Tensor]  # (b, c, t), lengths -> (b, e)
View = Callable[[Tensor, "Tensor | None"], Tensor]  # (b, c, t), lengths -> (b, c, t)


@dataclass(frozen=True)
class Batch:
    """What a training step sees of b windows."""

    x: Tensor  # (b, c, t)
    lengths: Tensor | None = None  # (b,)
    features: Tensor | None = None  # (b, d), NaN where missing
    labels: Tensor | None = None  # (b,), -1 where unknown
    fixed: Tensor | None = None  # (b, k), what the network makes of x without weights

    def target(self, kind: str) -> Tensor | None:
        """The target a method of that kind is compared with."""
        return {"features": self.features, "labels": self.labels, "none": None}[kind]


class Method(nn.Module):
    """Something to minimise over embeddings; knows no device, rank or optimiser.

    A subclass names its ``target`` ("features", "labels" or "none") and its ``views`` and
    writes ``forward(z, target) -> scalar``. With two views z is (2b, e): first all of view 1,
    then all of view 2, each drawn by ``view``. A method with passes of its own overrides
    ``step``.
    """

    target: ClassVar[Literal["features", "labels", "none"]] = "features"
    views: int = 1
    takes_labels: bool = False  # beside features, where windows have them
    takes_fixed: bool = False  # what the network computes without weights, where it does
    alone: ClassVar[bool] = False  # learns from a window without another to compare it with
    finetune: ClassVar[str] = "expclr"  # the method that goes on with few labels
    finetune_params: ClassVar[dict[str, Any]] = {}  # its settings there, where none are given
    trains: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.view: View = unchanged

    def __call__(self, z: Tensor, target: Tensor | None = None) -> Tensor:
        """``forward`` of embeddings and a target whose shapes go together."""
        if self.target != "none":
            _check(type(self).__name__, self.target, z, target)
        loss: Tensor = super().__call__(z, target)
        return loss

    @property
    def augments(self) -> bool:
        """Whether the network sees views of windows instead of the windows themselves."""
        return self.views > 1 or self.view is not unchanged

    def prepare(self, target: Tensor | None, embedding_dim: int) -> None:
        """Look at the whole training target once, before the first step."""

    def prepare_labels(self, labels: Tensor, embedding_dim: int) -> None:
        """Look at all training labels once, if the method takes them beside features."""

    def prepare_fixed(self, fixed: Tensor, embedding_dim: int) -> None:
        """Look at some of the network's fixed features once, if the method takes them."""

    def step(self, encode: Encode, batch: Batch) -> Tensor:
        """Encode the views of one batch and return its loss."""
        if self.views > 1 and self.view is unchanged:
            raise ConfigError(
                f"{type(self).__name__} compares two views of each window, and draws none: "
                "give augmentations, or set its view"
            )
        x, lengths = batch.x, batch.lengths
        # Each view is encoded by itself: the rows of all ranks are gathered view by view.
        z = [encode(self.view(x, lengths), lengths) for _ in range(self.views)]
        return self(torch.cat(z), batch.target(self.target))


def unchanged(x: Tensor, lengths: Tensor | None = None) -> Tensor:
    """The windows as they are."""
    return x


def _check(name: str, kind: str, z: Tensor, target: Tensor | None) -> None:
    wanted = {"features": "features (b, d)", "labels": "labels (b,)"}[kind]
    if target is None:
        raise DataError(f"{name} has no target: give {wanted}")
    if target.ndim != (2 if kind == "features" else 1):
        raise DataError(f"{name} has a target of shape {tuple(target.shape)}: give {wanted}")
    if not len(target) or not len(z) or len(z) % len(target):
        raise DataError(
            f"{len(z)} embeddings for {len(target)} targets: give as many rows, or twice as many, "
            "first all of view 1, then all of view 2"
        )


def one_hot(labels: Tensor, classes: int) -> Tensor:
    """Labels as features: (b,) -> (b, classes), a row of NaN where the label is -1.

    >>> one_hot(torch.tensor([1, -1]), 2)
    tensor([[0., 1.],
            [nan, nan]])
    """
    rows = torch.nn.functional.one_hot(labels.clamp_min(0), classes).float()
    return torch.where((labels >= 0)[:, None], rows, float("nan"))
