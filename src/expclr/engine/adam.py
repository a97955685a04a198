"""Adam as one kernel, whose learning rate a CUDA graph can read anew at each replay."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

__all__ = ["adam", "set_lr"]


def adam(
    parameters: Iterable[nn.Parameter], lr: float, device: torch.device
) -> torch.optim.Optimizer:
    """Adam with the paper's betas; fused where torch has it, capturable on CUDA."""
    cuda = device.type == "cuda"
    return torch.optim.Adam(
        parameters,
        lr=torch.tensor(lr, device=device) if cuda else lr,
        betas=(0.9, 0.999),
        fused=True if device.type in ("cuda", "cpu") else None,
        capturable=cuda,
    )


def set_lr(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """Change the learning rate in place, so that a captured step sees it."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(lr)
        else:
            group["lr"] = lr
