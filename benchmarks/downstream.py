"""What an encoder is worth for each task the paper names: prediction, outliers, search, labels.

    expclr train uci_har --out runs/har --max_epochs 8
    python benchmarks/downstream.py uci_har --model ExpCLR=runs/har --note "TCN, 8 epochs"
    python benchmarks/downstream.py uci_har --embeddings ExpCLR=Z.npz   # keys Z_train, Z_test
    python benchmarks/downstream.py --docs   # only write the tables of docs/evaluation.md again

Several models of one name with commas between (seeds) give a mean and a standard error. Expert
features, raw windows and untrained encoders of the same architecture go through the same
measurements. Nothing is chosen on test windows; they are read once, here.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from expclr import RepresentationLearner, Windows, __version__, load_dataset
from expclr.errors import DataError
from expclr.evaluation import bilipschitz, certify, outlier_scores
from expclr.evaluation.outliers import leave_one_class_out
from expclr.evaluation.retrieval import certify_search
from expclr.evaluation.summary import Mean
from expclr.experiments import worth
from expclr.features import FeatureSpace
from expclr.storage import write_json, write_text

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "evaluation.md"
UNTRAINED = 3  # seeds of untrained encoders
LEVEL = 0.05  # of the p-values

Array = NDArray[Any]
Pair = tuple[Array, Array]


def tasks(Z: Pair, F: Pair, train: Windows, test: Windows) -> dict[str, Any]:
    """Prediction, search and outliers on one pair of embeddings."""
    assert train.y is not None
    assert test.y is not None
    record = worth.task_records(Z, F, train, test)
    record["probes"] = worth.probe_records(Z, train, test)
    record["outliers_lof"] = leave_one_class_out(Z[0], train.y, Z[1], test.y, method="lof")
    record["p_values"] = p_values(Z, train, test)
    return record


def p_values(Z: Pair, train: Windows, test: Windows) -> dict[str, float]:
    """Shares of test windows with p <= .05, with each class in turn unknown to train."""
    assert train.y is not None
    assert test.y is not None
    false, found = [], []
    for left_out in test.classes:
        normal = (train.y >= 0) & (train.y != left_out)
        group = None if train.group is None else train.group[normal]
        scores = outlier_scores(Z[0][normal], Z[1][test.y >= 0], group=group)
        low, strange = scores.p_values <= LEVEL, test.y[test.y >= 0] == left_out
        false.append(low[~strange].mean())
        found.append(low[strange].mean())
    return {"level": LEVEL, "normal": float(np.mean(false)), "left_out": float(np.mean(found))}


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


def inputs(
    options: argparse.Namespace, train: Windows, test: Windows
) -> dict[str, list[Callable[[], Pair]]]:
    """From each name to how its embeddings are made, one function a run."""
    found: dict[str, list[Callable[[], Pair]]] = {}
    for name, path in _named(options.model):
        found.setdefault(name, []).append(lambda path=path: _embedded(path, train, test))
    for name, path in _named(options.embeddings):
        found.setdefault(name, []).append(lambda path=path: _loaded(path, train, test))
    for seed in range(UNTRAINED):
        found.setdefault("random encoder", []).append(
            lambda seed=seed: _untrained(options.model, seed, train, test)
        )
    assert train.F is not None
    assert test.F is not None
    features = worth.fill_gaps(train.F, test.F)
    found["expert features"] = [lambda: features]
    flat = train.X.reshape(len(train), -1), test.X.reshape(len(test), -1)
    found["raw windows"] = [lambda: flat]
    return found


def _named(words: list[str]) -> list[tuple[str, str]]:
    pairs = [word.partition("=") for word in words]
    return [(name, path) for name, _, paths in pairs for path in paths.split(",")]


def _embedded(path: str, train: Windows, test: Windows) -> Pair:
    learner = RepresentationLearner.load(path)
    return learner.transform(train), learner.transform(test)


def _loaded(path: str, train: Windows, test: Windows) -> Pair:
    with np.load(path, allow_pickle=False) as arrays:
        Z = arrays["Z_train"], arrays["Z_test"]
    if (len(Z[0]), len(Z[1])) != (len(train), len(test)):
        sys.exit(f"{path}: {len(Z[0])} and {len(Z[1])} rows for {len(train)}, {len(test)} windows")
    return Z


def _untrained(models: list[str], seed: int, train: Windows, test: Windows) -> Pair:
    """An encoder like that of the first model, as it was before training."""
    named = _named(models)
    settings = {}
    if named:
        config = RepresentationLearner.load(named[0][1]).config
        settings = {"encoder": config.encoder, "encoder_params": config.encoder_params}
    learner = RepresentationLearner("random", **settings, random_state=seed).fit(train)
    return learner.transform(train), learner.transform(test)


def run(options: argparse.Namespace) -> dict[str, Any]:
    started = time.perf_counter()
    train, test = load_dataset(options.data)
    space = FeatureSpace().fit(train.F)
    F = space.transform(train.F), space.transform(test.F)
    result = _begun(options, train, test)
    trained = {name for name, _ in _named(options.model + options.embeddings)}
    for name, runs in inputs(options, train, test).items():
        records = result["encoders"].setdefault(name, {"runs": [{} for _ in runs]})["runs"]
        for number, make in enumerate(tqdm(runs, desc=name, disable=None)):
            first, Z = number == 0, make()
            if "tasks" in options.parts:
                records[number] |= tasks(Z, F, train, test)
            if "distances" in options.parts and first and name in trained:
                records[number]["distances"] = distances(Z, F, train, test)
            if "labels" in options.parts and first and name != "raw windows":
                records[number]["suggestions"] = worth.suggestion_records(Z, train, test)
    result["seconds"] = round(result["seconds"] + time.perf_counter() - started, 1)
    return result


def _begun(options: argparse.Namespace, train: Windows, test: Windows) -> dict[str, Any]:
    """What earlier parts measured of the same models on the same windows, or nothing yet."""
    fresh: dict[str, Any] = {
        "data": options.data,
        "train": {"windows": len(train), "fingerprint": train.fingerprint()},
        "test": {"windows": len(test), "fingerprint": test.fingerprint()},
        "class_names": list(test.class_names),
        "test_groups": 0 if test.group is None else len(np.unique(test.group)),
        "model": options.note,
        "version": __version__,
        "machine": {"cores": os.cpu_count(), "python": platform.python_version()},
    }
    path = _result(options.data)
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    same = all(known.get(name) == value for name, value in fresh.items())
    return known if same else fresh | {"encoders": {}, "seconds": 0.0}


def _result(data: str) -> Path:
    return HERE / "results" / f"downstream_{data}.json"


def _values(encoder: Mapping[str, Any], *path: str) -> list[float]:
    values = []
    for record in encoder["runs"]:
        for key in path:
            record = record.get(key, {}) if isinstance(record, Mapping) else {}
        if isinstance(record, int | float):
            values.append(float(record))
    return values


def _cell(encoder: Mapping[str, Any], *path: str) -> str:
    values = _values(encoder, *path)
    return f"{Mean.of(values):.3f}" if values else "–"


def _rows(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)


def prediction_table(result: Mapping[str, Any]) -> str:
    probes = {
        "linear": "linear, standardised",
        "linear_raw": "linear, raw",
        "knn1": "1-NN, standardised",
        "knn1_raw": "1-NN, raw",
    }
    rows = []
    for name, encoder in result["encoders"].items():
        interval = encoder["runs"][0]["probes"]["linear"].get("intervals", {}).get("accuracy")
        spread = f"{interval[0]:.3f} to {interval[1]:.3f}" if interval else "–"
        f1 = _cell(encoder, "probes", "linear", "macro_f1")
        rows.append([name, *(_cell(encoder, "probes", p, "accuracy") for p in probes), f1, spread])
    head = ["input", *probes.values(), "macro-F1 (linear, standardised)", "95 % over test groups"]
    return _rows(head, rows)


def outlier_table(result: Mapping[str, Any]) -> str:
    columns = {
        "AUROC, k-NN distance": ("outliers", "mean"),
        "AUROC, local outlier factor": ("outliers_lof", "mean"),
        "normal windows with p ≤ .05": ("p_values", "normal"),
        "left-out windows with p ≤ .05": ("p_values", "left_out"),
    }
    rows = [[n, *(_cell(e, *p) for p in columns.values())] for n, e in result["encoders"].items()]
    return _rows(["input", *columns], rows)


def search_table(result: Mapping[str, Any]) -> str:
    columns = {"precision at 10": "precision", "of the 10 nearest by features": "agreement"}
    rows = [
        [n, *(_cell(e, "search", p) for p in columns.values())]
        for n, e in result["encoders"].items()
    ]
    first = next(iter(result["encoders"].values()))
    chance = [_cell(first, "search", f"{p}_by_chance") for p in columns.values()]
    return _rows(["input", *columns], [*rows, ["by chance", *chance]])


def suggestion_table(result: Mapping[str, Any]) -> str:
    rows, budgets = [], []
    for name, encoder in result["encoders"].items():
        records = encoder["runs"][0].get("suggestions", [])
        for chooser in dict.fromkeys(r["chooser"] for r in records):
            chosen = [r for r in records if r["chooser"] == chooser]
            budgets = [str(r["labels"]) for r in chosen]
            cells = [f"{r['accuracy']['mean']:.3f} ± {r['accuracy']['error']:.3f}" for r in chosen]
            rows.append([f"{name}, {chooser}", *cells])
    return _rows(["labels", *budgets], rows)


def certificate_table(result: Mapping[str, Any]) -> str:
    rows = []
    for name, encoder in result["encoders"].items():
        found = encoder["runs"][0].get("distances", {}).get("certificates", {})
        for kind, record in found.items():
            upper = "∞" if record["upper"] is None else f"{record['upper']:.3g}"
            limits = f"{record['lower']:.3g} to {upper}"
            miss = f"{record['miss_probability']:.4f}"
            rows.append([name, kind, limits, miss, str(record["n_pairs"])])
    head = ["encoder", "certificate", "feature / embedding distance", "wrong in at most", "pairs"]
    return _rows(head, rows)


TABLES = {
    "prediction": prediction_table,
    "outliers": outlier_table,
    "search": search_table,
    "labels": suggestion_table,
    "certificates": certificate_table,
}


def write_docs() -> None:
    """Replace what stands between the page's markers with the tables of the result files."""
    text = PAGE.read_text(encoding="utf-8")
    for path in sorted((HERE / "results").glob("downstream_*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        parts = {name: table(result) for name, table in TABLES.items()}
        parts["model"] = f"{result['model']}."
        for name, table in parts.items():
            begin, end = f"<!-- {result['data']}: {name} -->", "<!-- end -->"
            if begin in text:
                before, _, rest = text.partition(begin)
                text = f"{before}{begin}\n{table}\n{end}{rest.partition(end)[2]}"
    write_text(PAGE, text)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="?", help="a dataset's name")
    parser.add_argument("--model", nargs="*", default=[], metavar="NAME=FOLDER[,FOLDER]")
    parser.add_argument("--embeddings", nargs="*", default=[], metavar="NAME=FILE.npz[,FILE.npz]")
    parser.add_argument("--note", default="", help="what the models are, in words")
    parser.add_argument(
        "--parts",
        nargs="+",
        choices=("tasks", "distances", "labels"),
        default=["tasks", "distances", "labels"],
        help="what to measure now, beside what was measured of the same models before",
    )
    parser.add_argument("--docs", action="store_true", help="write the page's tables again")
    options = parser.parse_args()
    if options.data:
        write_json(_result(options.data), run(options))
    if options.docs or options.data:
        write_docs()


if __name__ == "__main__":
    main()
