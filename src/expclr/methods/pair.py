"""The pair loss, for classes and for continuous similarities."""

from __future__ import annotations

import torch
from torch import Tensor

from expclr.methods.quadratic import QuadraticLoss

__all__ = ["PairLoss"]


class PairLoss(QuadraticLoss):
    """Pull similar pairs together, push the others beyond (1 - s_ij) delta (Eq. 1).

    Parameters
    ----------
    delta, similarity, normalize, reference, sigma, streamed
        See :class:`expclr.methods.quadratic.QuadraticLoss`.

    Examples
    --------
    >>> z, y = torch.tensor([[0.0], [0.5]]), torch.eye(2)  # two classes, one-hot
    >>> PairLoss(delta=1.0, normalize=False)(z, y).item()  # two of four pairs: 1 - 0.25
    0.375
    """

    def pair_loss(self, D: Tensor, s: Tensor) -> Tensor:
        """Both terms of Eq. 1, value by value."""
        push = torch.relu((1 - s).square() * self.delta**2 - D.square())
        return s * D.square() + push
