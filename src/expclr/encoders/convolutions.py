"""Convolutions over time: plain or weight-normalised, quick on a CPU, too."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["Convolution", "WeightNormConvolution", "time_before_channels"]


class Convolution(nn.Conv1d):
    """A convolution that is quick on a CPU, too, if time comes before channels in memory."""

    def forward(self, x: Tensor) -> Tensor:
        return self.over_time(x, self.weight, self.dilation[0] * (self.kernel_size[0] // 2))

    def over_time(self, x: Tensor, weight: Tensor, padding: int) -> Tensor:
        """(b, c, t) -> (b, w, t'), with filters that may have fewer taps than its own."""
        (stride,), (dilation,) = self.stride, self.dilation
        if x.device.type != "cpu":
            return functional.conv1d(x, weight, self.bias, stride, padding, dilation)
        if weight.shape[2] == 1:
            # torch 2.13's own (1 tap, stride 2, few channels, 2 threads) writes beyond its memory.
            kept = x.transpose(1, 2)[:, ::stride]
            return functional.linear(kept, weight[:, :, 0], self.bias).transpose(1, 2)
        # The same in two dimensions, of which torch has the fast one for (b, t, c) in memory.
        x, weight = x.unsqueeze(2), weight.unsqueeze(2)
        y = functional.conv2d(x, weight, self.bias, (1, stride), (0, padding), (1, dilation))
        return y.squeeze(2)


class WeightNormConvolution(Convolution):
    """A convolution whose filters are a direction times a gain (Salimans and Kingma, 2016).

    ``torch.nn.utils.parametrizations.weight_norm`` does the same, but cannot be pickled.
    """

    def __init__(
        self, inside: int, outside: int, kernel: int, *, stride: int, padding: int, dilation: int
    ) -> None:
        super().__init__(inside, outside, kernel, stride=stride, padding=padding, dilation=dilation)
        self.gain = nn.Parameter(self._norms().detach())

    def _norms(self) -> Tensor:
        return torch.linalg.vector_norm(self.weight, dim=(1, 2), keepdim=True)

    def normalised_weight(self) -> Tensor:
        """The filters, (w, c, k)."""
        return self.gain * self.weight / self._norms()

    def forward(self, x: Tensor) -> Tensor:
        weight, (kernel,), (dilation,) = self.normalised_weight(), self.kernel_size, self.dilation
        sides = kernel // 2
        if self.training:  # elsewhere the network may be exported, for windows of any length
            # Taps as far away as the window is long see zeros alone.
            sides = min(sides, (x.shape[2] - 1) // dilation)
            weight = weight[:, :, kernel // 2 - sides : kernel // 2 + sides + 1]
        return self.over_time(x, weight, sides * dilation)


def time_before_channels(x: Tensor) -> Tensor:
    """The same (b, c, t), in memory as (b, t, c)."""
    return x.transpose(1, 2).contiguous().transpose(1, 2)
