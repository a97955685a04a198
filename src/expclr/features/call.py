"""Call a feature extractor on a few windows; whatever goes wrong is said with its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from expclr.arrays import numbers
from expclr.errors import ConfigError, DataError

__all__ = ["Block", "Function", "call"]

Function = Callable[[NDArray[Any], float], Any]


class Block(NamedTuple):
    """Features of a few windows (k, d), and the names of the columns if the function has any."""

    rows: NDArray[np.int64]
    F: NDArray[np.float64]
    columns: tuple[str, ...] | None


def call(
    name: str, function: Function, x: NDArray[Any], sfreq: float, rows: NDArray[np.int64]
) -> Block:
    """Features of ``x`` (k, c, t), whose windows have the numbers ``rows``."""
    x = np.array(x)  # the function may write into it
    try:
        result = function(x, sfreq)
    except ConfigError:  # a library that is not installed fails on no window in particular
        raise
    except Exception as error:
        where = _place(rows[_failing(function, x, sfreq)])
        raise DataError(
            f"feature extractor {name!r} failed on {where}: {type(error).__name__}: {error}"
        ) from error
    try:
        F = numbers(result, "its result").astype(np.float64)
    except DataError as error:
        raise DataError(f"feature extractor {name!r} on {_place(rows)}: {error}") from error
    if F.ndim != 2 or len(F) != len(x) or F.shape[1] == 0:
        raise DataError(
            f"feature extractor {name!r} made an array of shape {F.shape} of {_place(rows)}: "
            f"({len(x)}, d) is wanted, a row for each window"
        )
    if np.isinf(F).any():
        row, column = np.argwhere(np.isinf(F))[0]
        raise DataError(
            f"feature extractor {name!r} made an infinite value in column {column} of window "
            f"{rows[row]}: NaN is for what is not defined"
        )
    columns = tuple(map(str, result.columns)) if hasattr(result, "columns") else None
    return Block(rows, F, columns)


def _failing(function: Function, x: NDArray[Any], sfreq: float) -> slice:
    """The first window that fails alone, or all of them."""
    for i in range(len(x)):
        try:
            function(x[i : i + 1], sfreq)
        except Exception:
            return slice(i, i + 1)
    return slice(None)


def _place(rows: NDArray[np.int64]) -> str:
    return f"window {rows[0]}" if len(rows) == 1 else f"windows {rows[0]} to {rows[-1]}"
