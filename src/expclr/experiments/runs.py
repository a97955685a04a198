"""Runs on disk: what the commands train, finetune, embed, evaluate and report do."""

from __future__ import annotations

import io
import logging
from pathlib import Path
from typing import Any

import numpy as np

from expclr.checkpoint import Checkpoint
from expclr.config import TrainConfig, run_id
from expclr.datasets.opening import open_data, open_part
from expclr.errors import DataError
from expclr.estimators import RepresentationLearner
from expclr.experiments.measure import Measured, measure
from expclr.experiments.worth import ALSO
from expclr.inputs import read_training_data
from expclr.model_folder import FILES
from expclr.storage import check_writable, read_json, write_bytes, write_json
from expclr.windows import Windows

__all__ = [
    "embed_run",
    "evaluate_run",
    "finetune_run",
    "open_run",
    "report_run",
    "train_run",
]

log = logging.getLogger(__name__)

METRICS = "metrics.json"  # in a model's folder


def train_run(data: str, settings: TrainConfig, out: str | None, *, resume: bool) -> Path:
    """Train into a folder, keeping the last finished epoch on disk all the time."""
    windows = open_part(data)
    key = run_id(settings, windows.fingerprint())
    folder = Path(out or f"runs/{key}")
    checkpoint = Checkpoint(folder / "checkpoint", key=key, resume=resume)
    if resume and (folder / "model.json").exists():
        log.info("this run is finished; resume=false trains it again")
        return folder
    check_writable(folder, FILES)
    learner = RepresentationLearner.from_config(settings)
    learner.fit_given(read_training_data(learner, windows, None), checkpoint=checkpoint)
    if learner.history_ and len(learner.history_) < learner.schedule.max_epochs:
        raise KeyboardInterrupt
    return learner.save(folder)


def finetune_run(
    model: str, data: str, out: str, *, label_fraction: float, changed: dict[str, Any]
) -> Path:
    """Fine-tune a saved model on part of the labels, with its own settings but for some."""
    check_writable(Path(out), FILES)
    learner = RepresentationLearner.load(model)
    learner.set_params(**{name: value for name, value in changed.items() if value is not None})
    windows = open_part(data).label_fraction(label_fraction, random_state=learner.random_state or 0)
    return learner.finetune(windows).save(out)


def embed_run(model: str, data: str, out: str, *, part: str) -> tuple[int, ...]:
    """Write embeddings; return their shape."""
    Z = RepresentationLearner.load(model).transform(open_part(data, part))
    buffer = io.BytesIO()
    np.save(buffer, Z, allow_pickle=False)
    write_bytes(out, buffer.getvalue())
    return Z.shape


def evaluate_run(
    model: str, data: str, out: str | None, *, test: str | None, also: str, allow: str
) -> tuple[Path, str]:
    """Write metrics.json; return its path and a table."""
    learner, train, held = open_run(model, data, test)
    measured = measure(learner, train, held, also=_words(also), allow=_words(allow))
    path = Path(out or Path(model) / METRICS)
    write_json(path, measured.values)
    return path, measured.table()


def report_run(model: str, data: str, out: str | None, *, test: str | None, allow: str) -> Path:
    """Write one offline HTML page about a model, and its numbers to metrics.json."""
    from expclr.experiments.story import model_report
    from expclr.report import write_report

    learner, train, held = open_run(model, data, test)
    measured = measure(learner, train, held, allow=_words(allow))
    measured.values.update(_known_before(model, measured))
    path = Path(out or Path(model) / "report.html")
    write_report(path, model_report(learner, held, measured))
    write_json(Path(model) / METRICS, measured.values)
    return path


def _known_before(model: str, measured: Measured) -> dict[str, Any]:
    """What evaluate took longer to measure on the same windows, and report need not again."""
    path = Path(model) / METRICS
    known = read_json(path) if path.exists() else {}
    same = isinstance(known, dict) and all(
        known.get(part) == measured.values[part]
        for part in ("train_fingerprint", "test_fingerprint")
    )
    return {name: known[name] for name in ALSO if name in known} if same else {}


def open_run(
    model: str, data: str, test: str | None
) -> tuple[RepresentationLearner, Windows, Windows]:
    train, held = open_data(data)
    held = open_part(test, "test") if test else held
    if held is None:
        raise DataError(f"{data} has no test part: give one with --test")
    return RepresentationLearner.load(model), train, held


def _words(text: str) -> tuple[str, ...]:
    """Words with commas between."""
    return tuple(word.strip() for word in text.split(",") if word.strip())
