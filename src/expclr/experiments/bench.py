"""How fast this machine is: a question a row, beside the results kept with the package."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from expclr.encoders import ENCODERS
from expclr.encoders.scaled import ScaledEncoder
from expclr.engine import resolve_device, seeded
from expclr.evaluation import NeighbourIndex, linear_probe
from expclr.examples import Examples
from expclr.experiments.tables import text_table
from expclr.features import extract
from expclr.methods import ExpCLRLoss
from expclr.model_folder import environment
from expclr.storage import write_text
from expclr.train import Run, Schedule, embed
from expclr.train_many import train_many

__all__ = ["REFERENCES", "answers", "bench", "comparison"]

REFERENCES = Path(__file__).with_name("bench_references.json")  # a result for each kind of device
C, T, D, E, BATCH = 9, 128, 561, 100, 64  # of uci_har, and the paper's settings


@dataclass(frozen=True)
class Sizes:
    """How much is computed for a row."""

    steps: int = 24  # of training, in an epoch
    runs: int = 16  # at once, on a GPU
    windows: int = 2048  # embedded
    features: int = 512  # windows that expert features are computed of
    large: int = 4096  # rows of a large batch
    rows: int = 2000  # of a probe
    stored: int = 20_000  # windows that are searched in


SMOKE = Sizes(steps=1, runs=2, windows=64, features=8, large=128, rows=60, stored=200)


@dataclass(frozen=True)
class Question:
    """What is counted in a second, and how many of it a call of ``work`` does."""

    name: str
    unit: str
    count: int
    work: Callable[[], object]


def bench(
    device: str = "auto", out: str | None = None, *, seconds: float = 5.0, smoke: bool = False
) -> str:
    """Answer all questions; the table, and with ``out`` a JSON file."""
    on = resolve_device(device)
    result = answers(on, seconds=0 if smoke else seconds, sizes=SMOKE if smoke else Sizes())
    if out is not None:
        write_text(out, json.dumps(result, indent=1) + "\n")
    kept = json.loads(REFERENCES.read_text(encoding="utf-8"))
    return comparison(result, None if smoke else kept.get(on.type))


def answers(device: torch.device, *, seconds: float, sizes: Sizes) -> dict[str, Any]:
    """Each question's answer and the machine; about ``seconds`` a question."""
    began = time.perf_counter()
    with _one_thread(device):
        asked = list(_questions(device, sizes))
        rows = {
            question.name: {"unit": question.unit, "a_second": _speed(question, device, seconds)}
            for question in tqdm(asked, "bench", disable=None, leave=False)
        }
        machine = _machine(device)
    whole = time.perf_counter() - began
    return {"machine": machine, "seconds": round(whole, 1), "rows": rows}


@contextlib.contextmanager
def _one_thread(device: torch.device) -> Iterator[None]:
    """One core of a CPU: several wait for each other whenever another program takes one."""
    threads = torch.get_num_threads()
    with threadpool_limits(1 if device.type == "cpu" else None):
        torch.set_num_threads(1 if device.type == "cpu" else threads)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


def comparison(result: dict[str, Any], kept: dict[str, Any] | None) -> str:
    """The table of a result beside a kept one."""
    lines = []
    for name, row in result["rows"].items():
        there = kept["rows"].get(name) if kept else None
        reference = _short(there["a_second"]) if there else "-"
        ratio = f"{row['a_second'] / there['a_second']:.2f}" if there else "-"
        lines.append([name, row["unit"], _short(row["a_second"]), reference, ratio])
    table = text_table(["question", "a second", "here", "reference", "ratio"], lines)
    return f"{table}\n\nhere: {_told(result)}\n{_told_of_reference(kept)}"


def _told(result: dict[str, Any]) -> str:
    found = result["machine"]
    return (
        f"{found['device']}, {found['threads']} of {found['cores']} cores, "
        f"torch {found['torch']}, {result['seconds']:.0f} s"
    )


def _told_of_reference(kept: dict[str, Any] | None) -> str:
    if kept is None:
        return "reference: none to compare with (another kind of device, or a smoke test)"
    return f"reference: {_told(kept)}; a ratio above 1: this machine is quicker"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _speed(question: Question, device: torch.device, seconds: float) -> float:
    """Of the quickest call, which other programs disturb least; the first one warms up.

    Seconds are of the processor on a CPU, else by the clock, or what the call says itself.
    """
    times: list[float] = []
    began, clock = time.perf_counter(), time.perf_counter
    if device.type == "cpu":
        clock = time.process_time
    # A second call, unless the first took four times as long as there is.
    while not times or time.perf_counter() - began < seconds * (4 if len(times) < 2 else 1):
        started = clock()
        told = question.work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        passed = clock() - started
        times.append(told if isinstance(told, float) else passed)
    return float(f"{question.count / min(times[1:] or times):.4g}")


def _questions(device: torch.device, sizes: Sizes) -> Iterator[Question]:
    n, many = sizes.steps * BATCH, sizes.runs * sizes.steps
    for precision in ("float32", "bfloat16"):
        work = functools.partial(_trained, device, n, 1, precision)
        yield Question(f"training, {precision}", "steps", sizes.steps, work)
    if device.type == "cuda":
        work = functools.partial(_trained, device, n, sizes.runs, "auto")
        yield Question(f"training, {sizes.runs} runs at once", "steps", many, work)
    yield Question("embedding", "windows", sizes.windows, _embedding(device, sizes.windows))
    convolved = _convolved(device, sizes.windows // 4)
    yield Question("random convolutions", "windows", sizes.windows // 4, convolved)
    measured = functools.partial(extract, "har561", _noise(sizes.features, C, T), 50.0)
    yield Question("expert features har561", "windows", sizes.features, measured)
    for rows in (BATCH, sizes.large):
        yield Question(f"loss and gradient, {rows} rows", "times", 1, _loss(device, rows))
    yield Question("linear probe", "times", 1, _probe(sizes.rows))
    index, asked = NeighbourIndex(_noise(sizes.stored, E)), _noise(sizes.rows, E)
    yield Question("search, 10 nearest", "queries", sizes.rows, lambda: index.search(asked, k=10))


def _noise(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def _encoder(name: str, device: torch.device) -> ScaledEncoder:
    with seeded(0):
        return ScaledEncoder(ENCODERS[name](C, E, length=T), C).to(device).eval()


def _trained(device: torch.device, n: int, count: int, precision: Any) -> float | None:
    """On a GPU, where starting takes long, the seconds of an epoch by its own record."""
    X, features = _noise(n, C, T), torch.from_numpy(_noise(n, D))
    epochs = 1 if device.type == "cpu" else 3
    runs = [
        Run(
            _encoder("tcn", device),
            ExpCLRLoss(),
            Examples(X, features=features),
            Schedule(epochs, 1e-3, batch_size=BATCH, random_state=seed, precision=precision),
            device,
        )
        for seed in range(count)
    ]
    outcomes = dict(train_many(runs)).values()
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
    if device.type == "cpu":
        return None
    return max(float(outcome[-1]["seconds"]) for outcome in outcomes)  # type: ignore[index]


def _embedding(device: torch.device, n: int) -> Callable[[], object]:
    encoder, X = _encoder("tcn", device), _noise(n, C, T)
    return lambda: embed(encoder, X, None, device=device)


def _convolved(device: torch.device, n: int) -> Callable[[], object]:
    x = torch.from_numpy(_noise(n, C, T))
    encoder = _encoder("rocket", torch.device("cpu"))
    encoder.encoder.prepare(x[:64], None)  # type: ignore[operator]
    encoder, x = encoder.to(device), x.to(device)
    return torch.inference_mode()(lambda: encoder.fixed(x))


def _loss(device: torch.device, rows: int) -> Callable[[], object]:
    z = torch.from_numpy(_noise(rows, E)).to(device).requires_grad_()
    features, loss = torch.from_numpy(_noise(rows, D)).to(device), ExpCLRLoss()
    return lambda: torch.autograd.grad(loss(z, features), z)


def _probe(rows: int) -> Callable[[], object]:
    Z, y = _noise(rows, E), np.arange(rows) % 6
    return lambda: linear_probe(Z, y, Z[: rows // 2], y[: rows // 2])


def _machine(device: torch.device) -> dict[str, Any]:
    found = environment()
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else _processor()
    kept = ("expclr", "python", "torch", "numpy", "scikit-learn", "threads")
    return {"device": name, "cores": os.cpu_count(), **{key: found[key] for key in kept}}


def _processor() -> str:
    told = Path("/proc/cpuinfo")
    lines = told.read_text(encoding="utf-8").splitlines() if told.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
