"""Embeddings and labels as users give them, checked before any work starts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expclr import arrays
from expclr.errors import DataError

__all__ = ["check_disjoint", "embedding", "rows"]


def rows(Z: ArrayLike, what: str) -> NDArray[np.float64]:
    """One finite float64 row a window; further axes are flattened."""
    return embedding(Z, what).astype(np.float64)


def embedding(Z: ArrayLike, what: str) -> NDArray[Any]:
    """One finite row a window in the precision it was given in, float32 or float64."""
    array = arrays.numbers(Z, what)
    if array.ndim < 2 or 0 in array.shape:
        raise DataError(f"{what} has shape {array.shape}: (n, e) with a row a window is wanted")
    array = array.reshape(len(array), -1)
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    if np.isfinite(array.sum(dtype=np.float64)):  # one pass without a copy, as a rule
        return array
    bad = ~np.isfinite(array).all(axis=1)
    if bad.any():
        raise DataError(
            f"{what} holds NaN or inf in {int(bad.sum())} of {len(array)} rows, first in row "
            f"{int(bad.argmax())}: fill or drop them first"
        )
    return array


def check_disjoint(group_train: ArrayLike, group_test: ArrayLike) -> None:
    """Refuse groups that are on both sides, and name them."""
    both = np.intersect1d(np.asarray(group_train).astype(str), np.asarray(group_test).astype(str))
    if len(both):
        named = ", ".join(both[:10]) + (", ..." if len(both) > 10 else "")
        raise DataError(
            f"{len(both)} groups are in train and in test ({named}): the result would not hold "
            "for new ones; split with Windows.split_by_group"
        )
