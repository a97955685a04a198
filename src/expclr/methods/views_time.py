"""Views that change when things happen; padding stays where it is."""

from __future__ import annotations

import torch
from torch import Tensor

from expclr.errors import ConfigError

__all__ = ["permutation", "shift", "time_mask"]


def permutation(
    x: Tensor,
    lengths: Tensor | None = None,
    *,
    max_segments: int = 8,
    first_channel_into_all: bool = False,
) -> Tensor:
    """Cut each window at random places and put the pieces together in a random order.

    Parameters
    ----------
    x : Tensor (b, c, t)
    lengths : Tensor (b,), optional
        Only real timepoints are moved.
    max_segments : int
        The number of pieces is drawn evenly from 1 to ``max_segments - 1``.
    first_channel_into_all : bool
        Write the permuted channel 0 into every channel, as TS-TCC's published code does. Only
        to compare with published numbers: all other channels are lost.

    Examples
    --------
    >>> x = torch.arange(8.0).expand(1, 2, 8)
    >>> y = permutation(x, max_segments=4)
    >>> y[0, 0].sort().values.tolist() == x[0, 0].tolist(), bool((y[0, 0] == y[0, 1]).all())
    (True, True)
    """
    if max_segments < 2:
        raise ConfigError(f"max_segments is {max_segments}: give at least 2")
    segment = _segments(x, lengths, max_segments)  # (b, t)
    order = torch.rand(len(x), max_segments, device=x.device).gather(1, segment)
    order = torch.where(_real(x, lengths), order, 2)  # padding stays at the end
    source = x[:, :1].expand_as(x) if first_channel_into_all else x
    return _taken(source, order.argsort(dim=1, stable=True))


def _segments(x: Tensor, lengths: Tensor | None, max_segments: int) -> Tensor:
    """The number of the piece each timepoint is in: random cuts, all places as likely."""
    b, _, t = x.shape
    cuts = torch.randint(0, max_segments - 1, (b, 1), device=x.device)
    place = torch.rand(b, t, device=x.device)
    place[:, 0] = 2  # a cut before the first timepoint makes no piece
    place = torch.where(_real(x, lengths), place, 2)
    rank = place.argsort(dim=1).argsort(dim=1)
    return ((rank < cuts) & (place < 2)).cumsum(1)


def shift(x: Tensor, lengths: Tensor | None = None, *, fraction: float = 0.1) -> Tensor:
    """Roll each window around by up to ``fraction`` of its length, forwards or backwards."""
    _check_fraction(fraction)
    b, _, t = x.shape
    n = torch.full((b,), t, device=x.device) if lengths is None else lengths.to(x.device)
    steps = ((2 * torch.rand(b, device=x.device) - 1) * fraction * n).round().long()
    time = torch.arange(t, device=x.device)
    rolled = (time - steps[:, None]) % n[:, None]
    return _taken(x, torch.where(time < n[:, None], rolled, time))


def time_mask(x: Tensor, lengths: Tensor | None = None, *, fraction: float = 0.15) -> Tensor:
    """Set one stretch of up to ``fraction`` of each window to 0 in all channels."""
    _check_fraction(fraction)
    b, _, t = x.shape
    n = torch.full((b,), t, device=x.device) if lengths is None else lengths.to(x.device)
    width = torch.rand(b, device=x.device) * fraction * n
    start = torch.rand(b, device=x.device) * (n - width)
    time = torch.arange(t, device=x.device)
    masked = (time >= start[:, None]) & (time < (start + width)[:, None])
    return x.masked_fill(masked[:, None], 0)


def _real(x: Tensor, lengths: Tensor | None) -> Tensor:
    """True where a timepoint is no padding, (b, t)."""
    time = torch.arange(x.shape[2], device=x.device).expand(len(x), -1)
    return time >= 0 if lengths is None else time < lengths.to(x.device)[:, None]


def _taken(x: Tensor, index: Tensor) -> Tensor:
    """The timepoints at ``index`` (b, t), the same in all channels."""
    return x.gather(2, index[:, None].expand_as(x))


def _check_fraction(fraction: float) -> None:
    if not 0 <= fraction <= 1:
        raise ConfigError(f"fraction is {fraction}: give a part of the window, from 0 to 1")
