"""Pair losses by blocks of rows: value and gradient without ever holding all pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from expclr.methods.pairs import EPSILON, FeatureSimilarity

__all__ = ["Formula", "streamed_loss"]

BLOCK = 1 << 23  # pairs looked at in one go: some ten tensors of 32 MB
BLOCK_ON_CPU = 1 << 20  # which its caches nearly hold


@dataclass(frozen=True)
class Formula:
    """A loss of pairs: what a pair costs, and how pairs are summed up."""

    pair_loss: Callable[[Tensor, Tensor], Tensor]  # (D, s) -> L, value by value
    similarity: FeatureSimilarity
    normalize: bool | Literal["detach"]
    tau: float | None = None  # tau log mean exp(L / tau), or the mean


def streamed_loss(
    z: Tensor, features: Tensor, formula: Formula, *, block: int | None = None
) -> Tensor:
    """The loss over all pairs of rows of z, (n, e), and of features, (n, d).

    Blocks of ``block`` pairs are computed one after the other, in the forward pass together with
    their part of the gradient: memory grows with n and not with its square. Distances are
    products of matrices in float64, where the cancellation that makes float32 wrong near 0 is
    below float32's own rounding.
    """
    usual = BLOCK_ON_CPU if z.device.type == "cpu" else BLOCK
    loss: Tensor = _Streamed.apply(z, features, formula, block or usual)
    return loss


class _Streamed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, features: Tensor, formula: Formula, block: int) -> Tensor:
        with torch.autocast(z.device.type, enabled=False):
            loss, gradient = _loss_and_gradient(z.detach(), features, formula, block)
        ctx.save_for_backward(gradient.to(z.dtype))
        return loss.to(z.dtype if z.dtype == torch.float64 else torch.float32)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        return gradients[0] * ctx.saved_tensors[0], None, None, None


def _loss_and_gradient(
    z: Tensor, features: Tensor, formula: Formula, block: int
) -> tuple[Tensor, Tensor]:
    embedded, measured = _Distances(z), _FeatureDistances(features)
    blocks = list(_blocks(len(z), block))
    largest = torch.stack([measured(rows)[0].amax() for rows in blocks]).amax()
    scale = formula.similarity.scale_of(largest).clamp_min(EPSILON)
    sums, gradient = _sums_of(formula, z.device), torch.zeros_like(embedded.values)
    for rows in blocks:
        distance, weight = measured(rows)
        s = formula.similarity.of_ratio(distance / scale).to(embedded.kind)
        weight = (weight * (largest > 0)).to(embedded.kind)
        D = embedded(rows).to(embedded.kind)
        mu = D.mean(1, keepdim=True).clamp_min(EPSILON) if formula.normalize else 1.0
        with torch.enable_grad():
            unit = (D / mu).requires_grad_()
            L = formula.pair_loss(unit, s)
        grow, pull = sums.add(L.detach(), weight)
        (slope,) = torch.autograd.grad(L, unit, grad_outputs=pull)
        slope = _through_the_mean(slope, D, mu, formula.normalize)
        gradient *= grow
        embedded.pull(gradient, rows, slope, D)
    return sums.value(), gradient * sums.factor()


def _blocks(n: int, block: int) -> Iterator[slice]:
    step = max(1, block // n)
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def _through_the_mean(slope: Tensor, D: Tensor, mu: Tensor | float, mode: Any) -> Tensor:
    """The derivative by D of what depends on D / mu, where mu is the row's mean of D."""
    through: Tensor = slope / mu
    if mode is True:
        assert isinstance(mu, Tensor)
        moved = torch.where(mu > EPSILON, (through * D).sum(1, keepdim=True) / mu, 0)
        through = through - moved / D.shape[1]
    return through


class _Distances:
    """Euclidean distances of some rows to all, and the gradient that comes back from them."""

    def __init__(self, z: Tensor) -> None:
        self.kind = z.dtype if z.dtype == torch.float64 else torch.float32
        wide = z.float() if z.device.type == "mps" else z.double()
        self.values = wide - wide.mean(0)  # distances do not see it, rounding does
        self.squares = self.values.square().sum(1)

    def __call__(self, rows: slice) -> Tensor:
        """(r, n), 0 from a row to itself."""
        squared = torch.addmm(self.squares, self.values[rows], self.values.T, alpha=-2)
        squared += self.squares[rows, None]
        at = torch.arange(rows.start, rows.stop, device=squared.device)
        squared[at - rows.start, at] = 0
        return squared.clamp_min_(0).sqrt_()

    def pull(self, gradient: Tensor, rows: slice, slope: Tensor, D: Tensor) -> None:
        """Add to the gradient of all rows what the slopes by these distances make of it."""
        c = torch.where(D > 0, slope / torch.where(D > 0, D, 1), 0)  # (r, n)
        values = self.values.to(c.dtype)
        gradient += c.sum(0)[:, None] * values - c.T @ values[rows]
        gradient[rows] += c.sum(1, keepdim=True) * values[rows] - c @ values


class _FeatureDistances:
    """``pairs.feature_distances`` of some rows to all, by products of matrices."""

    def __init__(self, features: Tensor) -> None:
        wide = features.float() if features.device.type == "mps" else features.double()
        self.values = (wide - wide.nanmean(0).nan_to_num(nan=0.0)).nan_to_num(nan=0.0)
        self.whole = not bool(features.isnan().any())
        if self.whole:
            self.sums = torch.linalg.vecdot(self.values, self.values)
        else:
            self.known = (~features.isnan()).to(wide.dtype)
            self.squares = self.values.square()

    def __call__(self, rows: slice) -> tuple[Tensor, Tensor]:
        """Distances and weights, (r, n)."""
        a = self.values[rows]
        if self.whole:
            squared = torch.addmm(self.sums, a, self.values.T, alpha=-2)
            squared += self.sums[rows, None]
            weight = torch.ones_like(squared, dtype=torch.float32)
        else:
            squared = torch.addmm(self.squares[rows] @ self.known.T, a, self.values.T, alpha=-2)
            squared += self.known[rows] @ self.squares.T
            shared = self.known[rows] @ self.known.T
            squared *= a.shape[1] / shared.clamp_min(1)
            weight = (shared > 0).float()
        at = torch.arange(rows.start, rows.stop, device=squared.device)
        squared[at - rows.start, at] = 0
        return squared.clamp_min_(0).sqrt_().float() * weight, weight


def _sums_of(formula: Formula, device: torch.device) -> _Mean | _SoftMaximum:
    return _Mean(device) if formula.tau is None else _SoftMaximum(device, formula.tau)


class _Mean:
    """The weighted mean of losses that come in blocks."""

    def __init__(self, device: torch.device) -> None:
        kind = torch.float32 if device.type == "mps" else torch.float64
        self.sum, self.total = torch.zeros(2, device=device, dtype=kind)

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


class _SoftMaximum:
    """``expclr.soft_maximum`` of losses that come in blocks, with a running maximum."""

    def __init__(self, device: torch.device, tau: float) -> None:
        self.tau = tau
        kind = torch.float32 if device.type == "mps" else torch.float64
        self.top, self.exps, self.expm1s, self.total = torch.zeros(4, device=device, dtype=kind)
        self.least = torch.full((), torch.inf, device=device, dtype=kind)

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
