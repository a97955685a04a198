"""Representations of sensor windows whose distances follow what your experts measure."""

from typing import Any

__version__ = "0.1.0"
__all__ = ["ExpCLR", "RepresentationLearner", "Windows", "load_dataset"]

_HOME = {
    "ExpCLR": "expclr.estimators",
    "RepresentationLearner": "expclr.estimators",
    "Windows": "expclr.windows",
    "load_dataset": "expclr.datasets",
}


def __getattr__(name: str) -> Any:
    # Imported on first use: `import expclr` and `expclr --help` stay quick.
    if name not in _HOME:
        raise AttributeError(f"module 'expclr' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
