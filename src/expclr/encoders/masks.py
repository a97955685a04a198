"""Steps that are padding must not be seen: masks, pooling and normalisation that leave them out."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from expclr.errors import ConfigError

__all__ = ["POOLINGS", "MaskedBatchNorm", "pool", "real_steps"]


def real_steps(lengths: Tensor, t: int) -> Tensor:
    """1 where a timepoint is real: (b,) -> (b, 1, t).

    >>> real_steps(torch.tensor([1, 2]), 3)
    tensor([[[1., 0., 0.]],
    <BLANKLINE>
            [[1., 1., 0.]]])
    """
    return (torch.arange(t, device=lengths.device) < lengths[:, None]).float()[:, None]


def _mean(x: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return x.mean(2, dtype=torch.promote_types(x.dtype, torch.float32))
    return (x * mask).sum(2) / mask.sum(2)


def _max(x: Tensor, mask: Tensor | None) -> Tensor:
    return (x if mask is None else x.masked_fill(mask == 0, -torch.inf)).amax(2)


def _std(x: Tensor, mask: Tensor | None) -> Tensor:
    offset = x - _mean(x, mask)[:, :, None]  # float32 at least
    return (_mean(offset.square(), mask) + 1e-8).sqrt()  # sqrt has no gradient at 0


POOLINGS: dict[str, Callable[[Tensor, Tensor | None], Tensor]] = {
    "mean": _mean,
    "max": _max,
    "std": _std,
}


def pool(x: Tensor, mask: Tensor | None, kinds: tuple[str, ...]) -> Tensor:
    """Pool over the real timepoints: (b, w, t) -> (b, len(kinds) * w)."""
    unknown = set(kinds) - set(POOLINGS)
    if unknown or not kinds:
        raise ConfigError(f"no pooling {sorted(unknown)}: known are {', '.join(POOLINGS)}")
    return torch.cat([POOLINGS[kind](x, mask) for kind in kinds], dim=1)


class MaskedBatchNorm(nn.BatchNorm2d):
    """Batch normalisation of (b, c, t) whose statistics come from the real timepoints alone."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if mask is None or not self.training:
            # In two dimensions, of which torch has the fast one for (b, t, c) in memory.
            return super().forward(x.unsqueeze(2)).squeeze(2)
        count = mask.sum()
        mean = (x * mask).sum((0, 2)) / count
        variance = ((x - mean[:, None]).square() * mask).sum((0, 2)) / count
        self._follow(mean.detach(), variance.detach() * count / (count - 1).clamp_min(1))
        normal = (x - mean[:, None]) / (variance[:, None] + self.eps).sqrt()
        return normal * self.weight[:, None] + self.bias[:, None]

    @torch.no_grad()
    def _follow(self, mean: Tensor, variance: Tensor) -> None:
        for running, seen in ((self.running_mean, mean), (self.running_var, variance)):
            assert running is not None  # statistics are tracked, as by default
            running.lerp_(seen, self.momentum or 0.1)
