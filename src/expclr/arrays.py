"""Arrays as users give them, made into arrays that can be relied on, or refused in one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expclr.errors import DataError

__all__ = [
    "class_codes",
    "features",
    "groups",
    "numbers",
    "pad",
    "positive",
    "real_lengths",
    "signal",
    "unmasked",
    "whole_numbers",
]


def class_codes(y: ArrayLike) -> tuple[ArrayLike, tuple[str, ...]]:
    """Whole numbers stay as they are; names become positions in their sorted list."""
    values = np.asarray(y)
    if values.dtype.kind not in "OUS":
        return y, ()
    unknown = np.array([v is None or v != v or v in ("", -1) for v in values.ravel()], dtype=bool)
    names = sorted({str(v) for v in values[~unknown]})
    index = {name: i for i, name in enumerate(names)}
    return np.array(
        [-1 if u else index[str(v)] for v, u in zip(values, unknown, strict=True)]
    ), tuple(names)


def pad(series: Sequence[Any]) -> tuple[NDArray[np.float32], NDArray[np.int64] | None]:
    arrays = [np.atleast_2d(numbers(s, "X")) for s in series]
    shapes = {a.shape for a in arrays}
    if len(shapes) == 1:
        return np.stack(arrays), None
    channels = {a.shape[0] for a in arrays}
    if len(channels) > 1 or any(a.ndim != 2 for a in arrays):
        raise DataError(
            f"the series have {sorted(channels)} channels: each must be (c, t_i) with the same c"
        )
    lengths = np.array([a.shape[1] for a in arrays])
    X = np.zeros((len(arrays), arrays[0].shape[0], lengths.max()), np.float32)
    for row, a in zip(X, arrays, strict=True):
        row[:, : a.shape[1]] = a
    return X, lengths


def unmasked(values: Any) -> Any:
    """A masked array as numbers, NaN where it is masked; anything else as it is.

    >>> unmasked(np.ma.masked_equal([1, 0], 0)).tolist()
    [1.0, nan]
    """
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.filled(values.astype(np.float64), np.nan)
    return values


def numbers(values: Any, what: str) -> NDArray[Any]:
    """An array of real numbers; object arrays only when every entry is a number."""
    try:
        array = np.asarray(unmasked(values))
    except ValueError as error:
        raise DataError(f"{what} is ragged ({error}): give a list of (c, t_i) arrays") from error
    if array.dtype.kind == "c":
        raise DataError(f"Complex data not supported: {what} is {array.dtype}; give real numbers")
    if array.dtype.kind == "O":
        return _from_objects(array, what)
    if array.dtype.kind not in "biuf":
        raise DataError(f"{what} is of type {array.dtype}: numbers are wanted")
    return array


def _from_objects(array: NDArray[Any], what: str) -> NDArray[np.float64]:
    try:
        return array.astype(np.float64)
    except (ValueError, TypeError) as error:
        raise DataError(f"{what} is an object array ({error}): give an array of numbers") from error


def signal(X: Any) -> NDArray[np.float32]:
    array = numbers(X, "X")
    if array.ndim == 2:
        array = array[:, None, :]
    if array.ndim != 3:
        raise DataError(
            f"X has shape {array.shape}; wanted is (n, c, t), (n, t) or a list of (c, t_i). "
            "Reshape your data"
        )
    n, c, t = array.shape
    if n == 0:
        raise DataError(f"X has shape {(n, c, t)}, 0 sample(s): at least 1 window is required")
    if c == 0 or t == 0:
        raise DataError(
            f"0 feature(s) (shape=({n}, 0)) while a minimum of 1 is required: X has no timepoints"
        )
    return array if array.dtype == np.float32 else array.astype(np.float32)


def features(F: Any, n: int) -> NDArray[np.floating[Any]]:
    array = numbers(F, "F")
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or len(array) != n or array.shape[1] == 0:
        raise DataError(
            f"F has shape {array.shape} for {n} windows: ({n}, d) is wanted, a row each"
        )
    if np.isinf(array).any():
        raise DataError(
            f"F holds {int(np.isinf(array).sum())} infinite values: use NaN for missing"
        )
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def whole_numbers(values: Any, what: str, n: int) -> NDArray[np.int64]:
    array = numbers(values, what)
    if array.shape != (n,):
        raise DataError(f"{what} has shape {array.shape} for {n} windows: one value each is wanted")
    filled = np.where(np.isnan(array), -1, array) if array.dtype.kind == "f" else array
    whole = filled.astype(np.int64)
    if (whole != filled).any() or (whole < -1).any():
        raise DataError(f"{what} must hold whole numbers from 0, or -1 for unknown: encode them so")
    return whole


def groups(values: Any, n: int) -> NDArray[Any]:
    array = np.asarray(values)
    if array.dtype.kind == "O":
        array = array.astype(str)
    if array.shape != (n,):
        raise DataError(f"group has shape {array.shape} for {n} windows: one value each is wanted")
    return array


def real_lengths(values: Any, X: NDArray[np.float32]) -> NDArray[np.int64]:
    lengths = whole_numbers(values, "lengths", len(X))
    if lengths.min() < 1 or lengths.max() > X.shape[2]:
        raise DataError(
            f"lengths go from {lengths.min()} to {lengths.max()}: wanted are 1 to {X.shape[2]}"
        )
    return lengths


def positive(value: Any, what: str) -> float:
    number = float(value)
    if not (np.isfinite(number) and number > 0):
        raise DataError(f"{what} is {value}: a positive number is wanted")
    return number
