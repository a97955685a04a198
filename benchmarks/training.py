"""Training steps a second: plain loop, fast path, many runs at once.

    python benchmarks/training.py --out benchmarks/results/training_h200.json

Windows of uci_har's shape (9 channels x 128 timepoints, 561 features), drawn at random; the
paper's TCN (width 64, kernel 3, 8 blocks) and the ExpCLR loss over batches of 64. Each way of
training is warmed up by one epoch and timed over whole epochs; compiling is timed by itself.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import machine, write

from expclr import train_many as stacks
from expclr.encoders import TCN
from expclr.encoders.scaled import ScaledEncoder
from expclr.engine import resolve_device, seeded
from expclr.examples import Examples
from expclr.methods import METHODS
from expclr.train import Run, Schedule

N, C, T, D, E = 7352, 9, 128, 561, 100


def run(
    device: torch.device,
    seed: int = 0,
    *,
    n: int = N,
    dropout_kind: Any = "channel",
    epochs: int = 1,
) -> Run:
    """One training of random windows; all of one ``n`` share them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, C, T), dtype=np.float32)
    features = torch.from_numpy(rng.standard_normal((n, D), dtype=np.float32))
    with seeded(seed):
        encoder = ScaledEncoder(TCN(C, E, length=T, dropout_kind=dropout_kind), C)
        method = METHODS["expclr"]()
    schedule = Schedule(epochs, 3e-3, random_state=seed)
    return Run(encoder, method, Examples(X, features=features), schedule, device)


def of_one_run(one: Run, *, captured: bool) -> dict[str, float]:
    """Steps a second of the training loop, by its own record of the second epoch."""
    from expclr import train

    with _without_capture(train) if not captured else contextlib.nullcontext():
        started = time.perf_counter()
        history = one.train()
    whole, last = time.perf_counter() - started, history[-1]["seconds"]
    return _speeds(1, one, last) | {"start_seconds": round(whole - len(history) * last, 2)}


def of_a_stack(runs: list[Run], precision: torch.dtype, *, compiled: bool) -> dict[str, float]:
    """Steps a second of all runs of a stack together."""
    started = time.perf_counter()
    outcomes = dict(stacks.train_stacked(runs, precision=precision, compiled=compiled))
    whole = time.perf_counter() - started
    history: Any = outcomes[0]
    last = history[-1]["seconds"]
    return _speeds(len(runs), runs[0], last) | {
        "start_seconds": round(whole - len(history) * last, 2)
    }


def _speeds(count: int, one: Run, seconds: float) -> dict[str, float]:
    steps = len(one.schedule.order(len(one.examples), 0))
    return {"run_steps_per_second": round(count * steps / seconds, 1), "runs": count}


@contextlib.contextmanager
def _without_capture(train: Any) -> Iterator[None]:
    captured = train.CapturedEpoch

    def refuse(*_: Any) -> None:
        raise train.CaptureError("told not to")

    train.CapturedEpoch = refuse
    try:
        yield
    finally:
        train.CapturedEpoch = captured


def on_cuda(device: torch.device, *, quick: bool) -> dict[str, dict[str, Any]]:
    """All ways, the slow ones over few windows."""
    bf16, f32 = torch.bfloat16, torch.float32
    ways: dict[str, Callable[[], dict[str, float]]] = {
        "plain": lambda: of_one_run(run(device, n=2000, epochs=2), captured=False),
        "plain, elementwise dropout": lambda: of_one_run(
            run(device, n=2000, epochs=2, dropout_kind="element"), captured=False
        ),
        "captured": lambda: of_one_run(run(device, epochs=3), captured=True),
    }
    for count in (1, 16) if quick else (1, 4, 16, 64):
        for compiled in (False, True):
            for precision in (bf16, f32):
                if precision is f32 and count not in (1, 16):
                    continue
                name = f"stack of {count}, {str(precision)[6:]}" + ", compiled" * compiled
                ways[name] = lambda count=count, p=precision, c=compiled: of_a_stack(  # type: ignore[misc]
                    [run(device, seed, epochs=3) for seed in range(count)], p, compiled=c
                )
    return {name: _tried(name, way, device) for name, way in ways.items()}


def _tried(name: str, way: Callable[[], dict[str, float]], device: torch.device) -> dict[str, Any]:
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    try:
        result: dict[str, Any] = way()
    except Exception as error:  # one way that fails must not cost the others
        result = {"failed": f"{type(error).__name__}: {str(error)[:300]}"}
    result["peak_gb"] = round(torch.cuda.max_memory_allocated(device) / 1e9, 2)
    print(f"{name:40} {result}", flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    device = resolve_device(options.device)
    torch.backends.cuda.matmul.allow_tf32 = True
    results = on_cuda(device, quick=options.quick)
    write(options.out, {"machine": machine(), "ways": results})


if __name__ == "__main__":
    main()
