"""The quadratic contrastive loss: ExpCLR without hard-negative mining (NHNM)."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from expclr.errors import ConfigError
from expclr.methods.base import Method
from expclr.methods.pairs import (
    FeatureSimilarity,
    normalise,
    pairwise_distances,
    weighted_mean,
)

__all__ = ["QuadraticLoss"]


class QuadraticLoss(Method):
    """Mean squared difference of embedding distance and wanted distance (Eq. 5).

    Parameters
    ----------
    delta : float
        The distance wanted between the least similar pair.
    similarity, reference, sigma
        Of the expert features: see :class:`expclr.methods.pairs.FeatureSimilarity`.
    normalize : True, False or "detach"
        Divide each embedding distance by its row's mean; "detach" sends no gradient through it.

    Examples
    --------
    >>> import torch
    >>> z = F = torch.tensor([[0.0], [1.0], [3.0]])
    >>> loss = QuadraticLoss(delta=3.0, similarity="linear", normalize=False)
    >>> round(loss(z, F).item(), 6)  # distances are kept: nothing to pay
    0.0
    """

    def __init__(
        self,
        delta: float = 1.0,
        *,
        similarity: str = "squared",
        normalize: bool | Literal["detach"] = True,
        reference: str | float = "batch",
        sigma: float | Literal["median"] = 1.0,
    ) -> None:
        super().__init__()
        if not delta > 0:
            raise ConfigError(f"delta is {delta}: give a positive number")
        self.delta, self.normalize = delta, normalize
        self.similarity = FeatureSimilarity(similarity, reference=reference, sigma=sigma)

    def prepare(self, target: Tensor | None, embedding_dim: int) -> None:
        if target is not None:
            self.similarity.prepare(target)

    def pair_losses(self, z: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """L_ij and the weight of each pair, both (b, b)."""
        s, weights = self.similarity(target)
        D = normalise(pairwise_distances(z), self.normalize)
        return ((1 - s) * self.delta - D).square(), weights

    def forward(self, z: Tensor, target: Tensor) -> Tensor:
        return weighted_mean(*self.pair_losses(z, target))
