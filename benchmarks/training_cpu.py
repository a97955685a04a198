"""A training step on the CPU, one choice after the other, against the eager loop it began with.

    OMP_NUM_THREADS=1 python benchmarks/training_cpu.py --out benchmarks/results/training_cpu.json

The paper's TCN on windows of uci_har's shape with the ExpCLR loss, batches of 64. All ways take
turns in one process, and seconds are of the processor: other programs on the machine disturb both
alike. The ratio is of medians.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import machine, write
from torch import Tensor, nn

from expclr.encoders import TCN
from expclr.encoders.scaled import ScaledEncoder
from expclr.encoders.tcn import Convolution, WeightNormConvolution
from expclr.engine import adam, seeded
from expclr.loss import loss_of
from expclr.methods import ExpCLRLoss
from expclr.methods.base import Batch

B, C, T, D = 64, 9, 128, 561
CPU = torch.device("cpu")


class _AsWritten(nn.Module):
    """The network with convolutions as torch offers them: of (b, c, t), over all taps."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        for module in network.modules():
            if isinstance(module, Convolution):
                module.forward = functools.partial(_conv1d, module)  # type: ignore[method-assign]

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        return self.network(x, lengths)


def _conv1d(module: Convolution, x: Tensor) -> Tensor:
    normed = isinstance(module, WeightNormConvolution)
    weight = module.normalised_weight() if normed else module.weight
    return module._conv_forward(x, weight, module.bias)


def way(
    batch: Batch, *, dropout_kind: Any, as_written: bool, fused: bool, precision: torch.dtype
) -> Callable[[], None]:
    """A training step with these choices."""
    with seeded(0):
        network: nn.Module = TCN(C, 100, length=T, dropout_kind=dropout_kind)
    encoder = ScaledEncoder(_AsWritten(network) if as_written else network, C)
    model = nn.ModuleList([encoder, ExpCLRLoss()]).train()
    optimizer = (
        adam(model.parameters(), 3e-3, CPU)
        if fused
        else torch.optim.Adam(model.parameters(), lr=3e-3)
    )

    def step() -> None:
        loss = loss_of(model[0], model[1], batch, precision=precision)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    return step


def ways(batch: Batch) -> dict[str, Callable[[], None]]:
    """Each with one choice more than the one before."""
    chosen: dict[str, Any] = {
        "dropout_kind": "element",
        "as_written": True,
        "fused": False,
        "precision": torch.float32,
    }
    steps = {"eager, elementwise dropout": way(batch, **chosen)}
    for name, change in {
        "dropout of channels": {"dropout_kind": "channel"},
        "fused Adam": {"fused": True},
        "convolutions of (b, t, c), without taps that see only padding": {"as_written": False},
        "bfloat16": {"precision": torch.bfloat16},
    }.items():
        chosen |= change
        steps[f"+ {name}"] = way(batch, **chosen)
    return steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(B, C, T, generator=generator)
    steps = ways(Batch(x, None, torch.randn(B, D, generator=generator)))
    times: dict[str, list[float]] = {name: [] for name in steps}
    for repeat in range(options.repeats + 2):
        for name, step in steps.items():
            started = time.process_time()
            step()
            if repeat >= 2:
                times[name].append(time.process_time() - started)
    medians = {name: float(np.median(values)) for name, values in times.items()}
    first = next(iter(medians.values()))
    results = {
        name: {"cpu_ms": round(1e3 * value, 1), "ratio": round(first / value, 2)}
        for name, value in medians.items()
    }
    write(options.out, {"machine": machine(), "ways": results})
    for name, result in results.items():
        print(f"{name:70} {result}")


if __name__ == "__main__":
    main()
