"""The training loop: the main path, to be read from top to bottom."""

from __future__ import annotations

import logging
import math
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from tqdm import tqdm

from expclr.checkpoint import Checkpoint
from expclr.encoders.scaled import ScaledEncoder, encode
from expclr.engine import average_gradients, gather, seeded, share_of_rank
from expclr.errors import ConfigError, DataError
from expclr.methods.base import Batch, Encode, Method

__all__ = ["DivergedError", "Examples", "Schedule", "TrainingInterrupted", "embed", "train"]

log = logging.getLogger(__name__)


class TrainingInterrupted(UserWarning):
    """Training stopped at Ctrl-C; the last finished epoch is kept."""


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

    def __post_init__(self) -> None:
        if self.batch_size < 2:
            raise ConfigError(f"batch_size is {self.batch_size}: pairs need at least 2")
        if self.max_epochs < 0 or not self.lr > 0 or not 0 < self.lr_decay <= 1:
            raise ConfigError(
                f"max_epochs={self.max_epochs}, lr={self.lr}, lr_decay={self.lr_decay}: wanted are "
                "epochs >= 0, lr > 0 and a decay above 0 and up to 1"
            )


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
        others = [v if v is None else v[index].to(device) for v in self._others()]
        return Batch(x.to(device), *others)

    def subset(self, index: Tensor) -> Examples:
        """The examples at ``index``."""
        return Examples(
            self.X[index.numpy()], *[v if v is None else v[index] for v in self._others()]
        )

    def _others(self) -> tuple[Tensor | None, ...]:
        return self.lengths, self.features, self.labels, self.fixed


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
) -> list[dict[str, Any]]:
    """Minimise the method over the encoder's weights; return one record for each epoch.

    Epoch k depends on (random_state, k) and the weights alone: a run that resumes from a
    checkpoint ends where it would have ended.
    """
    if not method.trains:
        return []
    if len(examples) < 2:
        raise DataError(f"{len(examples)} window to train on: at least 2 are wanted")
    model = nn.ModuleList([encoder, method]).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=schedule.lr, betas=(0.9, 0.999))
    history = checkpoint.resume(model, optimizer) if checkpoint else []
    kept = _copy_of(model)
    try:
        for epoch in _progress(len(history), schedule, name):
            started = time.perf_counter()
            lr = optimizer.param_groups[0]["lr"] = schedule.lr * schedule.lr_decay**epoch
            with seeded(schedule.random_state, epoch):
                loss = _epoch(model, optimizer, examples, schedule, epoch, device)
            record: dict[str, Any] = {"epoch": epoch, "loss": _finite(loss, epoch, lr), "lr": lr}
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


def _epoch(
    model: nn.ModuleList,
    optimizer: torch.optim.Optimizer,
    examples: Examples,
    schedule: Schedule,
    epoch: int,
    device: torch.device,
) -> Tensor:
    """Every window once, in an order of its own; return the mean loss."""
    model.train()
    total, steps = torch.zeros((), device=device), 0
    for index in _batches(len(examples), schedule, epoch):
        loss = _loss(model[0], model[1], examples, index, device)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        average_gradients(model.parameters())
        optimizer.step()
        total, steps = total + loss.detach(), steps + 1
    return total / steps


def _loss(
    encoder: nn.Module, method: nn.Module, examples: Examples, index: Tensor, device: torch.device
) -> Tensor:
    """This rank encodes its share; the loss is over the rows of all ranks."""
    batch = examples.batch(share_of_rank(index), device)
    x, network = batch.x, encoder
    if isinstance(encoder, ScaledEncoder):
        # Views are drawn of scaled windows: their strengths are then in standard deviations.
        x, network = encoder.scale(batch.x), encoder.encoder
    whole = Batch(x, batch.lengths, *[v if v is None else gather(v) for v in _targets(batch)])
    assert isinstance(method, Method)
    return method.step(_Gathered(network, None if method.augments else batch.fixed), whole)


class _Gathered:
    """A network that gives the rows of all ranks: what a method encodes with."""

    def __init__(self, network: nn.Module, fixed: Tensor | None) -> None:
        self.network, self.fixed = network, fixed

    def __call__(self, x: Tensor, lengths: Tensor | None) -> Tensor:
        return gather(encode(self.network, x, lengths, self.fixed))

    def __getattr__(self, name: str) -> Encode:
        """Another output of the network, as the feature map of encoder "tstcc"."""
        output: Any = getattr(self.network, name)
        return lambda x, lengths: gather(output(x, lengths))


def _targets(batch: Batch) -> tuple[Tensor | None, Tensor | None]:
    return batch.features, batch.labels


def _batches(n: int, schedule: Schedule, epoch: int) -> Iterator[Tensor]:
    """Shuffled batches of one size; what is left over waits for another epoch."""
    size = min(schedule.batch_size, n)
    order = np.random.default_rng([schedule.random_state, epoch]).permutation(n)
    for start in range(0, n - size + 1, size):
        yield torch.from_numpy(order[start : start + size])


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
        _loss(encoder, method, examples, index, device)
        for index in _batches(len(examples), schedule, 0)
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


def _finite(loss: Tensor, epoch: int, lr: float) -> float:
    value = float(loss)
    if not math.isfinite(value):
        raise DivergedError(
            f"the loss is {value} in epoch {epoch} at a learning rate of {lr:.2g}: "
            "try a lower lr, or look for extreme values in X and F"
        )
    return value


def _how_to_go_on(history: list[Any], schedule: Schedule, checkpoint: Checkpoint | None) -> str:
    done = f"stopped after epoch {len(history)} of {schedule.max_epochs}, which is kept"
    if checkpoint is None:
        return f"{done}; train again with max_epochs={len(history)} to get the same model"
    return f"{done}; go on with the same command and resume=true"
