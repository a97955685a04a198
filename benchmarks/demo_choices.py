"""Which settings the demonstration takes: tried on machines held out of its training part.

    OMP_NUM_THREADS=1 python benchmarks/demo_choices.py --jobs 16

The test machines are not looked at. Twice, eight of the thirty training machines are held out:
every candidate is trained on the others, and read with 5 % and with all labels on those eight.
All systems have the same encoder, and training with labels has the same candidates everywhere.
What the results file already holds is not run again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from copy import deepcopy
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from expclr import ExpCLR, RepresentationLearner, Windows, load_dataset
from expclr.evaluation import knn_probe, linear_probe

RESULTS = Path(__file__).parent / "results" / "demo_choices.json"
HELD = ([f"m{i:02d}" for i in range(8)], [f"m{i:02d}" for i in range(8, 16)])
FRACTIONS = (0.05, 1.0)
ENCODER = {"width": 32, "blocks": 6, "finest": 64}


class Candidate(NamedTuple):
    """A system and how it is trained; ``epochs``: on 5 % and on all labels."""

    system: str
    name: str
    settings: dict[str, Any]
    epochs: tuple[int, int] = (0, 0)


def _encoder(**change: Any) -> dict[str, Any]:
    return {"encoder_params": ENCODER | change}


DEVIATION = ("mean", "max", "std")
UNLABELLED: dict[str, dict[str, Any]] = {
    "40 epochs, lr 0.003": {},
    "80 epochs": {"max_epochs": 80},
    "lr 0.001": {"lr": 1e-3},
    "lr 0.001, 80 epochs": {"lr": 1e-3, "max_epochs": 80},
    "tau 0.1": {"tau": 0.1},
    "tau 10": {"tau": 10.0},
    "batches of 128": {"batch_size": 128},
    "batches of 32": {"batch_size": 32},
    "pooling with deviation": _encoder(pooling=DEVIATION),
    "no dropout": _encoder(dropout=0.0),
    "batch norm": _encoder(norm="batch"),
    "batch norm, pooling with deviation": _encoder(norm="batch", pooling=DEVIATION),
    "width 64": _encoder(width=64),
    "finest 128": _encoder(finest=128),
}
SECOND = {  # after a look at the first: tau 10 and pooling with deviation, and then
    "nothing": {},
    "tau 100": {"tau": 100.0},
    "batches of 32": {"batch_size": 32},
    "80 epochs": {"max_epochs": 80},
    "lr 0.006": {"lr": 6e-3},
    "reference dataset": {"reference": "dataset"},
    "pooling of mean and deviation": _encoder(pooling=("mean", "std")),
    "kernel 5": _encoder(pooling=DEVIATION, kernel=5),
    "finest 128": _encoder(pooling=DEVIATION, finest=128),
    "dropout 0.2": _encoder(pooling=DEVIATION, dropout=0.2),
    "dropout 0.2, 80 epochs": _encoder(pooling=DEVIATION, dropout=0.2) | {"max_epochs": 80},
    "dropout 0.3, 80 epochs": _encoder(pooling=DEVIATION, dropout=0.3) | {"max_epochs": 80},
    "dropout 0.2 of elements": _encoder(pooling=DEVIATION, dropout=0.2, dropout_kind="element"),
}
LABELLED = [
    (1e-3, 15, 15),
    (1e-3, 60, 25),
    (1e-3, 200, 40),
    (3e-3, 60, 25),
    (3e-3, 200, 40),
    (3e-4, 200, 40),
]
STEADY = ("mean", "std")
THIRD = {  # after a look at the second: tau 10 and pooling of mean and deviation, and then
    "tau 1": {"tau": 1.0},
    "60 epochs": {"max_epochs": 60},
    "80 epochs": {"max_epochs": 80},
    "dropout 0.2": _encoder(pooling=STEADY, dropout=0.2),
    "dropout 0.2, 60 epochs": _encoder(pooling=STEADY, dropout=0.2) | {"max_epochs": 60},
    "finest 128": _encoder(pooling=STEADY, finest=128),
}
THIRD_LABELLED = [(3e-3, 30, 15), (3e-3, 60, 25), (3e-3, 200, 40), (1e-3, 60, 25)]


def candidates() -> Iterator[Candidate]:
    """Each round starts from what was best in the one before."""
    yield from (Candidate("ExpCLR (U)", *item) for item in UNLABELLED.items())
    yield from _labelled_candidates(LABELLED, "", {}, {})
    for name, table, pooling in (("second", SECOND, DEVIATION), ("third", THIRD, STEADY)):
        base = {"tau": 10.0} | _encoder(pooling=pooling)
        for change, settings in table.items():
            yield Candidate("ExpCLR (U)", f"{name}: {change}", base | settings)
    steady = _encoder(pooling=STEADY)
    yield from _labelled_candidates(THIRD_LABELLED, "third: ", {"tau": 10.0} | steady, steady)


def _labelled_candidates(
    table: list[tuple[float, int, int]],
    prefix: str,
    expclr: dict[str, Any],
    cross_entropy: dict[str, Any],
) -> Iterator[Candidate]:
    for lr, few, every in table:
        name = f"{prefix}lr {lr:g}, {few} epochs on 5 %, {every} on all"
        yield Candidate("ExpCLR (SS)", name, expclr | {"finetune_lr": lr}, (few, every))
        yield Candidate(
            "cross-entropy from scratch", name, cross_entropy | {"lr": lr}, (few, every)
        )


def run(candidate: Candidate, held: list[str]) -> list[tuple[float, float, float]]:
    """(share of labels, linear, 1-NN) of a candidate on one split."""
    windows, _ = load_dataset("machine")
    part, validation = windows.split_by_group(held)
    found = []
    learner = None if candidate.epochs[0] and "cross" in candidate.system else _fitted(candidate)
    unlabelled = learner if learner is None else learner.fit(part)
    for fraction, epochs in zip(FRACTIONS, candidate.epochs, strict=True):
        trained = _labelled(candidate, unlabelled, part.label_fraction(fraction), epochs)
        seeds = 1 if epochs else 3
        found += [_read(trained, part, validation, fraction, seed) for seed in range(seeds)]
    return found


def _fitted(candidate: Candidate) -> ExpCLR:
    return ExpCLR(**_encoder() | candidate.settings)


def _labelled(
    candidate: Candidate, learner: ExpCLR | None, few: Windows, epochs: int
) -> RepresentationLearner:
    if learner is None:
        settings = _encoder() | candidate.settings
        return RepresentationLearner("cross_entropy", max_epochs=epochs, **settings).fit(
            few.labelled()
        )
    if not epochs:
        return learner
    return deepcopy(learner).set_params(finetune_epochs=epochs).finetune(few)


def _read(
    learner: RepresentationLearner, part: Windows, validation: Windows, fraction: float, seed: int
) -> tuple[float, float, float]:
    few = part.label_fraction(fraction, random_state=seed).labelled()
    arguments = (learner.transform(few), few.y, learner.transform(validation), validation.y)
    linear, nearest = linear_probe(*arguments), knn_probe(*arguments, k=1, scaling="standard")
    return fraction, linear["accuracy"], nearest["accuracy"]


def _record(candidate: Candidate, found: list[tuple[float, float, float]]) -> dict[str, Any]:
    table = np.array(found)
    means = {
        f"{probe}, {100 * fraction:g} %": round(float(table[table[:, 0] == fraction, at].mean()), 4)
        for fraction in FRACTIONS
        for at, probe in ((1, "linear"), (2, "1-NN"))
    }
    return {"system": candidate.system, "settings": candidate.name, **means}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    records = json.loads(given.out.read_text()) if given.out.exists() else []
    done = {(r["system"], r["settings"]) for r in records}
    wanted = [c for c in candidates() if (c.system, c.name) not in done]
    with get_context("spawn").Pool(given.jobs, _one_thread) as pool:
        for candidate, found in zip(wanted, pool.imap(_both, wanted), strict=True):
            records.append(_record(candidate, found))
            print(records[-1], flush=True)
            given.out.write_text(json.dumps(records, indent=1) + "\n")


def _both(candidate: Candidate) -> list[tuple[float, float, float]]:
    return [row for held in HELD for row in run(candidate, held)]


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


if __name__ == "__main__":
    main()
