"""The demonstration: simulated machines, expert features, few labels, and what that gives."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from tqdm import tqdm

from expclr.datasets import load_dataset
from expclr.estimators import ExpCLR, RepresentationLearner
from expclr.evaluation import knn_probe, linear_probe
from expclr.experiments import story
from expclr.experiments.measure import measure
from expclr.experiments.tables import text_table
from expclr.report import Lines, Report, Section, Series, Table, embedding_map, write_report
from expclr.storage import write_json
from expclr.windows import Windows

__all__ = ["Demo", "run_demo"]

FRACTIONS = (0.05, 0.1, 0.2, 0.5, 1.0)
ENCODER = {"width": 32, "blocks": 6, "finest": 64}  # half the work of the default
EPOCHS, FINETUNE_EPOCHS, SCRATCH_EPOCHS = 40, 15, 25

Embeddings = tuple[NDArray[Any], NDArray[Any]]  # of train and test windows
System = Callable[[Windows], Embeddings]  # from train windows of which few are labelled


@dataclass(frozen=True)
class Demo:
    """What came out: a record for each system and number of labels, and the report's path."""

    records: list[dict[str, Any]]
    report: Path
    seconds: float

    def table(self) -> str:
        """The systems at 5 % labels, on machines that no system has seen."""
        return text_table(_COLUMNS, _rows(self.records))


def run_demo(out: str | Path, *, random_state: int = 0) -> Demo:
    """Train and compare on the dataset ``machine``, and write the folder ``out``."""
    started = time.perf_counter()
    train, test = load_dataset("machine", random_state=random_state)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    with tqdm(total=2 + 5 * len(FRACTIONS), desc="demo", disable=None) as progress:
        learner = _expclr(random_state).fit(train)
        progress.update(2)
        records = []
        for name, system in _systems(train, test, learner, random_state).items():
            for fraction in FRACTIONS:
                few = train.label_fraction(fraction, random_state=random_state)
                records.append(
                    {"system": name, "labels": fraction, **_probe(system(few), few, test)}
                )
                progress.update()
    seconds = time.perf_counter() - started
    write_json(folder / "metrics.json", {"seconds": seconds, "records": records})
    learner.save(folder / "model")
    path = folder / "report.html"
    write_report(path, _report(learner, train, test, records, seconds))
    return Demo(records, path, seconds)


def _expclr(random_state: int, **settings: Any) -> ExpCLR:
    return ExpCLR(
        encoder_params=ENCODER,
        max_epochs=EPOCHS,
        finetune_epochs=FINETUNE_EPOCHS,
        random_state=random_state,
        **settings,
    )


def _systems(
    train: Windows, test: Windows, learner: ExpCLR, random_state: int
) -> dict[str, System]:
    """Each system maps train windows, few of them labelled, to embeddings of train and test."""
    untrained = RepresentationLearner(
        "random", encoder_params=ENCODER, random_state=random_state
    ).fit(train)
    fixed = {
        "random encoder": _embed(untrained, train, test),
        "raw expert features": _raw_features(train, test),
        "ExpCLR (U)": _embed(learner, train, test),
    }

    def from_scratch(few: Windows) -> Embeddings:
        classifier = RepresentationLearner(
            "cross_entropy",
            encoder_params=ENCODER,
            max_epochs=SCRATCH_EPOCHS,
            lr=1e-3,
            random_state=random_state,
        )
        return _embed(classifier.fit(few.labelled()), train, test)

    def fine_tuned(few: Windows) -> Embeddings:
        return _embed(copy.deepcopy(learner).finetune(few), train, test)

    return {
        **{name: partial(_same, embeddings) for name, embeddings in fixed.items()},
        "cross-entropy from scratch": from_scratch,
        "ExpCLR (SS)": fine_tuned,
    }


def _same(embeddings: Embeddings, few: Windows) -> Embeddings:
    """What needs no labels is the same for any number of them."""
    return embeddings


def _embed(learner: RepresentationLearner, train: Windows, test: Windows) -> Embeddings:
    return learner.transform(train), learner.transform(test)


def _raw_features(train: Windows, test: Windows) -> Embeddings:
    """The experts' features themselves: unlike an encoder they are needed at test time too."""
    assert train.F is not None
    assert test.F is not None
    filled = SimpleImputer(strategy="median").fit(train.F)
    return filled.transform(train.F), filled.transform(test.F)


def _probe(embeddings: Embeddings, few: Windows, test: Windows) -> dict[str, float]:
    """Both probes, fitted on the labelled windows alone."""
    Z_train, Z_test = embeddings
    assert few.y is not None
    assert test.y is not None
    known = few.y >= 0
    arguments = (Z_train[known], few.y[known], Z_test, test.y)
    return {
        "linear": linear_probe(*arguments)["accuracy"],
        "knn1": knn_probe(*arguments, k=1, scaling="standard")["accuracy"],
    }


_COLUMNS = ["system", "linear, 5 % labels", "1-NN, 5 % labels", "linear, all", "1-NN, all"]


def _rows(records: list[dict[str, Any]]) -> list[list[Any]]:
    by_key = {(r["system"], r["labels"]): r for r in records}
    names = list(dict.fromkeys(r["system"] for r in records))
    return [
        [name, *(by_key[name, f][probe] for f in (0.05, 1.0) for probe in ("linear", "knn1"))]
        for name in names
    ]


def _report(
    learner: ExpCLR,
    train: Windows,
    test: Windows,
    records: list[dict[str, Any]],
    seconds: float,
) -> Report:
    measured = measure(learner, train, test)
    lead = (
        f"An encoder learnt from {len(train)} windows of {_groups(train)} simulated machines and "
        "what experts measured on them, without labels (U); then it was fine-tuned on a few labels "
        f"(SS). All numbers are of {_groups(test)} other machines that nothing was trained on."
    )
    facts = {
        "data": f"machine: {len(train)} training and {len(test)} test windows",
        "seconds in all": seconds,
        "seconds of training without labels": sum(r["seconds"] for r in learner.history_),
    }
    sections: list[Section] = [
        _comparison(records),
        _label_efficiency(records),
        embedding_map(measured.Z_test, test, title="Map of the windows of unseen machines"),
        *story.ratios(measured),
        *story.learning(learner),
        story.what_was_run(learner, facts),
    ]
    return Report("expclr demo: machines seen by three sensors", lead, sections)


def _groups(windows: Windows) -> int:
    return len(np.unique(windows.group)) if windows.group is not None else 0


def _comparison(records: list[dict[str, Any]]) -> Table:
    return Table(
        "How well classes are read on unseen machines",
        _COLUMNS,
        _rows(records),
        formats=".1%",
        best=dict.fromkeys(_COLUMNS[1:], "high"),
        caption="Accuracy of a linear classifier and of the nearest neighbour, fitted on the "
        "labelled windows alone. Raw expert features have to be measured at test time too; "
        "every other row needs the sensors only.",
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
