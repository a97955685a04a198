"""The training loop: the main path, to be read from top to bottom."""

from __future__ import annotations

import logging
import math
import time
import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from tqdm import tqdm

from expclr.batches import BATCHES, order_of
from expclr.checkpoint import Checkpoint
from expclr.encoders.scaled import encode
from expclr.engine import adam, seeded, set_lr, share_of_rank
from expclr.errors import ConfigError, DataError
from expclr.examples import Examples
from expclr.fast import epochs
from expclr.loss import loss_of
from expclr.methods.base import Method

__all__ = [
    "DivergedError",
    "EmptyBatchWarning",
    "Examples",
    "History",
    "Run",
    "Schedule",
    "TrainingInterrupted",
    "embed",
    "mean_of_finite",
    "train",
]

log = logging.getLogger(__name__)

Precision = Literal["auto", "float32", "bfloat16"]
PRECISIONS = ("auto", "float32", "bfloat16")
History = list[dict[str, Any]]  # a record for each epoch


class TrainingInterrupted(UserWarning):
    """Training stopped at Ctrl-C; the last finished epoch is kept."""


class EmptyBatchWarning(UserWarning):
    """Batches without any pair that a method could learn from; said after the first epoch."""


class DivergedError(RuntimeError):
    """The loss left the finite numbers."""


@dataclass(frozen=True)
class Schedule:
    """How long and how fast; the paper's values where it states them."""

    max_epochs: int
    lr: float
    lr_decay: float = 0.99  # per epoch
    batch_size: int = 64
    random_state: int = 0
    precision: Precision = "auto"
    batches: str = "random"

    def __post_init__(self) -> None:
        if self.batches not in BATCHES:
            raise ConfigError(f"batches is {self.batches!r}: give one of {', '.join(BATCHES)}")
        if self.precision not in PRECISIONS:
            raise ConfigError(
                f"precision is {self.precision!r}: give 'auto', 'float32' or 'bfloat16'"
            )
        if self.batch_size < 2:
            raise ConfigError(f"batch_size is {self.batch_size}: pairs need at least 2")
        if self.max_epochs < 0 or not self.lr > 0 or not 0 < self.lr_decay <= 1:
            raise ConfigError(
                f"max_epochs={self.max_epochs}, lr={self.lr}, lr_decay={self.lr_decay}: wanted are "
                "epochs >= 0, lr > 0 and a decay above 0 and up to 1"
            )

    @property
    def dtype(self) -> torch.dtype:
        """What the network computes in when it trains alone."""
        return torch.bfloat16 if self.precision == "bfloat16" else torch.float32

    def lr_of(self, epoch: int) -> float:
        """The learning rate of an epoch."""
        return self.lr * self.lr_decay**epoch

    def order(self, n: int, epoch: int) -> Tensor:
        """Batches of one size of shuffled windows, (steps, b); the rest waits for another epoch."""
        size = min(self.batch_size, n)
        order = np.random.default_rng([self.random_state, epoch]).permutation(n)
        return torch.from_numpy(order[: n // size * size].reshape(-1, size))


@dataclass(frozen=True)
class Run:
    """One training: the arguments of ``train``."""

    encoder: nn.Module
    method: Method
    examples: Examples
    schedule: Schedule
    device: torch.device
    validation: Examples | None = None
    checkpoint: Checkpoint | None = None
    name: str = "train"

    def train(self) -> History:
        """Train it alone."""
        return train(**vars(self))


def train(
    encoder: nn.Module,
    method: Method,
    examples: Examples,
    schedule: Schedule,
    *,
    device: torch.device,
    validation: Examples | None = None,
    checkpoint: Checkpoint | None = None,
    name: str = "train",
) -> History:
    """Minimise the method over the encoder's weights; return one record for each epoch.

    Epoch k depends on (random_state, k) and the weights alone: a run that resumes from a
    checkpoint ends where it would have ended.
    """
    if not method.trains:
        return []
    if len(examples) < 2:
        raise DataError(f"{len(examples)} window to train on: at least 2 are wanted")
    model = nn.ModuleList([encoder, method]).to(device)
    optimizer = adam(model.parameters(), schedule.lr, device)
    history = checkpoint.resume(model, optimizer) if checkpoint else []
    train_epoch = epochs(model, optimizer, examples, schedule, device)
    kept = _copy_of(model)
    try:
        for epoch in _progress(len(history), schedule, name):
            started = time.perf_counter()
            lr = schedule.lr_of(epoch)
            set_lr(optimizer, lr)
            model.train()
            with seeded(schedule.random_state, epoch):
                losses = train_epoch(order_of(examples, schedule, epoch))
            record: dict[str, Any] = {
                "epoch": epoch,
                "loss": mean_of_finite(losses, epoch, lr),
                "lr": lr,
            }
            if validation is not None:
                with seeded(schedule.random_state, epoch):  # two-view methods draw here too
                    record["validation_loss"] = evaluate(
                        encoder, method, validation, schedule, device
                    )
            seconds = time.perf_counter() - started
            history.append(record | {"seconds": seconds, "windows_per_s": len(examples) / seconds})
            kept = _copy_of(model)
            if checkpoint:
                checkpoint.write(model, optimizer, history)
    except KeyboardInterrupt:
        if not history:
            raise
        model.load_state_dict(kept)
        warnings.warn(_how_to_go_on(history, schedule, checkpoint), TrainingInterrupted)
    model.eval()
    return history


@torch.no_grad()
def evaluate(
    encoder: nn.Module,
    method: Method,
    examples: Examples,
    schedule: Schedule,
    device: torch.device,
) -> float:
    """The method's mean loss on windows that are not trained on."""
    encoder.eval()
    method.eval()
    losses = [
        loss_of(encoder, method, examples.batch(share_of_rank(index), device))
        for index in schedule.order(len(examples), 0)
    ]
    return float(torch.stack(losses).mean())


@torch.inference_mode()
def embed(
    encoder: nn.Module,
    X: NDArray[np.float32],
    lengths: NDArray[np.int64] | None,
    *,
    device: torch.device,
    batch_size: int | None = None,
    fixed: Tensor | None = None,
) -> NDArray[np.float32]:
    """Embeddings of windows in order, (n, c, t) -> (n, e), read batch by batch.

    All batches have one size, the last one is filled up: sums over another size are rounded
    otherwise, and a window's embedding must not depend on its company.
    """
    encoder.to(device).eval()
    examples = Examples(X, None if lengths is None else torch.from_numpy(lengths), fixed=fixed)
    size = batch_size or (32 if device.type == "cpu" else 1024)
    starts = range(0, len(X), size)
    parts = []
    for start in tqdm(starts, "embed", disable=len(starts) < 50 or None, leave=False):
        index = torch.arange(start, start + size).clamp_max(len(X) - 1)
        batch = examples.batch(index, device)
        parts.append(encode(encoder, batch.x, batch.lengths, batch.fixed).float().cpu())
    return torch.cat(parts)[: len(X)].numpy()


def _copy_of(model: nn.Module) -> dict[str, Tensor]:
    return {key: value.detach().clone() for key, value in model.state_dict().items()}


def _progress(done: int, schedule: Schedule, name: str) -> tqdm[int]:
    epochs = range(done, schedule.max_epochs)
    return tqdm(
        epochs,
        desc=name,
        unit="epoch",
        initial=done,
        total=schedule.max_epochs,
        disable=None,
        leave=False,
    )


def mean_of_finite(losses: Tensor, epoch: int, lr: float) -> float:
    """The mean of an epoch's losses; an error that names the first step that is not finite."""
    values = losses.tolist()
    if epoch == 0 and 0.0 in values:
        warnings.warn(_what_taught_nothing(values), EmptyBatchWarning)
    for step, value in enumerate(values):
        if not math.isfinite(value):
            raise DivergedError(
                f"the loss is {value} in step {step} of epoch {epoch} at a learning rate of "
                f"{lr:.2g}: try a lower lr, or look for extreme values in X and F"
            )
    return math.fsum(values) / len(values)


def _what_taught_nothing(losses: list[float]) -> str:
    return (
        f"{losses.count(0.0)} of {len(losses)} batches taught nothing: in features or labels "
        "their windows are all alike, or no two are. Larger batches, or features that vary, help"
    )


def _how_to_go_on(history: list[Any], schedule: Schedule, checkpoint: Checkpoint | None) -> str:
    done = f"stopped after epoch {len(history)} of {schedule.max_epochs}, which is kept"
    if checkpoint is None:
        return f"{done}; train again with max_epochs={len(history)} to get the same model"
    return f"{done}; go on with the same command and resume=true"
