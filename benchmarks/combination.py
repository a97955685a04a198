"""Encoder and objective beside what a user would pick instead, on the same labels.

    python benchmarks/combination.py uci_har                          # the test windows, once
    python benchmarks/combination.py uci_har --trials 3               # choices, inside of train
    python benchmarks/combination.py uci_har --self-training --trials 3  # likewise, few labels
    python benchmarks/combination.py uci_har --self-training          # the test windows
    python benchmarks/combination.py uci_har machine --auto --seeds 1 # what encoder="auto" takes
    python benchmarks/combination.py mitdb --npz FOLDER --encoders "dilated tcn" hybrid --folds
    python benchmarks/combination.py --merge FOLDER --page            # the section of the docs

``FOLDER/mitdb.npz`` is written by ``python -m expclr.experiments.export FOLDER mitdb``: with it the
program runs on a machine without the raw data, on its GPU if there is one; combination_gpu.sh is
that. Results go to ``--out``; what is there, or else in ``--held``, is not measured again. After
``--minutes`` no new work is begun.

Labels: stratified, nested shares (``Windows.label_fraction``), of each seed the same for every
system. A system with labels makes round(8 / sqrt(share)) passes over the labelled windows, ours
and its rivals alike. The random convolutions of a seed are the same in our encoder and under
ridge and logistic regression. The strength of ridge is chosen on groups held out of the labelled
windows; logistic regression is that of ``linear_probe``. Rows that say "needs features" measure
the expert features of the test windows, too. Trials train on train without a fifth of its groups
and read that fifth; on mitdb they do so on three inner folds of whole records, each with atrial
fibrillation; trials of self-training draw the fifth anew for each seed. Seconds are by the clock;
the machine was shared, on a GPU by several trainings.

``--folds``: the records of train and test are dealt into five folds, once and for all, and each
fold is read by what was trained on the other four.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from combination_data import DATASETS, FOLDS, INNER_FOLDS, TWO_CLASSES, counts, parts
from combination_page import RESULTS, write_page
from combination_systems import (
    SELF_TRAINING,
    WAYS,
    How,
    Row,
    chosen,
    cross_entropy,
    ours,
    rivals,
    self_trained,
)
from machine import machine

from expclr import __version__
from expclr.encoders import TCN, Hybrid, Rocket
from expclr.encoders.hybrid import POOLINGS
from expclr.experiments.study_data import Study
from expclr.methods.expclr_plus import ExpCLRPlus
from expclr.storage import write_json

TRIALS: dict[str, dict[str, Any]] = {
    "as it is by default": {},
    "pairs alone": {"method_params": {"decoding": 0.0}},
    "decoding alone": {"method_params": {"pairs": 0.0}},
    "pairs: the paper's target": {"method_params": {"pairs_target": "paper"}},
    "with reconstruction": {"method_params": {"reconstruction": 4.0}},
    "reconstruction alone": {
        "method_params": {"pairs": 0.0, "decoding": 0.0, "reconstruction": 1.0}
    },
    "whitened features": {"feature_space": "whitened"},
}
TCN_TRIALS: dict[str, dict[str, Any]] = {
    "kernel 7": {"encoder_params": {"kernel": 7}},
    "mean, max and std": {"encoder_params": {"pooling": POOLINGS}},
    "up to 320 steps": {"encoder_params": {"finest": 320}},
    "all three": {"encoder_params": {"kernel": 7, "pooling": POOLINGS, "finest": 320}},
}
RATE_TRIALS: dict[str, dict[str, Any]] = {
    "lr 1e-3": {"lr": 1e-3},
    "80 epochs": {"max_epochs": 80},
}
THRESHOLDS = (None, 0.95, 0.99)
LOOK_AT_FIXED = ("with reconstruction", "reconstruction alone")


@dataclass(frozen=True)
class Job:
    """A piece of work, and the rows by which it is known to be done."""

    dataset: str
    part: str  # "test", "trials" or "auto"
    kind: str  # "ours", "cross-entropy", "rivals", "self-training", "trial" or "auto"
    encoder: str = ""
    way: str = ""  # of the features and views, or a trial's name
    split: str = "fixed"
    seeds: tuple[int, ...] = (0,)

    def rows(self, npz: Path | None, per_group: int | None, how: How) -> list[Row]:
        """Measure."""
        study = parts(self.dataset, self.split, npz, per_group)
        if self.kind == "ours":
            rows = ours(study, self.encoder, self.way, self.seeds, how)
        elif self.kind == "trial":
            changed = trials_of(self.encoder)[self.way]
            rows = ours(study, self.encoder, "", self.seeds, how, changed)
            rows = [{"trial": self.way, "encoder": self.encoder} | row for row in rows]
        elif self.kind == "self-training":
            rows = self.self_training(study, how)
        elif self.kind == "cross-entropy":
            rows = cross_entropy(study, self.encoder, self.seeds, how)
        else:
            measure = chosen if self.kind == "auto" else rivals
            rows = [row for seed in self.seeds for row in measure(study, seed, how)]
        return [{"split": self.split} | row for row in rows]

    def self_training(self, study: Study, how: How) -> list[Row]:
        """Every threshold in trials, the one that was chosen there on the test windows."""
        if self.part == "test":
            rows = self_trained(study, self.encoder, self.seeds, how, [SELF_TRAINING])
            return [{"system": self.system} | row for row in rows]
        rows = self_trained(study, self.encoder, self.seeds, how, THRESHOLDS)
        return [
            {"trial": self.trial_of(row["threshold"]), "encoder": self.encoder} | row
            for row in rows
        ]

    @property
    def system(self) -> str:
        """What is fine-tuned with predicted labels, in tables."""
        return f"ours ({self.encoder}), SS, self-training"

    def trial_of(self, threshold: float | None) -> str:
        return "SS" if threshold is None else f"SS, self-training p > {threshold}"

    def is_of(self, row: Row, seed: int) -> bool:
        """Whether a row is this job's."""
        name = f"ours ({self.encoder}, {self.way})" if self.way else f"ours ({self.encoder})"
        wanted = {
            "ours": {"system": f"{name}, U"},
            "trial": {"trial": self.way, "encoder": self.encoder},
            "cross-entropy": {"system": f"cross-entropy ({self.encoder})"},
            "rivals": {"system": "rocket, ridge", "labels": 1.0},
            "auto": {"system": "auto"},
            "self-training": {"system": self.system}
            if self.part == "test"
            else {"trial": self.trial_of(THRESHOLDS[-1]), "encoder": self.encoder},
        }[self.kind] | {"seed": seed, "split": self.split}
        return all(
            ({"split": "fixed", "encoder": "rocket"} | row)[k] == v for k, v in wanted.items()
        )

    def __str__(self) -> str:
        words = (self.dataset, self.part, self.kind, self.encoder, self.way, self.split)
        return f"{', '.join(word for word in words if word)}, seeds {self.seeds}"


def trials_of(encoder: str) -> dict[str, dict[str, Any]]:
    """Changes that make sense for a network."""
    if encoder == "tcn":
        return TRIALS | TCN_TRIALS
    return TRIALS | RATE_TRIALS if encoder == "dilated tcn" else TRIALS


def jobs(dataset: str, options: argparse.Namespace) -> Iterator[Job]:
    """What is asked for, the most important first: seed 0, its folds, further seeds."""
    if options.auto:
        for seed in range(options.seeds):
            yield Job(dataset, "auto", "auto", seeds=(seed,))
    elif options.self_training:
        yield from self_training_jobs(dataset, options)
    elif options.trials:
        yield from trial_jobs(dataset, options)
    else:
        folds = [f"fold {k}" for k in range(FOLDS)]
        folds = folds if options.folds and dataset in TWO_CLASSES else []
        for seeds in chunks(options.seeds, options.together):
            for splits in (["fixed"], folds):
                yield from test_jobs(dataset, splits, seeds, options)


def test_jobs(
    dataset: str, splits: Sequence[str], seeds: tuple[int, ...], options: argparse.Namespace
) -> Iterator[Job]:
    """Each way on each encoder; a classifier on it and the rivals do not depend on the way."""
    for way in options.ways if dataset in TWO_CLASSES else [""]:
        for encoder in options.encoders:
            if "views" in way and encoder in ("rocket", "hybrid"):
                continue  # views would have to be transformed anew in every step
            for split in splits:
                yield Job(dataset, "test", "ours", encoder, way, split, seeds)
    for encoder in options.encoders:
        for split in splits:
            yield Job(dataset, "test", "cross-entropy", encoder, "", split, seeds)
    if options.rivals:
        for split in splits:
            yield Job(dataset, "test", "rivals", "", "", split, seeds)


def self_training_jobs(dataset: str, options: argparse.Namespace) -> Iterator[Job]:
    for encoder in options.encoders:
        for seed in range(options.trials or options.seeds):
            part, split = ("trials", f"held {seed}") if options.trials else ("test", "fixed")
            yield Job(dataset, part, "self-training", encoder, "", split, (seed,))


def trial_jobs(dataset: str, options: argparse.Namespace) -> Iterator[Job]:
    inner = [f"inner {k}" for k in range(INNER_FOLDS)]
    splits = inner if dataset in TWO_CLASSES else ["validation"]
    for seeds in chunks(options.trials, options.together):
        for encoder in options.encoders:
            for name in trials_of(encoder):
                if "rocket" not in encoder and name in LOOK_AT_FIXED:
                    continue
                for split in splits:
                    yield Job(dataset, "trials", "trial", encoder, name, split, seeds)


def chunks(seeds: int, together: int) -> list[tuple[int, ...]]:
    """Seed 0 alone, then as many at once as are trained together."""
    rest = range(1, seeds)
    return [(0,), *(tuple(rest[i : i + together]) for i in range(0, len(rest), together))]


class Results:
    """Result files, one for each dataset, written whole after every piece of work."""

    def __init__(self, out: Path, held: Path, options: argparse.Namespace) -> None:
        self.out, self.held, self.options = out, held, options
        self.found: dict[str, dict[str, Any]] = {}

    def of(self, dataset: str, *, anew: bool = False) -> dict[str, Any]:
        """What is known of a dataset, measured here or before, perhaps by another process."""
        if anew or dataset not in self.found:
            name = f"combination_{dataset}.json"
            paths = [folder / name for folder in (self.out, self.held)]
            there = [path for path in paths if path.exists()]
            self.found[dataset] = json.loads(there[0].read_text("utf-8")) if there else {}
        return self.found[dataset]

    def lacks(self, job: Job) -> bool:
        rows = self.of(job.dataset).get(job.part, {}).get("rows", [])
        return not all(any(job.is_of(row, seed) for row in rows) for seed in job.seeds)

    def add(self, job: Job, rows: list[Row]) -> None:
        """Keep the rows of a job, and what they were measured on."""
        found, options, here = self.of(job.dataset, anew=True), self.options, machine()
        study = parts(job.dataset, job.split, options.npz, options.per_group)
        new = {
            "commands": [here["command"]],
            "machine": here,
            "version": __version__,
            "splits": {job.split: counts(study)},
            "precision": options.precision,
            "defaults": defaults(),
            "rows": rows,
        }
        found[job.part] = merged(found.get(job.part, {}), new)
        self.write(job.dataset)

    def merge(self, folder: Path) -> None:
        """Take what was measured elsewhere beside what is here."""
        for dataset in DATASETS:
            path = folder / f"combination_{dataset}.json"
            if path.exists():
                found = self.of(dataset, anew=True)
                for part, new in json.loads(path.read_text("utf-8")).items():
                    found[part] = merged(found.get(part, {}), new)
                self.write(dataset)

    def write(self, dataset: str) -> None:
        self.out.mkdir(parents=True, exist_ok=True)
        write_json(self.out / f"combination_{dataset}.json", self.found[dataset])


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Both parts' rows, commands and splits; the rest, and rows of both, as the new one says."""
    both = [part for part in (old, new) if part]
    rows = [
        {"on": part["machine"]["device"]} | row for part in both for row in part.get("rows", [])
    ]
    commands = [c for part in both for c in part.get("commands", [part["machine"]["command"]])]
    return new | {
        "commands": list(dict.fromkeys(commands)),
        "splits": old.get("splits", {}) | new.get("splits", {}),
        "rows": list({identity(row): row for row in rows}.values()),
    }


def identity(row: Row) -> tuple[Any, ...]:
    """What makes a row another one, whatever it says."""
    keys = ("system", "trial", "encoder", "seed", "labels", "probe", "features")
    return (row.get("split", "fixed"), *(row.get(key) for key in keys))


def defaults() -> dict[str, Any]:
    """Of encoders and the method, as they were when this was measured."""
    found = {}
    for kind in (Rocket, TCN, Hybrid, ExpCLRPlus):
        for name, p in inspect.signature(kind).parameters.items():
            if p.default is not p.empty:
                found[f"{kind.__name__}.{name}"] = p.default
        for name, value in getattr(kind, "suited", {}).items():
            found[f"{kind.__name__}.{name}"] = value
    return found


def work(todo: list[Job], results: Results, options: argparse.Namespace) -> int:
    """Do the work, in processes of their own if there are several; how much of it failed."""
    end = time.monotonic() + 60 * options.minutes
    how = How(options.device, options.precision, options.tiny)
    given = (options.npz, options.per_group, how)
    failed = 0
    for job, outcome, seconds in outcomes(todo, given, options.workers, end):
        if isinstance(outcome, BaseException):
            failed += 1
            print(f"FAILED {job}: {type(outcome).__name__}: {outcome}", flush=True)
        else:
            results.add(job, outcome)
            print(f"{seconds:6.1f} s  {job}", flush=True)
    left = sum(results.lacks(job) for job in todo)
    print(f"{len(todo) - left} of {len(todo)} done, {failed} failed", flush=True)
    return failed


def outcomes(
    todo: list[Job], given: tuple[Any, ...], workers: int, end: float
) -> Iterator[tuple[Job, list[Row] | BaseException, float]]:
    """Each job with its rows, or what went wrong, and its seconds, as they finish."""
    if workers < 2:
        for job in todo:
            if time.monotonic() < end:
                yield job, *timed(job, given)
        return
    threads = str(max(1, (os.cpu_count() or 1) // workers))
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = threads  # of the processes that begin now
    waiting, running = list(todo), dict[Future[Any], Job]()
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        while running or (waiting and time.monotonic() < end):
            while waiting and len(running) < workers and time.monotonic() < end:
                job = waiting.pop(0)
                running[pool.submit(timed, job, given)] = job
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                job, error = running.pop(future), future.exception()
                yield (job, error, 0.0) if error else (job, *future.result())


def timed(job: Job, given: tuple[Any, ...]) -> tuple[list[Row] | Exception, float]:
    began = time.perf_counter()
    try:
        return job.rows(*given), time.perf_counter() - began
    except Exception as error:  # another job may still go well
        return RuntimeError(f"{type(error).__name__}: {error}"), time.perf_counter() - began


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="*", help=", ".join(DATASETS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--encoders", nargs="*", default=["rocket"])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=[""], help="of mitdb")
    parser.add_argument("--folds", action="store_true", help="of mitdb, beside its fixed split")
    parser.add_argument("--rivals", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--trials", type=int, help="seeds of each trial; the test stays unread")
    parser.add_argument("--self-training", action="store_true", help="on few labels, only this")
    parser.add_argument("--auto", action="store_true", help='what encoder="auto" takes')
    parser.add_argument("--npz", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--held", type=Path, default=RESULTS)
    parser.add_argument("--minutes", type=float, default=1e6)
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--together", type=int, default=1, help="seeds trained at once")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="bfloat16")
    parser.add_argument("--tiny", action="store_true", help="one epoch, to see that it runs")
    parser.add_argument("--per-group", type=int, help="only so many windows of each group")
    parser.add_argument("--merge", type=Path, help="folder with results of another machine")
    parser.add_argument("--page", action="store_true")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    results = Results(options.out, options.held, options)
    found = [list(jobs(dataset, options)) for dataset in options.datasets]
    todo = [job for of_one in found for job in of_one if results.lacks(job)]
    todo.sort(key=lambda job: (job.seeds[0], job.split != "fixed"))  # over all datasets
    if options.merge:
        results.merge(options.merge)
    failed = work(todo, results, options) if todo else 0
    if options.page:
        write_page()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
