"""What an embedding is worth: probes, label efficiency, certificates, search, outliers."""

from __future__ import annotations

from typing import Any

from expclr.registry import Registry

__all__ = [
    "PROBES",
    "LinearHead",
    "NeighbourIndex",
    "bilipschitz",
    "certify",
    "fit_linear_head",
    "knn_probe",
    "label_efficiency",
    "linear_probe",
    "outlier_scores",
    "probe_many",
    "suggest_labels",
]

PROBES = Registry(
    "probe",
    {
        "linear": "expclr.evaluation.probes:linear_probe",
        "linear_raw": "expclr.evaluation.probes:linear_raw",
        "knn1": "expclr.evaluation.probes:knn1",
        "knn1_raw": "expclr.evaluation.probes:knn1_raw",
        "knn5": "expclr.evaluation.probes:knn5",
    },
)

_HOME = {
    "LinearHead": "linear_head",
    "NeighbourIndex": "neighbours",
    "bilipschitz": "pair_ratios",
    "certify": "certificates",
    "fit_linear_head": "linear_head",
    "knn_probe": "probes",
    "label_efficiency": "label_curves",
    "linear_probe": "probes",
    "outlier_scores": "outliers",
    "probe_many": "many_probes",
    "suggest_labels": "suggestions",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'expclr.evaluation' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"expclr.evaluation.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
