"""How an epoch is trained: step by step, or one step recorded on a GPU and replayed."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from expclr.batches import order_of
from expclr.engine import (
    CapturedEpoch,
    CaptureError,
    average_gradients,
    rank_of,
    seeded,
    share_of_rank,
)
from expclr.examples import Examples, Resident
from expclr.loss import loss_of
from expclr.memory import stepping_down
from expclr.methods.base import Batch

if TYPE_CHECKING:
    from expclr.train import Schedule

__all__ = ["TrainEpoch", "epochs"]

log = logging.getLogger(__name__)

TrainEpoch = Callable[[Tensor], Tensor]  # batches (steps, b) -> losses (steps,)


def epochs(
    model: nn.ModuleList,
    optimizer: torch.optim.Optimizer,
    examples: Examples,
    schedule: Schedule,
    device: torch.device,
) -> TrainEpoch:
    """What trains on the batches of an epoch.

    On a GPU that holds all windows the step is recorded once and replayed, where its method
    allows it. Everywhere else: one step after the other.
    """
    near = examples.on(device)
    train_on = _step(model, optimizer, schedule.dtype)

    def plain(order: Tensor) -> Tensor:
        at = order.to(device) if isinstance(near, Resident) else order
        shares = [share_of_rank(index) for index in at]
        return torch.stack([train_on(batch) for batch in near.batches(shares, device)])

    def step(index: Tensor) -> Tensor:
        return train_on(near.batch(index, device))

    if not isinstance(near, Resident) or rank_of()[1] > 1:
        return plain
    model.train()
    order = order_of(examples, schedule, 0).to(device)
    with seeded(schedule.random_state):
        try:
            return CapturedEpoch(step, lambda: _state_of(model, optimizer), order)
        except CaptureError as reason:
            log.info("%s trains step by step: %s", type(model[1]).__name__, reason)
            return plain


def _step(
    model: nn.ModuleList,
    optimizer: torch.optim.Optimizer,
    precision: torch.dtype,
) -> Callable[[Batch], Tensor]:
    """One step of training: a batch to its loss."""

    def loss_in(batch: Batch, parts: int) -> Tensor:
        return loss_of(model[0], model[1], batch, precision=precision, parts=parts)

    loss_and_gradient = stepping_down(model, loss_in)

    def train_on(batch: Batch) -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = loss_and_gradient(batch)
        average_gradients(model.parameters())
        optimizer.step()
        return loss.detach()

    return train_on


def _state_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """All that a step changes."""
    moments = [v for slots in optimizer.state.values() for v in slots.values()]
    return [*model.parameters(), *model.buffers(), *moments]
