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
from expclr.methods.streamed import Formula, streamed_loss

__all__ = ["QuadraticLoss"]

STREAM_FROM = 512  # rows from which blocks are quicker, on a GPU and on a CPU


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
    streamed : True, False or "auto"
        Compute the pairs block by block, in memory that grows with the batch and not with its
        square; "auto" does so from 512 rows on.

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
        streamed: bool | Literal["auto"] = "auto",
    ) -> None:
        super().__init__()
        if streamed is True and sigma == "median" and similarity == "gaussian":
            raise ConfigError("the median of a batch needs all its pairs: give a number as sigma")
        if not delta > 0:
            raise ConfigError(f"delta is {delta}: give a positive number")
        self.delta, self.normalize, self.streamed = delta, normalize, streamed
        self.similarity = FeatureSimilarity(similarity, reference=reference, sigma=sigma)

    def prepare(self, target: Tensor | None, embedding_dim: int) -> None:
        if target is not None:
            self.similarity.prepare(target)

    def pair_loss(self, D: Tensor, s: Tensor) -> Tensor:
        """L_ij of a distance and a similarity, value by value."""
        return ((1 - s) * self.delta - D).square()

    def pair_losses(self, z: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """L_ij and the weight of each pair, both (b, b)."""
        s, weights = self.similarity(target)
        return self.pair_loss(normalise(pairwise_distances(z), self.normalize), s), weights

    def formula(self, tau: float | None = None) -> Formula:
        """What the pairs cost and how they are summed up, for ``streamed_loss``."""
        delta = self.delta if type(self).pair_loss is QuadraticLoss.pair_loss else None
        return Formula(self.pair_loss, self.similarity, self.normalize, tau, delta)

    def streams(self, rows: int) -> bool:
        """Whether a batch of so many rows is computed block by block."""
        if self.similarity.scaling == "median":
            return False
        return rows >= STREAM_FROM if self.streamed == "auto" else bool(self.streamed)

    def forward(self, z: Tensor, target: Tensor) -> Tensor:
        if self.streams(len(z)):
            return streamed_loss(z, target, self.formula())
        return weighted_mean(*self.pair_losses(z, target))
