"""The TCN as matrix products: the same function of the same weights, written for many at once.

A convolution over three taps is one product of shifted windows side by side, (t, 3 w) x (3 w, w).
Under ``torch.func.vmap`` it becomes a batched product over models, where a convolution would
become a grouped one, which is slow. On a GPU with Triton each is one kernel (``tcn_kernels``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from expclr.encoders.convolutions import WeightNormConvolution
from expclr.encoders.masks import POOLINGS, real_steps
from expclr.engine import has_kernels

__all__ = ["tcn_as_products"]


def tcn_as_products(
    tcn: Any, x: Tensor, lengths: Tensor | None, precision: torch.dtype | None = None
) -> Tensor:
    """(b, c, t) -> (b, e); blocks compute in ``precision``, sums over time and head in float32.

    Without a precision it is that of autocast, where that is on, or else of ``x``.
    """
    mask = None if lengths is None else real_steps(lengths, x.shape[2]).transpose(1, 2)  # (b, t, 1)
    y = x.transpose(1, 2).to(precision or _precision(x)).contiguous()  # (b, t, c)
    convolutions = [c.convolution for block in tcn.blocks for c in (block.first, block.second)]
    filters, kept = _filters(convolutions, y.dtype), _kept_channels(tcn, x)
    for number, (block, stride) in enumerate(zip(tcn.blocks, tcn.strides, strict=True)):
        narrow = mask if stride == 1 or mask is None else mask[:, ::stride]
        two = slice(2 * number, 2 * number + 2)
        y, mask = _block(block, y, (mask, narrow), filters[two], kept[two]), narrow
    with torch.autocast(x.device.type, enabled=False):
        whole = y.transpose(1, 2)  # (b, w, t)
        over_time = None if mask is None else mask.transpose(1, 2)
        pooled = [POOLINGS[kind](whole, over_time).float() for kind in tcn.pooling]
        z: Tensor = tcn.head(torch.cat(pooled, dim=1))
    return z


def _precision(x: Tensor) -> torch.dtype:
    kind = x.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else x.dtype


def _filters(convolutions: Sequence[nn.Conv1d], precision: torch.dtype) -> list[Tensor]:
    """Each convolution's filters, (n, taps, c); those of one shape are made at once."""
    alike: dict[tuple[Any, ...], list[int]] = {}
    for number, one in enumerate(convolutions):
        alike.setdefault((type(one), one.weight.shape), []).append(number)
    found: dict[int, Tensor] = {}
    for (kind, _), numbers in alike.items():
        weight = torch.stack([convolutions[number].weight for number in numbers])
        if issubclass(kind, WeightNormConvolution):
            gain = torch.stack([convolutions[number].gain for number in numbers])  # type: ignore[misc]
            weight = gain * weight / torch.linalg.vector_norm(weight, dim=(2, 3), keepdim=True)
        each = weight.transpose(2, 3).to(precision).contiguous().unbind(0)
        found |= dict(zip(numbers, each, strict=True))
    return [found[number] for number in range(len(convolutions))]


def _kept_channels(tcn: Any, x: Tensor) -> Sequence[Tensor | None]:
    """What each convolution's channels are multiplied by, (b, w); None: nothing is dropped."""
    dropout, count = tcn.blocks[0].dropout, 2 * len(tcn.blocks)
    if not (isinstance(dropout, nn.Dropout1d) and dropout.training and dropout.p):
        return [None] * count
    width = tcn.blocks[0].second.convolution.out_channels
    kept = torch.rand(count, len(x), width, device=x.device) >= dropout.p
    return (kept / (1 - dropout.p)).unbind(0)


def _block(
    block: Any,
    x: Tensor,
    masks: tuple[Tensor | None, Tensor | None],
    filters: Sequence[Tensor],
    kept: Sequence[Tensor | None],
) -> Tensor:
    """As ``forward`` of the TCN's block, (b, t, w) -> (b, t', w)."""
    first, second = block.first.convolution, block.second.convolution
    around = block.around
    past = x
    if isinstance(around, nn.Conv1d):
        assert around.bias is not None
        past, weight = x[:, :: around.stride[0]], around.weight[:, :, 0].to(x.dtype)
        past = functional.linear(past, weight, around.bias.to(x.dtype))
    values = isinstance(block.dropout, nn.Dropout)  # single ones are dropped
    y = _activated(first, _masked(x, masks[0]), filters[0], kept[0])
    y = _masked(block.dropout(y) if values else y, masks[1])
    if values:
        return torch.relu(block.dropout(_activated(second, y, filters[1], kept[1])) + past)
    return _activated(second, y, filters[1], kept[1], past)


def _masked(x: Tensor, mask: Tensor | None) -> Tensor:
    return x if mask is None else x * mask.to(x.dtype)


def _activated(
    convolution: nn.Conv1d,
    x: Tensor,
    weight: Tensor,
    scale: Tensor | None,
    plus: Tensor | None = None,
) -> Tensor:
    """ReLU of the convolution, times ``scale``, ReLU with ``plus``: (b, t, c) -> (b, t', n)."""
    (stride,), (dilation,), bias = convolution.stride, convolution.dilation, convolution.bias
    assert bias is not None
    if has_kernels(x) and x.shape[0] * x.shape[1] * max(x.shape[2], len(weight)) < 2**31:
        from expclr.encoders.tcn_kernels import convolved

        return convolved(x, weight, bias, scale, plus, stride=stride, dilation=dilation)
    y = torch.relu(_product(x, weight, bias, stride, dilation))
    y = y if scale is None else y * scale[:, None].to(y.dtype)
    return y if plus is None else torch.relu(y + plus)


def _product(x: Tensor, weight: Tensor, bias: Tensor, stride: int, dilation: int) -> Tensor:
    taps, windows = [], []
    for tap in range(weight.shape[1]):
        shift = (tap - weight.shape[1] // 2) * dilation
        if abs(shift) < x.shape[1]:  # what lies outside of the window is 0
            taps.append(weight[:, tap])
            windows.append(_shifted(x, shift)[:, ::stride])
    filters = torch.cat(taps, dim=1)  # (n, taps * c)
    return functional.linear(torch.cat(windows, dim=2), filters, bias.to(x.dtype))


def _shifted(x: Tensor, shift: int) -> Tensor:
    """What lies ``shift`` timepoints later, 0 beyond the ends, (b, t, w)."""
    if shift > 0:
        return functional.pad(x[:, shift:], (0, 0, 0, shift))
    return functional.pad(x[:, :shift], (0, 0, -shift, 0)) if shift < 0 else x
