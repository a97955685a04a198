"""Samples that are missing inside a window: refused, filled or left out."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from expclr.errors import ConfigError, DataError

__all__ = ["Missing", "fill_gaps", "gap_lengths"]

log = logging.getLogger(__name__)
Policy = Literal["error", "interpolate", "drop"]


@dataclass
class Missing:
    """What is done about NaN inside windows that come in blocks.

    Parameters
    ----------
    policy : {"error", "interpolate", "drop"}
        Refuse the data at the end, with count and first place; fill gaps on a straight line
        between their neighbours; or leave out the windows with a gap.
    longest : int, optional
        Longest gap that is filled, in samples; a window with a longer one is refused. Default
        a quarter of the window.
    mask : bool
        Add a channel that is 1 where any channel was filled, else 0.
    """

    policy: Policy = "error"
    longest: int | None = None
    mask: bool = False
    rows: int = field(default=0, init=False)
    bad: int = field(default=0, init=False)
    first: str = field(default="", init=False)
    infinite: str = field(default="", init=False)

    def __post_init__(self) -> None:
        if self.policy not in ("error", "interpolate", "drop"):
            raise ConfigError(
                f"missing is {self.policy!r}: wanted is 'error', 'interpolate' or 'drop'"
            )

    def apply(
        self, X: NDArray[np.float32], lengths: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Treat a block (k, c, t); gives it back with what to keep of it."""
        gone = ~np.isfinite(X) & _inside(X.shape, lengths)
        self._note_infinite(X)
        t = X.shape[2]
        bad: NDArray[np.bool_]
        longest = self.longest if self.longest is not None else max(1, t // 4)
        if self.policy == "interpolate":
            bad = np.any(gap_lengths(gone) > longest, axis=1)
            X = fill_gaps(X, gone)
        else:
            bad = np.any(gone, axis=(1, 2))
        self._note(gone, bad)
        if self.mask:
            X = np.concatenate([X, gone.any(axis=1, keepdims=True).astype(X.dtype)], axis=1)
        keep = ~bad if self.policy == "drop" else np.ones(len(X), dtype=bool)
        return X, keep

    def _note_infinite(self, X: NDArray[np.float32]) -> None:
        if not self.infinite and np.isinf(X).any():
            window, channel, time = np.argwhere(np.isinf(X))[0]
            self.infinite = f"window {self.rows + window}, channel {channel}, timepoint {time}"

    def _note(self, gone: NDArray[np.bool_], bad: NDArray[np.bool_]) -> None:
        if bad.any() and not self.first:
            window = int(np.flatnonzero(bad)[0])
            channel, time = np.argwhere(gone[window])[0]
            self.first = f"window {self.rows + window}, channel {channel}, timepoint {time}"
        self.rows += len(bad)
        self.bad += int(bad.sum())

    def finish(self, where: str) -> None:
        """After the last block: refuse, or say what was left out."""
        if self.infinite:
            raise DataError(
                f"{where} holds an infinite value, first in {self.infinite}: a finite number is "
                "wanted, or NaN for a missing sample"
            )
        if not self.bad:
            return
        if self.policy == "drop":
            log.warning("%s: left out %d of %d windows with gaps", where, self.bad, self.rows)
            return
        what = "missing samples" if self.policy == "error" else "gaps too long to fill"
        raise DataError(
            f"{where} has {what} in {self.bad} of {self.rows} windows, first in {self.first}: "
            "fill them, or choose missing='interpolate' (with max_gap=) or missing='drop'"
        )


def _inside(shape: tuple[int, ...], lengths: NDArray[np.int64] | None) -> NDArray[np.bool_]:
    """True where a sample is one, not padding."""
    if lengths is None:
        return np.ones(shape, dtype=bool)
    return np.broadcast_to(np.arange(shape[2]) < lengths[:, None, None], shape)


def gap_lengths(gone: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Longest run of True along the last axis; no end to a gap without any sample.

    >>> gap_lengths(np.array([[True, False, True, True, False], [False] * 5])).tolist()
    [2, 0]
    """
    t = gone.shape[-1]
    position = np.arange(1, t + 1)
    last_seen = np.maximum.accumulate(np.where(gone, 0, position), axis=-1)
    longest = np.where(gone, position - last_seen, 0).max(axis=-1)
    return np.where(gone.all(axis=-1), np.iinfo(np.int64).max, longest)


def fill_gaps(X: NDArray[np.float32], gone: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Straight lines over the gaps along time; at an end, the nearest sample.

    >>> X = np.array([[[1, np.nan, 3, np.nan]]], np.float32)
    >>> fill_gaps(X, np.isnan(X)).tolist()
    [[[1.0, 2.0, 3.0, 3.0]]]
    """
    filled = X.copy() if gone.any() else X
    position = np.arange(X.shape[2])
    for window, channel in np.argwhere(gone.any(axis=2) & ~gone.all(axis=2)):
        hole = gone[window, channel]
        known = filled[window, channel][~hole]
        filled[window, channel, hole] = np.interp(position[hole], position[~hole], known)
    return filled
