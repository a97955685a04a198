"""The demonstration: simulated machines, expert features, few labels, and what that gives."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from expclr.building import checked_seed
from expclr.datasets import load_dataset
from expclr.estimators import ExpCLR, RepresentationLearner
from expclr.evaluation import knn_probe, linear_probe
from expclr.experiments.demo_page import COLUMNS, demo_page, measure, rows
from expclr.experiments.tables import text_table
from expclr.model_folder import environment
from expclr.report import write_report
from expclr.storage import check_writable, write_json
from expclr.train import TrainingInterrupted
from expclr.windows import Windows

__all__ = ["Demo", "run_demo"]

FRACTIONS = (0.05, 0.1, 0.2, 0.5, 1.0)
# What follows was chosen by benchmarks/demo_choices.py on machines held out of train.
ENCODER = {"width": 32, "blocks": 6, "finest": 64, "pooling": ("mean", "std")}
TAU, EPOCHS = 10.0, 60
LABELLED_LR = 3e-3  # of every training on labels

Embeddings = tuple[NDArray[Any], NDArray[Any]]  # of train and test windows


@dataclass(frozen=True)
class System:
    """A row of the comparison: ``embed`` is given train windows of which few are labelled."""

    name: str
    needs: str  # when it is used
    embed: Callable[[Windows], Embeddings]


@dataclass(frozen=True)
class Demo:
    """What came out: a record for each system and number of labels, and the report's path."""

    records: list[dict[str, Any]]
    report: Path
    seconds: float

    def table(self) -> str:
        """The systems with 5 % and with all labels, on machines that no system has seen."""
        shown = [[v if isinstance(v, str) else f"{v:.1%}" for v in r] for r in rows(self.records)]
        return text_table(COLUMNS, shown)


def run_demo(out: str | Path, *, random_state: int = 0) -> Demo:
    """Train and compare on the dataset ``machine``, and write the folder ``out``."""
    started, folder = time.perf_counter(), Path(out)
    check_writable(folder, ("metrics.json", "model", "report.html"))
    train, test = load_dataset("machine", random_state=checked_seed(random_state))
    # The network is small: more threads wait for each other, on a busy machine for minutes.
    with threadpool_limits(1), _stopping_at_once():
        learner = _expclr(random_state).fit(train)
        cells = list(product(_systems(train, test, learner, random_state), FRACTIONS))
        records = []
        for system, fraction in tqdm(cells, "comparison", disable=None):
            few = train.label_fraction(fraction, random_state=random_state)
            records.append(_record(system, fraction, few, test))
    measured = measure(learner, test)
    seconds = time.perf_counter() - started
    numbers = {"records": records, **measured.record()}
    facts = _facts(learner, train, test)
    write_json(folder / "metrics.json", {"seconds": seconds, **facts, **numbers})
    learner.save(folder / "model")
    page = demo_page(learner, train, test, records, measured, seconds)
    return Demo(records, write_report(folder / "report.html", page), seconds)


def _facts(learner: ExpCLR, train: Windows, test: Windows) -> dict[str, Any]:
    """What a number needs beside it to be made again."""
    return {
        "settings": asdict(learner.config),
        "labelled": {"lr": LABELLED_LR, "epochs": [_epochs(f) for f in FRACTIONS]},
        "data": {"train": train.fingerprint(), "test": test.fingerprint()},
        "environment": environment(),
    }


@contextmanager
def _stopping_at_once() -> Iterator[None]:
    """Ctrl-C ends it all: a comparison of which one part was cut short is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrainingInterrupted)
        try:
            yield
        except TrainingInterrupted as stopped:
            raise KeyboardInterrupt from stopped


def _expclr(random_state: int) -> ExpCLR:
    return ExpCLR(
        TAU,
        encoder_params=ENCODER,
        max_epochs=EPOCHS,
        finetune_lr=LABELLED_LR,
        random_state=random_state,
    )


def _systems(train: Windows, test: Windows, learner: ExpCLR, random_state: int) -> Iterator[System]:
    """The rows in order; one more system is one more ``yield``."""
    shared: dict[str, Any] = {"encoder_params": ENCODER, "random_state": random_state}
    untrained = RepresentationLearner("random", **shared).fit(train)

    def with_labels(train_on: Callable[[Windows, int], RepresentationLearner]) -> Any:
        return lambda few: _embed(train_on(few, _epochs(_share(few))), train, test)

    def from_scratch(few: Windows, epochs: int) -> RepresentationLearner:
        classifier = RepresentationLearner(
            "cross_entropy", lr=LABELLED_LR, max_epochs=epochs, **shared
        )
        return classifier.fit(few.labelled())

    def fine_tuned(few: Windows, epochs: int) -> RepresentationLearner:
        return copy.deepcopy(learner).set_params(finetune_epochs=epochs).finetune(few)

    yield System("random encoder", "sensors", _always(_embed(untrained, train, test)))
    yield System("raw expert features", "test rig", _always(_raw_features(train, test)))
    yield System("cross-entropy from scratch", "sensors", with_labels(from_scratch))
    yield System("ExpCLR (U)", "sensors", _always(_embed(learner, train, test)))
    yield System("ExpCLR (SS)", "sensors", with_labels(fine_tuned))


def _epochs(share: float) -> int:
    """Passes over the labelled windows: 61 over 5 % of them, 25 over all."""
    return round(25 * share**-0.3)


def _share(few: Windows) -> float:
    assert few.y is not None
    return float((few.y >= 0).mean())


def _always(embeddings: Embeddings) -> Callable[[Windows], Embeddings]:
    """What needs no labels is the same for any number of them."""
    return lambda few: embeddings


def _embed(learner: RepresentationLearner, train: Windows, test: Windows) -> Embeddings:
    return learner.transform(train), learner.transform(test)


def _raw_features(train: Windows, test: Windows) -> Embeddings:
    """The experts' features themselves: unlike an encoder they are needed at test time too."""
    assert train.F is not None
    assert test.F is not None
    filled = SimpleImputer(strategy="median").fit(train.F)
    return filled.transform(train.F), filled.transform(test.F)


def _record(system: System, fraction: float, few: Windows, test: Windows) -> dict[str, Any]:
    """Both probes, fitted on the labelled windows alone."""
    assert few.y is not None
    assert test.y is not None
    Z_train, Z_test = system.embed(few)
    known = few.y >= 0
    arguments = (Z_train[known], few.y[known], Z_test, test.y)
    return {
        "system": system.name,
        "needs": system.needs,
        "labels": fraction,
        "labelled_windows": int(known.sum()),
        "linear": linear_probe(*arguments)["accuracy"],
        "knn1": knn_probe(*arguments, k=1, scaling="standard")["accuracy"],
    }
