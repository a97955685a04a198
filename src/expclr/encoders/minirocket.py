"""MiniRocket's transform: how often fixed convolutions exceed fixed thresholds.

After the formulas of Dempster, Schmidt and Webb, "MiniRocket: a very fast (almost) deterministic
transform for time series classification" (KDD 2021), and their form for several channels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from expclr.encoders.masks import real_steps
from expclr.encoders.ppv import MEMORY, convolved, counts_above, side_by_side
from expclr.encoders.tiles import Block, Tiles
from expclr.errors import ConfigError, DataError

__all__ = ["KERNELS", "TAPS", "MiniRocket", "dilations_of", "golden_quantiles"]

TAPS = 9  # of every kernel: three of weight 2, six of weight -1
KERNELS = math.comb(TAPS, 3)
MOST_CHANNELS = 9  # that one kernel looks at

Kernels = tuple[int, Tensor, Tensor]  # a dilation, weights (84, 9), channels looked at (84, c)
Chunk = Callable[[Tensor, Tensor | None], Tensor]  # (b, c, t), lengths -> (b, k)


class MiniRocket(nn.Module):
    """Shares of timepoints at which convolutions exceed their biases, (b, c, t) -> (b, k).

    Parameters
    ----------
    in_channels : int
    length : int
        Timepoints of a typical window: dilations go as far as it allows.
    num_features : int
        Rounded down to a multiple of 84, the number of kernels.
    max_dilations : int
        Of each kernel.

    Notes
    -----
    Which channels a kernel looks at, and which training window gives a bias, is drawn from torch's
    generator at construction; all else is fixed. Features are in the order of dilation, kernel,
    bias. A padded series has the features of the series alone.

    Examples
    --------
    >>> transform = MiniRocket(3, 100, num_features=168)
    >>> transform.fit(torch.randn(20, 3, 100))
    >>> transform(torch.randn(4, 3, 100)).shape
    torch.Size([4, 168])
    """

    channels: Tensor  # (dilations, 84, c): True where a kernel looks
    draws: Tensor  # (dilations, 84): the training window that gives the biases, in 0 to 1
    biases: Tensor  # (k,)

    def __init__(
        self, in_channels: int, length: int, *, num_features: int = 10_000, max_dilations: int = 32
    ) -> None:
        super().__init__()
        self.dilations = dilations_of(length, num_features, max_dilations)
        self.num_features = KERNELS * sum(count for _, count in self.dilations)
        shape = len(self.dilations), KERNELS
        self.register_buffer("channels", _channel_subsets(shape, in_channels))
        self.register_buffer("draws", torch.rand(shape), persistent=False)
        self.register_buffer("biases", torch.zeros(self.num_features))

    @torch.no_grad()
    def fit(self, x: Tensor, lengths: Tensor | None = None) -> None:
        """Take the biases from quantiles of the convolutions of training windows."""
        refuse_short(x, lengths)
        chosen = (self.draws * len(x)).long().clamp_max(len(x) - 1).tolist()
        quantiles = self._blocks(golden_quantiles(self.num_features))
        blocks = zip(self._kernels(), self._blocks(self.biases), quantiles, strict=True)
        for i, ((dilation, weights, looked_at), biases, at) in enumerate(blocks):
            for k, window in enumerate(chosen[i]):
                end = x.shape[2] if lengths is None else int(lengths[window])
                series = x[window, looked_at[k] > 0, :end].float().sum(0)[None, :, None]
                alone = weights[k : k + 1], looked_at.new_ones(1, 1)
                output = convolved(series, *alone, dilation)(slice(None), 0).flatten()
                biases[k] = torch.quantile(output.cpu().double(), at[k])

    @torch.no_grad()
    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """(b, c, t) -> (b, k) in 0 to 1, a chunk of windows at a time."""
        refuse_short(x, lengths)
        n, channels, t = x.shape
        if x.device.type == "cpu":
            most, chunk = self._tiled(t)
            size = min(most, max(8, -(-n // torch.get_num_threads())))  # some for each thread
            # NumPy asks for large pages of memory, which are quicker to fill for the first time.
            out = torch.from_numpy(np.empty((n, self.num_features), np.float32))
        else:
            size, chunk = self._whole(channels, t)
            out = torch.empty(n, self.num_features, device=x.device)

        @torch.inference_mode()
        def work(start: int) -> None:
            some = slice(start, start + size)
            part, ends = x[some].float(), None if lengths is None else lengths[some]
            if ends is not None:
                part = part.where(real_steps(ends, t) > 0, 0)
            with torch.autocast(x.device.type, enabled=False):
                out[some] = chunk(part, ends)

        side_by_side(work, range(0, n, size), x.device)
        return out

    def _tiled(self, t: int) -> tuple[int, Chunk]:
        """How many windows at once on a CPU, and their features."""
        taps = kernel_taps().numpy()
        parts = zip(self.dilations, self.channels, self._blocks(self.biases), strict=True)
        tiles = Tiles(
            [
                Block(dilation, taps, channels.numpy(), biases.numpy(), _margins(i, dilation))
                for i, ((dilation, _), channels, biases) in enumerate(parts)
            ],
            t,
        )
        return tiles.windows, tiles

    def _whole(self, channels: int, t: int) -> tuple[int, Chunk]:
        """The same for a GPU, which takes all kernels of a dilation at once."""
        kernels = self._kernels()
        rows = min(TAPS * channels, channels + KERNELS) + KERNELS  # before and after
        size = max(8, MEMORY // (4 * t * rows) // 8 * 8)
        return size, partial(self._chunk, size=size, kernels=kernels)

    def _chunk(
        self, x: Tensor, ends: Tensor | None, *, size: int, kernels: list[Kernels]
    ) -> Tensor:
        """Features of some windows, filled up to one size: sums of another size round otherwise."""
        n, _, t = x.shape
        if ends is not None:
            ends = functional.pad(ends, (0, size - n), value=t)
        x = functional.pad(x, (0, 0, 0, 0, 0, size - n)).permute(1, 2, 0).contiguous()
        most = max(count for _, count in self.dilations) * KERNELS // 2 * size
        room = x.new_empty(max(most, MEMORY * 2 // 3), dtype=torch.bool)
        out = x.new_empty(n, self.num_features)
        blocks = zip(kernels, self._blocks(self.biases), self._blocks(out), strict=True)
        for i, ((dilation, weights, looked_at), biases, shares) in enumerate(blocks):
            convolve = convolved(x, weights, looked_at, dilation)
            for parity, margin in enumerate(_margins(i, dilation)):
                every_other = slice(parity, None, 2)
                output, counted = _counted(convolve(every_other, margin), margin, t, ends)
                share = counts_above(output, biases[every_other], room) / counted
                shares[:, every_other] = share[..., :n].permute(2, 0, 1)
        return out

    def _kernels(self) -> list[Kernels]:
        """Each dilation with weights (84, 9) and channels (84, c) of its kernels."""
        weights = kernel_weights().to(self.biases.device)
        pairs = zip(self.dilations, self.channels, strict=True)
        return [(dilation, weights, looked_at.float()) for (dilation, _), looked_at in pairs]

    def _blocks(self, features: Tensor) -> list[Tensor]:
        """Features of each dilation, (..., k) -> (..., 84, count) as views."""
        sizes = [KERNELS * count for _, count in self.dilations]
        return [part.unflatten(-1, (KERNELS, -1)) for part in features.split(sizes, dim=-1)]


def dilations_of(length: int, num_features: int, max_dilations: int) -> list[tuple[int, int]]:
    """Dilations that fit a series, each with the number of features of a kernel.

    >>> dilations_of(20, 84 * 4, 32)
    [(1, 3), (2, 1)]
    """
    if length < TAPS:
        raise DataError(
            f"windows of {length} timepoints: convolutions of {TAPS} want at least {TAPS}; "
            "give longer windows, or take encoder 'tcn'"
        )
    if num_features < KERNELS or max_dilations < 1:
        raise ConfigError(
            f"num_features={num_features}, max_dilations={max_dilations}: wanted are at least "
            f"{KERNELS} features, one for each kernel, and one dilation"
        )
    each = num_features // KERNELS
    most = min(each, max_dilations)
    exponents = np.logspace(0, np.log2((length - 1) / (TAPS - 1)), most, base=2)
    dilations, seen = np.unique(exponents.astype(int), return_counts=True)
    counts = (seen * (each / most)).astype(int)
    counts[np.arange(each - counts.sum()) % len(counts)] += 1
    return list(zip(dilations.tolist(), counts.tolist(), strict=True))


def golden_quantiles(n: int) -> Tensor:
    """Multiples of the golden ratio modulo 1: they fill 0 to 1 evenly from the first on.

    >>> golden_quantiles(3)
    tensor([0.6180, 0.2361, 0.8541], dtype=torch.float64)
    """
    return torch.arange(1, n + 1, dtype=torch.float64) * ((math.sqrt(5) + 1) / 2) % 1


def kernel_taps() -> Tensor:
    """The three taps of weight 2 of each kernel: (84, 3)."""
    return torch.combinations(torch.arange(TAPS), 3)


def kernel_weights() -> Tensor:
    """All kernels with weight 2 at three taps and -1 at six: (84, 9)."""
    return torch.full((KERNELS, TAPS), -1.0).scatter_(1, kernel_taps(), 2.0)


def refuse_short(x: Tensor, lengths: Tensor | None) -> None:
    """Raise when a series is shorter than a kernel."""
    shortest = x.shape[2] if lengths is None or not len(lengths) else int(lengths.min())
    if shortest < TAPS:
        raise DataError(
            f"a series of {shortest} timepoints: convolutions of {TAPS} want at least {TAPS}; "
            "leave such series out, or take encoder 'tcn'"
        )


def _channel_subsets(shape: tuple[int, int], channels: int) -> Tensor:
    """Random channels for every kernel, as many as 2**u for u uniform: (dilations, 84, c)."""
    most = min(channels, MOST_CHANNELS)
    sizes = (2 ** (torch.rand(shape) * math.log2(most + 1))).long().clamp_max(most)
    return torch.rand(*shape, channels).argsort(2).argsort(2) < sizes[:, :, None]


def _margins(i: int, dilation: int) -> tuple[int, int]:
    """Steps that even and odd kernels leave out at either end, where zeros around come in."""
    reach = TAPS // 2 * dilation
    return (0, reach) if i % 2 == 0 else (reach, 0)


def _counted(
    values: Tensor, margin: int, t: int, ends: Tensor | None
) -> tuple[Tensor, Tensor | int]:
    """Values, padding above no bias, and how many steps of a window count, 1 or more."""
    if ends is None:
        return values, max(1, t - 2 * margin)
    steps = torch.arange(margin, margin + values.shape[1], device=values.device)
    values = values.masked_fill(steps[:, None] >= ends - margin, -torch.inf)
    return values, (ends - 2 * margin).clamp_min(1)
