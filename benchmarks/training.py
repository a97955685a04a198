"""Training steps a second: plain loop, fast path, many runs at once.

    python benchmarks/training.py --out benchmarks/results/training_h200.json
    python benchmarks/training.py --windows 256 --counts 1 2 --out ...     # only to see it run

Windows of uci_har's shape (9 channels x 128 timepoints, 561 features), drawn at random; the
paper's TCN (width 64, kernel 3, 8 blocks) and the ExpCLR loss over batches of 64. Each way of
training is warmed up by one epoch and timed over whole epochs; what starting takes is told apart.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import machine, peak_gb, write

from expclr import fast
from expclr import train_many as stacks
from expclr.encoders import TCN
from expclr.encoders.scaled import ScaledEncoder
from expclr.engine import resolve_device, seeded
from expclr.examples import Examples
from expclr.methods import METHODS
from expclr.train import Run, Schedule

N, C, T, D, E = 7352, 9, 128, 561, 100
FEW = 2000  # windows for what is slow


@functools.cache
def windows(n: int) -> tuple[np.ndarray, torch.Tensor]:
    """Random windows and features, made once."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, C, T), dtype=np.float32)
    return X, torch.from_numpy(rng.standard_normal((n, D), dtype=np.float32))


def run(
    device: torch.device,
    seed: int = 0,
    *,
    n: int = N,
    epochs: int = 3,
    precision: Any = "auto",
    method: str = "expclr",
    **settings: Any,
) -> Run:
    """One training of the paper's TCN."""
    X, features = windows(n)
    labels = torch.arange(n) % 6
    with seeded(seed):
        encoder = ScaledEncoder(TCN(C, E, length=T, **settings), C)
        minimised = METHODS[method]()
        minimised.prepare(features if minimised.target == "features" else labels, E)
    schedule = Schedule(epochs, 3e-3, random_state=seed, precision=precision)
    return Run(encoder, minimised, Examples(X, None, features, labels), schedule, device)


def of_one_run(one: Run, way: str) -> dict[str, float]:
    """Steps a second of the training loop, by its own record of the last epoch."""
    with _told_to(way):
        started = time.perf_counter()
        history = one.train()
    return _speeds([one], history, time.perf_counter() - started)


def of_a_stack(runs: list[Run]) -> dict[str, float]:
    """Steps a second of all runs of a stack together."""
    started = time.perf_counter()
    outcomes = dict(stacks.train_stacked(runs))
    whole = time.perf_counter() - started
    history: Any = outcomes[0]
    return _speeds(runs, history, whole)


def _speeds(runs: list[Run], history: list[dict[str, Any]], whole: float) -> dict[str, float]:
    last = history[-1]["seconds"]
    steps = len(runs) * len(runs[0].schedule.order(len(runs[0].examples), 0))
    return {
        "run_steps_per_second": round(steps / last, 1),
        "start_seconds": round(whole - len(history) * last, 2),
    }


@contextlib.contextmanager
def _told_to(way: str) -> Iterator[None]:
    """Step by step, or captured where that is possible."""
    captured = fast.CapturedEpoch

    def refuse(*_: Any) -> None:
        raise fast.CaptureError("told not to")

    if way == "plain":
        fast.CapturedEpoch = refuse  # type: ignore[assignment,misc]
    try:
        yield
    finally:
        fast.CapturedEpoch = captured  # type: ignore[misc]


Ways = dict[str, Callable[[], dict[str, float]]]


def ways_of_one(device: torch.device, n: int) -> Ways:
    """Of a single run; the slow ones over few windows."""
    few = min(n, FEW)
    return {
        "plain, elementwise dropout": lambda: of_one_run(
            run(device, n=few, epochs=2, dropout_kind="element"), "plain"
        ),
        "plain": lambda: of_one_run(run(device, n=few, epochs=2), "plain"),
        "captured": lambda: of_one_run(run(device, n=n), "captured"),
        "captured, bfloat16": lambda: of_one_run(
            run(device, n=n, precision="bfloat16"), "captured"
        ),
    }


def ways_of_many(device: torch.device, n: int, counts: list[int], methods: list[str]) -> Ways:
    """Of stacks of ExpCLR runs and of other methods."""
    few, most = min(n, FEW), min(16, max(counts))

    def stack(count: int, **settings: Any) -> dict[str, float]:
        return of_a_stack([run(device, seed, **({"n": n} | settings)) for seed in range(count)])

    ways: Ways = {f"stack of {count}": functools.partial(stack, count) for count in counts}
    ways[f"stack of {most}, float32"] = functools.partial(stack, most, precision="float32")
    for method in methods:
        ways[f"stack of {most}, {method}"] = functools.partial(
            stack, most, method=method, n=few, epochs=2
        )
    return ways


def _tried(name: str, way: Callable[[], dict[str, float]], device: torch.device) -> dict[str, Any]:
    result: dict[str, Any] = {}

    def work() -> None:
        try:
            result.update(way())
        except Exception as error:  # one way that fails must not cost the others
            result["failed"] = f"{type(error).__name__}: {str(error)[:300]}"

    result["peak_gb"] = peak_gb(work, device)
    print(f"{name:40} {result}", flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--counts", type=int, nargs="*", default=[1, 8, 16, 64])
    parser.add_argument("--windows", type=int, default=N)
    parser.add_argument("--methods", nargs="*", default=["expclr_plus", "simclr", "supcon"])
    options = parser.parse_args()
    device = resolve_device(options.device)
    results: dict[str, Any] = {}
    n = options.windows
    ways = ways_of_one(device, n) | ways_of_many(device, n, options.counts, options.methods)
    for name, way in ways.items():
        results[name] = _tried(name, way, device)
        write(options.out, {"machine": machine(), "ways": results})


if __name__ == "__main__":
    main()
