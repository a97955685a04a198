"""Hyper-parameters chosen on validation data, a file for each dataset and budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from expclr.errors import ConfigError
from expclr.storage import write_text

__all__ = ["Choices", "read_choices", "write_choices"]

HERE = Path(__file__).parent
STAGES = ("U", "S", "SS")
# The paper's Table of learning rates, by its three datasets; mitdb stands in for the last.
_PAPER = {
    "uci_har": {
        "expclr": (3e-3, 1e-3),
        "kim2021": (3e-3, 1e-3),
        "simclr": (3e-3, 5e-4),
        "sleepprior": (1e-3, 1e-3),
        "cross_entropy": (None, 5e-4),
    },
    "sleep_edf": {
        "expclr": (5e-3, 1e-2),
        "kim2021": (5e-3, 1e-2),
        "simclr": (5e-3, 1e-5),
        "sleepprior": (7e-3, 1e-3),
        "cross_entropy": (None, 1e-3),
    },
    "afdb": {
        "expclr": (5e-3, 5e-3),
        "kim2021": (7e-3, 5e-3),
        "simclr": (7e-3, 5e-4),
        "sleepprior": (1e-2, 1e-3),
        "cross_entropy": (None, 1e-3),
    },
}
_STAND_INS = {"mitdb": "afdb", "hapt": "uci_har"}
_OWN = {"tstcc": 3e-4}  # the original's
_LIKE = {"nhnm": "expclr"}  # an ablation differs in one thing alone
_PUBLISHED = {**_LIKE, "expclr_published": "expclr"}  # whose published rate holds for whom
_USUAL = 1e-3


@dataclass(frozen=True)
class Choices:
    """What was chosen for a dataset, system by system and stage by stage.

    Parameters
    ----------
    dataset : str
    systems : mapping
        system -> stage ("U", "S" or "SS") -> {"lr", "epochs", "params", "score"}.
    about : mapping
        How they were found: budget, rule, data, split, code, seed.
    budget : str
        That they were found with and are meant for.

    Examples
    --------
    >>> Choices("uci_har").of("expclr", "U", epochs=40)
    ({'lr': 0.003, 'epochs': 40, 'params': {}}, "the paper's learning rate")
    """

    dataset: str
    systems: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    budget: str = "gpu"

    def of(self, system: str, stage: str, *, epochs: int) -> tuple[dict[str, Any], str]:
        """Learning rate, epochs and settings, and what chose them; ``epochs`` is the fallback."""
        found = self.systems.get(_LIKE.get(system, system), {}).get(stage)
        if found is not None:
            kept = {k: found[k] for k in ("lr", "epochs", "params")}
            return kept, f"validation subjects (score {found['score']:.4f})"
        lr, why = self._published(system, stage)
        return {"lr": lr, "epochs": epochs, "params": {}}, why

    def _published(self, system: str, stage: str) -> tuple[float, str]:
        paper = _PAPER.get(_STAND_INS.get(self.dataset, self.dataset), {})
        rates = paper.get(_PUBLISHED.get(system, system), (None, None))
        lr = rates[0] if stage == "U" else rates[1]
        if lr is not None:
            return lr, "the paper's learning rate"
        if system in _OWN:
            return _OWN[system], "the original's learning rate"
        return _USUAL, "no choice was made"


def read_choices(dataset: str, budget: str, folder: str | Path | None = None) -> Choices:
    """What is kept for a dataset and budget; without a file the published learning rates hold."""
    import yaml

    path = _path(dataset, budget, folder)
    if not path.exists():
        return Choices(dataset, budget=budget)
    try:
        held = yaml.safe_load(path.read_text(encoding="utf-8"))
        return Choices(dataset, held["systems"], held["about"], budget)
    except (yaml.YAMLError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path} holds no choices ({error}): delete it, or write it with expclr sweep"
        ) from error


def write_choices(choices: Choices, folder: str | Path | None = None) -> Path:
    """Write ``<dataset>-<budget>.yaml``, scores included."""
    import yaml

    path = _path(choices.dataset, choices.budget, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    held = {"about": dict(choices.about), "systems": dict(choices.systems)}
    write_text(path, yaml.safe_dump(held, sort_keys=False, default_flow_style=None, width=100))
    return path


def _path(dataset: str, budget: str, folder: str | Path | None) -> Path:
    return Path(folder or HERE) / f"{dataset}-{budget}.yaml"
