"""Views: what may be done to a window without changing what it means.

A view takes windows (b, c, t) and their lengths and gives windows of the same shape, drawn anew
at each call with torch's global random numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import signature
from typing import Any

from torch import Tensor

from expclr.errors import ConfigError, suggest
from expclr.methods.base import View, unchanged
from expclr.registry import Registry

__all__ = ["DOMAINS", "VIEWS", "Augmentations", "compose"]

VIEWS = Registry(
    "view",
    {
        "scaling": "expclr.methods.views_amplitude:scaling",
        "gain": "expclr.methods.views_amplitude:gain",
        "jitter": "expclr.methods.views_amplitude:jitter",
        "dropout": "expclr.methods.views_amplitude:dropout",
        "permutation": "expclr.methods.views_time:permutation",
        "shift": "expclr.methods.views_time:shift",
        "time_mask": "expclr.methods.views_time:time_mask",
        "rotation": "expclr.methods.views_sensor:rotation",
        "sign_flip": "expclr.methods.views_sensor:sign_flip",
        "lead_swap": "expclr.methods.views_sensor:lead_swap",
        "sleepprior": "expclr.methods.views_published:sleepprior",
        "tstcc_weak": "expclr.methods.views_published:tstcc_weak",
        "tstcc_strong": "expclr.methods.views_published:tstcc_strong",
    },
)

# What usually may differ between two windows of the same meaning, by kind of sensor.
DOMAINS: dict[str, dict[str, dict[str, Any]]] = {
    "ecg": {"gain": {}, "sign_flip": {}, "lead_swap": {}, "jitter": {}},
    "motion": {"rotation": {"max_degrees": 15.0}, "gain": {}, "shift": {}},
    "generic": {"scaling": {}, "jitter": {}, "time_mask": {}},
}

Augmentations = str | Sequence[str] | Mapping[str, Mapping[str, Any]] | View


def compose(augmentations: Augmentations) -> View:
    """One view of several: a kind of sensor, names in order, names with settings, or a function.

    Parameters
    ----------
    augmentations : str, sequence of str, mapping of str to settings, or callable
        A kind of sensor from ``DOMAINS``; names from ``VIEWS``, or ``"my_module:my_view"``.

    Examples
    --------
    >>> import torch
    >>> view = compose({"scaling": {"sigma": 0.2}, "dropout": {"p": 0.5}})
    >>> view(torch.ones(4, 3, 16), None).shape
    torch.Size([4, 3, 16])
    """
    if callable(augmentations):
        return augmentations
    if isinstance(augmentations, str):
        augmentations = _of_domain(augmentations)
    settings = augmentations if isinstance(augmentations, Mapping) else dict.fromkeys(augmentations)
    if not settings:
        return unchanged
    return partial(_one_after_the_other, views=[_view(k, v or {}) for k, v in settings.items()])


def _of_domain(name: str) -> dict[str, dict[str, Any]]:
    if name not in DOMAINS:
        hint = f"for a single view give a list, [{name!r}]" if name in VIEWS else ""
        known = suggest(name, list(DOMAINS))
        raise ConfigError(f"no kind of sensor named {name!r}: {hint or known}")
    return DOMAINS[name]


def _one_after_the_other(x: Tensor, lengths: Tensor | None, views: list[View]) -> Tensor:
    for view in views:
        x = view(x, lengths)
    return x


def _view(name: str, settings: Mapping[str, Any]) -> View:
    function: Callable[..., Tensor] = VIEWS[name]
    try:
        signature(function).bind(None, None, **settings)
    except TypeError as error:
        known = ", ".join(list(signature(function).parameters)[2:])
        raise ConfigError(f"view {name!r}: {error}; its settings are {known}") from error
    return partial(function, **settings)
