"""Relational knowledge distillation: distances in units of their mean, in both spaces."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from expclr.methods.base import Method
from expclr.methods.contrast import informed_distances, other_rows
from expclr.methods.pairs import pairwise_distances, weighted_mean

__all__ = ["RKDLoss"]


class RKDLoss(Method):
    """Huber loss of embedding distances against feature distances, each over its batch mean.

    The distance-wise loss of Park et al., "Relational knowledge distillation", CVPR 2019, with
    expert features as the teacher. Its optimum keeps all distances up to one scale.

    Examples
    --------
    >>> F = torch.tensor([[0.0], [1.0], [3.0]])
    >>> round(RKDLoss()(7 * F, F).item(), 6)  # any scale will do
    0.0
    """

    def forward(self, z: Tensor, target: Tensor) -> Tensor:
        Y, weights = informed_distances(target)
        weights = weights * other_rows(len(z), z.device)
        D = pairwise_distances(z)
        losses = functional.smooth_l1_loss(
            _over_mean(D, weights), _over_mean(Y, weights).to(D.dtype), reduction="none"
        )
        return weighted_mean(losses, weights)


def _over_mean(distances: Tensor, weights: Tensor) -> Tensor:
    mean = weighted_mean(distances, weights)
    return distances / torch.where(mean > 0, mean, 1)
