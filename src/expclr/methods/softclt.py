"""SoftCLT: soft instance contrast, by the distance of expert features instead of raw signals."""

from __future__ import annotations

import torch
from torch import Tensor

from expclr.errors import ConfigError
from expclr.methods.base import Method
from expclr.methods.contrast import (
    cosines,
    denominators,
    other_rows,
    positive,
    views_in,
)
from expclr.methods.pairs import FeatureSimilarity
from expclr.methods.views import Augmentations, compose

__all__ = ["SoftCLTLoss"]


class SoftCLTLoss(Method):
    """SimCLR whose other windows are positives too, by a sigmoid of their feature distance.

    Mean over anchors of -sum_{j != i} w_ij log softmax_j(s_ij / tau), where the other view has
    w = 1 and window j has w_ij = 2 alpha / (1 + exp(sharpness d_ij / max d)) (the instance-wise
    loss of Lee et al., "Soft contrastive learning for time series", ICLR 2024). The original
    measures d by dynamic time warping of all pairs of signals, and has a loss over time besides.

    Parameters
    ----------
    temperature : float
    alpha : float
        The weight of another window with the same features, from 0 (SimCLR) to 1.
    sharpness : float
        How fast the weight falls with distance (the original's tau_I).
    reference : "batch", "dataset", "q0.99" or a number
        What distances are divided by: see :class:`expclr.methods.pairs.FeatureSimilarity`.
    augmentations : names or settings of ``expclr.methods.views.VIEWS``

    Examples
    --------
    >>> z, F = torch.randn(8, 3, requires_grad=True), torch.randn(4, 5)  # two views of 4 windows
    >>> SoftCLTLoss()(z, F).backward()
    """

    views = 2
    finetune = "supcon"

    def __init__(
        self,
        temperature: float = 0.5,
        *,
        alpha: float = 0.5,
        sharpness: float = 10.0,
        reference: str | float = "batch",
        augmentations: Augmentations = ("scaling", "dropout"),
    ) -> None:
        super().__init__()
        if not 0 <= alpha <= 1:
            raise ConfigError(f"alpha is {alpha}: give a weight from 0 to 1")
        self.temperature, self.alpha = positive(temperature, "temperature"), alpha
        self.sharpness = positive(sharpness, "sharpness")
        self.similarity = FeatureSimilarity("linear", reference=reference)
        self.view, self.views = compose(augmentations), 2 if augmentations else 1

    def prepare(self, target: Tensor | None, embedding_dim: int) -> None:
        if target is not None:
            self.similarity.prepare(target)

    def forward(self, z: Tensor, target: Tensor) -> Tensor:
        views = views_in(z, target)
        similarity, weights = self.similarity(target)
        soft = 2 * self.alpha * torch.sigmoid(-self.sharpness * (1 - similarity))
        soft = torch.where(other_rows(len(target), z.device), soft, 1)
        candidates = (weights > 0).repeat(views, views) & other_rows(len(z), z.device)
        scores = cosines(z, self.temperature)
        losses = soft.repeat(views, views) * (denominators(scores, candidates) - scores)
        return (losses * candidates).sum() / candidates.any(1).sum().clamp_min(1)
