"""What there is on this machine for expclr to work with."""

from __future__ import annotations

import os
from importlib.util import find_spec

import torch

from expclr.model_folder import environment

__all__ = ["EXTRAS", "examine"]

EXTRAS = {
    "eeg": ("edfio",),
    "ecg": ("wfdb", "pywt", "sleepecg"),
    "report": ("plotly",),
    "search": ("optuna",),
    "multi": ("lightning_fabric",),
    "cluster": ("dask", "distributed"),
    "onnx": ("onnx", "onnxscript", "onnxruntime"),
    "map": ("umap",),
}


def examine() -> dict[str, str]:
    """Versions, devices, data folders and extras, as name -> value."""
    versions = {k: str(v) for k, v in environment().items() if k not in ("gpu", "machine")}
    extras = {f"extra {name}": _extra(name, modules) for name, modules in EXTRAS.items()}
    return versions | {"devices": ", ".join(_devices())} | _folders() | extras


def _devices() -> list[str]:
    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    found = [f"cuda:{i} ({name})" for i, name in enumerate(names)]
    found += ["mps"] * torch.backends.mps.is_available()
    return [*found, "cpu"]


def _folders() -> dict[str, str]:
    return {
        name: os.environ.get(name, "not set: the user's own folder is used")
        for name in ("EXPCLR_DATA", "EXPCLR_CACHE")
    }


def _extra(name: str, modules: tuple[str, ...]) -> str:
    missing = [module for module in modules if find_spec(module) is None]
    if not missing:
        return "installed"
    return f"missing {', '.join(missing)}: pip install 'expclr[{name}]'"
