"""ExpCLR: the quadratic contrastive loss with implicit hard-negative mining."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from expclr.errors import ConfigError
from expclr.methods.quadratic import QuadraticLoss
from expclr.methods.streamed import streamed_loss

__all__ = ["ExpCLRLoss", "soft_maximum"]


class ExpCLRLoss(QuadraticLoss):
    """tau log mean exp(L_ij / tau) over all pairs (Eq. 6 with Eq. 8).

    A small ``tau`` looks at the worst pairs only, a large one is the mean (Prop. 3).

    Parameters
    ----------
    tau : float
        Temperature of the hard-negative mining.
    delta, similarity, normalize, reference, sigma, streamed
        See :class:`expclr.methods.quadratic.QuadraticLoss`.

    Examples
    --------
    Usable alone, in any training loop:

    >>> import torch
    >>> z, F = torch.randn(8, 3, requires_grad=True), torch.randn(8, 5)
    >>> loss = ExpCLRLoss(tau=0.5)(z, F)
    >>> loss.backward()
    """

    def __init__(
        self,
        tau: float = 1.0,
        delta: float = 1.0,
        *,
        similarity: str = "squared",
        normalize: bool | Literal["detach"] = True,
        reference: str | float = "batch",
        sigma: float | Literal["median"] = 1.0,
        streamed: bool | Literal["auto"] = "auto",
    ) -> None:
        super().__init__(
            delta,
            similarity=similarity,
            normalize=normalize,
            reference=reference,
            sigma=sigma,
            streamed=streamed,
        )
        if not tau > 0:
            raise ConfigError(f"tau is {tau}: give a positive number")
        self.tau = tau

    def forward(self, z: Tensor, target: Tensor) -> Tensor:
        if self.streams(len(z)):
            return streamed_loss(z, target, self.formula(self.tau))
        return soft_maximum(*self.pair_losses(z, target), self.tau)


def soft_maximum(values: Tensor, weights: Tensor, tau: float) -> Tensor:
    """tau log of the weighted mean of exp(values / tau), accurate for any tau.

    The logarithm of a sum loses its digits when tau is large, log1p of expm1 when it is small:
    both are computed, the better one is taken. 0 when no pair has weight.
    """
    counts, total = weights > 0, weights.sum().clamp_min(1)
    absent = ~counts
    top = values.detach().masked_fill(absent, -math.inf).amax().clamp_min(-1e30)
    u = ((values - top) / tau).masked_fill(absent, 0)  # 0 at the largest, else below
    small_tau = (u.exp() * weights).sum().clamp_min(1e-30).log() - total.log()
    large_tau = torch.log1p((torch.expm1(u.clamp_min(-1)) * weights).sum() / total)
    soft = top + tau * torch.where(u.detach().amin() > -1, large_tau, small_tau)
    return soft.masked_fill(~counts.any(), 0)
