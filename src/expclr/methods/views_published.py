"""The sets of views that published methods use."""

from __future__ import annotations

import torch
from torch import Tensor

from expclr.methods.views_amplitude import gain, jitter, scaling
from expclr.methods.views_time import permutation, shift, time_mask

__all__ = ["sleepprior", "tstcc_strong", "tstcc_weak"]


def sleepprior(x: Tensor, lengths: Tensor | None = None) -> Tensor:
    """SleepPriorCL: slight noise, a slight gain or a masked stretch, then a roll by up to 10 %.

    One of the three for each window: every value times N(1, 0.01), the window times
    U(0.95, 1.05), or up to 15 % of it masked (Zhang et al., 2021).
    """
    which = torch.randint(0, 3, (len(x), 1, 1), device=x.device)
    noisy = scaling(x, lengths, sigma=0.01, per="value")
    louder = gain(x, lengths, low=0.95, high=1.05)
    masked = time_mask(x, lengths, fraction=0.15)
    changed = torch.where(which == 0, noisy, torch.where(which == 1, louder, masked))
    return shift(changed, lengths, fraction=0.1)


def tstcc_weak(
    x: Tensor, lengths: Tensor | None = None, *, sigma: float = 1.1, mean: float = 2.0
) -> Tensor:
    """TS-TCC's weak view: gains N(2, 1.1), one for each timepoint (Eldele et al., 2021).

    The published code says scaling, but what it draws for every timepoint is a noise.
    """
    return scaling(x, lengths, sigma=sigma, mean=mean, per="step")


def tstcc_strong(
    x: Tensor,
    lengths: Tensor | None = None,
    *,
    max_segments: int = 8,
    sigma: float = 0.8,
    first_channel_into_all: bool = False,
) -> Tensor:
    """TS-TCC's strong view: pieces in a random order, then noise N(0, 0.8)."""
    permuted = permutation(
        x, lengths, max_segments=max_segments, first_channel_into_all=first_channel_into_all
    )
    return jitter(permuted, lengths, sigma=sigma)
