"""What the datasets come to on the real files, how fast they load, and what memory one's own take.

    EXPCLR_DATA=... OMP_NUM_THREADS=1 python benchmarks/datasets.py

Datasets whose files are not there are left out. Every store is prepared in a cache of its own that
is deleted at the end. Times are of one run on whatever else the machine does; ratios compare both
sides in this one process.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tests.datasets.own.test_memory import peak_memory  # noqa: E402

from expclr.datasets import load_dataset, mitdb  # noqa: E402
from expclr.datasets.checks import duplicated_windows, shared_groups  # noqa: E402
from expclr.datasets.npy import NpyWriter  # noqa: E402
from expclr.datasets.store import data_root  # noqa: E402
from expclr.evaluation import knn_probe, linear_probe  # noqa: E402
from expclr.windows import Windows  # noqa: E402

CHOICES = (
    "uci_har",
    "hapt",
    "hapt,classes=har6",
    "mitdb",
    "mitdb,features=ecg88",
    "ucr,problem=BasicMotions",
    "ucr,problem=JapaneseVowels",
    "ucr,problem=ECG5000",
    "hydraulic",
    "machine",
)


def seconds(function: Callable[[], Any]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def part(windows: Windows) -> dict[str, Any]:
    names = windows.class_names
    counts = np.bincount(windows.y, minlength=len(names)) if windows.y is not None else []
    return {
        "windows": len(windows),
        "groups": None if windows.group is None else len(np.unique(windows.group)),
        "classes": {name: int(count) for name, count in zip(names, counts, strict=True)},
    }


def dataset(choice: str) -> dict[str, Any]:
    """Counts of both parts, what they have in common, and seconds of two loads."""
    first = seconds(lambda: load_dataset(choice))
    second = min(seconds(lambda: load_dataset(choice)) for _ in range(3))
    train, test = load_dataset(choice)
    return {
        "channels": train.X.shape[1],
        "timepoints": train.X.shape[2],
        "sfreq": train.sfreq,
        "features": 0 if train.F is None else train.F.shape[1],
        "train": part(train),
        "test": part(test),
        "shared_groups": len(shared_groups(train, test)),
        "test_windows_also_in_train": len(duplicated_windows(train, test)),
        "first_load_seconds": round(first, 2),
        "second_load_seconds": round(second, 3),
    }


def uci_har() -> dict[str, Any]:
    """Probes on the published features, windows against hapt's, random batches from disk."""
    train, test = load_dataset("uci_har")
    data = (train.F, train.y, test.F, test.y)
    cut = load_dataset("hapt,classes=har6")
    difference = max(
        float(np.abs(a.X - b.X).max()) for a, b in zip((train, test), cut, strict=True)
    )
    return {
        "linear_accuracy": round(linear_probe(*data, scaling="raw")["accuracy"], 4),
        "nearest_accuracy": round(knn_probe(*data, k=1, scaling="raw")["accuracy"], 4),
        "largest_difference_to_hapt": difference,
        "random_batches_disk_to_memory": round(batch_ratio(train), 2),
    }


def batch_ratio(windows: Windows) -> float:
    """Time of random batches from the memory-mapped store, in times of those from memory."""
    rng = np.random.default_rng(0)
    rows = [np.sort(rng.choice(len(windows), 64, replace=False)) for _ in range(200)]
    memory = np.array(windows.X)
    pairs = [
        (
            seconds(lambda: [windows.X[r] for r in rows]),
            seconds(lambda: [memory[r] for r in rows]),
        )
        for _ in range(5)
    ]
    return float(np.median([disk / held for disk, held in pairs]))


def own(folder: Path) -> dict[str, Any]:
    """Peak memory while one's own files become a store, beyond what the imports hold."""
    found = {}
    for blocks in (10, 40):
        source = folder / f"arrays{blocks}"
        source.mkdir()
        values = np.random.default_rng(0).normal(size=(2000, 4, 1000)).astype(np.float32)
        with NpyWriter(source / "X.npy", (4, 1000)) as writer:
            for i in range(blocks):
                writer.append(values + i)
        np.save(source / "y.npy", np.arange(2000 * blocks) % 3)
        found[f"npy_{blocks // 10}"] = memory(source, source / "X.npy", folder / "out", test=0.2)
    table = folder / "a.csv"
    with table.open("w") as file:
        file.write("time,x,y\n")
        for i in range(2_000_000):
            file.write(f"{i / 100:.2f},{i % 977},{i % 89}\n")
    found["csv"] = memory(
        table, table, folder / "csv", time="time", length=1000, step=20, test=None
    )
    return found


def memory(source: Path, file: Path, out: Path, **options: Any) -> dict[str, int]:
    started = time.perf_counter()
    peak = peak_memory(source, out, **options)
    taken = time.perf_counter() - started
    stored = sum(path.stat().st_size for path in out.rglob("X.npy"))
    sizes = {"source_mb": file.stat().st_size, "store_mb": stored, "peak_mb": peak}
    return {k: round(v / 1e6) for k, v in sizes.items()} | {"seconds": round(taken)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "datasets.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["EXPCLR_CACHE"] = cache
        there = [c for c in CHOICES if c == "machine" or (data_root() / c.split(",")[0]).is_dir()]
        result: dict[str, Any] = {"datasets": {choice: dataset(choice) for choice in there}}
        if {"uci_har", "hapt"} <= set(there):
            result["uci_har"] = uci_har()
        if "mitdb" in there:
            result["mitdb_table"] = mitdb.windows_per_class().splitlines()
    with tempfile.TemporaryDirectory() as folder:
        result["own"] = own(Path(folder))
    machine = {"cores": os.cpu_count(), "python": platform.python_version()}
    machine |= {"numpy": np.__version__, "load": round(os.getloadavg()[0], 1)}
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps({"machine": machine} | result, indent=1) + "\n")
    print(options.out)


if __name__ == "__main__":
    main()
