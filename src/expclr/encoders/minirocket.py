"""MiniRocket's transform: how often fixed convolutions exceed fixed thresholds.

After the formulas of Dempster, Schmidt and Webb, "MiniRocket: a very fast (almost) deterministic
transform for time series classification" (KDD 2021), and their form for several channels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import combinations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from tqdm import tqdm

from expclr.encoders.masks import real_steps
from expclr.errors import ConfigError, DataError

__all__ = ["KERNELS", "TAPS", "MiniRocket", "dilations_of", "golden_quantiles"]

TAPS = 9  # of every kernel: three of weight 2, six of weight -1
KERNELS = math.comb(TAPS, 3)
MOST_CHANNELS = 9  # that one kernel looks at
_REACH = TAPS // 2  # steps of one dilation to either side
_LANE = 255  # the largest count that a byte holds


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
        for i, (biases, at) in enumerate(zip(self._blocks(self.biases), quantiles, strict=True)):
            weights = self._weights(i)
            for k, window in enumerate(chosen[i]):
                end = x.shape[2] if lengths is None else int(lengths[window])
                series = x[window, :, :end, None].float()
                output = weights[k] @ _shifted(series, self.dilations[i][0])[..., 0]
                biases[k] = torch.quantile(output.cpu().double(), at[k])

    @torch.no_grad()
    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """(b, c, t) -> (b, k) in 0 to 1, a chunk of windows at a time."""
        refuse_short(x, lengths)
        out = torch.empty(len(x), self.num_features, device=x.device)
        weights = [self._weights(i) for i in range(len(self.dilations))]
        size = _windows_at_once(x)

        @torch.inference_mode()
        def work(start: int) -> None:
            rows = slice(start, start + size)
            part = None if lengths is None else lengths[rows]
            with torch.autocast(x.device.type, enabled=False):
                self._chunk(x[rows].float(), part, size, weights, out[rows])

        _side_by_side(work, range(0, len(x), size), x.device)
        return out

    def _chunk(
        self, x: Tensor, lengths: Tensor | None, size: int, weights: list[Tensor], out: Tensor
    ) -> None:
        """Features of some windows, filled up to one size: sums of another size round otherwise."""
        fill, t = size - len(x), x.shape[2]
        ends = None
        if lengths is not None:
            x = x.where(real_steps(lengths, t) > 0, 0)
            ends = functional.pad(lengths, (0, fill), value=t)
        x = functional.pad(x, (0, 0, 0, 0, 0, fill)).permute(1, 2, 0).contiguous()
        most = max(count for _, count in self.dilations) * KERNELS // 2 * size
        above = x.new_empty(max(most, _memory(x.device) * 2 // 3), dtype=torch.bool)
        blocks = zip(weights, self._blocks(self.biases), self._blocks(out), strict=True)
        for i, (weight, biases, shares) in enumerate(blocks):
            dilation = self.dilations[i][0]
            seen = _shifted(x, dilation)
            for parity in (0, 1):
                # Every other kernel stays inside of the series, away from the zeros around it.
                margin = _REACH * dilation * ((i + parity) % 2)
                inner = seen[:, margin : max(margin, t - margin)]
                output = (weight[parity::2] @ inner.flatten(1)).unflatten(1, (-1, size))
                if ends is not None:
                    output = _without_padding(output, margin, ends)
                counted = (
                    max(1, t - 2 * margin) if ends is None else (ends - 2 * margin).clamp_min(1)
                )
                share = _counts(output, biases[parity::2], above) / counted
                shares[:, parity::2] = share[..., : len(out)].permute(2, 0, 1)

    def _weights(self, i: int) -> Tensor:
        """Weights of the kernels of one dilation, on every tap and channel: (84, 9 c)."""
        looked_at = self.channels[i].float()
        return (kernel_weights().to(looked_at)[:, :, None] * looked_at[:, None]).flatten(1)

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


def kernel_weights() -> Tensor:
    """All kernels with weight 2 at three taps and -1 at six: (84, 9)."""
    weights = torch.full((KERNELS, TAPS), -1.0)
    return weights.scatter_(1, torch.tensor(list(combinations(range(TAPS), 3))), 2.0)


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


def _side_by_side(work: Callable[[int], None], starts: range, device: torch.device) -> None:
    """Chunk after chunk; on a CPU every thread of torch takes chunks of its own.

    Threads that share each small operation would wait for one another after every one of them.
    """
    threads = torch.get_num_threads()
    bar = partial(
        tqdm, desc="rocket", total=len(starts), disable=len(starts) < 100 or None, leave=False
    )
    if device.type != "cpu" or threads == 1 or len(starts) == 1:
        for start in bar(starts):
            work(start)
        return
    pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
    try:
        for _ in bar(pool.map(work, starts)):
            pass
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)


def _windows_at_once(x: Tensor) -> int:
    """A multiple of eight: eight counts are added as one word."""
    bytes_each = 4 * x.shape[2] * (TAPS * x.shape[1] + KERNELS)
    return max(8, _memory(x.device) // bytes_each // 8 * 8)


def _memory(device: torch.device) -> int:
    """Bytes worked on at once: about a processor's cache, or enough to keep a GPU busy."""
    return 3 * 2**20 if device.type == "cpu" else 64 * 2**20


def _shifted(x: Tensor, dilation: int) -> Tensor:
    """What each tap sees of each channel, zeros outside: (c, t, b) -> (9 c, t, b)."""
    t = x.shape[1]
    reach = _REACH * dilation
    wide = functional.pad(x, (0, 0, reach, reach))
    taps = [wide[:, tap * dilation : tap * dilation + t] for tap in range(TAPS)]
    return torch.cat(taps)


def _without_padding(values: Tensor, margin: int, ends: Tensor) -> Tensor:
    """Values of steps from ``margin`` on, above no bias where a series or its margin has ended."""
    steps = torch.arange(margin, margin + values.shape[1], device=values.device)
    return values.masked_fill(steps[:, None] >= ends - margin, -torch.inf)


def _counts(values: Tensor, biases: Tensor, above: Tensor) -> Tensor:
    """How many timepoints lie above each bias, (k, t, b) and (k, q) -> (k, q, b).

    A comparison gives bytes of 0 or 1, here in the memory of ``above``. Added as words of eight,
    each byte counts one window, and none overflows before 256 timepoints.
    """
    (k, t, b), q = values.shape, biases.shape[1]
    counts = torch.zeros(k, q, b, dtype=torch.int32, device=values.device)
    step = min(_LANE, len(above) // (k * q * b))
    for start in range(0, t, step):
        part = values[:, None, start : start + step]
        into = above[: q * part.numel()].view(k, q, -1, b)
        _compare(part, biases[:, :, None, None], into)
        counts += into.view(torch.int64).sum(2).view(torch.uint8)
    return counts


def _compare(values: Tensor, biases: Tensor, into: Tensor) -> None:
    """``values > biases``, on a CPU by NumPy, whose comparison is ten times as fast as torch's."""
    if values.device.type != "cpu":
        torch.gt(values, biases, out=into)
        return
    with np.errstate():  # which ends the small buffer, too
        np.setbufsize(16)  # rows that fit into a buffer several times would be copied there first
        np.greater(values.numpy(), biases.numpy(), out=into.numpy())
