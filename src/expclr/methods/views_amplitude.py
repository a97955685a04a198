"""Views that change how large a signal is, not when things happen."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from expclr.errors import ConfigError

__all__ = ["dropout", "gain", "jitter", "scaling"]

Per = Literal["window", "channel", "step", "value"]


def scaling(
    x: Tensor,
    lengths: Tensor | None = None,
    *,
    sigma: float = 0.5,
    mean: float = 1.0,
    per: Per = "channel",
) -> Tensor:
    """Multiply by gains drawn from N(mean, sigma).

    Parameters
    ----------
    x : Tensor (b, c, t)
    lengths : Tensor (b,), optional
    sigma, mean : float
    per : "window", "channel", "step" or "value"
        One gain for each window; for each channel of it; for each timepoint, the same for all
        channels; or for each single value.

    Examples
    --------
    >>> x = scaling(torch.ones(2, 3, 4), per="channel")
    >>> bool((x[:, :, 0] == x[:, :, 3]).all())  # constant over time
    True
    """
    if sigma < 0:
        raise ConfigError(f"sigma is {sigma}: give a number of at least 0")
    return x * torch.normal(mean, sigma, _shape(x, per), device=x.device, dtype=x.dtype)


def gain(
    x: Tensor,
    lengths: Tensor | None = None,
    *,
    low: float = 0.95,
    high: float = 1.05,
    per: Per = "window",
) -> Tensor:
    """Multiply by gains drawn evenly between ``low`` and ``high``."""
    if not low <= high:
        raise ConfigError(f"gains from {low} to {high}: low must not be above high")
    return x * (low + (high - low) * torch.rand(_shape(x, per), device=x.device, dtype=x.dtype))


def jitter(x: Tensor, lengths: Tensor | None = None, *, sigma: float = 0.05) -> Tensor:
    """Add noise N(0, sigma) to every value."""
    if sigma < 0:
        raise ConfigError(f"sigma is {sigma}: give a number of at least 0")
    return x + sigma * torch.randn_like(x)


def dropout(x: Tensor, lengths: Tensor | None = None, *, p: float = 0.1) -> Tensor:
    """Set random timepoints to 0 in all channels; what is left keeps its size.

    >>> x = dropout(torch.ones(2, 3, 100), p=0.5)
    >>> bool((x[:, 0] == x[:, 2]).all())  # a timepoint is there or not
    True
    """
    if not 0 <= p < 1:
        raise ConfigError(f"p is {p}: give a probability from 0 to below 1")
    return x * (torch.rand(_shape(x, "step"), device=x.device) >= p)


def _shape(x: Tensor, per: str) -> tuple[int, int, int]:
    b, c, t = x.shape
    shapes = {"window": (b, 1, 1), "channel": (b, c, 1), "step": (b, 1, t), "value": (b, c, t)}
    if per not in shapes:
        raise ConfigError(f"per is {per!r}: give one of {', '.join(shapes)}")
    return shapes[per]
