"""ExpCLR's loss over large batches: all pairs at once, and by blocks of rows.

    python benchmarks/loss.py --out benchmarks/results/loss_h200.json

Random embeddings (n, 100) and features (n, 561); forward and backward together. "naive" is the
formula written down with torch.cdist in its default mode (products of matrices in float32): fast,
and wrong for small distances; "all pairs" is the library's loss with ``streamed=False``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import machine, write
from torch import Tensor

from expclr.engine import resolve_device
from expclr.methods import ExpCLRLoss

E, D = 100, 561


def naive(z: Tensor, features: Tensor) -> Tensor:
    """Eq. 6 with Eq. 8, as one would write it."""
    distances = torch.cdist(features, features)
    s = (1 - distances / distances.max()).square()
    embedded = torch.cdist(z, z)
    embedded = embedded / embedded.mean(1, keepdim=True)
    return ((1 - s) - embedded).square().flatten().logsumexp(0) - 2 * np.log(len(z))


WAYS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "naive": naive,
    "all pairs": ExpCLRLoss(streamed=False),
    "streamed": ExpCLRLoss(streamed=True),
}


def measured(way: Callable[[Tensor, Tensor], Tensor], n: int, device: torch.device) -> Any:
    """Milliseconds (median of five) and, on CUDA, peak memory besides the inputs."""
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(n, E, generator=generator).to(device).requires_grad_()
    features = torch.randn(n, D, generator=generator).to(device)
    cuda, times = device.type == "cuda", []
    try:
        for _ in range(6):
            before = torch.cuda.memory_allocated() if cuda else 0
            if cuda:
                torch.cuda.reset_peak_memory_stats()
                torch.cuda.synchronize()
            started = time.perf_counter()
            (gradient,) = torch.autograd.grad(way(z, features), z)
            assert bool(gradient.isfinite().all())  # waits for the device
            times.append(time.perf_counter() - started)
    except torch.OutOfMemoryError as error:
        return {"failed": str(error).splitlines()[0]}
    result = {"ms": round(1e3 * float(np.median(times[1:])), 2)}
    if cuda:
        result["peak_gb"] = round((torch.cuda.max_memory_allocated() - before) / 1e9, 3)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 512, 4096, 16384, 32768])
    options = parser.parse_args()
    device = resolve_device(options.device)
    results: dict[str, Any] = {}
    for n in options.sizes:
        for name, way in WAYS.items():
            if name == "all pairs" and n > 16384:
                continue  # over 100 GB
            results.setdefault(name, {})[n] = measured(way, n, device)
            print(name, n, results[name][n], flush=True)
            if device.type == "cuda":
                torch.cuda.empty_cache()
    write(options.out, {"machine": machine(), "e": E, "d": D, "ways": results})


if __name__ == "__main__":
    main()
