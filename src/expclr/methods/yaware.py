"""y-aware InfoNCE: positives by the similarity of expert features."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from expclr.methods.base import Method
from expclr.methods.contrast import (
    cosines,
    cross_entropy,
    other_rows,
    positive,
    views_in,
)
from expclr.methods.pairs import FeatureSimilarity
from expclr.methods.views import Augmentations, compose

__all__ = ["YAwareLoss"]


class YAwareLoss(Method):
    """InfoNCE whose positives are all rows, weighted by a gaussian kernel of their features.

    Mean over anchors of -sum_j w_ij log softmax_j(s_ij / tau), with w_ij =
    exp(-d(f_i, f_j)^2 / (2 sigma^2)) over its row's sum, all j != i of both views (Dufumier et
    al., "Contrastive learning with continuous proxy meta-data", MICCAI 2021). A small sigma gives
    SimCLR.

    Parameters
    ----------
    temperature : float
    sigma : float or "median"
        Width of the kernel; "median" makes 2 sigma^2 the batch's median squared distance.
    augmentations : names or settings of ``expclr.methods.views.VIEWS``
        Of two views, as in the original; () takes one view, the windows as they are.

    Examples
    --------
    >>> import torch
    >>> z, F = torch.randn(8, 3, requires_grad=True), torch.randn(4, 5)  # two views of 4 windows
    >>> YAwareLoss()(z, F).backward()
    """

    views = 2

    def __init__(
        self,
        temperature: float = 0.1,
        sigma: float | Literal["median"] = "median",
        *,
        augmentations: Augmentations = ("scaling", "dropout"),
    ) -> None:
        super().__init__()
        self.temperature = positive(temperature, "temperature")
        width = sigma if isinstance(sigma, str) else 2 * positive(sigma, "sigma") ** 2
        self.kernel = FeatureSimilarity("gaussian", sigma=width)
        self.view, self.views = compose(augmentations), 2 if augmentations else 1

    def forward(self, z: Tensor, target: Tensor) -> Tensor:
        views = views_in(z, target)
        w, weights = (m.repeat(views, views) for m in self.kernel(target))
        candidates = (weights > 0) & other_rows(len(z), z.device)
        return cross_entropy(cosines(z, self.temperature), candidates, w * candidates)
