"""What an expert measures: one file an extractor, one line in this table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from expclr.registry import Registry

if TYPE_CHECKING:
    from expclr.features.ecg_recording import ecg_windows as ecg_windows
    from expclr.features.extraction import extract as extract
    from expclr.features.extraction import features_of as features_of
    from expclr.features.extractor import Extractor as Extractor
    from expclr.features.extractor import Feature as Feature
    from expclr.features.har_recording import har_scale as har_scale
    from expclr.features.har_recording import har_windows as har_windows
    from expclr.features.report import FeatureReport as FeatureReport
    from expclr.features.report import feature_report as feature_report
    from expclr.features.report import readability as readability
    from expclr.features.space import FeatureSpace as FeatureSpace
    from expclr.features.store import write_features as write_features
    from expclr.features.table import features_from_table as features_from_table

__all__ = [
    "FEATURES",
    "Extractor",
    "Feature",
    "FeatureReport",
    "FeatureSpace",
    "ecg_windows",
    "extract",
    "feature_report",
    "features_from_table",
    "features_of",
    "har_scale",
    "har_windows",
    "readability",
    "write_features",
]

FEATURES = Registry(
    "feature extractor",
    {
        "har561": "expclr.features.har561:har561",
        "eeg29": "expclr.features.eeg29:eeg29",
        "ecg88": "expclr.features.ecg88:ecg88",
        "basic": "expclr.features.basic:basic",
        "tsfresh": "expclr.features.adapters:tsfresh",
        "tsfel": "expclr.features.adapters:tsfel",
        "catch22": "expclr.features.adapters:catch22",
    },
)

_HOME = {
    "Extractor": "extractor",
    "Feature": "extractor",
    "FeatureReport": "report",
    "FeatureSpace": "space",
    "ecg_windows": "ecg_recording",
    "extract": "extraction",
    "feature_report": "report",
    "features_from_table": "table",
    "features_of": "extraction",
    "har_scale": "har_recording",
    "har_windows": "har_recording",
    "readability": "report",
    "write_features": "store",
}


def __getattr__(name: str) -> Any:
    # Imported on first use: what lists the extractors needs none of them.
    if name not in _HOME:
        raise AttributeError(f"module 'expclr.features' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"expclr.features.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
