"""Pair losses by blocks of rows: value and gradient without ever holding all pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from expclr.engine import has_kernels, shared_memory
from expclr.methods.pairs import EPSILON, FeatureSimilarity, gaussian, linear, squared
from expclr.methods.streamed_sums import sums_of

__all__ = ["Formula", "streamed_loss"]

BLOCK = 1 << 23  # pairs looked at in one go: twice as many take over a gigabyte of a GPU
BLOCK_ON_CPU = 1 << 20  # which its caches nearly hold
WIDEST = 256  # values of an embedding in a kernel: its gradient stays in registers
MOST_NUMBERS = 1 << 30  # of a table in a kernel, which counts them in 32 bits
SHARED_MEMORY = 160 * 1024  # bytes of a multiprocessor: what a kernel asks for, and some


@dataclass(frozen=True)
class Formula:
    """A loss of pairs: what a pair costs, and how pairs are summed up."""

    pair_loss: Callable[[Tensor, Tensor], Tensor]  # (D, s) -> L, value by value
    similarity: FeatureSimilarity
    normalize: bool | Literal["detach"]
    tau: float | None = None  # tau log mean exp(L / tau), or the mean
    delta: float | None = None  # of the quadratic loss, where ``pair_loss`` is that one


def streamed_loss(
    z: Tensor, features: Tensor, formula: Formula, *, block: int | None = None
) -> Tensor:
    """The loss over all pairs of rows of z, (n, e), and of features, (n, d).

    Memory grows with n and not with its square; value and gradient are computed together, in the
    forward pass. On a GPU with Triton the quadratic losses are kernels (``streamed_kernels``), if
    no ``block`` is given. Everything else is computed in blocks of ``block`` pairs, one after the
    other. There, distances are products of matrices in float64, where the cancellation that makes
    float32 wrong near 0 is below float32's own rounding.

    Both see embeddings in about as many digits as float32 has, counted from the mean of all: where
    rows come in groups as narrow as 1e-2 of what is between them, the gradient is right to about
    1e-5 of its norm, and to less in proportion where they are narrower. (All pairs at once, with
    ``streamed=False``, have no such limit.)
    """
    found: tuple[Tensor, Tensor] = _Streamed.apply(z, features, formula, block)
    return found[0]


class _Streamed(torch.autograd.Function):
    """The loss and, as its second result, the gradient."""

    @staticmethod
    def forward(
        z: Tensor, features: Tensor, formula: Formula, block: int | None
    ) -> tuple[Tensor, Tensor]:
        with torch.autocast(z.device.type, enabled=False):
            missing = _may_be_missing(features, formula.similarity)
            if block is None and in_kernels(z, features, formula):
                from expclr.methods.streamed_tiles import loss_and_gradient

                loss, gradient = loss_and_gradient(z, features, formula, missing=missing)
            else:
                size = block or (BLOCK_ON_CPU if z.device.type == "cpu" else BLOCK)
                loss, gradient = _by_blocks(z, features, formula, size, missing)
        kind = z.dtype if z.dtype == torch.float64 else torch.float32
        return loss.to(kind), gradient.to(z.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        return gradients[0] * ctx.saved_tensors[0], None, None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *inputs: Any
    ) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
        """One model after the other: a large batch fills the device alone."""
        z, features = (
            [v] * info.batch_size if dim is None else v.unbind(dim)
            for v, dim in zip(inputs[:2], in_dims[:2], strict=True)
        )
        found = [_Streamed.apply(*pair, *inputs[2:]) for pair in zip(z, features, strict=True)]
        loss, gradient = (torch.stack(parts) for parts in zip(*found, strict=True))
        return (loss, gradient), (0, 0)


def in_kernels(z: Tensor, features: Tensor, formula: Formula) -> bool:
    """Whether there are kernels for that loss, on that device."""
    return (
        has_kernels(z)
        and formula.delta is not None
        and formula.similarity.function in (linear, squared, gaussian)
        and z.shape[1] <= WIDEST
        and len(z) * features.shape[1] < MOST_NUMBERS
        and shared_memory(z.device) >= SHARED_MEMORY
    )


def _may_be_missing(features: Tensor, similarity: FeatureSimilarity) -> bool:
    """Whether to look for missing features; a graph that is captured must not ask the device."""
    if features.device.type == "cuda" and (
        torch.cuda.is_current_stream_capturing()
        or torch.cuda.get_sync_debug_mode()  # the step before the capture, which must not either
    ):
        return not similarity.whole
    return bool(features.isnan().any())


def _by_blocks(
    z: Tensor, features: Tensor, formula: Formula, block: int, missing: bool
) -> tuple[Tensor, Tensor]:
    embedded, measured = _Distances(z), _FeatureDistances(features, missing)
    blocks = list(_blocks(len(z), block))
    largest = torch.stack([measured(rows)[0].amax() for rows in blocks]).amax()
    scale = formula.similarity.scale_of(largest).clamp_min(EPSILON)
    sums, gradient = sums_of(formula.tau, z.device), torch.zeros_like(embedded.values)
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

    def __init__(self, features: Tensor, missing: bool) -> None:
        wide = features.float() if features.device.type == "mps" else features.double()
        self.values = (wide - wide.nanmean(0).nan_to_num(nan=0.0)).nan_to_num(nan=0.0)
        self.whole = not missing
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
