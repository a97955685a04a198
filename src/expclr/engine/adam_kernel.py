# mypy: allow-untyped-defs, allow-untyped-calls
"""Adam of many models in one pass over their weights, on a GPU; needs Triton."""

from __future__ import annotations

import math

import triton
import triton.language as tl
from torch import Tensor

__all__ = ["stepped"]


@triton.jit
def _adam(
    weights, gradient, first, second, steps, lr, each, total,
    BETA1: tl.constexpr, BETA2: tl.constexpr, EPSILON: tl.constexpr,
    LOG1: tl.constexpr, LOG2: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * SIZE + tl.arange(0, SIZE)
    real = at < total
    step = tl.load(steps)
    g = tl.load(gradient + at, mask=real, other=0.0)
    m = tl.load(first + at, mask=real, other=0.0)
    v = tl.load(second + at, mask=real, other=0.0)
    m += (g - m) * (1 - BETA1)
    v = v * BETA2 + g * g * (1 - BETA2)
    root = tl.sqrt(v) / tl.sqrt(1 - tl.exp2(step * LOG2)) + EPSILON
    pace = tl.load(lr + at // each, mask=real, other=0.0) / (1 - tl.exp2(step * LOG1))
    w = tl.load(weights + at, mask=real, other=0.0) - pace * m / root
    tl.store(weights + at, w, mask=real)
    tl.store(first + at, m, mask=real)
    tl.store(second + at, v, mask=real)


def stepped(
    weights: Tensor, gradient: Tensor, first: Tensor, second: Tensor, steps: Tensor, lr: Tensor,
    betas: tuple[float, float], epsilon: float,
) -> None:  # fmt: skip
    """Adam in place in one pass, weights (k, p), a learning rate for each row."""
    size = 1024
    _adam[(triton.cdiv(weights.numel(), size),)](
        *(weights, gradient.contiguous(), first, second, steps, lr),
        *(weights.shape[1], weights.numel()),
        *(*betas, epsilon, *(math.log2(beta) for beta in betas), size),
    )
