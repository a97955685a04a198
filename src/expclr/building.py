"""An object built from a user's settings, or one line that says which of them is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import Parameter, signature
from typing import Any

from expclr.errors import ConfigError, suggest

__all__ = ["build", "checked_seed"]


def build(kind: type[Any], settings: Mapping[str, Any], *given: Any) -> Any:
    """``kind(*given, **settings)``; what is wrong with the settings is a ConfigError.

    >>> from expclr.methods import SupConLoss
    >>> build(SupConLoss, {"temperature": 0.5}).temperature
    0.5
    """
    known = signature(kind).parameters
    names = list(known)[len(given) :]
    takes_any = any(p.kind is Parameter.VAR_KEYWORD for p in known.values())
    for name in settings:
        if name not in names and not takes_any:
            raise ConfigError(f"{kind.__name__} has no setting {name!r}: {suggest(name, names)}")
    try:
        return kind(*given, **settings)
    except (TypeError, RuntimeError) as error:
        raise ConfigError(
            f"{kind.__name__} cannot be made with {dict(settings)}: {error}"
        ) from error


def checked_seed(random_state: int) -> int:
    """The seed, when it is one that every generator takes.

    >>> checked_seed(0)
    0
    """
    if not 0 <= random_state < 2**32:
        raise ConfigError(
            f"random_state is {random_state}: give a whole number from 0 to 2**32 - 1"
        )
    return int(random_state)
