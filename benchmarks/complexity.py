"""How time and memory grow with n, t, c, e and the batch, with fitted slopes.

    OMP_NUM_THREADS=1 python benchmarks/complexity.py --out benchmarks/results/complexity_cpu.json

Each quantity is doubled while the others stay as for uci_har. The slope is that of a line through
the logarithms of the larger half of the points: 1 is linear, 2 the square, 0 no growth. Seconds
are of the processor on a CPU, memory is the growth besides the inputs.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import machine, peak_gb, quickest_ms, write

from expclr.encoders import TCN
from expclr.encoders.scaled import ScaledEncoder
from expclr.engine import adam, resolve_device, seeded
from expclr.loss import loss_of
from expclr.methods import ExpCLRLoss
from expclr.methods.base import Batch
from expclr.methods.streamed import Formula, streamed_loss
from expclr.train import embed

Work = Callable[[], object]
BLOCK = 1 << 18  # pairs: small, so that the growth of memory is seen with few rows


def loss(device: torch.device, *, n: int = 1024, block: int = 0) -> Work:
    """Value and gradient of ExpCLR's loss of n rows; by blocks of so many pairs, if any."""
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(n, 100, generator=generator).to(device).requires_grad_()
    features = torch.randn(n, 561, generator=generator).to(device)
    value = ExpCLRLoss(streamed=False)
    if not block:
        return lambda: torch.autograd.grad(value(z, features), z)
    formula = Formula(value.pair_loss, value.similarity, value.normalize, value.tau)
    return lambda: torch.autograd.grad(streamed_loss(z, features, formula, block=block), z)


def step(device: torch.device, *, b: int = 16, t: int = 128, c: int = 9, e: int = 100) -> Work:
    """A training step; time is not halved by strides, however long the windows."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(b, c, t, generator=generator).to(device)
    batch = Batch(x, None, torch.randn(b, 561, generator=generator).to(device))
    with seeded(0):
        encoder = ScaledEncoder(TCN(c, e), c)
    model = torch.nn.ModuleList([encoder, ExpCLRLoss()]).train().to(device)
    optimizer = adam(model.parameters(), 1e-3, device)

    def work() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss_of(model[0], model[1], batch).backward()
        optimizer.step()

    return work


def embedding(device: torch.device, *, n: int = 256, t: int = 128) -> Work:
    """``transform`` of n windows; long ones are halved by strides, as by default."""
    with seeded(0):
        encoder = ScaledEncoder(TCN(9, 100, length=t), 9).to(device)
    X = np.random.default_rng(0).standard_normal((n, 9, t), dtype=np.float32)
    return lambda: embed(encoder, X, None, device=device)


Growths = dict[str, tuple[Callable[..., Work], str, list[int]]]


def growths(largest: int) -> Growths:
    """What grows with what; ``largest`` scales the sizes of the losses."""
    return {
        "loss, all pairs": (loss, "n", [largest // 16, largest // 8, largest // 4, largest // 2]),
        "loss, by blocks": (
            functools.partial(loss, block=BLOCK),
            "n",
            [largest // 8, largest // 4, largest // 2, largest],
        ),
        "training step, batch": (step, "b", [16, 32, 64, 128]),
        "training step, length": (step, "t", [64, 128, 256, 512]),
        "training step, channels": (step, "c", [4, 16, 64, 256]),
        "training step, embedding": (step, "e", [32, 128, 512, 2048]),
        "embedding, windows": (embedding, "n", [128, 256, 512, 1024]),
        "embedding, length": (embedding, "t", [128, 256, 512, 1024]),
    }


def grown(make: Callable[..., Work], name: str, sizes: list[int], device: torch.device) -> Any:
    """Milliseconds and memory at each size, and the slopes of both."""
    points = []
    for size in sizes:
        work = make(device, **{name: size})
        work()
        peak = peak_gb(work, device)
        ms = quickest_ms(work, device, repeats=3, seconds=2.0)
        points.append(
            {name: size, "ms": ms, "peak_mb": None if peak is None else round(1e3 * peak, 1)}
        )
    half = points[len(points) // 2 - 1 :]
    return {
        "over": name,
        "points": points,
        "slope_of_time": slope([p[name] for p in half], [p["ms"] for p in half]),
        "slope_of_memory": slope([p[name] for p in half], [p["peak_mb"] for p in half]),
    }


def slope(sizes: list[float], values: list[float | None]) -> float | None:
    """Of a line through the logarithms; None where nothing was seen."""
    known = [value for value in values if value is not None and value > 0]
    if len(known) < len(values):
        return None
    return round(float(np.polyfit(np.log(sizes), np.log(known), 1)[0]), 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--largest", type=int, default=4096)
    options = parser.parse_args()
    device = resolve_device(options.device)
    results: dict[str, Any] = {}
    for name, (make, quantity, sizes) in growths(options.largest).items():
        results[name] = grown(make, quantity, sizes, device)
        print(name, results[name]["slope_of_time"], results[name]["slope_of_memory"], flush=True)
        write(options.out, {"machine": machine(), "growths": results})


if __name__ == "__main__":
    main()
