"""A dataset with its options as one word: ``mitdb,split=stratified-5fold,fold=2``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, signature
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from expclr.errors import ConfigError, suggest

__all__ = ["check_options", "split_choice"]

WORDS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a word",
    Path: "a word",
    NoneType: "null",
}


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
    """Refuse options that the function has not, and values that do not fit its annotations."""
    known = signature(load).parameters
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in known.values()):
        return
    hints = _hints(load)
    for key, value in options.items():
        if key not in known:
            raise ConfigError(f"{name} has no option {key!r}: {suggest(key, list(known))}")
        wanted = hints.get(key)
        if key != "root" and not _fits(value, wanted):
            raise ConfigError(f"option {key} of {name} is {value!r}: {_words(wanted)} is wanted")
        if key == "random_state" and isinstance(value, Integral) and int(value) < 0:
            raise ConfigError(f"option {key} of {name} is {value}: a number from 0 on is wanted")


def _hints(load: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(load)
    except (NameError, TypeError):  # a name that is only there for the type checker
        return {}


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is what is annotated; yes where that does not tell."""
    kind, inner = get_origin(hint), get_args(hint)
    if kind in (Union, UnionType):
        return any(_fits(value, choice) for choice in inner)
    if kind is Literal:
        return value in inner
    if hint in (int, float):
        return isinstance(value, Integral if hint is int else Real) and not isinstance(value, bool)
    if kind is Sequence:
        listed = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes)
        return listed and all(isinstance(v, str | Real) for v in value)
    return not isinstance(hint, type) or isinstance(value, hint)


def _words(hint: Any) -> str:
    kind, inner = get_origin(hint), get_args(hint)
    if kind in (Union, UnionType):
        return " or ".join(dict.fromkeys(_words(choice) for choice in inner))
    if kind is Literal:
        return " or ".join(map(repr, inner))
    if kind is Sequence:
        return "a list"
    return WORDS.get(hint, str(hint))
