"""Encoder and objective beside what a user would pick instead, on the same labels.

    python benchmarks/combination.py uci_har                          # the test windows, once
    python benchmarks/combination.py uci_har --trials 3               # choices, inside of train
    python benchmarks/combination.py mitdb --npz FOLDER --encoders rocket tcn hybrid --seeds 5
    python benchmarks/combination.py --page                           # the section of the docs

``FOLDER/mitdb.npz`` is written by ``python -m expclr.experiments.export FOLDER mitdb``: with it the
program runs on a machine without the raw data, on its GPU if there is one.

Labels: stratified, nested shares (``Windows.label_fraction``), of each seed the same for every
system. A system with labels makes round(8 / sqrt(share)) passes over the labelled windows, ours
and its rivals alike. The random convolutions of a seed are the same in our encoder and under
ridge and logistic regression. The strength of ridge is chosen on groups held out of the labelled
windows; logistic regression is that of ``linear_probe``. Rows that say "needs features" measure
the expert features of the test windows, too. Trials train on train without a fifth of its groups
and read that fifth. Seconds are of one thread, wall clock; the machine was shared.
"""

from __future__ import annotations

import argparse
import inspect
import json
import time
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import machine
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.metrics import accuracy_score, f1_score
from tqdm import tqdm

from expclr import RepresentationLearner, Windows, __version__
from expclr.encoders import Rocket
from expclr.evaluation import knn_probe, linear_probe
from expclr.experiments.study_data import Study, open_study
from expclr.features import FeatureSpace
from expclr.methods.expclr_plus import ExpCLRPlus
from expclr.storage import write_json, write_text

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "choices.md"
DATASETS = ("uci_har", "hydraulic", "machine", "mitdb")
SHARES = (0.05, 0.2, 1.0)
ALPHAS = (1e2, 1e3, 1e4)
PASSES = 8  # over all labels; over a share of them 1 / sqrt(share) times as many
TWO_CLASSES = {"mitdb": ("AFIB", "N")}

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

Array = NDArray[Any]
Row = dict[str, Any]


def scores(y: Array, predicted: Array) -> Row:
    return {
        "accuracy": round(float(accuracy_score(y, predicted)), 4),
        "macro_f1": round(float(f1_score(y, predicted, average="macro")), 4),
    }


def probed(Z: Array, known: Array, Z_test: Array, test: Windows, probe: Any = linear_probe) -> Row:
    found = probe(Z, known, Z_test, test.y)
    return {name: round(float(found[name]), 4) for name in ("accuracy", "macro_f1")}


def unlabelled(
    train: Windows, test: Windows, settings: dict[str, Any]
) -> tuple[RepresentationLearner, list[Row]]:
    """Train without labels; read with all of them and with shares of them."""
    began = time.perf_counter()
    learner = RepresentationLearner("expclr_plus", **settings).fit(train.with_(y=None))
    seconds = round(time.perf_counter() - began, 1)
    Z, Z_test, seed = learner.transform(train), learner.transform(test), learner.random_state
    rows = [
        {"labels": 1.0, "probe": "linear", "seconds": seconds} | probed(Z, train.y, Z_test, test),
        {"labels": 1.0, "probe": "1-NN", "seconds": seconds}
        | probed(Z, train.y, Z_test, test, knn_probe),
    ]
    for share in SHARES[:-1]:
        known = train.label_fraction(share, random_state=seed).y
        rows.append({"labels": share, "probe": "linear"} | probed(Z, known, Z_test, test))
    return learner, rows


def passes(share: float) -> int:
    return round(PASSES * share**-0.5)


def finetuned(learner: RepresentationLearner, few: Windows, test: Windows, share: float) -> Row:
    began = time.perf_counter()
    tuned = deepcopy(learner).set_params(finetune_epochs=passes(share)).finetune(few)
    seconds = round(time.perf_counter() - began, 1)
    assert test.y is not None
    return {"labels": share, "seconds": seconds} | scores(test.y, tuned.predict(test))


def cross_entropy(few: Windows, test: Windows, share: float, settings: dict[str, Any]) -> Row:
    began = time.perf_counter()
    learner = RepresentationLearner("cross_entropy", **settings)
    learner.set_params(max_epochs=passes(share)).fit(few.labelled())
    seconds = round(time.perf_counter() - began, 1)
    assert test.y is not None
    return {"labels": share, "seconds": seconds} | scores(test.y, learner.predict(test))


def ridge(A: Array, few: Windows, A_test: Array) -> Array:
    """Classes by ridge regression in its dual form; the strength by groups held out."""
    rows = np.flatnonzero(few.y >= 0)
    y, group = few.y[rows], few.group[rows]
    mean, std = A[rows].mean(0), A[rows].std(0)
    scaled = [(part - mean) / np.where(std > 1e-6, std, 1) for part in (A[rows], A_test)]
    K, K_test = scaled[0] @ scaled[0].T, scaled[1] @ scaled[0].T
    held = np.isin(group, np.random.default_rng(0).permutation(np.unique(group))[::4])
    if 0 < held.sum() < len(held) and len(np.unique(y[~held])) == len(np.unique(y)):
        right = [
            (_ridge(K[~held][:, ~held], y[~held], K[held][:, ~held], a) == y[held]).mean()
            for a in ALPHAS
        ]
        return _ridge(K, y, K_test, ALPHAS[int(np.argmax(right))])
    return _ridge(K, y, K_test, ALPHAS[1])


def _ridge(K: Array, y: Array, K_test: Array, alpha: float) -> Array:
    classes = np.unique(y)
    targets = (y[:, None] == classes) * 2.0 - 1
    centre = targets.mean(0)
    solved = cho_solve(cho_factor(K + alpha * np.eye(len(K), dtype=K.dtype)), targets - centre)
    return classes[(K_test @ solved + centre).argmax(1)]


def rivals(
    A: tuple[Array, Array],
    F: tuple[Array, Array],
    train: Windows,
    test: Windows,
    seed: int,
    shares: tuple[float, ...],
) -> list[Row]:
    """What the random convolutions and the expert features give by themselves."""
    weight = np.sqrt(A[0].shape[1] / F[0].shape[1])  # as much variance as the convolutions
    both = [np.hstack([a, weight * f]) for a, f in zip(_standard(A), F, strict=True)]
    rows: list[Row] = []
    for share in shares:
        few = train.label_fraction(share, random_state=seed) if share < 1 else train
        of = {"labels": share, "seed": seed}
        for name, (Z, Z_test) in {"rocket": A, "rocket + features (needs features)": both}.items():
            row = scores(test.y, ridge(Z, few, Z_test))
            rows.append(of | {"system": f"{name}, ridge"} | row)
        row = probed(A[0], few.y, A[1], test)
        rows.append(of | {"system": "rocket, logistic regression"} | row)
        row = probed(F[0], few.y, F[1], test)
        rows.append(of | {"system": "features, logistic regression (needs features)"} | row)
        if share == 1:
            row = probed(F[0], few.y, F[1], test, knn_probe) | {"probe": "1-NN"}
            rows.append(of | {"system": "features (needs features)"} | row)
    return rows


def _standard(A: tuple[Array, Array]) -> list[Array]:
    mean, std = A[0].mean(0), A[0].std(0)
    return [(part - mean) / np.where(std > 1e-6, std, 1) for part in A]


def measured_features(train: Windows, test: Windows) -> tuple[Array, Array]:
    space = FeatureSpace().fit(train.F)
    return tuple(np.nan_to_num(space.transform(w.F), nan=0.0) for w in (train, test))


def run(study: Study, seed: int, options: argparse.Namespace) -> list[Row]:
    """Every system on one seed."""
    train, test = study.train, study.test
    rows: list[Row] = []
    for encoder in options.encoders:
        settings = {"encoder": encoder, "random_state": seed, "device": options.device}
        settings["precision"] = options.precision
        learner, found = unlabelled(train, test, settings)
        rows += [{"system": f"ours ({encoder}), U", "seed": seed} | row for row in found]
        for share in SHARES:
            few = train.label_fraction(share, random_state=seed) if share < 1 else train
            row = finetuned(learner, few, test, share)
            rows.append({"system": f"ours ({encoder}), SS", "seed": seed} | row)
            row = cross_entropy(few, test, share, settings)
            rows.append({"system": f"cross-entropy ({encoder})", "seed": seed} | row)
        if encoder == "rocket":
            device = torch.device("cpu")
            fixed = [learner.fixed_.of(learner.encoder_, w, device=device) for w in (train, test)]
            A = tuple(f.float().numpy() for f in fixed)
            shares = SHARES if seed < options.dear else SHARES[:-1]
            rows += rivals(A, measured_features(train, test), train, test, seed, shares)
    return rows


def tried(study: Study, name: str, seed: int, options: argparse.Namespace) -> list[Row]:
    """A change of the default, trained on train without some groups and read on these."""
    train, held = study.parts("validation")
    rows = []
    for encoder in options.encoders:
        settings = {"encoder": encoder, "random_state": seed, "device": options.device}
        settings |= {"precision": options.precision}
        _, found = unlabelled(train, held, settings | TRIALS[name])
        rows += [{"trial": name, "encoder": encoder, "seed": seed} | row for row in found]
    return rows


def two_classes(windows: Windows, names: tuple[str, ...]) -> Windows:
    codes = [windows.class_names.index(name) for name in names]
    kept = windows.subset(np.flatnonzero(np.isin(windows.y, codes)))
    return kept.with_(y=np.searchsorted(np.sort(codes), kept.y), class_names=tuple(sorted(names)))


def opened(name: str, npz: Path | None) -> Study:
    study = open_study(name, npz=npz)
    if name not in TWO_CLASSES:
        return study
    parts = [two_classes(w, TWO_CLASSES[name]) for w in (study.train, study.test)]
    return Study(study.name, *parts)


def mean_and_error(values: list[float]) -> str:
    """In percent, with the standard error of the mean where there is one."""
    mean = f"{100 * np.mean(values):.1f}"
    if len(values) < 2:
        return mean
    return f"{mean} ± {100 * np.std(values, ddof=1) / len(values) ** 0.5:.1f}"


def table(rows: list[Row], key: str, metric: str) -> list[str]:
    """Systems by columns: 1-NN with all labels, then linear or own classifier by share."""
    columns = [("1-NN", 1.0), *(("", share) for share in SHARES)]
    heads = ["1-NN, all labels", *(f"{share:.0%} labels" for share in SHARES)]
    lines = [f"| {key} | {' | '.join(heads)} |", "| --- |" + " ---: |" * len(heads)]
    for name in dict.fromkeys(row[key] for row in rows):
        cells = []
        for probe, share in columns:
            values = [
                row[metric]
                for row in rows
                if row[key] == name
                and row["labels"] == share
                and (row.get("probe") == "1-NN") == bool(probe)
            ]
            cells.append(mean_and_error(values) if values else "")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


ABOUT = """## Encoder and objective

`expclr_plus` on encoder `rocket`, both with their default settings, beside what a user would pick
instead, on the same windows, label subsets and seeds. U: trained without labels, read by a linear
probe fitted on the share of labels that the column names. SS: then fine-tuned on that share.
Everything else learns from that share alone; what needs features measures them on test windows as
well. Mean ± standard error over seeds. How it is measured stands in `benchmarks/combination.py`,
which also runs the TCN and the hybrid, on a GPU."""


def section() -> str:
    """The section of docs/choices.md, of all result files that are there."""
    lines = [ABOUT, ""]
    for name in DATASETS:
        path = RESULTS / f"combination_{name}.json"
        if path.exists():
            found = json.loads(path.read_text(encoding="utf-8"))
            for part in ("test", "trials"):
                lines += part_lines(name, part, found[part]) if part in found else []
    return "\n".join(lines)


def part_lines(name: str, part: str, found: dict[str, Any]) -> list[str]:
    """The table of one part of a result file, how it was made and how long it took."""
    metric, what = ("macro_f1", "macro-F1") if name in TWO_CLASSES else ("accuracy", "accuracy")
    rows, key = found["rows"], "system" if part == "test" else "trial"
    read = "test windows" if part == "test" else "groups held out of train, encoder rocket"
    seeds = len({row["seed"] for row in rows})
    lines = [f"**{name}**, {read}: {what} in %, {seeds} seed{'s' if seeds > 1 else ''}.", ""]
    lines += [*table(rows, key, metric), ""]
    if part == "test":
        lines += [best_of(rows, metric), ""]
        lines += [seconds_of(rows, found["machine"]), ""]
    lines += ["```bash", f"$ {found['machine']['command']}", "```", ""]
    return lines


def best_of(rows: list[Row], metric: str) -> str:
    """Who is ahead at each share of labels, of those that need no features of test windows."""
    told = []
    for share in SHARES:
        found: dict[str, list[float]] = {}
        for row in rows:
            free = "needs features" not in row["system"] and row.get("probe") != "1-NN"
            if free and row["labels"] == share:
                found.setdefault(row["system"], []).append(row[metric])
        best = max(found, key=lambda name: float(np.mean(found[name])))
        told.append(f"{best} at {share:.0%} ({mean_and_error(found[best])})")
    return f"Ahead without features of test windows: {', '.join(told)}."


def seconds_of(rows: list[Row], machine: Row) -> str:
    """Mean seconds of each training, on the machine of the result file."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if "seconds" in row and row.get("probe") != "1-NN":
            share = "" if "probe" in row else f" on {row['labels']:.0%} of the labels"
            found.setdefault(f"{row['system']}{share}", []).append(row["seconds"])
    told = ", ".join(f"{name} {np.mean(values):.0f}" for name, values in found.items())
    where = f"{machine['device']}, {machine['threads']} thread(s), load {machine['load']}"
    return f"Seconds of training by the clock, on {where}: {told}."


def write_page() -> None:
    """Replace the section where it stands, or put it at the end of the page."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else "# Choices\n"
    head, found, rest = text.partition("## Encoder and objective")
    after = rest.find("\n## ") if found else -1
    tail = rest[after + 1 :] if after >= 0 else ""
    write_text(PAGE, f"{head.rstrip()}\n\n{section().rstrip()}\n" + (f"\n{tail}" if tail else ""))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", nargs="?", choices=DATASETS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--encoders", nargs="+", default=["rocket"])
    parser.add_argument("--dear", type=int, default=5, help="seeds of rivals with all labels")
    parser.add_argument("--trials", type=int, help="seeds of each trial; the test stays unread")
    parser.add_argument("--npz", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="bfloat16")
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    if options.dataset:
        keep(options)
    if options.page:
        write_page()


def keep(options: argparse.Namespace) -> None:
    """Measure what the result file does not hold yet, and write after every seed."""
    study = opened(options.dataset, options.npz)
    path = RESULTS / f"combination_{options.dataset}.json"
    part = "trials" if options.trials else "test"
    names = list(TRIALS) if options.trials else ["all systems"]
    jobs = [(s, name) for s in range(options.trials or options.seeds) for name in names]
    for seed, name in tqdm(jobs, part, disable=None):
        found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        rows = found.get(part, {}).get("rows", [])
        if any(row["seed"] == seed and row.get("trial", name) == name for row in rows):
            continue
        one = options.trials
        new = tried(study, name, seed, options) if one else run(study, seed, options)
        found[part] = {
            "machine": machine(),
            "version": __version__,
            "data": study.fingerprint,
            "split": study.split("validation" if options.trials else "test"),
            "precision": options.precision,
            "defaults": defaults(),
            "rows": rows + new,
        }
        write_json(path, found)


def defaults() -> dict[str, Any]:
    """Of the encoder and the method, as they were when this was measured."""
    found = {}
    for kind in (Rocket, ExpCLRPlus):
        for name, p in inspect.signature(kind).parameters.items():
            if p.default is not p.empty:
                found[f"{kind.__name__}.{name}"] = p.default
    return found | {f"Rocket.{name}": value for name, value in Rocket.suited.items()}


if __name__ == "__main__":
    main()
