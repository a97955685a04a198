"""TREBA's contrastive loss: each expert feature makes classes of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from expclr.errors import ConfigError
from expclr.methods.base import Method
from expclr.methods.contrast import positive, views_in
from expclr.methods.supcon import class_contrast
from expclr.methods.views import Augmentations, compose

__all__ = ["TrebaLoss"]


class TrebaLoss(Method):
    """For each feature a head of its own and SupCon with the feature's classes, summed.

    Classes lie between quantiles of the training features; the original sets thresholds by hand
    (Sun et al., "Task programming", CVPR 2021). A missing value has no class. Of the original's
    losses this is the contrastive one, as in the paper.

    Parameters
    ----------
    quantiles : sequence of float
        Where a feature is cut into classes.
    temperature : float
    hidden : int, optional
        Width of the heads, Linear-ReLU-Linear; default that of the embedding. One head for each
        of d features has 2 e^2 weights: 11 million for 561 features of a 100-dimensional
        embedding.
    augmentations : names or settings of ``expclr.methods.views.VIEWS``
        Of two views, as in the original; () takes one view, the windows as they are.

    Notes
    -----
    ``prepare(F, embedding_dim)`` makes heads and thresholds. Alone, call it before the optimiser
    is built; without it the first batch stands for the dataset, as with torch's lazy layers.

    Examples
    --------
    >>> F = torch.randn(20, 5)
    >>> loss = TrebaLoss()
    >>> loss.prepare(F, embedding_dim=3)
    >>> loss(torch.randn(8, 3, requires_grad=True), F[:4]).backward()  # two views of 4 windows
    """

    views = 2
    finetune = "supcon"
    thresholds: Tensor  # (d, classes - 1)

    def __init__(
        self,
        quantiles: Sequence[float] = (1 / 3, 2 / 3),
        temperature: float = 0.07,
        *,
        hidden: int | None = None,
        augmentations: Augmentations = ("scaling", "dropout"),
    ) -> None:
        super().__init__()
        if not quantiles or not all(0 < q < 1 for q in quantiles):
            raise ConfigError(f"quantiles are {quantiles}: give numbers between 0 and 1")
        self.quantiles, self.hidden = sorted(quantiles), hidden
        self.temperature = positive(temperature, "temperature")
        self.heads: _Heads | None = None
        self.view, self.views = compose(augmentations), 2 if augmentations else 1

    def prepare(self, target: Tensor | None, embedding_dim: int) -> None:
        assert target is not None
        q = torch.tensor(self.quantiles, dtype=target.dtype, device=target.device)
        # One feature at a time: nanquantile refuses more than 16 million values.
        cuts = [feature.nanquantile(q) for feature in target.T]
        self.register_buffer("thresholds", torch.stack(cuts))
        heads = _Heads(target.shape[1], embedding_dim, self.hidden or embedding_dim)
        self.heads = heads.to(target.device)

    def forward(self, z: Tensor, target: Tensor) -> Tensor:
        if self.heads is None:
            self.prepare(target, z.shape[1])
        assert self.heads is not None
        classes = (target[:, :, None] > self.thresholds).sum(2)  # (b, d)
        classes = torch.where(target.isnan(), -1, classes).T.repeat(1, views_in(z, target))
        return class_contrast(self.heads(z), classes, self.temperature).sum()


class _Heads(nn.Module):
    """d networks Linear-ReLU-Linear as two tensors, (n, e) -> (d, n, h)."""

    def __init__(self, d: int, e: int, h: int) -> None:
        super().__init__()
        self.weight1, self.bias1 = _linears(d, e, h)
        self.weight2, self.bias2 = _linears(d, h, h)

    def forward(self, z: Tensor) -> Tensor:
        y = torch.relu(torch.baddbmm(self.bias1, z.expand(len(self.weight1), -1, -1), self.weight1))
        return torch.baddbmm(self.bias2, y, self.weight2)


def _linears(d: int, inside: int, outside: int) -> tuple[nn.Parameter, nn.Parameter]:
    """Weights (d, inside, outside) and biases (d, 1, outside), drawn as torch's Linear does."""
    bound = 1 / math.sqrt(inside)
    weight = torch.empty(d, inside, outside).uniform_(-bound, bound)
    return nn.Parameter(weight), nn.Parameter(torch.empty(d, 1, outside).uniform_(-bound, bound))
