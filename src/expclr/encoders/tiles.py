"""The quick part of MiniRocket on a CPU: convolutions as sums of rows, some timepoints at a time.

With weights of -1 and 2, a convolution is three times the sum of three taps minus the sum of all
nine. Here a row is one timepoint of one channel, of some windows; so a convolution adds four rows
of each channel that its kernel looks at, which ``embedding_bag`` does without a store in between.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

__all__ = ["Block", "Tiles"]

_WINDOWS = 256  # at once, at most: bytes of as many are added quickly
_TABLE = 14 * 2**20  # bytes of rows, at most
_TILE = 2**13  # values of a convolution at once: steps times windows
_BYTE = 255  # steps that a byte counts
_CACHE = 2**22  # bytes of convolutions and comparisons at once, about
_FOUR = -1.0, 3.0, 3.0, 3.0  # weights of the sum of nine taps and of three of them


@dataclass(frozen=True)
class Block:
    """All kernels of one dilation."""

    dilation: int
    taps: NDArray[np.intp]  # (kernels, 3): those of weight 2
    channels: NDArray[np.bool_]  # (kernels, c): True where a kernel looks
    biases: NDArray[np.float32]  # (kernels, q)
    margins: tuple[int, int]  # steps left out at either end by even kernels, by odd ones


@dataclass(frozen=True)
class _Group:
    """Some kernels of a block with one margin, and which rows of the table they add."""

    which: slice
    margin: int
    steps: int  # at once
    rows: Tensor  # for the first steps, in the order of kernel, step, channel
    starts: Tensor  # in rows, of each kernel and step
    biases: NDArray[np.float32]  # (k, q, 1, 1)


class Tiles:
    """Shares of timepoints at which convolutions exceed biases; series have ``t`` timepoints."""

    def __init__(self, blocks: list[Block], t: int) -> None:
        self.t, channels = t, blocks[0].channels.shape[1]
        self.reach = 4 * max(block.dilation for block in blocks)
        self.wide = t + 2 * self.reach
        self.sums = channels * self.wide  # first row of the sums of nine taps
        self.windows = _WINDOWS
        while self.windows > 8 and self.windows * 4 * channels * (self.wide + t) > _TABLE:
            self.windows //= 2
        self.plan = [(self._nine(b), b.biases.size, list(self._groups(b))) for b in blocks]
        most = max(len(group.rows) for *_, groups in self.plan for group in groups)
        self.weights = torch.tensor(_FOUR).repeat(most // 4)
        self.own = threading.local()

    def __call__(self, x: Tensor, ends: Tensor | None) -> Tensor:
        """(b, c, t), at most ``windows`` and 0 from their ends on -> (b, features).

        The result stays until the same thread asks for the next one.
        """
        n, channels, t = x.shape
        table, shares = self._memory(-(-n // 8) * 8)
        if ends is not None:
            ends = functional.pad(ends, (0, table.shape[1] - n), value=t)
        series = table[: self.sums].unflatten(0, (channels, self.wide))
        series[:, self.reach : self.reach + t, :n] = x.permute(1, 2, 0)
        parts = shares.split([size for _, size, _ in self.plan])
        with np.errstate():  # which ends the small buffer, too
            np.setbufsize(16)  # rows that fit into a buffer several times would be copied first
            for (nine, _, groups), part in zip(self.plan, parts, strict=True):
                table[self.sums :] = functional.embedding_bag(nine, table, mode="sum")
                for group in groups:
                    share = part.unflatten(0, (-1, group.biases.shape[1]))[group.which]
                    self._share(table, group, ends, share)
        return shares.T[:n]

    def _memory(self, b: int) -> tuple[Tensor, Tensor]:
        """A thread's own table and shares: memory that is new again and again is slow.

        The table has rows of every channel between zeros, then the sums of nine taps.
        """
        if getattr(self.own, "b", None) != b:
            self.own.b = b
            self.own.table = torch.zeros(self.sums + self.sums // self.wide * self.t, b)
            self.own.shares = torch.zeros(sum(size for _, size, _ in self.plan), b)
            most = max(g.biases.size * g.steps for *_, groups in self.plan for g in groups)
            self.own.room = np.empty(most * b, np.bool_)
        return self.own.table, self.own.shares

    def _share(self, table: Tensor, group: _Group, ends: Tensor | None, out: Tensor) -> None:
        """Fill in the shares of some kernels, (k, q, b), which are 0 where no step counts."""
        first, stop = group.margin, self.t - group.margin
        run = _BYTE // group.steps * group.steps
        starts = range(first, stop, run)
        if starts:
            parts = (range(start, min(start + run, stop)) for start in starts)
            counts = (self._counts(table, group, ends, part) for part in parts)
            steps = stop - first if ends is None else (ends - 2 * first).clamp_min(1)
            torch.div(reduce(lambda some, more: some.float() + more, counts), steps, out=out)

    def _counts(self, table: Tensor, group: _Group, ends: Tensor | None, part: range) -> Tensor:
        """How many of at most 255 steps lie above each bias: (k, q, b) bytes."""
        words = []
        for start in part[:: group.steps]:
            at = max(0, min(start, part.stop - group.steps))
            values = self._values(table[at:], group)
            if start > at or part.stop - at < group.steps:
                values = values[:, start - at : part.stop - at]
            if ends is not None:
                steps = torch.arange(start, start + values.shape[1])
                values.masked_fill_(steps[:, None] >= ends - group.margin, -torch.inf)
            words.append(_words_above(values, group.biases, self.own.room))
        return reduce(Tensor.add_, words).view(torch.uint8)

    def _values(self, table: Tensor, group: _Group) -> Tensor:
        """Convolutions of some kernels at the first steps of a table: (k, steps, b)."""
        values = functional.embedding_bag(
            group.rows,
            table,
            group.starts,
            mode="sum",
            per_sample_weights=self.weights[: len(group.rows)],
        )
        return values.unflatten(0, (-1, group.steps))

    def _groups(self, block: Block) -> Iterator[_Group]:
        """Kernels of a block, as many at once as the cache holds."""
        kernels, q = block.biases.shape
        most = min(_BYTE, _TILE // self.windows)
        for parity, margin in enumerate(block.margins):
            seen = max(1, self.t - 2 * margin)
            steps = -(-seen // -(-seen // most))
            size = max(1, _CACHE // (steps * self.windows * (4 + q)))
            for start in range(parity, kernels, 2 * size):
                which = slice(start, start + 2 * size, 2)
                rows, starts = self._rows(block, which, steps)
                biases = block.biases[which, :, None, None]
                yield _Group(which, margin, steps, rows, starts, biases)

    def _nine(self, block: Block) -> Tensor:
        """Rows of all nine taps of each channel and timepoint, (c t, 9)."""
        channels = self.wide * np.arange(block.channels.shape[1])[:, None, None]
        taps = self.reach + block.dilation * np.arange(-4, 5)
        rows = channels + np.arange(self.t)[:, None] + taps
        return torch.from_numpy(rows.reshape(-1, 9).astype(np.int32))

    def _rows(self, block: Block, which: slice, steps: int) -> tuple[Tensor, Tensor]:
        """Rows that some kernels add at the first steps, and where those of each begin."""
        looked_at = block.channels[which]
        kernel, channel = np.nonzero(looked_at)
        taps = self.reach + block.dilation * (block.taps[which][kernel] - 4)
        first = np.column_stack(
            [self.sums + channel * self.t, channel[:, None] * self.wide + taps]
        ).astype(np.int32)
        counts = looked_at.sum(1)
        later = np.arange(steps, dtype=np.int32)[:, None]
        each = [(part.ravel() + later).ravel() for part in np.split(first, counts.cumsum()[:-1])]
        many = np.repeat(4 * counts, steps)
        starts = (many.cumsum() - many).astype(np.int32)
        return torch.from_numpy(np.concatenate(each)), torch.from_numpy(starts)


def _words_above(values: Tensor, biases: NDArray[np.float32], room: NDArray[np.bool_]) -> Tensor:
    """How many steps lie above each bias: (k, steps, b), (k, q, 1, 1) -> (k, q, b / 8).

    A comparison gives bytes of 0 or 1; added as words of eight, each byte counts one window.
    NumPy compares ten times as fast as torch, which is quick at adding.
    """
    k, steps, b = values.shape
    shape = k, biases.shape[1], steps, b
    above = room[: math.prod(shape)].reshape(shape)
    np.greater(values.numpy()[:, None], biases, out=above)
    return torch.from_numpy(above).view(torch.int64).sum(2)
