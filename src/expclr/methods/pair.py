"""The pair loss, for classes and for continuous similarities."""

from __future__ import annotations

import torch
from torch import Tensor

from expclr.methods.pairs import normalise, pairwise_distances
from expclr.methods.quadratic import QuadraticLoss

__all__ = ["PairLoss"]


class PairLoss(QuadraticLoss):
    """Pull similar pairs together, push the others beyond (1 - s_ij) delta (Eq. 1).

    Parameters
    ----------
    delta, similarity, normalize, reference, sigma
        See :class:`expclr.methods.quadratic.QuadraticLoss`.

    Examples
    --------
    >>> z, y = torch.tensor([[0.0], [0.5]]), torch.eye(2)  # two classes, one-hot
    >>> PairLoss(delta=1.0, normalize=False)(z, y).item()  # two of four pairs: 1 - 0.25
    0.375
    """

    def pair_losses(self, z: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Both terms of Eq. 1 and the weight of each pair, (b, b)."""
        s, weights = self.similarity(target)
        D2 = normalise(pairwise_distances(z), self.normalize).square()
        push = torch.relu((1 - s).square() * self.delta**2 - D2)
        return s * D2 + push, weights
