"""What the trainings of feature_space.py say: means, gains, the choice, and the page about it.

The score of a training is the mean of linear macro F1, 1-NN macro F1 and neighbour agreement. A
candidate replaces the standard space with the batch's maximum only if its mean gain in score over
the datasets exceeds two standard errors (over folds) and it loses more than 0.01 on none of them;
of several the one that gains most. It takes three folds at least. The rule was fixed before any
run.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["MEASURES", "markdown", "page", "summary"]

TODAY = ("standard", "batch")
MEASURES = ("linear_f1", "nearest_f1", "r2", "agreement")
WORST_LOSS = 0.01
FEWEST_FOLDS = 3
NEXT = "## Encoder and objective"  # the part of the page that comes after this one

Candidate = tuple[str, str]  # space, reference
Runs = dict[tuple[str, Candidate], dict[int, dict[str, Any]]]  # dataset, candidate: fold: run


def summary(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Means of each candidate on each dataset, gains over today's default, the choice."""
    found: Runs = {}
    for run in runs:
        key = run["dataset"], (run["space"], run["reference"])
        found.setdefault(key, {})[run["fold"]] = run
    datasets = list(dict.fromkeys(dataset for dataset, _ in found))
    candidates = list(dict.fromkeys(candidate for _, candidate in found))
    every = itertools.product(datasets, candidates)
    gains = [gain(found, datasets, candidate) for candidate in candidates]
    complete = [g for g in gains if g is not None]
    return {
        "rows": [averages(*key, list(found[key].values())) for key in every if key in found],
        "gains": sorted(complete, key=lambda g: -g["mean"]),
        "choice": choice(complete),
    }


def averages(dataset: str, candidate: Candidate, runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Mean and standard error of what was measured."""
    row: dict[str, Any] = dict(
        zip(("dataset", "space", "reference"), (dataset, *candidate), strict=True)
    )
    for name in MEASURES:
        values = [run[name] for run in runs]
        row |= {name: float(np.mean(values)), f"{name}_se": standard_error(values)}
    return row | {"folds": len(runs)}


def gain(found: Runs, datasets: Sequence[str], candidate: Candidate) -> dict[str, Any] | None:
    """The difference of scores to today's default, fold by fold, if there is one everywhere."""
    differences = [
        [
            score(run) - score(today[fold])
            for fold, run in found.get((dataset, candidate), {}).items()
            if fold in (today := found.get((dataset, TODAY), {}))
        ]
        for dataset in datasets
    ]
    if not all(differences):
        return None
    means = [float(np.mean(values)) for values in differences]
    errors = [standard_error(values) for values in differences]
    return {
        "space": candidate[0],
        "reference": candidate[1],
        "mean": float(np.mean(means)),
        "se": float(np.sqrt(np.sum(np.square(errors))) / len(errors)),
        "by_dataset": dict(zip(datasets, means, strict=True)),
        "folds": min(map(len, differences)),
    }


def choice(gains: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The default by the rule."""
    better = [
        g
        for g in gains
        if g["folds"] >= FEWEST_FOLDS
        and g["mean"] > 2 * g["se"]
        and min(g["by_dataset"].values()) >= -WORST_LOSS
    ]
    if not better:
        return dict(zip(("space", "reference"), TODAY, strict=True))
    best = max(better, key=lambda g: g["mean"])
    return {"space": best["space"], "reference": best["reference"]}


def score(run: dict[str, Any]) -> float:
    return float(np.mean([run[name] for name in ("linear_f1", "nearest_f1", "agreement")]))


def standard_error(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def page(text: str, result: dict[str, Any]) -> str:
    """The page with this part of it written anew; what follows it stays."""
    _, heading, rest = text.partition(NEXT)
    return markdown(result) + ("\n" + heading + rest if heading else "")


def markdown(result: dict[str, Any]) -> str:
    """This part of the page; its numbers come from the result alone."""
    found = result["summary"]
    space, reference = found["choice"].values()
    parts = [
        "# Choices by evidence",
        "## Feature space",
        "Which scaling expert features get, and at which distance similarity ends, decides what "
        "an encoder learns. This part is written by `benchmarks/feature_space.py` from "
        "`benchmarks/results/feature_space.json`. Test data were never opened for it.",
        about(result["runs"]),
        *(__doc__ or "").strip().split("\n\n")[1:],
        f"**Default by this rule: space `{space}`, reference `{reference}`.** The paper's raw "
        'distance is `ExpCLR(feature_space="raw")`.',
        "Gain in score over the standard space with the batch's maximum (mean ± standard error):",
        "\n".join(gain_lines(found["gains"])),
        "Mean and standard error over folds:",
        "\n".join(row_lines(found["rows"])),
    ]
    return "\n\n".join(parts) + "\n"


def about(runs: Sequence[dict[str, Any]]) -> str:
    """What was run."""
    first = runs[0]
    encoder = ", ".join(f"{name} {value}" for name, value in first["encoder"].items())
    minutes = sum(run["seconds"] for run in runs) / 60
    return (
        f"The training part of each dataset is shared out into {first['folds']} folds of whole "
        "groups (people, machines). In every fold ExpCLR is trained with each candidate on the "
        "same windows, with the same network, steps and seed: only the feature space and the "
        "reference distance differ. On the fold left out are read a linear probe and 1-NN (macro "
        "F1), and how well the expert features can be read from the embedding (median R2 of a "
        f"ridge regression, mean agreement of ten neighbours). A training has about "
        f"{first['steps']} steps with batches of 64; the network is a small TCN ({encoder}). "
        f"At most {first['windows']} windows of a dataset are taken, evenly. uci_har brings its "
        "561 features, machine its twelve (some missing). mitdb is AFIB and normal rhythm, "
        "thinned, at half its rate, with the features `ecg88` of both channels (some missing); "
        f"its other rhythms come from two people only. The {len(runs)} "
        f"trainings took {minutes:.0f} minutes on one core of a shared machine; what long "
        "trainings of the full network would say is not known from them."
    )


def gain_lines(gains: Sequence[dict[str, Any]]) -> list[str]:
    datasets = list(gains[0]["by_dataset"]) if gains else []
    columns = ["space", "reference", "mean gain", *datasets]
    lines = [line(columns), line(["---", "---", *["---:"] * (1 + len(datasets))])]
    for g in gains:
        each = [f"{g['by_dataset'][name]:+.3f}" for name in datasets]
        lines.append(line([g["space"], g["reference"], f"{g['mean']:+.3f} ± {g['se']:.3f}", *each]))
    return lines


def row_lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    columns = ["dataset", "space", "reference", "linear F1", "1-NN F1", "R2", "agreement", "folds"]
    lines = [line(columns), line(["---"] * 3 + ["---:"] * 5)]
    for row in rows:
        values = [f"{row[name]:.3f} ± {row[f'{name}_se']:.3f}" for name in MEASURES]
        lines.append(line([row[c] for c in columns[:3]] + values + [str(row["folds"])]))
    return lines


def line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
