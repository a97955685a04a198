"""The relaxed contrastive loss: soft pulling and pushing by the similarity of expert features."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from expclr.errors import ConfigError
from expclr.methods.base import Method
from expclr.methods.contrast import other_rows, positive, wide
from expclr.methods.pairs import FeatureSimilarity, pairwise_distances, weighted_mean

__all__ = ["RelaxedContrastiveLoss"]


class RelaxedContrastiveLoss(Method):
    """Pull by the gaussian similarity of unit features, push what is nearer than delta.

    With w_ij = exp(-||f_i - f_j||^2 / sigma) and d_ij = ||z_i - z_j|| / mu_i it is
    1/n sum_{i != j} w_ij d_ij^2 + (1 - w_ij) max(0, delta - d_ij)^2 (Kim et al., "Embedding
    transfer with label relaxation", CVPR 2021), the teacher's embedding replaced by expert
    features as in the paper.

    Parameters
    ----------
    delta : float
    sigma : float or "median"
        Width of the similarity; "median" is the batch's median squared distance.
    unit_features : bool
        Divide each window's features by their norm, as the original does. Without it w is about
        0 for all pairs of many features, unless sigma is "median".
    normalize : True, False or "detach"
        Divide each embedding distance by its row's mean mu_i; "detach" sends no gradient
        through it.
    reduction : "rows" or "pairs"
        Divide the sum by n, as the original does, or by the number of pairs.

    Examples
    --------
    >>> z, F = torch.tensor([[0.0], [0.5]]), torch.eye(2)
    >>> loss = RelaxedContrastiveLoss(normalize=False, sigma=1e-3)  # w is 0: push only
    >>> loss(z, F).item()  # (1 - 0.5)**2 for each of the two rows
    0.25
    """

    finetune = "pair"

    def __init__(
        self,
        delta: float = 1.0,
        sigma: float | Literal["median"] = 1.0,
        *,
        unit_features: bool = True,
        normalize: bool | Literal["detach"] = True,
        reduction: Literal["rows", "pairs"] = "rows",
    ) -> None:
        super().__init__()
        if reduction not in ("rows", "pairs"):
            raise ConfigError(f"reduction is {reduction!r}: give 'rows' or 'pairs'")
        self.delta, self.normalize = positive(delta, "delta"), normalize
        self.unit_features, self.reduction = unit_features, reduction
        self.similarity = FeatureSimilarity("gaussian", sigma=sigma)

    def forward(self, z: Tensor, target: Tensor) -> Tensor:
        w, weights = self.similarity(_unit_rows(target) if self.unit_features else target)
        d = _over_row_mean(pairwise_distances(z), weights, self.normalize)
        losses = w * d.square() + (1 - w) * torch.relu(self.delta - d).square()
        weights = weights * other_rows(len(z), z.device)
        if self.reduction == "pairs":
            return weighted_mean(losses, weights)
        rows = (weights.sum(1) > 0).sum()
        return (losses * weights).sum() / rows.clamp_min(1)


def _unit_rows(f: Tensor) -> Tensor:
    """Rows of norm 1, where a missing feature counts as the mean square of those present."""
    norm = (wide(f).square().nanmean(1, keepdim=True) * f.shape[1]).sqrt()
    return (f / torch.where(norm > 0, norm, 1)).to(f.dtype)


def _over_row_mean(d: Tensor, weights: Tensor, mode: bool | Literal["detach"]) -> Tensor:
    """Distances in units of mu_i, the mean over all pairs of the row that count, itself too."""
    if mode is False:
        return d
    mu = (d * weights).sum(1, keepdim=True) / weights.sum(1, keepdim=True).clamp_min(1)
    mu = mu.detach() if mode == "detach" else mu
    return d / torch.where(mu > 0, mu, 1)
