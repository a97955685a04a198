"""Which feature space should be the default: short trainings in each, judged on held-out groups.

    python benchmarks/feature_space.py                                 # reads EXPCLR_DATA
    python benchmarks/feature_space.py --export carry/feature_space    # or, for another machine,
    python benchmarks/feature_space.py --data carry/feature_space      # first where the data are

The training part of each dataset is shared out into folds of whole groups (people, machines); test
data are never opened. In every fold ExpCLR is trained with each candidate on the same windows, with
the same network, steps and seed: only the feature space and the reference distance differ. What
is read on the fold left out, and the rule that decides, are in feature_space_table.py, which
writes docs/choices.md.

A run that the result file already holds is not repeated, and --minutes ends cleanly in time.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import multiprocessing
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from feature_space_table import page, summary
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedGroupKFold
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from expclr import ExpCLR, Windows
from expclr.datasets.machine import load as load_machine
from expclr.evaluation import knn_probe, linear_probe
from expclr.features.report import readability
from expclr.features.space import FeatureSpace
from expclr.model_folder import environment
from expclr.storage import read_json, write_json, write_text

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "choices.md"
RESULTS = HERE / "results" / "feature_space.json"

DATASETS = ("uci_har", "mitdb", "machine")
SPACES: dict[str, dict[str, Any]] = {
    "raw": {"numeric": "none"},
    "standard": {},
    "robust": {"numeric": "robust"},
    "quantile": {"numeric": "quantile"},
    "whitened, 0.5": {"decorrelate": 0.5},
    "whitened, Ledoit-Wolf": {"decorrelate": "ledoit_wolf"},
}
CANDIDATES = [(space, "batch") for space in SPACES] + [
    (space, "q0.99") for space in ("raw", "standard", "whitened, 0.5")
]
ENCODER = {"width": 32, "blocks": 6, "finest": 64}  # a small network: what differs is the space
FOLDS = 4  # five people of mitdb have AFIB, one of them hardly ever: each fold needs some
MITDB_NORMAL = 25  # windows of normal rhythm taken of each person


@dataclass(frozen=True)
class Task:
    """One training."""

    fold: int
    dataset: str
    space: str
    reference: str

    def key(self) -> tuple[Any, ...]:
        return self.fold, self.dataset, self.space, self.reference


@dataclass(frozen=True)
class Budget:
    """What all trainings have in common."""

    steps: int
    windows: int | None
    device: str

    def settings(self) -> dict[str, Any]:
        return {"steps": self.steps, "windows": self.windows, "folds": FOLDS, "encoder": ENCODER}


def export(folder: Path) -> None:
    """Write the training parts that come from raw files, small enough to travel."""
    from expclr.datasets import load_dataset

    folder.mkdir(parents=True, exist_ok=True)
    save_npz(folder / "uci_har.npz", load_dataset("uci_har")[0])
    save_npz(folder / "mitdb.npz", ecg_part())


def ecg_part() -> Windows:
    """AFIB and normal rhythm, thinned, with the 88 features of both channels; at half the rate."""
    from expclr.datasets import load_dataset
    from expclr.features import features_of

    train, _ = load_dataset("mitdb")
    assert train.y is not None
    assert train.group is not None
    kept = np.flatnonzero(train.y == train.class_names.index("AFIB")).tolist()
    for person in np.unique(train.group):
        normal = (train.group == person) & (train.y == train.class_names.index("N"))
        kept += spread(np.flatnonzero(normal), MITDB_NORMAL)
    windows = features_of(train.subset(np.sort(kept)), "ecg88")
    X = np.asarray(windows.X, np.float32)
    return windows.with_(X=X.reshape(*X.shape[:2], -1, 2).mean(axis=3), sfreq=windows.sfreq / 2)


def spread(values: NDArray[Any], size: int) -> list[int]:
    """At most so many of the values, evenly over their whole length."""
    at = np.linspace(0, len(values) - 1, min(size, len(values))).astype(int)
    return [int(value) for value in values[at]]


def save_npz(path: Path, windows: Windows) -> None:
    np.savez_compressed(
        path,
        X=np.asarray(windows.X, np.float16),
        F=np.round(np.asarray(windows.F, np.float64), 5).astype(np.float32),
        y=np.asarray(windows.y),
        group=np.asarray(windows.group),
        name=np.array(windows.name),
    )
    print(f"{path}: {windows}, {path.stat().st_size / 1e6:.1f} MB")


@cache
def windows_of(dataset: str, data: Path | None, most: int | None) -> Windows:
    """The training part of a dataset; ``machine`` is simulated and needs no file."""
    if dataset == "machine":
        windows = load_machine()[0]
    elif data is None:
        from expclr.datasets import load_dataset

        windows = ecg_part() if dataset == "mitdb" else load_dataset(dataset)[0]
    else:
        windows = Windows.from_npz(data / f"{dataset}.npz")
    if most is not None and most < len(windows):
        windows = windows.subset(np.linspace(0, len(windows) - 1, most).astype(int))
    return windows


def split(windows: Windows, fold: int) -> tuple[Windows, Windows]:
    """(fitted on, read on) of one fold: no group on both sides, classes as even as can be."""
    folds = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=0)
    parts = list(folds.split(np.zeros(len(windows)), windows.y, windows.group))
    fitted, read = parts[fold]
    return windows.subset(fitted), windows.subset(read)


def run(task: Task, budget: Budget, data: Path | None) -> dict[str, Any]:
    """Train, embed, measure."""
    started = time.perf_counter()
    windows = windows_of(task.dataset, data, budget.windows)
    train, held = split(windows, task.fold)
    learner = ExpCLR(
        reference=task.reference,
        encoder_params=ENCODER,
        feature_space=FeatureSpace(**SPACES[task.space]),
        max_epochs=max(1, round(budget.steps / (len(train) // 64 or 1))),
        random_state=task.fold,
        device=budget.device,
    ).fit(train, train.F)
    trained = time.perf_counter() - started
    return {
        **vars(task),
        **measure(learner.transform(train), train, learner.transform(held), held),
        "loss": learner.history_[-1]["loss"],
        "epochs": len(learner.history_),
        "n_train": len(train),
        "n_held_out": len(held),
        "data": windows.fingerprint(),
        "split": split_hash(held),
        "train_seconds": round(trained, 1),
        "seconds": round(time.perf_counter() - started, 1),
        **budget.settings(),
    }


def measure(
    Z_train: NDArray[Any], train: Windows, Z_held: NDArray[Any], held: Windows
) -> dict[str, float]:
    """Probes and readability on the fold left out."""
    assert train.y is not None
    assert held.y is not None
    assert train.F is not None
    assert held.F is not None
    linear = linear_probe(Z_train, train.y, Z_held, held.y)
    nearest = knn_probe(Z_train, train.y, Z_held, held.y)
    read = readability(Z_train, train.F, Z_held, held.F)
    return {
        "linear_f1": linear["macro_f1"],
        "linear_accuracy": linear["accuracy"],
        "nearest_f1": nearest["macro_f1"],
        "nearest_accuracy": nearest["accuracy"],
        "r2": float(np.nanmedian(read.r2)),
        "agreement": float(np.nanmean(read.agreement)),
    }


def split_hash(held: Windows) -> str:
    return hashlib.sha256(repr(sorted(np.unique(held.group).tolist())).encode()).hexdigest()[:12]


def tasks(datasets: Sequence[str], folds: Sequence[int]) -> list[Task]:
    """Fold by fold, so that what is done when time runs out can be compared."""
    every = itertools.product(folds, datasets, CANDIDATES)
    return [Task(fold, dataset, *candidate) for fold, dataset, candidate in every]


def sweep(
    todo: list[Task], budget: Budget, options: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Results as they come, in as many processes as asked for; none is begun after the deadline."""
    deadline = time.monotonic() + 60 * options.minutes
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.jobs, context, initializer=begin_worker) as pool:
        waiting, running = iter(todo), set[Future[dict[str, Any]]]()
        while True:
            while len(running) < options.jobs and time.monotonic() < deadline:
                if (task := next(waiting, None)) is None:
                    break
                running.add(pool.submit(run, task, budget, options.data))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)


def begin_worker() -> None:
    torch.set_num_threads(1)
    threadpool_limits(1)
    warnings.simplefilter("ignore", UserWarning)  # constant columns, the same in every training


def known_runs(path: Path, budget: Budget) -> list[dict[str, Any]]:
    """Runs of this budget that a file already holds."""
    if not path.exists():
        return []
    wanted = budget.settings().items()
    return [found for found in read_json(path)["runs"] if wanted <= found.items()]


def key_of(found: dict[str, Any]) -> tuple[Any, ...]:
    return found["fold"], found["dataset"], found["space"], found["reference"]


def main() -> None:
    options = read_options()
    if options.export:
        export(options.export)
        return
    budget = Budget(options.steps, options.windows, options.device)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    runs = known_runs(options.out, budget)
    done = set(map(key_of, runs))
    todo = [task for task in tasks(options.datasets, options.folds) if task.key() not in done]
    bar = tqdm(sweep(todo, budget, options), total=len(todo), desc="trainings", disable=None)
    for found in bar:
        runs.append(found)
        write_json(options.out, {"environment": environment(), "runs": runs})
    if not runs:
        return
    order = [task.key() for task in tasks(DATASETS, range(FOLDS))]
    runs.sort(key=lambda found: order.index(key_of(found)))
    result = {"environment": environment(), "summary": summary(runs), "runs": runs}
    write_json(options.out, result)
    known = options.page.read_text(encoding="utf-8") if options.page.exists() else ""
    write_text(options.page, page(known, result))
    print(f"{len(runs)} runs; {len(todo) + len(done) - len(runs)} left; {options.out}")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--export", type=Path, help="write the data there, and stop")
    parser.add_argument("--data", type=Path, help="folder of exported data; default raw files")
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=list(DATASETS))
    parser.add_argument("--folds", nargs="+", type=int, choices=range(FOLDS), default=range(FOLDS))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--windows", type=int, default=2500, help="at most so many of each dataset")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no training after that")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    return parser.parse_args()


if __name__ == "__main__":
    main()
