"""Windows a second of ``transform``, how near that is to the processor's limit, and its memory.

    python benchmarks/embedding.py --out benchmarks/results/embedding_cpu.json

The paper's TCN on windows of uci_har's shape. The limit: the operations a window takes (taps that
see only padding left out) over the operations a second of one convolution of this network's shape
on this machine. On a CPU seconds are of one core. Memory: windows in a memory-mapped file, and how
far the process's own memory grows while they are embedded.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import machine, quickest_ms, write
from torch.nn import functional

from expclr.encoders import TCN
from expclr.encoders.scaled import ScaledEncoder
from expclr.engine import resolve_device, seeded
from expclr.train import embed

C, T, E, WIDTH, KERNEL, BLOCKS = 9, 128, 100, 64, 3, 8


def network() -> ScaledEncoder:
    """The paper's TCN, as it is after training."""
    with seeded(0):
        return ScaledEncoder(TCN(C, E, length=T), C).eval()


def operations() -> float:
    """Multiplications and additions of a window in the convolutions, padding left out."""
    seen = sum(
        inside * (T + (KERNEL - 1) * max(0, T - 2**block))
        for block in range(BLOCKS)
        for inside in (C if block == 0 else WIDTH, WIDTH)
    )
    return 2.0 * WIDTH * (seen + C * T)  # and the way around the first block


def of_a_convolution(device: torch.device, precision: torch.dtype, rows: int) -> float:
    """Operations a second of one convolution of dilation 1, for which padding is nothing."""
    x = torch.randn(rows, WIDTH, 1, T, device=device, dtype=precision)
    x = x.contiguous(memory_format=torch.channels_last) if device.type == "cpu" else x
    weight = torch.randn(WIDTH, WIDTH, 1, KERNEL, device=device, dtype=precision)
    ms = quickest_ms(
        lambda: functional.conv2d(x, weight, None, 1, (0, 1)), device, repeats=30, seconds=4
    )
    return 2.0 * rows * WIDTH * WIDTH * KERNEL * T / ms * 1e3


def speed(device: torch.device, n: int) -> dict[str, Any]:
    """Of ``embed``, and of the network in bfloat16."""
    encoder = network().to(device)
    X = np.random.default_rng(0).standard_normal((n, C, T), dtype=np.float32)
    rows = 64 if device.type == "cpu" else 1024

    def narrow() -> None:
        with torch.inference_mode(), torch.autocast(device.type, dtype=torch.bfloat16):
            for start in range(0, n, rows):
                encoder(torch.from_numpy(X[start : start + rows]).to(device)).float().cpu()

    ways = {
        "float32, as transform does": (
            torch.float32,
            lambda: embed(encoder, X, None, device=device),
        ),
        "bfloat16": (torch.bfloat16, narrow),
    }
    results = {}
    for name, (precision, work) in ways.items():
        found = n / quickest_ms(work, device) * 1e3
        limit = of_a_convolution(device, precision, rows) / operations()
        results[name] = {
            "windows_per_second": round(found),
            "limit_of_convolutions": round(limit),
            "part_of_limit": round(found / limit, 2),
        }
        print(name, results[name], flush=True)
    return results


def rounding(device: torch.device) -> float:
    """How far embeddings in bfloat16 are from those in float32, relative, in the mean."""
    encoder, x = network().to(device), torch.randn(512, C, T, device=device)
    with torch.inference_mode():
        exact = encoder(x)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            rough = encoder(x).float()
    exact, rough = exact - exact.mean(0), rough - rough.mean(0)
    return round(((rough - exact).norm() / exact.norm()).item(), 4)


def memory(device: torch.device, n: int) -> dict[str, Any]:
    """The process's own memory (not the file's pages) before, and at most while embedding."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        X = np.lib.format.open_memmap(path, "w+", np.float32, (n, C, T))
        X[:] = 1.0
        X.flush()
        mapped, grown = np.load(path, mmap_mode="r"), _Growth()
        encoder = network().to(device)
        embed(encoder, mapped[:64], None, device=device)  # what libraries allocate once
        grown.begin()
        embed(encoder, _Watched(mapped, grown), None, device=device)  # type: ignore[arg-type]
    size = n * C * T * 4
    return {
        "windows": n,
        "file_gb": round(size / 1e9, 3),
        "grown_gb": round(grown.most / 1e9, 3),
        "embeddings_gb": round(n * E * 4 / 1e9, 3),
    }


class _Growth:
    """Watches the anonymous memory of this process."""

    def begin(self) -> None:
        self.before, self.most = self._now(), 0

    def look(self) -> None:
        self.most = max(self.most, self._now() - self.before)

    def _now(self) -> int:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
        return 0


class _Watched:
    """An array that looks at the memory whenever rows are read."""

    def __init__(self, X: np.ndarray, growth: _Growth) -> None:
        self.X, self.growth, self.shape, self.nbytes = X, growth, X.shape, X.nbytes

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, index: Any) -> np.ndarray:
        self.growth.look()
        return self.X[index]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--windows", type=int, default=2048)
    parser.add_argument("--mapped", type=int, default=20_000)
    options = parser.parse_args()
    device = resolve_device(options.device)
    if device.type == "cpu":
        torch.set_num_threads(1)
    results = {
        "machine": machine(),
        "mega_operations_per_window": round(operations() / 1e6, 1),
        "speed": speed(device, options.windows),
        "error_of_bfloat16": rounding(device),
        "memory": memory(device, options.mapped),
    }
    write(options.out, results)
    print(results["memory"], results["error_of_bfloat16"])


if __name__ == "__main__":
    main()
