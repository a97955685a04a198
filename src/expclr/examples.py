"""What is trained on: windows, perhaps on disk, and the same on the device where they fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from expclr.methods.base import Batch

__all__ = ["Examples", "Resident", "read_ahead"]

PART = 0.4  # of the device's free memory that windows may take


@dataclass(frozen=True)
class Examples:
    """What is trained on: windows, perhaps on disk, beside their targets in memory."""

    X: NDArray[np.float32]  # (n, c, t)
    lengths: Tensor | None = None  # (n,)
    features: Tensor | None = None  # (n, d)
    labels: Tensor | None = None  # (n,)
    fixed: Tensor | None = None  # (n, k), of an encoder that has such a part

    def __len__(self) -> int:
        return len(self.X)

    def batch(self, index: Tensor, device: torch.device) -> Batch:
        """The windows at ``index``, on the device."""
        x = torch.from_numpy(np.ascontiguousarray(self.X[index.numpy()]))
        parts = [x, *[v if v is None else v[index] for v in self.others()]]
        if device.type == "cuda":  # what is pinned is copied while the device computes
            parts = [v if v is None else v.pin_memory() for v in parts]
        return Batch(*[v if v is None else v.to(device, non_blocking=True) for v in parts])  # type: ignore[arg-type]

    def batches(self, indices: Sequence[Tensor], device: torch.device) -> Iterator[Batch]:
        """The batches in turn; for a GPU each is read while the one before is trained on."""
        read = partial(self.batch, device=device)
        return map(read, indices) if device.type == "cpu" else read_ahead(read, indices)

    def subset(self, index: Tensor) -> Examples:
        """The examples at ``index``."""
        return Examples(
            self.X[index.numpy()], *[v if v is None else v[index] for v in self.others()]
        )

    def others(self) -> tuple[Tensor | None, ...]:
        """All but the windows, in the order of their fields."""
        return self.lengths, self.features, self.labels, self.fixed

    @property
    def bytes(self) -> int:
        """How much memory all of it takes."""
        return self.X.nbytes + sum(v.nbytes for v in self.others() if v is not None)

    def on(self, device: torch.device) -> Examples | Resident:
        """The same on the device, if that is a GPU with room for it; else as it is."""
        if device.type != "cuda" or self.bytes > PART * torch.cuda.mem_get_info(device)[0]:
            return self
        X = torch.tensor(self.X, device=device)  # a copy: memory-mapped windows are read-only
        return Resident(X, *[v if v is None else v.to(device) for v in self.others()])


@dataclass(frozen=True)
class Resident:
    """Examples that are on the device as a whole."""

    X: Tensor  # (n, c, t)
    lengths: Tensor | None = None
    features: Tensor | None = None
    labels: Tensor | None = None
    fixed: Tensor | None = None

    def __len__(self) -> int:
        return len(self.X)

    def batch(self, index: Tensor, device: torch.device) -> Batch:
        """The windows at ``index``, which is on the device as well."""
        parts = (self.X, self.lengths, self.features, self.labels, self.fixed)
        return Batch(*[v if v is None else v.index_select(0, index) for v in parts])  # type: ignore[arg-type]

    def batches(self, indices: Sequence[Tensor], device: torch.device) -> Iterator[Batch]:
        """The batches in turn."""
        return (self.batch(index, device) for index in indices)


def read_ahead(read: Callable[[Tensor], Batch], indices: Sequence[Tensor]) -> Iterator[Batch]:
    """What ``read`` makes of each index, the next one already under way."""
    with ThreadPoolExecutor(1) as reader:
        coming = [reader.submit(read, index) for index in indices[:1]]
        for index in indices[1:]:
            batch = coming.pop().result()
            coming.append(reader.submit(read, index))
            yield batch
        yield from (last.result() for last in coming)
