"""The TCN as matrix products: the same function of the same weights, written for many at once.

A convolution over three taps is one product of shifted windows side by side, (t, 3 w) x (3 w, w).
Under ``torch.func.vmap`` it becomes a batched product over models, where a convolution would
become a grouped one, which is slow.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from expclr.encoders.masks import POOLINGS, real_steps
from expclr.encoders.tcn import TCN, WeightNormConvolution

__all__ = ["can_be_products", "tcn_as_products"]


def can_be_products(network: nn.Module) -> bool:
    """Whether the network is a TCN without batch normalisation."""
    return type(network) is TCN and all(block.first.norm is None for block in network.blocks)


def tcn_as_products(tcn: TCN, x: Tensor, lengths: Tensor | None, precision: torch.dtype) -> Tensor:
    """(b, c, t) -> (b, e); blocks compute in ``precision``, pooling and head in float32."""
    mask = None if lengths is None else real_steps(lengths, x.shape[2]).transpose(1, 2)  # (b, t, 1)
    y = x.transpose(1, 2).to(precision)  # (b, t, c)
    for block, stride in zip(tcn.blocks, tcn.strides, strict=True):
        narrow = mask if stride == 1 or mask is None else mask[:, ::stride]
        y, mask = _block(block, y, mask, narrow), narrow
    whole = y.float().transpose(1, 2)  # (b, w, t)
    over_time = None if mask is None else mask.transpose(1, 2)
    return tcn.head(torch.cat([POOLINGS[kind](whole, over_time) for kind in tcn.pooling], dim=1))


def _block(block: nn.Module, x: Tensor, mask: Tensor | None, narrow: Tensor | None) -> Tensor:
    """As ``forward`` of the TCN's block, (b, t, w) -> (b, t', w)."""
    first: nn.Module = block.first.convolution  # type: ignore[union-attr,assignment]
    second: nn.Module = block.second.convolution  # type: ignore[union-attr,assignment]
    y = _dropped(torch.relu(_convolved(first, x, mask)), block.dropout)  # type: ignore[arg-type]
    y = _dropped(torch.relu(_convolved(second, y, narrow)), block.dropout)  # type: ignore[arg-type]
    around = block.around
    if isinstance(around, nn.Conv1d):
        x = x[:, :: around.stride[0]]
        assert around.bias is not None
        x = functional.linear(x, around.weight[:, :, 0].to(x.dtype), around.bias.to(x.dtype))
    return torch.relu(y + x)


def _convolved(convolution: nn.Module, x: Tensor, mask: Tensor | None) -> Tensor:
    assert isinstance(convolution, nn.Conv1d)
    assert convolution.bias is not None
    x = x if mask is None else x * mask.to(x.dtype)
    (kernel,), (dilation,) = convolution.kernel_size, convolution.dilation
    t, weight = x.shape[1], _weight(convolution)
    taps, windows = [], []
    for tap in range(kernel):
        shift = (tap - kernel // 2) * dilation
        if abs(shift) < t:  # what lies outside of the window is 0
            taps.append(weight[:, :, tap])
            windows.append(_shifted(x, shift)[:, :: convolution.stride[0]])
    product = torch.cat(taps, dim=1).to(x.dtype)  # (w, taps * c)
    return functional.linear(torch.cat(windows, dim=2), product, convolution.bias.to(x.dtype))


def _weight(convolution: nn.Conv1d) -> Tensor:
    if isinstance(convolution, WeightNormConvolution):
        return convolution.normalised_weight()
    return convolution.weight


def _shifted(x: Tensor, shift: int) -> Tensor:
    """What lies ``shift`` timepoints later, 0 beyond the ends, (b, t, w)."""
    if shift > 0:
        return functional.pad(x[:, shift:], (0, 0, 0, shift))
    return functional.pad(x[:, :shift], (0, 0, -shift, 0)) if shift < 0 else x


def _dropped(y: Tensor, dropout: nn.Module) -> Tensor:
    """Dropout of whole channels of a window, or of single values, (b, t, w)."""
    p = float(dropout.p)  # type: ignore[arg-type]
    if not dropout.training or p == 0:
        return y
    shape = (len(y), 1, y.shape[2]) if isinstance(dropout, nn.Dropout1d) else y.shape
    kept = torch.rand(shape, device=y.device) >= p
    return y * (kept / (1 - p)).to(y.dtype)
