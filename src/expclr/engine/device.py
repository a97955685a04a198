"""The device by its name, what it has kernels for, random numbers that depend on seeds alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from expclr.errors import ConfigError

__all__ = ["has_kernels", "resolve_device", "seeded", "shared_memory"]

HAS_TRITON = find_spec("triton") is not None and torch.version.hip is None
IN_KERNELS = (torch.float32, torch.bfloat16, torch.float16)


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


def has_kernels(x: Tensor) -> bool:
    """Whether kernels of our own can compute with numbers of that type on that device."""
    known = x.device.type == "cuda" and x.dtype in IN_KERNELS and HAS_TRITON
    return known and _has_tensor_cores(x.device) and not torch.compiler.is_exporting()


@cache
def _has_tensor_cores(device: torch.device) -> bool:
    """Whether it multiplies bfloat16 and parts of float32 quickly: Ampere and later."""
    return torch.cuda.get_device_capability(device) >= (8, 0)


@cache
def shared_memory(device: torch.device) -> int:
    """Bytes of a GPU that a kernel's block of threads may share; asks Triton."""
    from triton.runtime import driver

    return int(driver.active.utils.get_device_properties(device.index)["max_shared_mem"])


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
