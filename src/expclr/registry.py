"""Tables from a short name to an object, imported only when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from expclr.errors import ConfigError, suggest

__all__ = ["Registry"]


class Registry(Mapping[str, Any]):
    """A read-only mapping from a name to the object its ``"module:object"`` string points at.

    Names outside the table may be such strings themselves, so that a user's own class is
    used without being registered: ``METHODS["my_module:MyLoss"]``.

    Examples
    --------
    >>> shapes = Registry("shape", {"fraction": "fractions:Fraction"})
    >>> shapes["fraction"](1, 2)
    Fraction(1, 2)
    >>> list(shapes)
    ['fraction']
    """

    def __init__(self, kind: str, targets: dict[str, str]) -> None:
        self.kind = kind
        self._targets = dict(targets)

    def __getitem__(self, name: str) -> Any:
        if name in self._targets:
            return _import(self._targets[name])
        if ":" in name:
            return self._import_foreign(name)
        raise ConfigError(f"no {self.kind} named {name!r}: {suggest(name, list(self))}")

    def __contains__(self, name: object) -> bool:
        return name in self._targets

    def __iter__(self) -> Iterator[str]:
        return iter(self._targets)

    def __len__(self) -> int:
        return len(self._targets)

    def known(self, name: str) -> str:
        """The name itself when it is in the table; used where foreign code must not run."""
        if name not in self._targets:
            raise ConfigError(
                f"{self.kind} {name!r} is not one of expclr's own, and loading a folder runs no "
                f"code from elsewhere: {suggest(name, list(self))}"
            )
        return name

    def by_object_name(self, name: str) -> Any:
        """The registered object of that class name; a module's ``__getattr__``."""
        for target in self._targets.values():
            if target.partition(":")[2] == name:
                return _import(target)
        raise AttributeError(f"no {self.kind} class is named {name!r}")

    def _import_foreign(self, target: str) -> Any:
        try:
            return _import(target)
        except (ImportError, AttributeError) as error:
            raise ConfigError(f"cannot import {self.kind} {target!r}: {error}") from error


def _import(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
