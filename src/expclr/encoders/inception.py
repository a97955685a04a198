"""InceptionTime: convolutions of several lengths side by side, the strong learned network."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from expclr.encoders.masks import MaskedBatchNorm, pool, real_steps
from expclr.errors import ConfigError

__all__ = ["Inception"]

Mask = Tensor | None


class Inception(nn.Module):
    """Modules of long, middle and short convolutions with residuals, pooled over time.

    Parameters
    ----------
    in_channels, embedding_dim : int
    length : int, optional
        Timepoints of a typical window: long windows are halved by a stride of 2 in as many
        modules as it takes to come down to ``finest`` steps.
    filters : int
        Of every convolution; a module gives four times as many channels.
    kernels : tuple of int
        Lengths (odd) of the convolutions of a module.
    depth : int
        Modules; every third one is followed by a residual.
    pooling : tuple of "mean", "max", "std"
    finest : int

    Notes
    -----
    After Ismail Fawaz et al., "InceptionTime: finding AlexNet for time series classification"
    (2020), one network of the five. Kernels are odd, so that time stays centred, and strides for
    long windows are ours. A padded series gives the same embedding as the series alone.

    Examples
    --------
    >>> encoder = Inception(3, 100, length=512)
    >>> encoder(torch.randn(4, 3, 512)).shape
    torch.Size([4, 100])
    """

    def __init__(
        self,
        in_channels: int,
        embedding_dim: int = 100,
        *,
        length: int | None = None,
        filters: int = 32,
        kernels: tuple[int, ...] = (39, 19, 9),
        depth: int = 6,
        pooling: tuple[str, ...] = ("mean", "max"),
        finest: int = 512,
    ) -> None:
        super().__init__()
        if not kernels or any(kernel % 2 == 0 for kernel in kernels):
            raise ConfigError(
                f"kernels are {kernels}: give odd numbers, so that time stays centred"
            )
        self.pooling = tuple(pooling)
        width = filters * (len(kernels) + 1)
        halvings = max(0, math.ceil(math.log2(length / finest))) if length else 0
        strides = [2 if i < halvings else 1 for i in range(depth)]
        self.blocks = nn.ModuleList(
            _Residual(width if i else in_channels, filters, kernels, strides[i : i + 3])
            for i in range(0, depth, 3)
        )
        self.head = nn.Linear(len(self.pooling) * width, embedding_dim)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """(b, c, t) -> (b, e)."""
        mask = None if lengths is None else real_steps(lengths, x.shape[2])
        for block in self.blocks:
            x, mask = block(x, mask)
        return self.head(pool(x, mask, self.pooling))


class _Residual(nn.Module):
    """Up to three modules and a way around them."""

    def __init__(
        self, inside: int, filters: int, kernels: tuple[int, ...], strides: list[int]
    ) -> None:
        super().__init__()
        width = filters * (len(kernels) + 1)
        self.inner = nn.ModuleList(
            _Module(width if i else inside, filters, kernels, stride)
            for i, stride in enumerate(strides)
        )
        self.around = nn.Conv1d(inside, width, 1, stride=math.prod(strides), bias=False)
        self.norm = MaskedBatchNorm(width)

    def forward(self, x: Tensor, mask: Mask) -> tuple[Tensor, Mask]:
        y, narrow = x, mask
        for module in self.inner:
            y, narrow = module(y, narrow)
        return torch.relu(y + self.norm(self.around(x), narrow)), narrow


class _Module(nn.Module):
    """Convolutions of several lengths and a maximum side by side, normalised, ReLU."""

    def __init__(self, inside: int, filters: int, kernels: tuple[int, ...], stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.narrow = nn.Conv1d(inside, filters, 1, bias=False) if inside > 1 else nn.Identity()
        self.convolutions = nn.ModuleList(
            nn.Conv1d(
                filters if inside > 1 else 1,
                filters,
                kernel,
                stride=stride,
                padding=kernel // 2,
                bias=False,
            )
            for kernel in kernels
        )
        self.after_maximum = nn.Conv1d(inside, filters, 1, bias=False)
        self.norm = MaskedBatchNorm(filters * (len(kernels) + 1))

    def forward(self, x: Tensor, mask: Mask) -> tuple[Tensor, Mask]:
        narrow = mask if mask is None or self.stride == 1 else mask[:, :, :: self.stride]
        seen = x if mask is None else x * mask
        y = self.narrow(seen)
        parts = [convolution(y) for convolution in self.convolutions]
        parts.append(self.after_maximum(_maximum(x, mask, narrow, self.stride)))
        return torch.relu(self.norm(torch.cat(parts, dim=1), narrow)), narrow


def _maximum(x: Tensor, mask: Mask, narrow: Mask, stride: int) -> Tensor:
    """The maximum of three steps that are real, 0 where the series has ended."""
    if mask is None or narrow is None:
        return functional.max_pool1d(x, 3, stride, padding=1)
    y = functional.max_pool1d(x.masked_fill(mask == 0, -torch.inf), 3, stride, padding=1)
    return y.masked_fill(narrow == 0, 0)
