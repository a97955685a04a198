"""ExpCLR's loss over large batches, all pairs at once and by blocks; and losses beside peers'.

    OMP_NUM_THREADS=1 python benchmarks/loss.py --out benchmarks/results/loss_cpu.json
    python benchmarks/loss.py --device cuda --sizes 64 512 4096 16384 32768 --dense 16384 \
        --blocks 22 23 24 --tiles 128,64,32,8,4 128,128,32,8,3 64,64,32,4,4 --out ...

Random embeddings (n, 100) and features (n, 561); forward and backward together. "naive" is the
formula written down with torch.cdist in its default mode (products of matrices in float32): fast,
and wrong for small distances; "all pairs" is the library's loss with ``streamed=False``. On a GPU
"streamed" is kernels; "blocks" are what takes their place elsewhere, "tiles" sizes for the kernels
(rows, columns, values at a time, warps, stages). Peers are
pytorch-metric-learning's losses on the same embeddings with ten classes, where it is installed;
values are compared, too, where both state the same formula. Milliseconds are of the processor on a
CPU, by the clock on a GPU; memory is the growth besides the inputs.
"""

from __future__ import annotations

import argparse
import functools
import math
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from machine import machine, peak_gb, quickest_ms, write
from torch import Tensor

from expclr.engine import resolve_device
from expclr.methods import ExpCLRLoss, NTXentLoss, SupConLoss
from expclr.methods.streamed import Formula, streamed_loss

E, D, CLASSES = 100, 561, 10
Loss = Callable[..., Tensor]


def naive(z: Tensor, features: Tensor) -> Tensor:
    """Eq. 6 with Eq. 8, as one would write it."""
    distances = torch.cdist(features, features)
    s = (1 - distances / distances.max()).square()
    embedded = torch.cdist(z, z)
    embedded = embedded / embedded.mean(1, keepdim=True)
    return ((1 - s) - embedded).square().flatten().logsumexp(0) - 2 * math.log(len(z))


WAYS: dict[str, Loss] = {
    "naive": naive,
    "all pairs": ExpCLRLoss(streamed=False),
    "streamed": ExpCLRLoss(streamed=True),
}


def measured(way: Loss, z: Tensor, target: Tensor) -> dict[str, Any]:
    """Milliseconds and memory of value and gradient; or that memory did not suffice."""

    def work() -> None:
        torch.autograd.grad(way(z, target), z)

    try:
        peak = peak_gb(work, z.device)
        return {"ms": quickest_ms(work, z.device), "peak_gb": peak}
    except (torch.OutOfMemoryError, RuntimeError) as error:
        return {"failed": str(error).splitlines()[0]}


def inputs(n: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Embeddings, features and labels."""
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(n, E, generator=generator).to(device).requires_grad_()
    features = torch.randn(n, D, generator=generator).to(device)
    return z, features, (torch.arange(n) % CLASSES).to(device)


def over_sizes(sizes: list[int], dense: int, device: torch.device) -> dict[str, Any]:
    """Each way at each size; all pairs up to ``dense`` rows, naively up to twice as many."""
    most = {"naive": 2 * dense, "all pairs": dense, "streamed": math.inf}
    results: dict[str, Any] = {}
    for n in sizes:
        z, features, _ = inputs(n, device)
        for name, way in WAYS.items():
            if n <= most[name]:
                results.setdefault(name, {})[n] = measured(way, z, features)
                print(name, n, results[name][n], flush=True)
    return results


def over_blocks(n: int, powers: list[int], device: torch.device) -> dict[int, Any]:
    """The streamed loss of n rows by blocks of 2**power pairs."""
    z, features, _ = inputs(n, device)
    one = ExpCLRLoss()
    formula = Formula(one.pair_loss, one.similarity, one.normalize, one.tau)
    results = {}
    for power in powers:
        way = functools.partial(streamed_loss, formula=formula, block=1 << power)
        results[power] = measured(way, z, features)
        print("block 2 **", power, results[power], flush=True)
    return results


def over_tiles(n: int, sizes: list[str], device: torch.device) -> dict[str, Any]:
    """The streamed loss of n rows by kernels whose tiles have these sizes."""
    if not sizes:
        return {}
    from expclr.methods import streamed_tiles

    names = ("ROWS", "COLUMNS", "INNER", "WARPS", "STAGES")
    usual = {name: getattr(streamed_tiles, name) for name in names}
    z, features, _ = inputs(n, device)
    results = {}
    for given in sizes:
        for name, value in zip(names, given.split(","), strict=True):
            setattr(streamed_tiles, name, int(value))
        results[given] = measured(WAYS["streamed"], z, features)
        print("tiles", given, results[given], flush=True)
    for name, value in usual.items():
        setattr(streamed_tiles, name, value)
    return results


def errors(n: int, device: torch.device, *, tight: float = 1.0) -> dict[str, float]:
    """How far each gradient is from the same formula in float64, relative.

    ``tight`` is how far embeddings are from those of their class, beside how far classes are.
    """
    z, features, labels = inputs(n, device)
    if tight < 1:
        z = (z[:CLASSES][labels] + tight * z).detach().requires_grad_()
    wide = z.detach().double().requires_grad_()
    (exact,) = torch.autograd.grad(WAYS["all pairs"](wide, features), wide)
    found = {}
    for name, way in WAYS.items():
        (gradient,) = torch.autograd.grad(way(z, features), z)
        found[name] = float(f"{(gradient - exact).norm() / exact.norm():.1e}")
    return found


def beside_peers(sizes: list[int], device: torch.device) -> dict[str, Any]:
    """The supervised contrastive losses of both, and the peer's other losses of pairs."""
    if find_spec("pytorch_metric_learning") is None:
        return {}
    from pytorch_metric_learning import losses

    pairs: dict[str, tuple[Loss, Loss]] = {
        "SupCon": (SupConLoss(temperature=0.1), losses.SupConLoss(temperature=0.1)),
        "NT-Xent": (NTXentLoss(temperature=0.5), _two_views(losses.NTXentLoss(temperature=0.5))),
        "contrastive, beside ExpCLR": (ExpCLRLoss(), losses.ContrastiveLoss()),
        "multi-similarity, beside ExpCLR": (ExpCLRLoss(), losses.MultiSimilarityLoss()),
    }
    results: dict[str, Any] = {}
    for n in sizes:
        z, features, labels = inputs(n, device)
        for name, (ours, theirs) in pairs.items():
            target = features if name.endswith("ExpCLR") else labels
            own, other = measured(ours, z, target), measured(theirs, z, labels)
            row = {"ours": own, "theirs": other}
            if "ms" in own and "ms" in other:
                row["theirs_over_ours"] = round(other["ms"] / own["ms"], 2)
            if target is labels:
                row["values"] = [
                    round(float(loss(z.detach(), labels)), 5) for loss in (ours, theirs)
                ]
            results.setdefault(name, {})[n] = row
            print(name, n, row, flush=True)
    return results


def _two_views(loss: Any) -> Loss:
    """The peer wants to know which rows belong together: row i and row i + n / 2."""

    @functools.wraps(loss)
    def of_views(z: Tensor, labels: Tensor) -> Tensor:
        value: Tensor = loss(z, torch.arange(len(z) // 2, device=z.device).repeat(2))
        return value

    return of_views


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 256, 1024, 4096, 8192, 16384])
    parser.add_argument("--dense", type=int, default=4096, help="rows up to which pairs are held")
    parser.add_argument("--peers", type=int, nargs="*", default=[64, 512])  # NT-Xent theirs: n³
    parser.add_argument("--blocks", type=int, nargs="*", default=[], help="powers of 2")
    parser.add_argument("--tiles", nargs="*", default=[], help="sizes for the kernels")
    options = parser.parse_args()
    device = resolve_device(options.device)
    results = {
        "machine": machine(),
        "e": E,
        "d": D,
        "ways": over_sizes(options.sizes, options.dense, device),
        "blocks": {"n": max(options.sizes)}
        | over_blocks(max(options.sizes), options.blocks, device),
        "tiles": {"n": max(options.sizes)} | over_tiles(max(options.sizes), options.tiles, device),
        "gradient_errors": {"n": 512, **errors(512, device)},
        "gradient_errors_of_tight_groups": {
            tight: errors(512, device, tight=tight) for tight in (0.1, 0.01, 0.001)
        },
        "peers": beside_peers(options.peers, device),
    }
    write(options.out, results)


if __name__ == "__main__":
    main()
