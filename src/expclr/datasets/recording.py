"""One recording of a sensor: its channels at one rate, and what was noted about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from expclr.errors import DataError, suggest

__all__ = ["Note", "Recording", "pick_channels"]


@dataclass(frozen=True, eq=False)
class Recording:
    """Channels of one recording in their physical units; NaN where a sample is missing.

    Parameters
    ----------
    X : array (c, t), float32
    sfreq : float
        Sampling frequency in Hz.
    channel_names : tuple of str
    """

    X: NDArray[np.float32]
    sfreq: float
    channel_names: tuple[str, ...]


class Note(NamedTuple):
    """What somebody wrote down about a stretch of a recording; times in seconds."""

    onset: float
    duration: float | None
    text: str


def pick_channels(
    wanted: str | Sequence[str] | None, known: Sequence[str], *, path: str | Path
) -> list[int]:
    """Positions of the wanted channels, all when None.

    A name is taken as it stands, else without regard to case and to the kind in front
    (``"Fpz-Cz"`` for ``"EEG Fpz-Cz"``) where only one channel fits.

    Examples
    --------
    >>> pick_channels(["Pz-Oz", "EEG Fpz-Cz"], ["EEG Fpz-Cz", "EEG Pz-Oz"], path="night.edf")
    [1, 0]
    """
    if wanted is None:
        return list(range(len(known)))
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    if not names:
        raise DataError(f"no channel of {path} asked for: name some of {', '.join(known)}")
    return [_position(str(name), known, path) for name in names]


def _position(name: str, known: Sequence[str], path: str | Path) -> int:
    if name in known:
        return list(known).index(name)
    short = name.casefold()
    near = [i for i, k in enumerate(known) if short in (k.casefold(), _without_kind(k))]
    if len(near) != 1:
        raise DataError(f"{path} has no channel {name!r}: {suggest(name, list(known))}")
    return near[0]


def _without_kind(name: str) -> str:
    return name.casefold().partition(" ")[2]
