"""Sections of a report about a model: what was run, how it learnt, what came out."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from expclr.estimators import RepresentationLearner
from expclr.experiments.evaluation_sections import evaluation_sections
from expclr.experiments.feature_sections import feature_sections
from expclr.experiments.measure import Measured
from expclr.model_folder import environment
from expclr.report import (
    KeyValues,
    Lines,
    Report,
    Section,
    Series,
    Text,
    embedding_map,
    gallery,
    pair_ratios,
)
from expclr.windows import Windows

__all__ = ["advice", "learning", "model_report", "ratios", "what_was_run"]


def model_report(learner: RepresentationLearner, test: Windows, measured: Measured) -> Report:
    """The report of one trained model on windows it has not seen."""
    lead = (
        f"{type(learner).__name__} trained for {len(learner.history_)} epochs, looked at on "
        f"{len(test)} windows that it has not seen."
    )
    sections: list[Section] = [what_was_run(learner, {"test windows": len(test)})]
    sections += [*advice(measured.values), *learning(learner)]
    sections += [embedding_map(measured.Z_test, test), gallery(test, per_class=4)]
    sections += evaluation_sections(measured.values, test.class_names)
    sections += feature_sections(measured.values.get("features", {}))
    return Report(f"expclr on {test.name or 'windows'}", lead, sections)


def what_was_run(learner: RepresentationLearner, facts: dict[str, Any]) -> KeyValues:
    """Settings, versions and whatever else is worth knowing."""
    if hasattr(learner, "encoder_choice_"):
        facts = {**facts, "why this encoder": learner.encoder_choice_.why}
    config = {
        key: value for key, value in asdict(learner.config).items() if value not in ({}, None)
    }
    return KeyValues(
        "What was run", {**facts, "settings": config, "versions and machine": environment()}
    )


def advice(values: dict[str, Any]) -> list[Section]:
    """What the numbers should make one think of, when there is anything."""
    titles = {
        "features": "Features that did not get in",
        "fusing": "Features at the time of use",
        "groups": "Groups",
    }
    found = [f"{titles[finding['about']]}: {finding['text']}" for finding in values["advice"]]
    return [Text("What to think of", found)] if found else []


def learning(learner: RepresentationLearner) -> list[Section]:
    """The loss over the epochs, when there were any."""
    if not learner.history_:
        return []
    series = [_curve("training", learner.history_, "loss")]
    if "validation_loss" in learner.history_[0]:
        series.append(_curve("validation", learner.history_, "validation_loss"))
    return [
        Lines(
            "Loss during training",
            series,
            x_label="epoch",
            y_label="loss",
            caption="Each point is the mean over an epoch; where the line is flat, "
            "more epochs would change little.",
        )
    ]


def ratios(measured: Measured) -> list[Section]:
    """How well distances are kept, when there are features to compare with."""
    if measured.pairs is None:
        return []
    pairs = measured.pairs
    return [pair_ratios(pairs.ratios, pairs.l_minus, pairs.l_plus)]


def _curve(name: str, history: list[dict[str, Any]], key: str) -> Series:
    return Series(name, [r["epoch"] + 1 for r in history], [r[key] for r in history])
