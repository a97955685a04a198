"""Device, seeds and ranks: everything a training step needs that is not the model."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor, nn

from expclr.errors import ConfigError

__all__ = ["average_gradients", "gather", "resolve_device", "seeded", "share_of_rank"]

log = logging.getLogger(__name__)


def resolve_device(device: str) -> torch.device:
    """The device of that name; "auto" takes CUDA, then Apple's MPS, then the CPU."""
    if device != "auto":
        return _checked(device)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def _checked(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"device {name!r} cannot be used ({reason}): try 'auto'") from error
    return device


@contextmanager
def seeded(*seeds: int) -> Iterator[None]:
    """Random numbers inside the block depend on the seeds alone, and nothing outside changes."""
    devices = list(range(torch.cuda.device_count()))
    with torch.random.fork_rng(devices):
        torch.manual_seed(_mix(*seeds))
        yield


def _mix(*seeds: int) -> int:
    """One seed of several, so that (0, 1) and (1, 0) differ."""
    mixed = 0
    for seed in seeds:
        mixed = (mixed * 1_000_003 + seed + 0x9E3779B9) % 2**63
    return mixed


def _ranks() -> tuple[int, int]:
    """This process's rank and how many there are; (0, 1) without torch.distributed."""
    if not (dist.is_available() and dist.is_initialized()):
        return 0, 1
    return dist.get_rank(), dist.get_world_size()


def share_of_rank(batch: Tensor) -> Tensor:
    """This rank's equal part of a batch of indices."""
    rank, ranks = _ranks()
    if len(batch) % ranks:
        raise ConfigError(f"a batch of {len(batch)} cannot be shared by {ranks} processes equally")
    return batch.chunk(ranks)[rank]


class _Gather(torch.autograd.Function):
    """All ranks' rows; the gradient of the own rows is scaled so that averaging gives the sum."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, rows: Tensor) -> Tensor:
        parts = [torch.empty_like(rows) for _ in range(_ranks()[1])]
        dist.all_gather(parts, rows.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: torch.autograd.function.FunctionCtx, *gradients: Tensor) -> Tensor:
        # Every rank computes the whole loss, so the gradient here is already complete.
        rank, ranks = _ranks()
        return gradients[0].chunk(ranks)[rank] * ranks


def gather(rows: Tensor) -> Tensor:
    """The rows of all ranks in order, with the right gradient; the rows themselves on one rank."""
    if _ranks()[1] == 1:
        return rows
    return _Gather.apply(rows)


def average_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Average gradients over ranks; nothing to do on one rank."""
    ranks = _ranks()[1]
    if ranks == 1:
        return
    for parameter in parameters:
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad)
            parameter.grad /= ranks
