"""The log-ratio loss: ratios of embedding distances follow ratios of feature distances."""

from __future__ import annotations

from torch import Tensor

from expclr.methods.base import Method
from expclr.methods.contrast import informed_distances, other_rows, positive
from expclr.methods.pairs import pairwise_distances

__all__ = ["LogRatioLoss"]


class LogRatioLoss(Method):
    """Squared difference of log(D_ai / D_aj) and log(Y_ai / Y_aj), mean over all triplets.

    D are Euclidean distances of embeddings, Y of expert features (Kim et al., "Deep metric
    learning beyond binary supervision", CVPR 2019). With x_aj = log D_aj - log Y_aj the mean over
    pairs of an anchor's others is twice the unbiased variance of x_a: b^2 work instead of b^3.

    Parameters
    ----------
    eps : float
        Added to distances inside logarithms; what counts as no distance at all.

    Examples
    --------
    >>> import torch
    >>> F = torch.tensor([[0.0], [1.0], [3.0]])
    >>> round(LogRatioLoss()(7 * F, F).item(), 6)  # any scale will do
    0.0
    """

    def __init__(self, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = positive(eps, "eps")

    def forward(self, z: Tensor, target: Tensor) -> Tensor:
        Y, weights = informed_distances(target)
        weights = weights * other_rows(len(z), z.device)
        x = (pairwise_distances(z) + self.eps).log() - (Y + self.eps).log()
        m = weights.sum(1, keepdim=True)
        mean = (weights * x).sum(1, keepdim=True) / m.clamp_min(1)
        variance = (weights * (x - mean).square()).sum(1) / (m[:, 0] - 1).clamp_min(1)
        return 2 * variance.sum() / (m > 1).sum().clamp_min(1)
