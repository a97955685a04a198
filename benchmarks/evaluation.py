"""How fast embeddings are judged and searched, beside what one would write without this library.

    python benchmarks/evaluation.py [--only linear nearest ratios search] [--scale 0.1]

Each task runs in a process of its own, on embeddings made like real ones: correlated columns of
very different size. Both ways take turns, so that a busy moment of the machine meets both; the
ratio of CPU seconds is what other programs disturb least. Memory is the highest resident size
of the process above what it had with the data in place. Goals are for two idle cores.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
GOALS = {
    "linear": {"seconds": 2.0},
    "nearest": {"seconds": 6.0},
    "ratios": {"seconds": 5.0, "peak_mb": 500.0},
    "search": {"seconds": 3.0},
}
SIZES = {  # windows, and windows asked about
    "linear": (60_000, 1_000),
    "nearest": (60_000, 17_000),
    "ratios": (10_000, 0),
    "search": (1_000_000, 1_000),
}

Array = NDArray[Any]
Pair = tuple[Callable[[], Any], Callable[[], Any]]  # ours, and the usual way


def embeddings(n: int, rng: np.random.Generator, e: int = 100) -> tuple[Array, Array]:
    """Four classes in columns with a condition number of 10,000."""
    basis = np.random.default_rng(1).normal(size=(e, e)) * np.logspace(0, -4, e)
    centres = 0.5 * np.random.default_rng(2).normal(size=(4, e))
    y = rng.integers(0, 4, n)
    return ((rng.normal(size=(n, e)) + centres[y]) @ basis.T).astype(np.float32), y


def linear(n: int, q: int, rng: np.random.Generator) -> Pair:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from expclr.evaluation import linear_probe

    (Z, y), (asked, truth) = embeddings(n, rng), embeddings(q, rng)
    usual = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-6, max_iter=10_000))
    return (
        lambda: linear_probe(Z, y, asked, truth)["accuracy"],
        lambda: float(usual.fit(Z.astype(np.float64), y).score(asked.astype(np.float64), truth)),
    )


def nearest(n: int, q: int, rng: np.random.Generator) -> Pair:
    from sklearn.neighbors import KNeighborsClassifier

    from expclr.evaluation import knn_probe

    (Z, y), (asked, truth) = embeddings(n, rng), embeddings(q, rng)
    usual = KNeighborsClassifier(1, algorithm="brute")
    return (
        lambda: knn_probe(Z, y, asked, truth)["accuracy"],
        lambda: float(usual.fit(Z.astype(np.float64), y).score(asked.astype(np.float64), truth)),
    )


def ratios(n: int, q: int, rng: np.random.Generator) -> Pair:
    from scipy.spatial.distance import pdist

    from expclr.evaluation import bilipschitz

    Z, _ = embeddings(n, rng)
    F = np.tanh(Z[:, :30]) + 0.1 * rng.normal(size=(n, 30)).astype(np.float32)
    return (
        lambda: bilipschitz(Z, F).l_plus,
        lambda: float((pdist(F) / pdist(Z)).max()),
    )


def search(n: int, q: int, rng: np.random.Generator) -> Pair:
    from sklearn.neighbors import NearestNeighbors

    from expclr.evaluation import NeighbourIndex

    (Z, _), (asked, _) = embeddings(n, rng), embeddings(q, rng)
    index, usual = NeighbourIndex(Z), NearestNeighbors(n_neighbors=10, algorithm="brute").fit(Z)
    return (
        lambda: float(index.search(asked, k=10).distance.sum()),
        lambda: float(usual.kneighbors(asked)[0].sum()),
    )


TASKS = {task.__name__: task for task in (linear, nearest, ratios, search)}


def clocked(function: Callable[[], Any]) -> tuple[float, float, Any]:
    """Wall seconds, CPU seconds of all threads, and the result."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    return time.perf_counter() - wall, time.process_time() - cpu, result


def measured(name: str, scale: float, repeats: int, usual_repeats: int) -> dict[str, Any]:
    n, q = (max(1, round(scale * size)) if size else 0 for size in SIZES[name])
    ours, usual = TASKS[name](n, q, np.random.default_rng(0))
    before = _resident()
    mine = [clocked(ours)]
    peak = _resident() - before
    theirs = []
    for turn in range(max(repeats - 1, usual_repeats)):
        if turn < usual_repeats:
            theirs.append(clocked(usual))
        mine.append(clocked(ours))
    return {
        "windows": n,
        "asked": q,
        "goal": GOALS[name],
        "peak_mb": round(peak / 1e6, 1),
        "load_before": round(os.getloadavg()[0], 1),
        **_best("", mine),
        **(_best("usual_", theirs) if theirs else {}),
    }


def _best(whose: str, runs: list[tuple[float, float, Any]]) -> dict[str, Any]:
    wall, cpu = np.min([run[:2] for run in runs], axis=0)
    return {
        f"{whose}seconds": round(float(wall), 3),
        f"{whose}cpu_seconds": round(float(cpu), 3),
        f"{whose}result": runs[0][2],
        f"{whose}runs": len(runs),
    }


def _merged(known: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """The best of earlier runs of the same sizes and these."""
    if any(known.get(key) != new[key] for key in ("windows", "asked", "result")):
        known = {}
    merged = known | new
    for key in ("seconds", "cpu_seconds", "usual_seconds", "usual_cpu_seconds"):
        times = [times[key] for times in (known, new) if key in times]
        merged |= {key: min(times)} if times else {}
    for key in ("runs", "usual_runs"):
        merged[key] = known.get(key, 0) + new.get(key, 0)
    if "usual_cpu_seconds" in merged:
        merged["cpu_ratio"] = round(merged["usual_cpu_seconds"] / merged["cpu_seconds"], 2)
    return merged


def _resident() -> float:
    """Highest resident size so far, in bytes."""
    unit = 1 if platform.system() == "Darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _alone(*task: Any) -> dict[str, Any]:
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(measured, task)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--scale", type=float, default=1.0, help="share of the sizes")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--usual", type=int, default=1, help="repeats of the usual way")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "evaluation.json")
    options = parser.parse_args()
    known = json.loads(options.out.read_text()) if options.out.exists() else {}
    tasks = known.get("tasks", {})
    for name in options.only:
        found = _alone(name, options.scale, options.repeats, options.usual)
        tasks[name] = _merged(tasks.get(name, {}), found)
        print(name, json.dumps(tasks[name]), flush=True)
    machine = {"cores": os.cpu_count(), "python": platform.python_version()}
    machine |= {"numpy": np.__version__, "threads": os.environ.get("OMP_NUM_THREADS", "all")}
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps({"machine": machine, "tasks": tasks}, indent=1) + "\n")


if __name__ == "__main__":
    main()
