"""The page about the demonstration, for a reader who has never heard of the method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.estimators import ExpCLR
from expclr.evaluation import bilipschitz
from expclr.evaluation.pair_ratios import PairRatios
from expclr.experiments import story
from expclr.experiments.feature_record import feature_record
from expclr.experiments.feature_sections import feature_sections
from expclr.experiments.worth import distance_record
from expclr.report import (
    Lines,
    Report,
    Section,
    Series,
    Table,
    Text,
    embedding_map,
    gallery,
    pair_ratios,
)
from expclr.windows import Windows

__all__ = ["COLUMNS", "Measured", "demo_page", "measure", "rows"]

COLUMNS = [
    "system",
    "needs in use",
    "linear, 5 % labels",
    "1-NN, 5 % labels",
    "linear, all labels",
    "1-NN, all labels",
]

SYSTEMS = (
    "ExpCLR (U), unsupervised: a network learns from windows and expert features, without any "
    "label. Windows whose features are alike come to lie close together.",
    "ExpCLR (SS), semi-supervised: the same network goes on training on the few labels.",
    "Random encoder: the same network, not trained at all. What it reaches, the architecture "
    "gives for nothing.",
    "Cross-entropy from scratch: the same network, trained on the labels alone, as one would "
    "without expert features.",
    "Raw expert features: a classifier on what the experts measured. It needs the test rig and "
    "the engineer for every new window; the others need the sensors only.",
)


@dataclass(frozen=True)
class Measured:
    """What is known of the encoder without labels, on the test windows."""

    Z: NDArray[np.float32]
    pairs: PairRatios
    features: dict[str, Any]

    def record(self) -> dict[str, Any]:
        """Its numbers, for metrics.json."""
        return {"distances": distance_record(self.pairs), "features": self.features}


def measure(learner: ExpCLR, test: Windows) -> Measured:
    """How well distances are kept, and which features got in."""
    assert test.F is not None
    Z = learner.transform(test)
    pairs = bilipschitz(Z, learner.feature_space_.transform(test.F))
    return Measured(Z, pairs, feature_record(learner, test, Z))


def demo_page(
    learner: ExpCLR,
    train: Windows,
    test: Windows,
    records: list[dict[str, Any]],
    measured: Measured,
    seconds: float,
) -> Report:
    """What was done and found, from the windows to the settings."""
    pairs = measured.pairs
    facts = {
        "data": f"machine: {len(train)} training and {len(test)} test windows",
        "seconds in all": round(seconds, 1),
        "seconds without labels": round(sum(r["seconds"] for r in learner.history_), 1),
    }
    sections: list[Section] = [
        _what_happens(train),
        _comparison(records, len(test.classes)),
        _label_efficiency(records),
        embedding_map(measured.Z, test, title="Map of the windows of unseen machines"),
        pair_ratios(pairs.ratios, pairs.l_minus, pairs.l_plus),
        *feature_sections(measured.features)[1:2],
        gallery(test, title="What the sensors see", per_class=4),
        *story.learning(learner),
        story.what_was_run(learner, facts),
    ]
    return Report("Machines seen by three sensors", _lead(train, test, records), sections)


def rows(records: list[dict[str, Any]]) -> list[list[Any]]:
    """The table: a row for each system, in the order of ``COLUMNS``."""
    by_key = {(r["system"], r["labels"]): r for r in records}
    systems = {r["system"]: r["needs"] for r in records}
    return [
        [
            name,
            needs,
            *(by_key[name, f][probe] for f in (0.05, 1.0) for probe in ("linear", "knn1")),
        ]
        for name, needs in systems.items()
    ]


def _lead(train: Windows, test: Windows, records: list[dict[str, Any]]) -> str:
    few = {r["system"]: r for r in records if r["labels"] == min(r["labels"] for r in records)}
    ours, scratch = few["ExpCLR (SS)"], few["cross-entropy from scratch"]
    return (
        f"A network learnt from {len(train)} windows of {_groups(train)} simulated machines, from "
        f"what experts measured on them, and from {ours['labelled_windows']} labels. On "
        f"{_groups(test)} machines that it has never seen it names the condition in "
        f"{ours['linear']:.0%} of the windows; the same network trained on those labels alone, in "
        f"{scratch['linear']:.0%}."
    )


def _groups(windows: Windows) -> int:
    return len(np.unique(windows.group)) if windows.group is not None else 0


def _what_happens(train: Windows) -> Text:
    assert train.F is not None
    return Text(
        "What is compared here",
        [
            "Two vibration sensors and a current sensor watch a rotating machine for one second: "
            "a window. The machine is healthy or has one of five faults. Labels are rare, but an "
            f"engineer with a test rig can measure {train.F.shape[1]} expert features of a window, "
            "such as speed, load and wear; some of them are noisy, some are missing. They are "
            "used in training only.",
        ],
        items=SYSTEMS,
    )


def _comparison(records: list[dict[str, Any]], n_classes: int) -> Table:
    return Table(
        "How well the condition is read on unseen machines",
        COLUMNS,
        rows(records),
        formats=".1%",
        best=dict.fromkeys(COLUMNS[2:], "high"),
        caption=f"Share of test windows whose condition, one of {n_classes}, is named right. "
        "Linear: logistic regression on the embedding. 1-NN: the class of the nearest labelled "
        "window. Both are fitted on the labelled windows alone.",
    )


def _label_efficiency(records: list[dict[str, Any]]) -> Lines:
    names = dict.fromkeys(r["system"] for r in records)
    series = [
        Series(
            name,
            [100 * r["labels"] for r in records if r["system"] == name],
            [100 * r["linear"] for r in records if r["system"] == name],
        )
        for name in names
    ]
    return Lines(
        "Accuracy by number of labels",
        series,
        x_label="labelled training windows (%)",
        y_label="accuracy of the linear classifier (%)",
        log_x=True,
        caption="The further a line is up on the left, the fewer labels the system needs.",
    )
