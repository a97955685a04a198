"""Several processes that train one model: who encodes what, and gradients of the whole batch."""

from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor, nn

from expclr.errors import ConfigError

__all__ = ["average_gradients", "gather", "rank_of", "share_of_rank"]


def rank_of() -> tuple[int, int]:
    """This process's rank and how many there are; (0, 1) without torch.distributed."""
    if not (dist.is_available() and dist.is_initialized()):
        return 0, 1
    return dist.get_rank(), dist.get_world_size()


def share_of_rank(batch: Tensor) -> Tensor:
    """This rank's equal part of a batch of indices."""
    rank, ranks = rank_of()
    if len(batch) % ranks:
        raise ConfigError(f"a batch of {len(batch)} cannot be shared by {ranks} processes equally")
    return batch.chunk(ranks)[rank]


class _Gather(torch.autograd.Function):
    """All ranks' rows; the gradient of the own rows is scaled so that averaging gives the sum."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, rows: Tensor) -> Tensor:
        parts = [torch.empty_like(rows) for _ in range(rank_of()[1])]
        dist.all_gather(parts, rows.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *gradients: Tensor) -> Tensor:
        # Every rank computes the whole loss, so the gradient here is already complete.
        rank, ranks = rank_of()
        return gradients[0].chunk(ranks)[rank] * ranks


def gather(rows: Tensor) -> Tensor:
    """The rows of all ranks in order, with the right gradient; the rows themselves on one rank."""
    if rank_of()[1] == 1:
        return rows
    return _Gather.apply(rows)


def average_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Average gradients over ranks; nothing to do on one rank."""
    ranks = rank_of()[1]
    if ranks == 1:
        return
    for parameter in parameters:
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad)
            parameter.grad /= ranks
