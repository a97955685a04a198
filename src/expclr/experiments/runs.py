"""Runs on disk: what the commands train, finetune, embed, evaluate and report do."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np

from expclr.checkpoint import Checkpoint
from expclr.config import TrainConfig, run_id
from expclr.datasets.opening import open_data, open_part
from expclr.errors import DataError
from expclr.estimators import RepresentationLearner
from expclr.evaluation import NeighbourIndex, certify
from expclr.experiments.measure import Measured, measure
from expclr.inputs import read_training_data
from expclr.model_folder import FILES
from expclr.storage import refuse_strangers, write_bytes, write_json
from expclr.windows import Windows

__all__ = [
    "certify_run",
    "embed_run",
    "evaluate_run",
    "finetune_run",
    "report_run",
    "search_run",
    "train_run",
]

log = logging.getLogger(__name__)


def train_run(data: str, settings: TrainConfig, out: str | None, *, resume: bool) -> Path:
    """Train into a folder, keeping the last finished epoch on disk all the time."""
    windows = open_part(data)
    key = run_id(settings, windows.fingerprint())
    folder = Path(out or f"runs/{key}")
    checkpoint = Checkpoint(folder / "checkpoint", key=key, resume=resume)
    if resume and (folder / "model.json").exists():
        log.info("this run is finished; resume=false trains it again")
        return folder
    _check_writable(folder)
    learner = RepresentationLearner.from_config(settings)
    learner.fit_given(read_training_data(learner, windows, None), checkpoint=checkpoint)
    if learner.history_ and len(learner.history_) < settings.max_epochs:
        raise KeyboardInterrupt
    return learner.save(folder)


def finetune_run(model: str, data: str, out: str, *, label_fraction: float) -> Path:
    """Fine-tune a saved model on part of the labels."""
    _check_writable(Path(out))
    learner = RepresentationLearner.load(model)
    windows = open_part(data).label_fraction(label_fraction, random_state=learner.random_state or 0)
    return learner.finetune(windows).save(out)


def embed_run(model: str, data: str, out: str, *, part: str) -> tuple[int, ...]:
    """Write embeddings; return their shape."""
    Z = RepresentationLearner.load(model).transform(open_part(data, part))
    buffer = io.BytesIO()
    np.save(buffer, Z, allow_pickle=False)
    write_bytes(out, buffer.getvalue())
    return Z.shape


def evaluate_run(model: str, data: str, out: str | None, *, test: str | None) -> tuple[Path, str]:
    """Write metrics.json; return its path and a table."""
    measured = _measure(model, data, test)[0]
    path = Path(out or Path(model) / "metrics.json")
    write_json(path, measured.values)
    return path, measured.table()


def certify_run(
    model: str,
    data: str,
    out: str | None,
    *,
    method: Literal["exact", "paper-validation", "paper-training"],
    confidence: float,
    holds: float | None,
    test: str | None,
) -> tuple[Path, str]:
    """Write certificate.json; return its path and the certificate in words."""
    learner, train, held = _opened(model, data, test)
    if held.F is None:
        raise DataError(
            f"{data} has no expert features in its test part: there is nothing to bound"
        )
    if not hasattr(learner, "feature_space_"):
        raise DataError(f"{model} was not trained on expert features: there is nothing to bound")
    certificate = certify(
        learner.transform(held),
        learner.feature_space_.transform(held.F),
        confidence=confidence,
        method=method,
        holds=holds,
        group=held.group,
        group_train=train.group,
    )
    path = Path(out or Path(model) / "certificate.json")
    write_json(path, certificate.record())
    return path, certificate.text()


def search_run(model: str, data: str, query: str, *, k: int) -> Iterator[str]:
    """Lines of CSV: the k windows of ``data`` nearest to each window of ``query``."""
    learner = RepresentationLearner.load(model)
    known, asked = open_part(data), open_part(query, "test")
    index = NeighbourIndex(learner.transform(known))
    found = index.search(learner.transform(asked), k)
    for row, (windows, distances) in enumerate(zip(found.index, found.distance, strict=True)):
        for rank, (window, distance) in enumerate(zip(windows, distances, strict=True), 1):
            yield f"{row},{rank},{window},{distance:.6g},{_class_of(known, int(window))}"


def _class_of(windows: Windows, row: int) -> str:
    if windows.y is None or windows.y[row] < 0:
        return ""
    code = int(windows.y[row])
    return windows.class_names[code] if windows.class_names else str(code)


def report_run(model: str, data: str, out: str | None, *, test: str | None) -> Path:
    """Write one offline HTML page about a model."""
    from expclr.experiments.story import model_report
    from expclr.report import write_report

    measured, learner, _, held = _measure(model, data, test)
    path = Path(out or Path(model) / "report.html")
    write_report(path, model_report(learner, held, measured))
    return path


def _measure(
    model: str, data: str, test: str | None
) -> tuple[Measured, RepresentationLearner, Windows, Windows]:
    learner, train, held = _opened(model, data, test)
    return measure(learner, train, held), learner, train, held


def _opened(
    model: str, data: str, test: str | None
) -> tuple[RepresentationLearner, Windows, Windows]:
    train, held = open_data(data)
    held = open_part(test, "test") if test else held
    if held is None:
        raise DataError(f"{data} has no test part: give one with --test")
    return RepresentationLearner.load(model), train, held


def _check_writable(folder: Path) -> None:
    """Fail before training rather than after it."""
    refuse_strangers(folder, FILES)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise DataError(
            f"cannot write {folder}: {error.strerror}; choose another folder"
        ) from error
