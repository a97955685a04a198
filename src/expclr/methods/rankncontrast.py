"""Rank-N-Contrast: embeddings in the order of their expert features."""

from __future__ import annotations

import torch
from torch import Tensor

from expclr.methods.base import Method
from expclr.methods.contrast import informed_distances, other_rows, positive, views_in
from expclr.methods.pairs import pairwise_distances, weighted_mean
from expclr.methods.views import Augmentations, compose

__all__ = ["RankNContrastLoss"]


class RankNContrastLoss(Method):
    """Each pair is nearer than all pairs whose features are at least as far apart.

    Mean over ordered pairs (i, j) of -log exp(-||z_i - z_j|| / tau) / sum_k exp(-||z_i - z_k||
    / tau), the sum over all k != i with d(f_i, f_k) >= d(f_i, f_j) (Zha et al., "Rank-N-Contrast",
    NeurIPS 2023), here for feature vectors. Sorting each row by its feature distances makes every
    denominator an entry of a cumulative logsumexp: b^2 log b work, no underflow, ties exact.

    Parameters
    ----------
    temperature : float
    augmentations : names or settings of ``expclr.methods.views.VIEWS``
        Of two views, as in the original; default one view, the windows as they are.

    Examples
    --------
    >>> z, F = torch.tensor([[0.0], [1.0], [3.0]]), torch.tensor([[0.0], [1.0], [2.0]])
    >>> loss = RankNContrastLoss(temperature=1.0)
    >>> in_order, swapped = loss(z, F), loss(z[[0, 2, 1]], F)
    >>> bool(in_order < swapped)
    True
    """

    def __init__(self, temperature: float = 2.0, *, augmentations: Augmentations = ()) -> None:
        super().__init__()
        self.temperature = positive(temperature, "temperature")
        self.view, self.views = compose(augmentations), 2 if augmentations else 1

    def forward(self, z: Tensor, target: Tensor) -> Tensor:
        views = views_in(z, target)
        distances, weights = (m.repeat(views, views) for m in informed_distances(target))
        weights = weights * other_rows(len(z), z.device)
        scores = -pairwise_distances(z) / self.temperature
        return weighted_mean(_log_denominators(scores, distances, weights > 0) - scores, weights)


def _log_denominators(scores: Tensor, distances: Tensor, counts: Tensor) -> Tensor:
    """For each pair, the logsumexp over the row's pairs that are at least as far apart."""
    key = torch.where(counts, -distances, torch.inf)  # the farthest first, what is out last
    key, order = key.sort(dim=1)
    last_tied = torch.searchsorted(key, key, right=True) - 1
    sums = scores.gather(1, order).logcumsumexp(dim=1).gather(1, last_tied)
    return torch.zeros_like(sums).scatter(1, order, sums)
