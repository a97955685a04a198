"""Expert feature decoding: predict the features from the embedding."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from expclr.errors import ConfigError
from expclr.methods.base import Method
from expclr.methods.contrast import wide

__all__ = ["FeatureDecoding"]


class FeatureDecoding(Method):
    """Mean squared error of a linear layer from the embedding to the expert features.

    The paper's baseline after Sun et al. (TREBA, CVPR 2021). Missing features do not count. The
    paper does not say how it goes on with labels; here ExpCLR's loss does.

    Parameters
    ----------
    scaling : "standard" or "raw"
        Features by mean and standard deviation of those seen by ``prepare``, so that the
        largest one does not decide alone; features that are constant there do not count. Or as
        they are.

    Notes
    -----
    ``prepare(F, embedding_dim)`` makes the layer. Alone, call it before the optimiser is built;
    without it the first batch stands for the dataset, as with torch's lazy layers.

    Examples
    --------
    >>> F = torch.randn(20, 5)
    >>> method = FeatureDecoding()
    >>> method.prepare(F, embedding_dim=3)
    >>> method(torch.randn(4, 3), F[:4]).backward()
    """

    alone = True
    mean: Tensor
    std: Tensor

    def __init__(self, scaling: Literal["standard", "raw"] = "standard") -> None:
        super().__init__()
        if scaling not in ("standard", "raw"):
            raise ConfigError(f"scaling is {scaling!r}: give 'standard' or 'raw'")
        self.scaling = scaling
        self.head: nn.Linear | None = None

    def prepare(self, target: Tensor | None, embedding_dim: int) -> None:
        assert target is not None
        self.head = nn.Linear(embedding_dim, target.shape[1], device=target.device)
        mean, std = _statistics(target)
        raw = self.scaling == "raw"
        self.register_buffer("mean", torch.zeros_like(mean) if raw else mean)
        self.register_buffer("std", torch.ones_like(std) if raw else std)

    def forward(self, z: Tensor, target: Tensor) -> Tensor:
        if self.head is None:
            self.prepare(target, z.shape[1])
        assert self.head is not None
        known = ~target.isnan() & (self.std > 0)
        wanted = (target - self.mean) / torch.where(self.std > 0, self.std, 1)
        errors = torch.where(known, self.head(z) - wanted.nan_to_num(nan=0.0), 0).square()
        return errors.sum() / known.sum().clamp_min(1)


def _statistics(f: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each feature over what is there; 0 spread if constant."""
    mean = wide(f).nanmean(0)
    std = (wide(f) - mean).square().nanmean(0).sqrt()
    # A constant feature has a spread of rounding errors; one never seen has none.
    std = torch.where(std > 1e-6 * mean.abs(), std, 0)
    return mean.nan_to_num(nan=0.0).to(f.dtype), std.to(f.dtype)
