"""Views that know what the channels are: three axes of motion, leads of an ECG."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from expclr.errors import ConfigError

__all__ = ["lead_swap", "rotation", "sign_flip"]


def rotation(
    x: Tensor, lengths: Tensor | None = None, *, max_degrees: float = 180.0, axes: int | None = None
) -> Tensor:
    """Turn the sensor: each three channels in turn are the axes x, y, z of one vector.

    Parameters
    ----------
    x : Tensor (b, c, t)
    lengths : Tensor (b,), optional
    max_degrees : float
        The angle about a random axis is drawn evenly from 0 to this.
    axes : int, optional
        How many of the first channels are such vectors; default all. Those of one device turn
        together.

    Examples
    --------
    >>> x = torch.randn(2, 6, 16)
    >>> y = rotation(x)
    >>> torch.allclose(y[:, :3].norm(dim=1), x[:, :3].norm(dim=1), atol=1e-5)
    True
    """
    b, c, t = x.shape
    turned = c if axes is None else axes
    if turned % 3 or not 0 < turned <= c:
        raise ConfigError(f"{turned} of {c} channels cannot be three axes each: set axes")
    vectors = x[:, :turned].reshape(b, turned // 3, 3, t)
    turn = _rotations(b, math.radians(max_degrees), x)[:, None]  # (b, 1, 3, 3)
    return torch.cat([(turn @ vectors).reshape(b, turned, t), x[:, turned:]], dim=1)


def _rotations(b: int, largest: float, like: Tensor) -> Tensor:
    """Rotation matrices about random axes: exp of the axis' cross product times the angle."""
    axis = torch.nn.functional.normalize(torch.randn_like(like[:, :1, :1].expand(b, 1, 3)), dim=2)
    angle = largest * torch.rand_like(like[:, :1, :1])
    x, y, z = axis[:, 0].unbind(1)
    zero = torch.zeros_like(x)
    cross = torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], dim=1).reshape(b, 3, 3)
    return (
        torch.eye(3, device=like.device, dtype=like.dtype)
        + angle.sin() * cross
        + (1 - angle.cos()) * cross @ cross
    )


def sign_flip(x: Tensor, lengths: Tensor | None = None, *, p: float = 0.5) -> Tensor:
    """Turn the polarity of whole windows: electrodes the other way round."""
    flip = torch.rand(len(x), 1, 1, device=x.device) < _probability(p)
    return torch.where(flip, -x, x)


def lead_swap(x: Tensor, lengths: Tensor | None = None, *, p: float = 0.5) -> Tensor:
    """Put the channels of some windows into a random order: electrodes mixed up."""
    b, c, _ = x.shape
    order = torch.rand(b, c, device=x.device).argsort(dim=1)
    swap = torch.rand(b, 1, device=x.device) < _probability(p)
    order = torch.where(swap, order, torch.arange(c, device=x.device))
    return x.gather(1, order[:, :, None].expand_as(x))


def _probability(p: float) -> float:
    if not 0 <= p <= 1:
        raise ConfigError(f"p is {p}: give a probability from 0 to 1")
    return p
