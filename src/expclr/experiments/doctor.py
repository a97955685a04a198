"""What there is on this machine for expclr to work with."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution, requires

import torch

from expclr.datasets import DATASETS
from expclr.datasets.store import cache_root, data_root
from expclr.model_folder import environment

__all__ = ["examine", "extras"]

_EXTRA = re.compile(r"""^([\w.-]+).*;.*\bextra\s*==\s*['"](\w+)['"]""")


def examine() -> dict[str, str]:
    """Versions, devices, data folders and extras, as name -> value."""
    versions = {k: str(v) for k, v in environment().items() if k not in ("gpu", "machine")}
    found = {f"extra {name}": _extra(name, packages) for name, packages in extras().items()}
    return versions | {"devices": ", ".join(_devices())} | _folders() | found


def extras() -> dict[str, list[str]]:
    """The packages of each extra, as this installation of expclr names them.

    >>> extras()["search"]
    ['optuna']
    """
    found: dict[str, list[str]] = {}
    for package, extra in map(_words, requires("expclr") or []):
        if extra not in ("", "all", "dev"):
            found.setdefault(extra, []).append(package)
    return found


def _words(requirement: str) -> tuple[str, str]:
    """(package, extra) of a line such as ``optuna>=4; extra == 'search'``."""
    match = _EXTRA.match(requirement)
    return (match[1], match[2]) if match else ("", "")


def _devices() -> list[str]:
    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    found = [f"cuda:{i} ({name})" for i, name in enumerate(names)]
    found += ["mps"] * torch.backends.mps.is_available()
    return [*found, "cpu"]


def _folders() -> dict[str, str]:
    """Where raw data and prepared stores lie, and which of the datasets are there."""
    raw, stores = data_root(), cache_root()
    there = ", ".join(name for name in DATASETS if (raw / name).is_dir()) or "no dataset"
    return {"EXPCLR_DATA": f"{raw} ({there})", "EXPCLR_CACHE": str(stores)}


def _extra(name: str, packages: list[str]) -> str:
    missing = [package for package in packages if not _is_installed(package)]
    if not missing:
        return "installed"
    return f"missing {', '.join(missing)}: pip install 'expclr[{name}]'"


def _is_installed(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True
