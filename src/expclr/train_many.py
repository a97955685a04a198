"""Many trainings at once: stacked on a GPU where they are alike, else one after the other."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from expclr.batches import order_of
from expclr.encoders.tcn import can_be_products
from expclr.engine import CapturedEpoch, CaptureError, seeded
from expclr.engine.stacked import Stack, blueprint
from expclr.fast import TrainEpoch
from expclr.loss import loss_of
from expclr.memory import is_out_of_memory
from expclr.methods.base import Batch
from expclr.train import History, Run, mean_of_finite

__all__ = ["train_many"]

log = logging.getLogger(__name__)

MOST = 64  # models in a stack: more are hardly faster

Outcome = tuple[int, "History | Exception"]


def train_many(runs: Sequence[Run]) -> Iterator[Outcome]:
    """Train all runs; yield (number, history) or (number, what went wrong) as they finish.

    On CUDA runs of one encoder (with no convolutions but a TCN's), method, batch size and number
    of steps are stacked: they train as one model whose convolutions are those of all at once, in
    bfloat16 unless the precision of their schedules is "float32". The others, and all runs
    elsewhere, train one after the other. Random masks and views are drawn for a whole stack: the
    same list of runs gives the same results, a shorter list others.
    """
    for group in _groups(runs):
        yield from _train_group(runs, group)


def _train_group(
    runs: Sequence[Run], group: list[int], *, warned: bool = False
) -> Iterator[Outcome]:
    """As one stack; as two halves if memory does not suffice; one by one if it cannot be."""
    left, half = list(group), 0  # a stack that breaks has changed no run that is left
    if len(group) > 1:
        try:
            for at, outcome in train_stacked([runs[number] for number in group]):
                left.remove(group[at])
                yield group[at], outcome
        except RuntimeError as error:
            half = len(left) // 2 if is_out_of_memory(error) else 0
            if half and not warned:
                log.warning("%d runs do not fit into memory at once: fewer at a time", len(group))
            elif not half:
                log.info("%d runs train one by one: %s", len(left), str(error).splitlines()[0])
    if half:
        torch.cuda.empty_cache()
        yield from _train_group(runs, left[:half], warned=True)
        yield from _train_group(runs, left[half:], warned=True)
        return
    for number in left:
        yield number, _alone(runs[number])


def _alone(run: Run) -> History | Exception:
    try:
        return run.train()
    except Exception as error:
        return error


def _groups(runs: Sequence[Run]) -> list[list[int]]:
    """Numbers of the runs that may share a stack, at most ``MOST``, in the order given."""
    alike: dict[Any, list[int]] = {}
    for number, run in enumerate(runs):
        alike.setdefault(_likeness(run) or number, []).append(number)
    return [
        group[start : start + MOST]
        for group in alike.values()
        for start in range(0, len(group), MOST)
    ]


def _likeness(run: Run) -> tuple[Any, ...] | None:
    """What runs of one stack share; None for a run that trains alone."""
    checked = run.validation is not None or run.checkpoint is not None
    if run.device.type != "cuda" or checked or not run.method.trains or len(run.examples) < 2:
        return None
    if not _gains_by_stacking(run.encoder):
        return None
    parts = (run.examples.X, *run.examples.others())
    return (
        run.device,
        order_of(run.examples, run.schedule, 0).shape,
        run.schedule.max_epochs,
        run.schedule.precision,
        tuple(None if part is None else tuple(part.shape[1:]) for part in parts),
        blueprint(run.encoder),
        blueprint(run.method),
    )


def _gains_by_stacking(encoder: nn.Module) -> bool:
    """Whether its convolutions are products of matrices: others become grouped ones, slow ones."""
    tcns = [module for module in encoder.modules() if can_be_products(module)]
    products = {id(module) for tcn in tcns for module in tcn.modules()}
    convolutions = [module for module in encoder.modules() if isinstance(module, nn.Conv1d)]
    return all(id(module) in products for module in convolutions)


def train_stacked(runs: Sequence[Run]) -> Iterator[Outcome]:
    """Train runs of one likeness as one stack; one whose loss is not finite fails alone."""
    device, epochs = runs[0].device, runs[0].schedule.max_epochs
    stack, train_epoch = _start(runs)
    histories: list[History] = [[] for _ in runs]
    failed: set[int] = set()
    for epoch in tqdm(range(epochs), f"{len(runs)} runs", unit="epoch", disable=None, leave=False):
        started = time.perf_counter()
        rates = [run.schedule.lr_of(epoch) for run in runs]
        stack.lr.copy_(torch.tensor(rates)[:, None])
        with seeded(epoch, *(run.schedule.random_state for run in runs)):
            losses = train_epoch(_orders(runs, epoch).to(device)).T.cpu()
        seconds = time.perf_counter() - started
        for at in set(range(len(runs))) - failed:
            try:
                mean = mean_of_finite(losses[at], epoch, rates[at])
            except RuntimeError as error:
                failed.add(at)
                yield at, error
                continue
            record = {"epoch": epoch, "loss": mean, "lr": rates[at], "seconds": seconds}
            speed = len(runs[at].examples) / seconds
            histories[at].append(record | {"windows_per_s": speed})
    stack.write_back()
    for at, run in enumerate(runs):
        nn.ModuleList([run.encoder, run.method]).eval()
        if at not in failed:
            yield at, histories[at]


def _start(runs: Sequence[Run]) -> tuple[Stack, TrainEpoch]:
    """The stack of the runs' models, and what trains it for an epoch."""
    device, schedule = runs[0].device, runs[0].schedule
    models = [nn.ModuleList([run.encoder, run.method]).to(device).train() for run in runs]
    bank, order = _Bank(runs, device), _orders(runs, 0).to(device)
    precision = torch.float32 if schedule.precision == "float32" else torch.bfloat16

    def loss(model: Any, *batch: Tensor) -> Tensor:
        return loss_of(model[0], model[1], Batch(*batch), precision=precision, as_products=True)

    def step(index: Tensor) -> Tensor:
        return stack.step(*bank.batch(index))

    def plain(order: Tensor) -> Tensor:
        return torch.stack([step(index) for index in order])

    stack = Stack(models, loss)
    if order.device.type != "cuda":
        return stack, plain
    with seeded(schedule.random_state):
        try:
            return stack, CapturedEpoch(step, stack.state, order)
        except CaptureError as reason:
            log.info("a stack of %d trains step by step: %s", len(models), reason)
            return stack, plain


def _orders(runs: Sequence[Run], epoch: int) -> Tensor:
    """Each run's batches, (steps, K, b)."""
    return torch.stack([order_of(run.examples, run.schedule, epoch) for run in runs], dim=1)


class _Bank:
    """The examples of all runs on the device, each array once."""

    def __init__(self, runs: Sequence[Run], device: torch.device) -> None:
        parts = [(_tensor(run.examples.X), *run.examples.others()) for run in runs]
        self.columns = [_column(column, device) for column in zip(*parts, strict=True)]

    def batch(self, index: Tensor) -> list[Tensor | None]:
        """The parts of a batch of each run, index (K, b) -> (K, b, ...)."""
        return [None if column is None else column[0][index + column[1]] for column in self.columns]


def _tensor(X: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(X))


def _column(parts: Sequence[Tensor | None], device: torch.device) -> tuple[Tensor, Tensor] | None:
    """Different tensors one below the other, and the row where each run's begins, (K, 1)."""
    if parts[0] is None:
        return None
    rows: dict[Any, int] = {}
    seen: dict[int, Any] = {}  # by place in memory: most runs share their windows
    different, total, starts = [], 0, []
    for part in parts:
        assert part is not None
        if part.data_ptr() not in seen:
            seen[part.data_ptr()] = _fingerprint(part)
        key = seen[part.data_ptr()]
        if key not in rows:
            rows[key], total = total, total + len(part)
            different.append(part)
        starts.append(rows[key])
    return torch.cat(different).to(device), torch.tensor(starts, device=device)[:, None]


def _fingerprint(part: Tensor) -> tuple[Any, ...]:
    digest = hashlib.blake2b(part.numpy().tobytes()).digest()
    return digest, part.shape, part.dtype
