"""The quick part of MiniRocket on a GPU: convolve with many kernels, count what exceeds biases."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional
from tqdm import tqdm

__all__ = ["MEMORY", "convolved", "counts_above", "side_by_side"]

MEMORY = 64 * 2**20  # bytes worked on at once: enough to keep a GPU busy
_LANE = 255  # the largest count that a byte holds
_MANY = 16  # channels from which on they are added before the convolution


def side_by_side(work: Callable[[int], None], starts: range, device: torch.device) -> None:
    """Chunk after chunk; on a CPU every thread of torch takes chunks of its own.

    Threads that share each small operation would wait for one another after every one of them.
    """
    threads = torch.get_num_threads()
    bar = partial(
        tqdm, desc="rocket", total=len(starts), disable=len(starts) < 100 or None, leave=False
    )
    if device.type != "cpu" or threads == 1:
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


def convolved(
    x: Tensor, weights: Tensor, looked_at: Tensor, dilation: int
) -> Callable[[slice, int], Tensor]:
    """Convolutions of all channels that a kernel looks at, added; zeros outside of the series.

    (c, t, b) with weights (k, taps) and looked_at (k, c) -> a function of some kernels and of how
    many steps to leave out at either end: (kernels, t - 2 margin, b).
    """
    t, taps = x.shape[1], weights.shape[1]
    reach = taps // 2 * dilation

    def added_first(kernels: slice, margin: int) -> Tensor:
        w, out = weights[kernels], None
        for tap in range(taps):
            seen = wide[kernels, tap * dilation + margin : tap * dilation + max(margin, t - margin)]
            weight = w[:, tap, None, None]
            out = seen * weight if out is None else out.addcmul_(seen, weight)
        assert out is not None
        return out

    def at_once(kernels: slice, margin: int) -> Tensor:
        seen = shifted[:, margin : max(margin, t - margin)]
        return (both[kernels] @ seen.flatten(1)).unflatten(1, (-1, x.shape[2]))

    if len(x) >= _MANY:
        sums = (looked_at @ x.flatten(1)).unflatten(1, (t, -1))
        wide = functional.pad(sums, (0, 0, reach, reach))
        return added_first
    wide = functional.pad(x, (0, 0, reach, reach))
    shifted = torch.cat([wide[:, tap * dilation : tap * dilation + t] for tap in range(taps)])
    both = (weights[:, :, None] * looked_at[:, None]).flatten(1)
    return at_once


def counts_above(values: Tensor, biases: Tensor, room: Tensor) -> Tensor:
    """How many timepoints lie above each bias, (k, t, b) and (k, q) -> (k, q, b).

    A comparison gives bytes of 0 or 1, here in the memory of ``room``. Added as words of eight,
    each byte counts one window (b is a multiple of 8), and none overflows before 256 timepoints.
    """
    (k, t, b), q = values.shape, biases.shape[1]
    counts = torch.zeros(k, q, b, dtype=torch.int32, device=values.device)
    step = min(_LANE, len(room) // (k * q * b))
    for start in range(0, t, step):
        part = values[:, None, start : start + step]
        above = room[: q * part.numel()].view(k, q, -1, b)
        torch.gt(part, biases[:, :, None, None], out=above)
        counts += above.view(torch.int64).sum(2).view(torch.uint8)
    return counts
