"""What an encoder is worth on windows it has not seen: probes and distances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.estimators import RepresentationLearner
from expclr.evaluation import PROBES, bilipschitz
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
        """The probes' numbers as text."""
        metrics = ("accuracy", "macro_f1", "kappa")
        rows = [[name, *(p[m] for m in metrics)] for name, p in self.values["probes"].items()]
        return text_table(["probe", *metrics], rows) if rows else "no labels: no probes"


def measure(learner: RepresentationLearner, train: Windows, test: Windows) -> Measured:
    """Probes fitted on train and read on test; pair ratios between test windows."""
    Z_train, Z_test = learner.transform(train), learner.transform(test)
    probes = {}
    if train.y is not None and test.y is not None:
        probes = {
            name: probe(Z_train, train.y, Z_test, test.y).record() for name, probe in PROBES.items()
        }
    values: dict[str, Any] = {
        "train_windows": len(train),
        "test_windows": len(test),
        "train_fingerprint": train.fingerprint(),
        "test_fingerprint": test.fingerprint(),
        "probes": probes,
    }
    if test.F is None or not hasattr(learner, "feature_space_"):
        return Measured(values, Z_test)
    pairs = bilipschitz(Z_test, learner.feature_space_.transform(test.F))
    # JSON knows no infinity: windows that share an embedding make l_plus None.
    limits = {"l_minus": pairs.l_minus, "l_plus": pairs.l_plus}
    values["distances"] = {k: float(v) if np.isfinite(v) else None for k, v in limits.items()}
    return Measured(values, Z_test, pairs)
