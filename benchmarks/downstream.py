"""What an encoder is worth for each task the paper names: labels, outliers, search, suggestions.

    expclr train uci_har --out runs/har --method expclr_plus --encoder rocket
    python benchmarks/downstream.py uci_har --model expclr_plus=runs/har
    python benchmarks/downstream_tables.py   # writes the tables of docs/evaluation.md

Several models of one name with commas between (seeds) give a mean and a standard error. Expert
features, raw windows and untrained encoders of the same architecture go through the same
measurements. Nothing is chosen on test windows; they are read once, here. Passes over the
labelled windows in fine-tuning follow one rule for every share of the labels, written down before
any result and the same for the network that learns from labels alone.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from machine import machine
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from tqdm import tqdm

from expclr import RepresentationLearner, Windows, __version__, load_dataset
from expclr.errors import DataError
from expclr.evaluation import NeighbourIndex, bilipschitz, certify, label_efficiency
from expclr.evaluation.outliers import leave_one_class_out
from expclr.evaluation.retrieval import certify_search
from expclr.experiments import worth
from expclr.features import FeatureSpace
from expclr.storage import write_json

HERE = Path(__file__).parent
UNTRAINED = 3  # seeds of untrained encoders
SCALED = "expert features, standardised"
PASSES = 8  # over all labels; over a share of them 1 / sqrt(share) times as many

Array = NDArray[Any]
Pair = tuple[Array, Array]


def tasks(Z: Pair, F: Pair, train: Windows, test: Windows) -> dict[str, Any]:
    """Prediction, search and outliers on one pair of embeddings."""
    assert train.y is not None
    assert test.y is not None
    record = worth.task_records(Z, F, train, test)
    record["probes"] = worth.probe_records(Z, train, test)
    record["outliers_lof"] = leave_one_class_out(Z[0], train.y, Z[1], test.y, method="lof")
    return record


def unseen(learner: RepresentationLearner, train: Windows, test: Windows) -> dict[str, float]:
    """AUROC for each class in turn when the encoder too was trained without it, and the mean."""
    assert train.y is not None
    assert test.y is not None
    found = {}
    for left_out in tqdm(test.classes, desc="trained without a class", disable=None):
        known = train.subset(np.flatnonzero(train.y != left_out))
        fresh = RepresentationLearner.from_config(learner.config).fit(known)
        hits = NeighbourIndex(fresh.transform(known)).search(fresh.transform(test), k=10)
        found[str(left_out)] = float(roc_auc_score(test.y == left_out, hits.distance[:, -1]))
    return found | {"mean": float(np.mean(list(found.values())))}


def distances(Z: Pair, F: Pair, train: Windows, test: Windows) -> dict[str, Any]:
    """How well distances are kept, and every kind of certificate."""
    trained = bilipschitz(Z[0], F[0])
    limits = (trained.l_minus, trained.l_plus)
    kinds: dict[str, dict[str, Any]] = {
        "exact, range of the pairs": {},
        "exact, shortest for 99 %": {"holds": 0.99},
        "exact, training interval": {"interval": limits},
        "the paper, range of the pairs": {"method": "paper-validation"},
        "the paper, training interval": {"method": "paper-training", "interval": limits},
    }
    held = {"group": test.group, "group_train": train.group}
    certificates = {}
    for name, how in kinds.items():
        with suppress(DataError):  # fewer pairs than this bound needs
            certificates[name] = certify(Z[1], F[1], **held, **how)
    certificates["exact, a window and one of its 5 nearest"] = certify_search(
        Z[0], F[0], Z[1], F[1], k=5
    )
    found = worth.distance_record(bilipschitz(Z[1], F[1]))
    found["certificates"] = {name: c.record() for name, c in certificates.items()}
    return found


@dataclass(frozen=True)
class Input:
    """What goes through the measurements: embeddings, and who made them if it can learn more."""

    Z: Pair
    learner: RepresentationLearner | None = None


class Passes:
    """An estimator whose passes over the labelled windows follow from their number."""

    def __init__(self, learner: RepresentationLearner, n: int) -> None:
        self.learner, self.n = learner, n

    def finetune(self, windows: Windows) -> Passes:
        share = np.count_nonzero(np.asarray(windows.y) >= 0) / self.n
        self.learner.set_params(finetune_epochs=round(PASSES * share**-0.5)).finetune(windows)
        return self

    def transform(self, windows: Windows) -> Array:
        return self.learner.transform(windows)


def efficiency(given: Input, train: Windows, test: Windows, seed: int) -> dict[str, Any]:
    """Probes fitted on nested shares of the labels; frozen, and fine-tuned on each of them."""
    curves = {"frozen": label_efficiency(given.Z, train, test, probes=("linear",), seed=seed)}
    if given.learner is not None:
        n = len(train.labelled())
        learner = Passes(given.learner, n)
        curves["fine-tuned"] = label_efficiency(learner, train, test, seed=seed)
    return {name: worth.curve_record(curve) for name, curve in curves.items()}


def inputs(
    options: argparse.Namespace, F: Pair, train: Windows, test: Windows
) -> dict[str, list[Callable[[], Input]]]:
    """From each name to how its embeddings are made, one function a run."""
    found: dict[str, list[Callable[[], Input]]] = {}
    for name, path in _named(options.model):
        found.setdefault(name, []).append(lambda path=path: _embedded(path, train, test))
    for seed in range(UNTRAINED):
        found.setdefault("random encoder", []).append(
            lambda seed=seed: _untrained(options.model, seed, train, test)
        )
    assert train.F is not None
    assert test.F is not None
    features = worth.fill_gaps(train.F, test.F)
    found["expert features"] = [lambda: Input(features)]
    scaled = worth.fill_gaps(*F)
    found[SCALED] = [lambda: Input(scaled)]
    flat = train.X.reshape(len(train), -1), test.X.reshape(len(test), -1)
    found["raw windows"] = [lambda: Input(flat)]
    return found


def _named(words: list[str]) -> list[tuple[str, str]]:
    pairs = [word.partition("=") for word in words]
    return [(name, path) for name, _, paths in pairs for path in paths.split(",")]


def _embedded(path: str, train: Windows, test: Windows) -> Input:
    learner = RepresentationLearner.load(path)
    return Input((learner.transform(train), learner.transform(test)), learner)


def _untrained(models: list[str], seed: int, train: Windows, test: Windows) -> Input:
    """An encoder like that of the first model, as it was before training."""
    config = RepresentationLearner.load(_named(models)[0][1]).config
    config = replace(config, method="random", method_params={}, random_state=seed)
    config = replace(config, finetune_method="cross_entropy")
    learner = RepresentationLearner.from_config(config).fit(train)
    return Input((learner.transform(train), learner.transform(test)), learner)


def run(options: argparse.Namespace) -> None:
    train, test = load_dataset(options.data)
    space = FeatureSpace().fit(train.F)
    F = space.transform(train.F), space.transform(test.F)
    result = _begun(options, train, test)
    for name, runs in inputs(options, F, train, test).items():
        records = result["encoders"].setdefault(name, {"runs": []})["runs"]
        records += [{} for _ in range(len(runs) - len(records))]
        for number, make in enumerate(tqdm(runs, desc=name, disable=None)):
            missing = [p for p in _parts(options, name, number) if MARK[p] not in records[number]]
            if missing:
                _measure(records[number], make(), missing, F, train, test, number)
                write_json(_result(options.data), result)


def _measure(
    record: dict[str, Any],
    given: Input,
    parts: list[str],
    F: Pair,
    train: Windows,
    test: Windows,
    seed: int,
) -> None:
    """Add what the parts find to the record of a run, and what they cost."""
    if given.learner is not None:
        record["settings"] = asdict(given.learner.config)
    for part in parts:
        started = time.process_time()
        record |= _measured(part, given, F, train, test, seed)
        seconds = round(time.process_time() - started, 1)
        record["cpu_seconds"] = record.get("cpu_seconds", {}) | {part: seconds}


MARK = {
    "tasks": "probes",
    "efficiency": "efficiency",
    "distances": "distances",
    "labels": "suggestions",
    "unseen": "outliers_unseen",
}  # what a part leaves in a record


def _parts(options: argparse.Namespace, name: str, number: int) -> list[str]:
    """What is measured of this run: some of it of the first one only."""
    trained = name in {model for model, _ in _named(options.model)}
    once = {"distances": trained, "unseen": trained, "labels": name != "raw windows"}
    if name == SCALED:  # a probe that standardises reads the same from both
        once["efficiency"] = False
    return [p for p in options.parts if once.get(p, True) and (number == 0 or p not in once)]


def _measured(
    part: str, given: Input, F: Pair, train: Windows, test: Windows, seed: int
) -> dict[str, Any]:
    if part == "tasks":
        return tasks(given.Z, F, train, test)
    if part == "efficiency":
        return {"efficiency": efficiency(given, train, test, seed)}
    if part == "distances":
        return {"distances": distances(given.Z, F, train, test)}
    if part == "unseen":
        assert given.learner is not None
        return {"outliers_unseen": unseen(given.learner, train, test)}
    return {"suggestions": worth.suggestion_records(given.Z, train, test)}


def _begun(options: argparse.Namespace, train: Windows, test: Windows) -> dict[str, Any]:
    """What was measured before on the same windows with the same version, or nothing yet."""
    fresh: dict[str, Any] = {
        "data": options.data,
        "train": {"windows": len(train), "fingerprint": train.fingerprint()},
        "test": {"windows": len(test), "fingerprint": test.fingerprint()},
        "class_names": list(test.class_names),
        "test_groups": 0 if test.group is None else len(np.unique(test.group)),
        "version": __version__,
    }
    path = _result(options.data)
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if any(known.get(name) != value for name, value in fresh.items()):
        known = fresh | {"encoders": {}}
    return known | {"machine": machine(), "passes_over_all_labels": PASSES}


def _result(data: str) -> Path:
    return HERE / "results" / f"downstream_{data}.json"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", help="a dataset's name")
    parser.add_argument("--model", nargs="+", required=True, metavar="NAME=FOLDER[,FOLDER]")
    parser.add_argument(
        "--parts",
        nargs="+",
        choices=list(MARK),
        default=list(MARK),
        help="what to measure, where it was not measured before",
    )
    run(parser.parse_args())


if __name__ == "__main__":
    main()
