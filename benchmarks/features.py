"""How many windows a second each extractor takes, against a plain loop of the same formulas.

    OMP_NUM_THREADS=1 python benchmarks/features.py --jobs 2

Both run on the same windows in this one process, in turn, and the best of several runs counts, so
that other programs on the machine disturb little; ratios are of CPU time with one job, which they
disturb least. The loops are the oracles of the tests. Memory is the highest that Python and NumPy
hold while features of a memory-mapped store are written, for some windows and for four times as
many. The table in docs/features/index.md is written from the result.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "features"))

from ecg88_oracle import ecg88_loop  # noqa: E402
from eeg29_oracle import eeg29_loop  # noqa: E402
from har561_oracle import har561_loop  # noqa: E402

from expclr.features import extract, write_features  # noqa: E402
from expclr.windows import Windows  # noqa: E402

PAGE = HERE.parent / "docs" / "features" / "index.md"
BEGIN, END = "<!-- speed -->", "<!-- end of speed -->"
GOALS = {"har561": 3000, "eeg29": 2000, "ecg88": 400}  # windows a second on two cores


def har(n: int, rng: np.random.Generator) -> tuple[NDArray[Any], float]:
    x = rng.normal(size=(n, 9, 128)).cumsum(axis=2) / 10 + rng.normal(size=(n, 9, 128))
    return x.astype(np.float32), 50.0


def eeg(n: int, rng: np.random.Generator) -> tuple[NDArray[Any], float]:
    return 20 * rng.normal(size=(n, 1, 3000)).astype(np.float32), 100.0


def ecg(n: int, rng: np.random.Generator) -> tuple[NDArray[Any], float]:
    X = 0.03 * rng.normal(size=(n, 2, 2500))
    beat = np.exp(-((np.arange(-30, 30) / 3) ** 2))
    for window in X:
        for at in 60 + np.cumsum(rng.integers(160, 260, size=10)):
            if at < 2440:
                window[:, at - 30 : at + 30] += beat
    return X.astype(np.float32), 250.0


CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any], int, int]] = {
    "har561": (har, lambda X, sfreq: har561_loop(_with_next(X)), 6000, 20),
    "eeg29": (eeg, eeg29_loop, 4000, 100),
    "ecg88": (ecg, ecg88_loop, 600, 4),
}


def _with_next(X: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([X, 2 * X[..., -1:] - X[..., -2:-1]], axis=2).astype(np.float64)


def clocked(function: Callable[[], Any]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - wall, time.process_time() - cpu


def speed(name: str, jobs: int, repeats: int) -> dict[str, float]:
    make, loop, n, few = CASES[name]
    X, sfreq = make(n, np.random.default_rng(0))
    extract(name, X[:few], sfreq, n_jobs=jobs)
    runs = []
    for _ in range(repeats):  # taken in turn, so that a busy moment meets all
        one = clocked(lambda: extract(name, X, sfreq))
        many = clocked(lambda: extract(name, X, sfreq, n_jobs=jobs))
        slow = clocked(lambda: loop(X[:few].astype(np.float64), sfreq))
        runs.append([n / one[0], n / one[1], n / many[0], few / slow[0], few / slow[1]])
    one_wall, one_cpu, many_wall, slow_wall, slow_cpu = np.max(runs, axis=0).tolist()
    return {
        "windows_per_second_one_job": round(one_wall),
        "windows_per_cpu_second": round(one_cpu),
        f"windows_per_second_{jobs}_jobs": round(many_wall),
        "loop_windows_per_second": round(slow_wall, 1),
        "loop_windows_per_cpu_second": round(slow_cpu, 1),
        "ratio_cpu": round(one_cpu / slow_cpu, 1),
        "goal_windows_per_second": GOALS[name],
    }


def memory(name: str) -> dict[str, float]:
    """Peak megabytes for some windows and for four times as many."""
    make, _, n, _ = CASES[name]
    peaks = {}
    for size in (n // 6, 4 * (n // 6)):
        X, sfreq = make(size, np.random.default_rng(0))
        with tempfile.TemporaryDirectory() as folder:
            Windows(X, sfreq=sfreq).save(Path(folder) / "store")
            del X
            tracemalloc.start()
            write_features(Path(folder) / "store", name)
            peaks[f"peak_mb_{size}_windows"] = round(tracemalloc.get_traced_memory()[1] / 1e6, 1)
            tracemalloc.stop()
    return peaks


def table(result: dict[str, Any]) -> str:
    """Rows for the page, and what else ran."""
    columns = [
        ("windows per CPU second", "windows_per_cpu_second"),
        ("goal per second", "goal_windows_per_second"),
        ("the plain loop", "loop_windows_per_cpu_second"),
        ("ratio", "ratio_cpu"),
        ("windows per second, two jobs", "windows_per_second_2_jobs"),
    ]
    lines = [f"| extractor | {' | '.join(title for title, _ in columns)} |"]
    lines.append("| --- |" + " ---: |" * len(columns))
    for name, found in result["extractors"].items():
        lines.append(f"| {name} | {' | '.join(f'{found[key]:,}' for _, key in columns)} |")
    machine = result["machine"]
    shared = f"Measured on {machine['cores']} cores at a load of {machine['load']}: the last column"
    return "\n".join([*lines, "", f"{shared} is what was left by other programs."])


def page(text: str, result: dict[str, Any]) -> str:
    """The page with its table written anew."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + "\n" + table(result) + "\n" + END + rest.partition(END)[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "features.json")
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    results = {name: speed(name, options.jobs, options.repeats) | memory(name) for name in CASES}
    machine = {"cores": os.cpu_count(), "python": platform.python_version()}
    machine |= {"numpy": np.__version__, "load": round(os.getloadavg()[0], 1)}
    result = {"machine": machine, "extractors": results}
    text = json.dumps(result, indent=1)
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(text + "\n")
    options.page.write_text(page(options.page.read_text(encoding="utf-8"), result))
    print(text)


if __name__ == "__main__":
    main()
