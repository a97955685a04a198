"""The paper's encoder: non-causal temporal convolutions with residuals."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from expclr.encoders.convolutions import (
    Convolution,
    WeightNormConvolution,
    time_before_channels,
)
from expclr.encoders.masks import MaskedBatchNorm, pool, real_steps
from expclr.encoders.tcn_matmul import tcn_as_products
from expclr.engine import has_kernels
from expclr.errors import ConfigError

__all__ = ["TCN", "can_be_products"]

Norm = Literal["weight", "batch", "none"]
Dropout = Literal["channel", "element"]


class TCN(nn.Module):
    """Residual temporal blocks with growing dilation, pooled over time, and a two-layer head.

    Parameters
    ----------
    in_channels, embedding_dim : int
    length : int, optional
        Timepoints of a typical window: long windows are halved by a stride of 2 in as many
        blocks as it takes to come down to ``finest`` steps.
    width, kernel, blocks : int
        Channels and kernel size (odd) of every convolution; block i has dilation 2**i.
    strides : tuple of int, optional
        One for each block, instead of those chosen from ``length``.
    dilations : tuple of int, optional
        One for each block, instead of the doubling ones.
    dropout : float
    dropout_kind : "channel" or "element"
        Drop whole channels of a window, or single values. Masks of single values cost over a
        third of a training step on a CPU, whole channels next to nothing.
    norm : "weight", "batch" or "none"
    pooling : tuple of "mean", "max", "std"
    hidden : int
        Width of the head.

    Notes
    -----
    After Lea et al. (2017) and Bai et al. (2018), changed as the paper says: symmetric padding,
    constant width, stride for long inputs, two fully connected layers on top. A padded series
    gives the same embedding as the series alone.

    Examples
    --------
    >>> encoder = TCN(3, 100, length=512)
    >>> encoder(torch.randn(4, 3, 512)).shape
    torch.Size([4, 100])
    """

    def __init__(
        self,
        in_channels: int,
        embedding_dim: int = 100,
        *,
        length: int | None = None,
        width: int = 64,
        kernel: int = 3,
        blocks: int = 8,
        strides: tuple[int, ...] | None = None,
        dilations: tuple[int, ...] | None = None,
        dropout: float = 0.1,
        dropout_kind: Dropout = "channel",
        norm: Norm = "weight",
        pooling: tuple[str, ...] = ("mean", "max"),
        hidden: int = 128,
        finest: int = 128,
    ) -> None:
        super().__init__()
        if kernel % 2 == 0:
            raise ConfigError(f"kernel is {kernel}: give an odd number, so that time stays centred")
        self.strides = _strides(strides, blocks, length, finest)
        dilations = _one_each(dilations or tuple(2**i for i in range(blocks)), blocks, "dilations")
        self.pooling = tuple(pooling)
        self.blocks = nn.ModuleList(
            _Block(
                width if i else in_channels,
                width,
                kernel,
                dilation=dilations[i],
                stride=stride,
                dropout=_dropout(dropout, dropout_kind),
                norm=norm,
            )
            for i, stride in enumerate(self.strides)
        )
        self.head = nn.Sequential(
            nn.Linear(len(self.pooling) * width, hidden),
            nn.ReLU(),
            nn.Linear(hidden, embedding_dim),
        )

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """(b, c, t) -> (b, e)."""
        if can_be_products(self) and has_kernels(x):
            return tcn_as_products(self, x, lengths)
        mask = None if lengths is None else real_steps(lengths, x.shape[2])
        if x.device.type == "cpu":  # where convolutions of (b, t, c) take half the time
            x = time_before_channels(x)
        for block, stride in zip(self.blocks, self.strides, strict=True):
            narrow = mask if stride == 1 or mask is None else mask[:, :, ::stride]
            x = block(x, mask, narrow)
            mask = narrow
        if x.device.type == "cpu" and x.requires_grad:
            x.register_hook(time_before_channels)  # pooling gives it back the other way round
        return self.head(pool(x, mask, self.pooling))


def can_be_products(network: nn.Module) -> bool:
    """Whether the network is a TCN without batch normalisation."""
    return type(network) is TCN and all(block.first.norm is None for block in network.blocks)


class _Block(nn.Module):
    """Two convolutions and a way around them; only the first one strides."""

    def __init__(
        self,
        inside: int,
        outside: int,
        kernel: int,
        *,
        dilation: int,
        stride: int,
        dropout: nn.Module,
        norm: Norm,
    ) -> None:
        super().__init__()
        self.first = _Convolution(inside, outside, kernel, dilation, stride, norm)
        self.second = _Convolution(outside, outside, kernel, dilation, 1, norm)
        self.dropout = dropout
        same = inside == outside and stride == 1
        self.around = nn.Identity() if same else Convolution(inside, outside, 1, stride=stride)

    def forward(self, x: Tensor, mask: Tensor | None, narrow: Tensor | None) -> Tensor:
        # In place where no gradient will want it: then a view, as this is, is copied.
        relu = torch.relu if torch.is_grad_enabled() else torch.relu_
        y = self.dropout(relu(self.first(x, mask, narrow)))
        y = self.dropout(relu(self.second(y, narrow, narrow)))
        return torch.relu_(y + self.around(x))


class _Convolution(nn.Module):
    """A centred convolution that does not see padding, then its normalisation."""

    def __init__(
        self, inside: int, outside: int, kernel: int, dilation: int, stride: int, norm: Norm
    ) -> None:
        super().__init__()
        reach = dilation * (kernel - 1) // 2
        kind = WeightNormConvolution if norm == "weight" else Convolution
        self.convolution = kind(
            inside, outside, kernel, stride=stride, padding=reach, dilation=dilation
        )
        self.norm = MaskedBatchNorm(outside) if norm == "batch" else None

    def forward(self, x: Tensor, before: Tensor | None, after: Tensor | None) -> Tensor:
        y = self.convolution(x if before is None else x * before)
        return y if self.norm is None else self.norm(y, after)


def _strides(
    given: tuple[int, ...] | None, blocks: int, length: int | None, finest: int
) -> tuple[int, ...]:
    if given is None:
        halvings = max(0, math.ceil(math.log2(length / finest))) if length else 0
        return tuple(2 if i < halvings else 1 for i in range(blocks))
    return _one_each(given, blocks, "strides")


def _one_each(given: tuple[int, ...], blocks: int, name: str) -> tuple[int, ...]:
    if len(given) != blocks:
        raise ConfigError(f"{len(given)} {name} for {blocks} blocks: give one for each block")
    return tuple(given)


def _dropout(p: float, kind: Dropout) -> nn.Module:
    if kind == "channel":
        return nn.Dropout1d(p)
    if kind == "element":
        return nn.Dropout(p)
    raise ConfigError(f"dropout_kind is {kind!r}: give 'channel' or 'element'")
