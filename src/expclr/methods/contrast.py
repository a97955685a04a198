"""What the softmax losses share: cosines, log-probabilities over candidates, who counts."""

from __future__ import annotations

import torch
from torch import Tensor

from expclr.errors import ConfigError
from expclr.methods.pairs import feature_distances

__all__ = [
    "cosines",
    "cross_entropy",
    "denominators",
    "informed_distances",
    "mean_over_anchors",
    "other_rows",
    "positive",
    "row_means",
    "views_in",
    "wide",
]

NEVER = -1e30  # the score of what is no candidate: exp gives 0, and differences stay finite


def cosines(z: Tensor, temperature: float = 1.0) -> Tensor:
    """Cosines of all pairs over a temperature, (..., n, e) -> (..., n, n).

    In float32 at least, whatever autocast is on.

    A row of zeros has cosine 0 with every row, and a gradient of ordinary size.

    >>> cosines(torch.tensor([[2.0, 0.0], [0.0, 3.0], [0.0, 0.0]]))
    tensor([[1., 0., 0.],
            [0., 1., 0.],
            [0., 0., 0.]])
    """
    with torch.autocast(z.device.type, enabled=False):
        rows = z if z.dtype == torch.float64 else z.float()
        norm = torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
        # Each side has its half of the temperature: one product of all rows instead of two.
        unit = rows * (1 / (torch.where(norm > 0, norm, 1) * temperature**0.5))
        return unit @ unit.transpose(-1, -2)


def denominators(scores: Tensor, candidates: Tensor) -> Tensor:
    """The logarithm of each row's sum of exp(score) over its candidates, (..., n, 1)."""
    return torch.where(candidates, scores, NEVER).logsumexp(-1, keepdim=True)


def cross_entropy(scores: Tensor, candidates: Tensor, weights: Tensor) -> Tensor:
    """Mean over anchors (rows) of -sum_j w_ij log softmax_j(scores) / sum_j w_ij.

    The softmax is over a row's candidates, which alone may have weight; rows without weight are
    left out.
    """
    log_softmax = torch.where(candidates, scores, NEVER).log_softmax(-1)
    return mean_over_anchors(-row_means(log_softmax, weights), weights)


def row_means(values: Tensor, weights: Tensor) -> Tensor:
    """The weighted mean of each row, (..., n, m) -> (..., n); 0 where there is no weight."""
    weights = weights.to(values.dtype)  # once: products of unlike types convert each time
    total = weights.sum(-1)
    return (values * weights).sum(-1) / torch.where(total > 0, total, 1)


def mean_over_anchors(losses: Tensor, weights: Tensor) -> Tensor:
    """The mean over rows that have weight, (..., n) -> (...); 0 where none has."""
    counts = weights.sum(-1) > 0
    return torch.where(counts, losses, 0).sum(-1) / counts.sum(-1).clamp_min(1)


def other_rows(n: int, device: torch.device) -> Tensor:
    """True off the diagonal: what an anchor is compared with, (n, n)."""
    return ~torch.eye(n, dtype=torch.bool, device=device)


def informed_distances(features: Tensor) -> tuple[Tensor, Tensor]:
    """``feature_distances``, with no weight for any pair when all windows measure the same."""
    distances, weights = feature_distances(features)
    return distances, weights * (distances.amax() > 0)


def views_in(z: Tensor, target: Tensor) -> int:
    """How many views of each target the rows of z hold."""
    return len(z) // len(target)


def wide(f: Tensor) -> Tensor:
    """Features in the highest precision the device has."""
    return f.float() if f.device.type == "mps" else f.double()


def positive(value: float, name: str) -> float:
    """The value, if it is above 0."""
    if not value > 0:
        raise ConfigError(f"{name} is {value}: give a positive number")
    return value
