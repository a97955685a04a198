"""SimCLR: two views of a window are nearer to each other than to all else."""

from __future__ import annotations

import torch
from torch import Tensor

from expclr.errors import DataError
from expclr.methods.base import Method
from expclr.methods.contrast import (
    cosines,
    cross_entropy,
    other_rows,
    positive,
)
from expclr.methods.views import Augmentations, compose

__all__ = ["NTXentLoss"]


class NTXentLoss(Method):
    """Softmax cross-entropy of finding the other view among all rows, by cosine.

    l(i, j) = -log exp(s_ij / tau) / sum_{k != i} exp(s_ik / tau), mean over all 2b rows (Chen et
    al., "A simple framework for contrastive learning of visual representations", ICML 2020). As
    in the paper there is no projection head: the embedding itself is contrasted.

    Parameters
    ----------
    temperature : float
    augmentations : names or settings of ``expclr.methods.views.VIEWS``
        How a view is drawn; the paper's choice by default, whose strengths it does not give.

    Examples
    --------
    >>> loss = NTXentLoss(temperature=0.1)
    >>> z = torch.eye(3).repeat(2, 1)  # both views the same, windows at right angles
    >>> loss(z).item() < 1e-3
    True
    """

    target = "none"
    views = 2
    finetune = "supcon"

    def __init__(
        self,
        temperature: float = 0.5,
        *,
        augmentations: Augmentations = ("scaling", "dropout"),
    ) -> None:
        super().__init__()
        self.temperature = positive(temperature, "temperature")
        self.view = compose(augmentations)

    def forward(self, z: Tensor, target: Tensor | None = None) -> Tensor:
        if len(z) % 2:
            raise DataError(f"{len(z)} rows are not two views: give all of view 1, then of view 2")
        others = other_rows(len(z), z.device)
        other_view = torch.eye(len(z), device=z.device).roll(len(z) // 2, dims=1)
        return cross_entropy(cosines(z, self.temperature), others, other_view)
