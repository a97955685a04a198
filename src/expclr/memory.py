"""What a training step does when its batch does not fit into memory: the same in smaller pieces."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from expclr.methods.base import Batch

__all__ = ["InParts", "MemoryWarning", "can_be_parted", "is_out_of_memory", "stepping_down"]


class MemoryWarning(UserWarning):
    """Something was computed in smaller pieces than asked for, to fit into memory."""


class InParts:
    """A network that encodes a batch part by part, and forgets what lies between.

    The backward pass encodes each part again, with the same random masks: the activations of one
    part alone are in memory, at the cost of a second forward pass.
    """

    def __init__(self, network: Any, parts: int) -> None:
        self.network, self.parts = network, parts

    def __call__(self, x: Tensor, lengths: Tensor | None, **others: Tensor) -> Tensor:
        size = -(-len(x) // self.parts)
        rows = [slice(start, start + size) for start in range(0, len(x), size)]
        return torch.cat([self._part(at, x, lengths, others) for at in rows])

    def _part(
        self, at: slice, x: Tensor, lengths: Tensor | None, others: dict[str, Tensor]
    ) -> Tensor:
        encode = partial(self.network, **{name: value[at] for name, value in others.items()})
        own = None if lengths is None else lengths[at]
        z: Tensor = checkpoint(encode, x[at], own, use_reentrant=False)
        return z

    def __getattr__(self, name: str) -> Any:
        return getattr(self.network, name)


def stepping_down(
    model: nn.ModuleList, loss: Callable[[Batch, int], Tensor]
) -> Callable[[Batch], Tensor]:
    """Loss and gradient of a batch, whose parts are halved for good when memory runs out.

    First the pair loss goes by blocks, where it can, then the network encodes in parts. There is
    one warning.
    """
    parts = 1

    def compute(batch: Batch) -> Tensor:
        nonlocal parts
        value: Tensor | None
        while True:
            try:
                value = loss(batch, parts)
                value.backward()
                return value
            except RuntimeError as error:
                if not is_out_of_memory(error) or not _can_shrink(model, parts, len(batch.x)):
                    raise
                reason = str(error).splitlines()[0]
            # Outside of the handler: the error holds the frames, and they the tensors.
            value = None  # and a loss whose gradient had no room holds its graph
            if parts == 1:
                warnings.warn(_told(len(batch.x), reason), MemoryWarning)
            model.zero_grad(set_to_none=True)
            _stream(model[1])
            parts *= 2
            if torch.cuda.is_available():
                torch.cuda.empty_cache()

    return compute


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that a device, or the machine, has no more memory."""
    said = str(error).lower()
    return isinstance(error, torch.OutOfMemoryError) or any(
        words in said for words in ("can't allocate memory", "not enough memory", "out of memory")
    )


def can_be_parted(model: nn.Module) -> bool:
    """Whether a window is encoded the same whatever its company: batch statistics forbid it."""
    kinds = nn.modules.batchnorm._BatchNorm
    return not any(isinstance(module, kinds) for module in model.modules())


def _can_shrink(model: nn.ModuleList, parts: int, rows: int) -> bool:
    return 2 * parts <= rows and can_be_parted(model)


def _stream(method: nn.Module) -> None:
    if getattr(method, "streamed", True) is not True:
        method.streamed = True  # type: ignore[assignment]


def _told(rows: int, reason: str) -> str:
    return (
        f"a batch of {rows} does not fit into memory and is encoded in parts, which takes a "
        f"third longer ({reason}); a smaller batch_size avoids it"
    )
