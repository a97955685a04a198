"""A dataset with its options as one word: ``mitdb,split=stratified-5fold,fold=2``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import Any

from expclr.errors import ConfigError, suggest

__all__ = ["check_options", "split_choice"]


def split_choice(text: str) -> tuple[str, dict[str, Any]]:
    """The name and the options of a dataset; values are YAML.

    Examples
    --------
    >>> split_choice("ucr,problem=ECG5000")
    ('ucr', {'problem': 'ECG5000'})
    >>> split_choice("sleep_edf,split=[6,18],wake_minutes=15")
    ('sleep_edf', {'split': [6, 18], 'wake_minutes': 15})
    """
    import yaml

    name, *words = re.split(r",(?=\s*\w+=)", text)
    options = {}
    for word in words:
        key, _, value = word.partition("=")
        try:
            options[key.strip()] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise ConfigError(f"{text!r}: the value of {key.strip()} cannot be read") from error
    return name.strip(), options


def check_options(name: str, load: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse options that the function has not, and values of another kind than its defaults."""
    known = signature(load).parameters
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in known.values()):
        return
    for key, value in options.items():
        if key not in known:
            raise ConfigError(f"{name} has no option {key!r}: {suggest(key, list(known))}")
        wanted = _kind_of(known[key].default)
        if wanted and not isinstance(value, wanted[0]):
            raise ConfigError(f"option {key} of {name} is {value!r}: {wanted[1]} is wanted")


def _kind_of(default: Any) -> tuple[tuple[type, ...], str] | None:
    """What a value must be, going by a default; None where that does not tell."""
    if isinstance(default, bool):
        return (bool,), "true or false"
    if isinstance(default, int):
        return (int,), "a whole number"
    if isinstance(default, float):
        return (int, float), "a number"
    if isinstance(default, tuple):
        return (str, list, tuple), "a list"
    return None
