"""How an epoch is trained: step by step, replayed, or compiled; chosen by what it is worth."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from expclr.batches import order_of
from expclr.encoders.scaled import ScaledEncoder
from expclr.encoders.tcn_matmul import can_be_products
from expclr.engine import (
    CapturedEpoch,
    CaptureError,
    average_gradients,
    rank_of,
    seeded,
    share_of_rank,
)
from expclr.engine.stacked import Stack
from expclr.examples import Examples, Resident
from expclr.loss import loss_of
from expclr.memory import stepping_down
from expclr.methods.base import Batch

if TYPE_CHECKING:
    from expclr.train import Schedule

__all__ = ["STEPS_WORTH_COMPILING", "TrainEpoch", "epochs"]

log = logging.getLogger(__name__)

STEPS_WORTH_COMPILING = 20_000  # of all models together: compiling takes as long as it saves

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
    allows it; a long training of a TCN is compiled. Everywhere else: one step after the other.
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
        if _worth_compiling(model, len(order) * schedule.max_epochs):
            try:
                return _compiled(model, optimizer, near, schedule.dtype, order)
            except Exception as error:  # a compiler has errors of all kinds
                log.warning("training goes on uncompiled: %s", str(error).splitlines()[0])
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


def _worth_compiling(model: nn.ModuleList, steps: int) -> bool:
    network = model[0].encoder if isinstance(model[0], ScaledEncoder) else model[0]
    return steps >= STEPS_WORTH_COMPILING and can_be_products(network)


def _compiled(
    model: nn.ModuleList,
    optimizer: torch.optim.Optimizer,
    near: Resident,
    precision: torch.dtype,
    order: Tensor,
) -> TrainEpoch:
    """A stack of one; model and optimiser have its state after each epoch."""

    def loss(model: Any, *batch: Tensor) -> Tensor:
        return loss_of(model[0], model[1], Batch(*batch), precision=precision, as_products=True)

    def step(index: Tensor) -> Tensor:
        batch = near.batch(index[0], index.device)
        return stack.step(*[v if v is None else v[None] for v in vars(batch).values()])

    stack = Stack([model], loss, compiled=True)
    stack.load([optimizer])
    captured = CapturedEpoch(step, stack.state, order[:, None])

    def train_epoch(order: Tensor) -> Tensor:
        stack.lr.fill_(optimizer.param_groups[0]["lr"])
        losses = captured(order[:, None])[:, 0]
        stack.write_back([optimizer])
        return losses

    return train_epoch
