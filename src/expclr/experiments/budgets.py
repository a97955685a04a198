"""Named schedules: how much work a run may be, written down with every result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from expclr.errors import ConfigError, suggest

__all__ = ["BUDGETS", "Budget", "budget_named"]


@dataclass(frozen=True)
class Budget:
    """Epochs and network sizes of a study.

    Parameters
    ----------
    epochs, finetune_epochs, scratch_epochs : int
        Of training without labels, of fine-tuning, and of training on labels alone, where no
        choice was made on validation data.
    least_steps : int
        Fine-tuning and training on labels take at least so many steps, so that few labels do
        not mean few updates.
    sweep_epochs : tuple of int
        Numbers of epochs among which choices are made.
    encoder_params : mapping
        Settings of the TCN that differ from its own.
    method_params : mapping
        method -> settings that differ from its own.
    per_group : int, optional
        Windows of each group that are used at all.
    """

    name: str
    epochs: int
    finetune_epochs: int
    scratch_epochs: int
    least_steps: int
    sweep_epochs: tuple[int, ...]
    encoder_params: Mapping[str, Any] = field(default_factory=dict)
    method_params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    per_group: int | None = None

    def words(self) -> str:
        """The budget in one line, for tables."""
        smaller = {"TCN": self.encoder_params, **self.method_params}
        network = "; ".join(f"{name} with {_listed(p)}" for name, p in smaller.items() if p)
        return (
            f"{self.name}: {_counted(self.epochs, 'epoch')} without labels, "
            f"{self.finetune_epochs} of fine-tuning, {self.scratch_epochs} from scratch, at least "
            f"{self.least_steps} steps on labels; {network or 'the full TCN'}"
        )


BUDGETS = {
    "gpu": Budget("gpu", 40, 40, 40, 500, (20, 40)),
    "cpu": Budget(
        "cpu",
        *(5, 5, 8, 100, (5,)),
        encoder_params={"width": 32, "blocks": 6, "finest": 64},
        method_params={"treba": {"hidden": 16}},  # it has a head for each feature
    ),
    "smoke": Budget("smoke", 1, 1, 1, 2, (1,), {"width": 4, "blocks": 2, "hidden": 8}, per_group=4),
}


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" + ("" if n == 1 else "s")


def _listed(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())


def budget_named(name: str) -> Budget:
    """The budget of that name."""
    if name not in BUDGETS:
        raise ConfigError(f"no budget {name!r}: {suggest(name, list(BUDGETS))}")
    return BUDGETS[name]
