# mypy: allow-untyped-defs, allow-untyped-calls
"""A TCN's convolution on a GPU, many models at once: bias, ReLU and dropout in the same pass.

What limits a narrow network there is how often its activations are read and written, and how many
kernels a step starts: each convolution is one of them forward and three backward, for any number of
models. Needs Triton, which comes with torch for CUDA.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from expclr.engine import shared_memory

__all__ = ["convolved"]

WARPS, STAGES = 4, 3  # of a tile: its threads, and how many parts of it are under way at once
ROWS = 128  # that a gradient of weights takes at a time
PROGRAMS = 1024  # that sum up a gradient of weights: several for each multiprocessor


@triton.jit
def _convolve(
    x, weight, bias, scale, plus, y, whole,
    rows, before, after, c, n, stride, dilation,
    from_input, from_output, weight_step, bias_step, scale_step,
    TAPS: tl.constexpr, BLOCKS: tl.constexpr, ROWS: tl.constexpr, IN: tl.constexpr,
    OUT: tl.constexpr, BACK: tl.constexpr, ACTIVE: tl.constexpr, SCALED: tl.constexpr,
    PLUS: tl.constexpr, WINDOW: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """(rows of x, c) to (rows, n); BACK: the other way, from gradients of outputs to inputs."""
    model = tl.program_id(2).to(tl.int64)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    out = tl.program_id(1) * OUT + tl.arange(0, OUT)
    window, step = row // after, row % after
    x += model * (rows // after) * before * c
    weight += model * weight_step
    total = tl.zeros((ROWS, OUT), dtype=tl.float32)
    for number in range(TAPS * BLOCKS):
        tap, inside = number // BLOCKS, number % BLOCKS * IN + tl.arange(0, IN)
        if BACK:
            from_start = step - (tap - TAPS // 2) * dilation
            time = from_start // stride
            seen = (row < rows) & (from_start >= 0) & (time < before) & (from_start % stride == 0)
        else:
            time = step * stride + (tap - TAPS // 2) * dilation
            seen = (row < rows) & (time >= 0) & (time < before)
        a = tl.load(
            x + (window * before + time)[:, None] * c + inside[None, :],
            mask=seen[:, None] & (inside < c)[None, :],
            other=0.0,
        )
        w = tl.load(
            weight + tap * (c if not BACK else n)
            + out[None, :] * from_output + inside[:, None] * from_input,
            mask=(out < n)[None, :] & (inside < c)[:, None],
            other=0.0,
        )  # fmt: skip
        total = tl.dot(a, w.to(a.dtype), total, input_precision=PRECISION)
    real = (row < rows)[:, None] & (out < n)[None, :]
    if ACTIVE:
        total += tl.load(bias + model * bias_step + out, mask=out < n, other=0.0)[None, :]
        total = tl.maximum(total, 0.0)
    if SCALED:
        scale += model * scale_step
        if WINDOW:  # the tile lies within one window
            at = tl.program_id(0) * ROWS // after * n + out
            total *= tl.load(scale + at, mask=out < n, other=0.0)[None, :]
        else:
            total *= tl.load(scale + window[:, None] * n + out[None, :], mask=real, other=0.0)
    at = model * rows * n + row[:, None] * n + out[None, :]
    tl.store(y + at, total.to(y.dtype.element_ty), mask=real)
    if PLUS:
        total += tl.load(plus + at, mask=real, other=0.0)
        tl.store(whole + at, tl.maximum(total, 0.0).to(y.dtype.element_ty), mask=real)


@triton.jit
def _through(
    gradient, y, scale, whole, result, around, each, after, n, scale_step,
    SIZE: tl.constexpr, SCALED: tl.constexpr, PLUS: tl.constexpr,
):  # fmt: skip
    """The gradients of what comes before ReLU and ``scale``, and of what was added after them."""
    model = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    real = at < each
    base = model * each
    g = tl.load(gradient + base + at, mask=real, other=0.0).to(tl.float32)
    if PLUS:
        g = tl.where(tl.load(whole + base + at, mask=real, other=0.0) > 0, g, 0.0)
        tl.store(around + base + at, g.to(result.dtype.element_ty), mask=real)
    g = tl.where(tl.load(y + base + at, mask=real, other=0.0) > 0, g, 0.0)
    if SCALED:
        kept = scale + model * scale_step + at // (after * n) * n + at % n
        g *= tl.load(kept, mask=real, other=0.0)
    tl.store(result + base + at, g.to(result.dtype.element_ty), mask=real)


@triton.jit
def _to_weights(
    x, gradient, sums,
    rows, share, before, after, c, n, stride, dilation,
    TAPS: tl.constexpr, ROWS: tl.constexpr, IN: tl.constexpr, OUT: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Sums over a share of the rows: of the products for a tap, and of the gradient itself."""
    model = tl.program_id(2).to(tl.int64)
    part, tile = tl.program_id(0), tl.program_id(1)
    tap = tile % TAPS
    blocks = tl.cdiv(c, IN)
    first = (tile // TAPS) % blocks * IN
    inside = first + tl.arange(0, IN)
    out = tile // TAPS // blocks * OUT + tl.arange(0, OUT)
    x += model * (rows // after) * before * c
    gradient += model * rows * n
    total = tl.zeros((OUT, IN), dtype=tl.float32)
    alone = tl.zeros((OUT,), dtype=tl.float32)
    for start in range(part * share, min(rows, (part + 1) * share), ROWS):
        row = start + tl.arange(0, ROWS)
        window, step = row // after, row % after
        time = step * stride + (tap - TAPS // 2) * dilation
        g = tl.load(
            gradient + row[:, None] * n + out[None, :],
            mask=(row < rows)[:, None] & (out < n)[None, :],
            other=0.0,
        )
        seen = (row < rows) & (time >= 0) & (time < before)
        a = tl.load(
            x + (window * before + time)[:, None] * c + inside[None, :],
            mask=seen[:, None] & (inside < c)[None, :],
            other=0.0,
        )
        alone += tl.sum(g.to(tl.float32), 0)
        total = tl.dot(tl.trans(g), a, total, input_precision=PRECISION)
    sums += (model * tl.num_programs(0) + part) * n * (TAPS * c + 1)  # weights, then biases
    at = (out[:, None] * TAPS + tap) * c + inside[None, :]
    tl.store(sums + at, total, mask=(out < n)[:, None] & (inside < c)[None, :])
    if (tap == 0) & (first == 0):
        tl.store(sums + n * TAPS * c + out, alone, mask=out < n)


def convolved(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    scale: Tensor | None = None,
    plus: Tensor | None = None,
    *,
    stride: int,
    dilation: int,
) -> Tensor:
    """ReLU of a centred convolution, times ``scale``: (b, t, c) -> (b, t', n).

    Parameters
    ----------
    x : Tensor (b, t, c)
        In the precision of the products.
    weight : Tensor (n, taps, c)
    bias : Tensor (n,)
    scale : Tensor (b, n), optional
        What each channel of each window is multiplied by: a mask of dropout.
    plus : Tensor (b, t', n), optional
        What is added then, before another ReLU.
    """
    none = torch.empty(1, device=x.device)
    tensors = x, weight, bias, none if scale is None else scale, none if plus is None else plus
    y, whole = _Convolved.apply(
        *(v.unsqueeze(0) for v in tensors), scale is not None, plus is not None, stride, dilation
    )
    return (y if plus is None else whole).squeeze(0)


class _Convolved(torch.autograd.Function):
    """Of several models: every tensor with a first dimension for them, ``vmap`` adds to it."""

    @staticmethod
    def forward(
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        scale: Tensor,
        plus: Tensor,
        scaled: bool,
        added: bool,
        stride: int,
        dilation: int,
    ) -> tuple[Tensor, Tensor]:
        x, weight, plus = x.contiguous(), _whole(weight), plus.contiguous()
        models, b, before, c = x.shape
        n, taps = weight.shape[1:3]
        after = (before - 1) // stride + 1
        y = x.new_empty(models, b, after, n)
        whole = torch.empty_like(y) if added else y.new_empty(models)
        rows = _rows(models, b * after)
        tiles = triton.cdiv(b * after, rows), triton.cdiv(n, _tile(n)), models
        _convolve[tiles](
            *(x, weight, bias, scale, plus, y, whole),
            *(b * after, before, after, c, n, stride, dilation),
            *(1, taps * c, weight.stride(0), bias.stride(0), scale.stride(0)),
            **_settings(x, taps, rows, c, n),
            ACTIVE=True,
            BACK=False,
            SCALED=scaled,
            PLUS=added,
            WINDOW=after % rows == 0,
        )
        return y, whole

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        x, weight, _, scale, _, ctx.scaled, ctx.added, ctx.stride, ctx.dilation = inputs
        ctx.save_for_backward(x, weight, scale, *output)
        ctx.mark_non_differentiable(output[0] if ctx.added else output[1])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, scale, y, whole = ctx.saved_tensors
        x, weight, geometry = x.contiguous(), _whole(weight), (ctx.stride, ctx.dilation)
        inner, around = _inner_gradients(
            gradients[ctx.added].contiguous(),
            y,
            scale if ctx.scaled else None,
            whole if ctx.added else None,
        )
        to_x = _input_gradient(inner, x, weight, *geometry) if ctx.needs_input_grad[0] else None
        to_weight, to_bias = _weight_gradient(inner, x, weight.shape[2], *geometry)
        return to_x, to_weight, to_bias, None, around, None, None, None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], *inputs: Any
    ) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
        tensors = [
            v.expand(info.batch_size, *v.shape) if dim is None else v.movedim(dim, 0)
            for v, dim in zip(inputs[:5], in_dims[:5], strict=True)
        ]
        shared = tensors[0].shape[1]  # 1, but for a vmap within a vmap
        if shared != max(v.shape[1] for v in tensors):
            raise RuntimeError("models of models have no kernels: one vmap at a time")
        both = _Convolved.apply(*(v.flatten(0, 1) for v in tensors), *inputs[5:])
        y, whole = (v.unflatten(0, (info.batch_size, shared)) for v in both)
        return (y, whole), (0, 0)


def _inner_gradients(
    gradient: Tensor, y: Tensor, scale: Tensor | None, whole: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """Of the convolution's own sum, and of what was added after ReLU and ``scale``."""
    models, b, after, n = y.shape
    inner, each, size = torch.empty_like(y), b * after * n, 2048
    around = None if whole is None else torch.empty_like(y)
    _through[triton.cdiv(each, size), models](
        *(gradient, y, y if scale is None else scale),
        *(y if whole is None else whole, inner, y if around is None else around),
        *(each, after, n, 0 if scale is None else scale.stride(0)),
        SIZE=size,
        SCALED=scale is not None,
        PLUS=whole is not None,
    )
    return inner, around


def _input_gradient(inner: Tensor, x: Tensor, weight: Tensor, stride: int, dilation: int) -> Tensor:
    (models, b, before, c), (after, n) = x.shape, inner.shape[2:]
    result, taps, rows = torch.empty_like(x), weight.shape[2], _rows(models, b * before)
    tiles = triton.cdiv(b * before, rows), triton.cdiv(c, _tile(c)), models
    _convolve[tiles](
        *(inner, weight, inner, inner, inner, result, result),
        *(b * before, after, before, n, c, stride, dilation),
        *(taps * c, 1, weight.stride(0), 0, 0),
        **_settings(x, taps, rows, n, c),
        ACTIVE=False,
        BACK=True,
        SCALED=False,
        PLUS=False,
        WINDOW=False,
    )
    return result


def _weight_gradient(
    inner: Tensor, x: Tensor, taps: int, stride: int, dilation: int
) -> tuple[Tensor, Tensor]:
    """Sums over all rows, in shares that are added up in a fixed order."""
    (models, b, before, c), (after, n) = x.shape, inner.shape[2:]
    rows, total = ROWS, b * after
    tiles = taps * triton.cdiv(c, _tile(c)) * triton.cdiv(n, _tile(n))
    most = max(1, PROGRAMS // (tiles * models))
    share = triton.cdiv(triton.cdiv(total, most), rows) * rows
    parts = triton.cdiv(total, share)
    sums = torch.empty(models, parts, n * (taps * c + 1), device=x.device)
    settings = _settings(x, taps, rows, c, n)
    settings.pop("BLOCKS")
    _to_weights[parts, tiles, models](
        *(x, inner, sums),
        *(total, share, before, after, c, n, stride, dilation),
        **settings,
    )
    weights, biases = sums.sum(1).split([n * taps * c, n], dim=1)
    return weights.unflatten(1, (n, taps, c)), biases


def _whole(weight: Tensor) -> Tensor:
    """With each model's weights in one piece; the pieces may lie apart."""
    return weight if weight[0].is_contiguous() else weight.contiguous()


def _rows(models: int, total: int) -> int:
    """Rows of a tile: few where there would be fewer tiles than multiprocessors."""
    return 128 if models * total >= 128 * 512 else 32


def _tile(channels: int) -> int:
    return min(64, max(16, triton.next_power_of_2(channels)))


def _settings(x: Tensor, taps: int, rows: int, c: int, n: int) -> dict[str, Any]:
    return {
        "TAPS": taps,
        "BLOCKS": triton.cdiv(c, _tile(c)),
        "ROWS": rows,
        "IN": _tile(c),
        "OUT": _tile(n),
        "PRECISION": "tf32x3" if x.dtype == torch.float32 else "tf32",
        "num_warps": WARPS,
        "num_stages": _stages(max(rows, 64) * (_tile(c) + _tile(n)) * x.element_size(), x.device),
    }


def _stages(bytes_each: int, device: torch.device) -> int:
    """As many as a multiprocessor's own memory holds."""
    if device.type != "cuda":
        return STAGES
    return max(1, min(STAGES, int(0.9 * shared_memory(device) / bytes_each)))
