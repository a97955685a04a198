"""What an encoder is worth on windows it has not seen: probes, tasks and distances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.advice import advise
from expclr.errors import ConfigError, suggest
from expclr.estimators import RepresentationLearner
from expclr.experiments import worth
from expclr.experiments.feature_record import feature_record
from expclr.experiments.tables import text_table
from expclr.windows import Windows

__all__ = ["Measured", "measure"]


@dataclass(frozen=True)
class Measured:
    """Numbers for metrics.json, and the embeddings and pair ratios they came from."""

    values: dict[str, Any]
    Z_test: NDArray[np.float32]
    pairs: Any = None  # of bilipschitz, when there are features

    def table(self) -> str:
        """The probes' numbers as text, and what should be thought of."""
        metrics = ("accuracy", "macro_f1", "kappa")
        named = {"": self.values["probes"]}
        named |= {f", {name}": b["probes"] for name, b in self.values.get("baselines", {}).items()}
        rows = [
            [f"{probe['protocol']}{of}", *(probe[m] for m in metrics)]
            for of, probes in named.items()
            for probe in probes.values()
        ]
        table = text_table(["probe", *metrics], rows) if rows else "no labels: no probes"
        return "\n\n".join([table, *(finding["text"] for finding in self.values["advice"])])


def measure(
    learner: RepresentationLearner,
    train: Windows,
    test: Windows,
    *,
    also: Sequence[str] = (),
    allow: Sequence[str] = (),
) -> Measured:
    """Probes and tasks fitted on train and read on test; pair ratios between test windows.

    ``also``: "baselines", "labels" and "suggestions" take longer; ``allow``: "shared-groups".
    """
    _check(also)
    worth.check_parts(train, test, allow=allow)
    Z, F = (learner.transform(train), learner.transform(test)), _features(learner, train, test)
    values: dict[str, Any] = {
        "train_windows": len(train),
        "test_windows": len(test),
        "train_fingerprint": train.fingerprint(),
        "test_fingerprint": test.fingerprint(),
        "history": learner.history_,
        "probes": worth.probe_records(Z, train, test),
        **worth.task_records(Z, F, train, test),
    }
    pairs = None
    if F is not None:
        pairs = worth.pair_ratios_of(Z[1], F[1])
        if pairs is not None:
            values["distances"] = worth.distance_record(pairs)
        certificate = worth.held_out_certificate(Z[1], F[1], test)
        if certificate is not None:
            values["certificate"] = worth.certificate_record(certificate)
    features = feature_record(learner, test, Z[1])
    if features:
        values["features"] = features
    names = list(learner.feature_space_.get_feature_names_out()) if F is not None else []
    values["advice"] = [finding.record() for finding in advise(Z, train, test, F=F, names=names)]
    if "baselines" in also:
        values["baselines"] = worth.baseline_records(learner, F, train, test)
    if "labels" in also:
        rivals = "baselines" in also
        values["labels"] = worth.label_records(learner, train, test, F, rivals=rivals)
    if "suggestions" in also:
        values["suggestions"] = worth.suggestion_records(Z, train, test)
    return Measured(values, Z[1], pairs)


def _features(
    learner: RepresentationLearner, train: Windows, test: Windows
) -> worth.Embeddings | None:
    """Expert features in the space of training, where both parts have some."""
    if train.F is None or test.F is None or not hasattr(learner, "feature_space_"):
        return None
    if np.isnan(train.F).all() or np.isnan(test.F).all():
        return None
    space = learner.feature_space_
    return space.transform(train.F), space.transform(test.F)


def _check(also: Sequence[str]) -> None:
    for name in also:
        if name not in worth.ALSO:
            known = suggest(name, list(worth.ALSO))
            raise ConfigError(f"nothing to measure is named {name!r}: {known}")
