"""Sums over losses of pairs that come in blocks, or were summed up in parts."""

from __future__ import annotations

import torch
from torch import Tensor

from expclr.methods.pairs import EPSILON

__all__ = ["Mean", "SoftMaximum", "sums_of"]


def sums_of(tau: float | None, device: torch.device) -> Mean | SoftMaximum:
    """What sums up losses: tau log mean exp(L / tau), or without a tau their mean."""
    return Mean(device) if tau is None else SoftMaximum(device, tau)


class Mean:
    """The weighted mean of losses that come in blocks."""

    def __init__(self, device: torch.device) -> None:
        kind = torch.float32 if device.type == "mps" else torch.float64
        self.sum, self.total = torch.zeros(2, device=device, dtype=kind)

    @classmethod
    def merged(cls, sums: Tensor, totals: Tensor) -> Mean:
        """Of parts that were summed up alone."""
        mean = cls(sums.device)
        mean.sum, mean.total = sums.double().sum(), totals.double().sum()
        return mean

    def add(self, L: Tensor, weight: Tensor) -> tuple[float | Tensor, Tensor]:
        """Take a block; return what to multiply the gradient so far with, and dloss / dL."""
        self.sum = self.sum + (L * weight).sum(dtype=self.sum.dtype)
        self.total = self.total + weight.sum(dtype=self.sum.dtype)
        return 1.0, weight

    def value(self) -> Tensor:
        """The loss."""
        return self.sum / self.total.clamp_min(1)

    def factor(self) -> Tensor:
        """What the gradient is still to be multiplied with."""
        return 1 / self.total.clamp_min(1)


class SoftMaximum:
    """``expclr.soft_maximum`` of losses that come in blocks, with a running maximum."""

    def __init__(self, device: torch.device, tau: float) -> None:
        self.tau = tau
        kind = torch.float32 if device.type == "mps" else torch.float64
        self.top, self.exps, self.expm1s, self.total = torch.zeros(4, device=device, dtype=kind)
        self.least = torch.full((), torch.inf, device=device, dtype=kind)

    @classmethod
    def merged(
        cls, tau: float, top: Tensor, exps: Tensor, expm1s: Tensor, total: Tensor, least: Tensor
    ) -> SoftMaximum:
        """Of parts that were summed up alone, each below a top of its own."""
        top, exps, expm1s, total = (v.double() for v in (top, exps, expm1s, total))
        whole = cls(top.device, tau)
        whole.top = top.amax()
        down = (top - whole.top) / tau
        whole.exps = (down.exp() * exps).sum()
        whole.expm1s = (down.exp() * expm1s + total * torch.expm1(down)).sum()
        whole.total, whole.least = total.sum(), least.double().amin()
        return whole

    def add(self, L: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Take a block; return what to multiply the gradient so far with, and dloss / dL."""
        counts, kind = weight > 0, self.top.dtype
        top = torch.maximum(self.top, torch.where(counts, L, 0).amax())
        down = (self.top - top) / self.tau
        u = torch.where(counts, (L - top.to(L.dtype)) / self.tau, 0)
        pull = u.exp() * weight
        self.expm1s = down.exp() * self.expm1s + self.total * torch.expm1(down)
        self.expm1s = self.expm1s + (torch.expm1(u) * weight).sum(dtype=kind)
        self.exps = down.exp() * self.exps + pull.sum(dtype=kind)
        self.total = self.total + weight.sum(dtype=kind)
        self.least = torch.minimum(self.least, torch.where(counts, L, torch.inf).amin())
        self.top = top
        return down.exp(), pull

    def value(self) -> Tensor:
        """The loss; the form that keeps its digits, by how far the losses are spread."""
        total = self.total.clamp_min(1)
        large_tau = torch.log1p(self.expm1s / total)
        small_tau = self.exps.clamp_min(EPSILON).log() - total.log()
        near = (self.least - self.top) / self.tau > -1
        soft = self.top + self.tau * torch.where(near, large_tau, small_tau)
        return torch.where(self.total > 0, soft, 0)

    def factor(self) -> Tensor:
        """What the gradient is still to be multiplied with."""
        return 1 / self.exps.clamp_min(EPSILON)
