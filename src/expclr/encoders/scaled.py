"""An encoder that brings its own scaling of the input along."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from expclr.errors import ConfigError
from expclr.windows import Windows

__all__ = ["ScaledEncoder", "encode"]

_ROWS = 1024  # windows looked at in one go
_ROWS_SHOWN = 2048  # windows a network may look at before training


class ScaledEncoder(nn.Module):
    """Subtract each channel's mean, divide by its standard deviation, then encode.

    The two are part of the weights, so that they are saved and moved with the encoder.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, encoder: nn.Module, in_channels: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.register_buffer("mean", torch.zeros(in_channels, 1))
        self.register_buffer("std", torch.ones(in_channels, 1))

    def fit(self, windows: Windows, scaling: str) -> None:
        """Measure mean and standard deviation of each channel over the real timepoints."""
        if scaling == "none":
            return
        if scaling != "standard":
            raise ConfigError(f"input_scaling is {scaling!r}: give 'standard' or 'none'")
        mean, std = channel_statistics(windows)
        self.mean.copy_(torch.from_numpy(mean)[:, None])
        self.std.copy_(torch.from_numpy(np.where(std > 0, std, 1))[:, None])

    def scale(self, x: Tensor) -> Tensor:
        """Windows as the network sees them."""
        return (x - self.mean) / self.std

    def forward(
        self, x: Tensor, lengths: Tensor | None = None, fixed: Tensor | None = None
    ) -> Tensor:
        return encode(self.encoder, self.scale(x), lengths, fixed)

    @property
    def has_fixed(self) -> bool:
        """Whether part of the network has neither weights nor randomness."""
        return hasattr(self.encoder, "fixed")

    def fixed(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """What the network makes of windows without any weight, (b, c, t) -> (b, k)."""
        part: Tensor = self.encoder.fixed(self.scale(x), lengths)  # type: ignore[operator]
        return part

    def look(self, windows: Windows) -> None:
        """Show a network that asks for it (``prepare``) some of the training windows."""
        if not hasattr(self.encoder, "prepare"):
            return
        order = torch.randperm(len(windows))[:_ROWS_SHOWN].sort().values.numpy()
        device = self.mean.device
        x = self.scale(torch.from_numpy(np.ascontiguousarray(windows.X[order])).to(device))
        known = windows.lengths
        lengths = None if known is None else torch.from_numpy(known[order]).to(device)
        self.encoder.prepare(x, lengths)  # type: ignore[operator]


def encode(
    network: Callable[..., Tensor], x: Tensor, lengths: Tensor | None, fixed: Tensor | None
) -> Tensor:
    """Encode windows whose fixed features may be known already."""
    return network(x, lengths) if fixed is None else network(x, lengths, fixed=fixed)


def channel_statistics(windows: Windows) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each channel, two passes in bounded memory."""
    mean = _channel_means(windows, 0.0)
    centre = mean.astype(np.float32)[:, None]
    spread = np.sqrt(_channel_means(windows, centre, power=2))
    # A constant channel has a spread of rounding errors: it is no spread.
    return mean, np.where(spread > 1e-6 * np.abs(mean), spread, 0)


def _channel_means(windows: Windows, centre: float | np.ndarray, *, power: int = 1) -> np.ndarray:
    total, count = np.zeros(windows.X.shape[1]), 0
    for start in range(0, len(windows), _ROWS):
        x = windows.X[start : start + _ROWS] - centre
        if windows.lengths is None:
            total += (x**power).sum((0, 2), dtype=np.float64)
            count += len(x) * x.shape[2]
        else:
            lengths = windows.lengths[start : start + _ROWS]
            real = np.arange(x.shape[2]) < lengths[:, None]
            total += (x**power * real[:, None]).sum((0, 2), dtype=np.float64)
            count += int(lengths.sum())
    return total / count
