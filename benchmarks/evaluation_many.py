"""How long the probes of many runs take side by side, and one after the other.

    python benchmarks/evaluation_many.py [--runs 30] [--device auto]

Embeddings are made like those of UCI HAR (7,352 and 2,947 windows, e = 100, six classes). One
after the other is measured on three runs and multiplied. Beside it stands how long training one
epoch of these runs would have to take for the probes to matter.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from pathlib import Path

import numpy as np
import torch

from expclr.engine import resolve_device
from expclr.evaluation import PROBES, probe_many

HERE = Path(__file__).parent
NAMES = ("linear", "linear_raw", "knn1", "knn1_raw")
FEW = 3


def made(run: int, n: int, e: int = 100, classes: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(run)
    basis = np.random.default_rng(1000 + run % 100).normal(size=(e, e)) * np.logspace(0, -4, e)
    centres = 0.5 * np.random.default_rng(2).normal(size=(classes, e))
    y = np.arange(n) % classes
    return ((rng.normal(size=(n, e)) + centres[y]) @ basis.T).astype(np.float32), y


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "evaluation_many.json")
    options = parser.parse_args()
    device = resolve_device(options.device)
    train = [made(run, 7352)[0] for run in range(options.runs)]
    test = [made(100 + run, 2947)[0] for run in range(options.runs)]
    y, truth = np.arange(7352) % 6, np.arange(2947) % 6
    probe_many(train[:1], y, test[:1], truth, probes=NAMES, device=options.device)
    started = time.perf_counter()
    found = probe_many(train, y, test, truth, probes=NAMES, device=options.device)
    together = time.perf_counter() - started
    started = time.perf_counter()
    alone = [{n: PROBES[n](train[r], y, test[r], truth) for n in NAMES} for r in range(FEW)]
    one_by_one = (time.perf_counter() - started) * options.runs / FEW
    differ = max(
        abs(found[r][n]["accuracy"] - alone[r][n]["accuracy"]) for r in range(FEW) for n in NAMES
    )
    gpu = torch.cuda.get_device_name() if device.type == "cuda" else None
    result = {
        "machine": {"device": gpu or device.type, "cores": os.cpu_count()}
        | {"python": platform.python_version(), "torch": torch.__version__},
        "runs": options.runs,
        "probes": NAMES,
        "seconds_together": round(together, 3),
        "seconds_per_run": round(together / options.runs, 4),
        "seconds_one_by_one": round(one_by_one, 3),
        "ratio": round(one_by_one / together, 1),
        "largest_difference_in_accuracy": differ,
        "converged": all(run[n]["converged"] == 1 for run in found for n in NAMES[:2]),
    }
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
