"""TS-TCC's own encoder: three convolutions, the whole feature map as embedding."""

from __future__ import annotations

from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from expclr.encoders.convolutions import Convolution, time_before_channels
from expclr.encoders.masks import MaskedBatchNorm, pool, real_steps
from expclr.errors import DataError

__all__ = ["TSTCCEncoder"]

CHANNELS = 128  # of the feature map
N = TypeVar("N", int, Tensor)


class TSTCCEncoder(nn.Module):
    """Three blocks of convolution, batch normalisation, ReLU and maximum, flattened.

    Parameters
    ----------
    in_channels, embedding_dim : int
        When ``embedding_dim`` is the size of the flattened map (128 times its steps: 2304 for
        128 timepoints, 16256 for 3000), the map itself is the embedding, as in the original.
        Otherwise a linear layer makes it. Method "tstcc" does not train that layer, which then
        stays a random orthogonal projection; every other method does.
    length : int, optional
        Timepoints of the longest window. Without it the map is averaged over time instead of
        flattened.
    kernel, stride : int, optional
        Of the first convolution; default 25 and 3 for 1000 timepoints or more, else 8 and 1, as
        in the original for SleepEDF and HAR.
    dropout : float
        After the first block.

    Notes
    -----
    After Eldele et al., "Time-series representation learning via temporal and contextual
    contrasting" (IJCAI 2021). A series shorter than ``length``, padded or not, has zeros in the
    map where it has ended.

    Examples
    --------
    >>> encoder = TSTCCEncoder(9, 2304, length=128)
    >>> encoder(torch.randn(4, 9, 128)).shape, encoder.features(torch.randn(4, 9, 128)).shape
    (torch.Size([4, 2304]), torch.Size([4, 128, 18]))
    """

    def __init__(
        self,
        in_channels: int,
        embedding_dim: int = 100,
        *,
        length: int | None = None,
        kernel: int | None = None,
        stride: int | None = None,
        dropout: float = 0.35,
    ) -> None:
        super().__init__()
        long = length is not None and length >= 1000
        first = _Block(
            in_channels, 32, kernel or (25 if long else 8), stride or (3 if long else 1), dropout
        )
        self.blocks = nn.ModuleList([first, _Block(32, 64, 8), _Block(64, CHANNELS, 8)])
        self.length, self.steps = length, None if length is None else self._steps(length)
        flat = CHANNELS * (self.steps or 1)
        self.head = nn.Identity() if flat == embedding_dim else _projection(flat, embedding_dim)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """(b, c, t) -> (b, e)."""
        y = self.features(x, lengths)
        if self.steps is None:
            mask = None if lengths is None else real_steps(self._steps(lengths), y.shape[2])
            return self.head(pool(y, mask, ("mean",)))
        if y.shape[2] > self.steps:
            raise DataError(
                f"windows of {x.shape[2]} timepoints for an encoder of length {self.length}: "
                "cut them, or build the encoder with a larger length"
            )
        return self.head(functional.pad(y, (0, self.steps - y.shape[2])).flatten(1))

    def features(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """The feature map over time, (b, c, t) -> (b, 128, t')."""
        if x.device.type == "cpu":  # where convolutions of (b, t, c) take half the time
            x = time_before_channels(x)
        for block in self.blocks:
            x, lengths = block(x, lengths)
        return x

    def _steps(self, timepoints: N) -> N:
        """How many steps of the feature map timepoints become."""
        for block in self.blocks:
            assert isinstance(block, _Block)
            timepoints = block.steps(timepoints)
        return timepoints


class _Block(nn.Module):
    """Convolution, batch normalisation, ReLU, maximum of two steps, dropout; padding unseen."""

    def __init__(
        self, inside: int, outside: int, kernel: int, stride: int = 1, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.convolution = Convolution(inside, outside, kernel, stride=stride, bias=False)
        self.norm = MaskedBatchNorm(outside)
        self.dropout = nn.Dropout(dropout)
        self.kernel, self.stride = kernel, stride

    def forward(self, x: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor | None]:
        if lengths is None:
            return self._pooled(self.norm(self.convolution(x))), None
        y = self.convolution(x * real_steps(lengths, x.shape[2]))
        mask = real_steps(self._convolved(lengths), y.shape[2])
        # After the ReLU 0 is the least: what is masked never is the maximum of two.
        return self._pooled(self.norm(y, mask) * mask), self.steps(lengths)

    def _pooled(self, y: Tensor) -> Tensor:
        """ReLU and maximum of two steps, in the order that has less to do, and dropout."""
        return self.dropout(torch.relu(functional.max_pool1d(y, 2, 2, padding=1)))

    def steps(self, n: N) -> N:
        """How many steps n timepoints become."""
        return self._convolved(n) // 2 + 1

    def _convolved(self, n: N) -> N:
        return (n + 2 * (self.kernel // 2) - self.kernel) // self.stride + 1


def _projection(inside: int, outside: int) -> nn.Linear:
    """A linear layer that starts as an orthogonal projection: it keeps distances best."""
    layer = nn.Linear(inside, outside)
    nn.init.orthogonal_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
