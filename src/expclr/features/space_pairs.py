"""Distances over all pairs of a dataset: the largest, and which coordinates they come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances
from tqdm import tqdm

from expclr.errors import ConfigError, DataError

__all__ = ["coordinate_shares", "draw_rows", "pair_reference"]

_ROWS_AT_ONCE = 512


def draw_rows(n: int, size: int, random_state: int | None) -> NDArray[np.int64]:
    """All rows, or ``size`` of them drawn without replacement."""
    if n <= size:
        return np.arange(n)
    return np.sort(np.random.default_rng(random_state).choice(n, size, replace=False))


def pair_reference(Z: NDArray[Any], quantile: float) -> float:
    """A quantile of the missing-aware distances over all pairs of rows; 1 is their maximum."""
    if not 0 < quantile <= 1:
        raise ConfigError(f"quantile is {quantile}: give a number above 0 and up to 1")
    blocks = _distances_above_diagonal(*_centred(Z))
    if quantile == 1:
        return max(float(np.fmax.reduce(block, initial=0.0)) for block in blocks)
    distances = np.concatenate([block.astype(np.float32) for block in blocks])
    return float(np.quantile(distances[~np.isnan(distances)], quantile))


def coordinate_shares(Z: NDArray[Any]) -> NDArray[np.float64]:
    """The share of each coordinate (d,) in the mean squared distance over all pairs of rows."""
    A, present = _centred(Z)
    total = (A**2).sum(axis=0) if present.all() else _summed_differences(A, present)
    return total / total.sum()


def _centred(Z: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Z (n, d) about its mean with 0 where missing, and where it is not."""
    present = ~np.isnan(Z)
    low, high = np.fmin.reduce(Z, axis=0), np.fmax.reduce(Z, axis=0)
    if not (high > low).any():
        raise DataError(
            "no two rows of F differ in a value both have: the pair distances say nothing. "
            "Give more windows or other features"
        )
    filled = np.where(present, Z, 0.0)
    mean = filled.sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    return np.where(present, filled - mean, 0.0), present


def _distances_above_diagonal(
    A: NDArray[np.float64], present: NDArray[np.bool_]
) -> Iterator[NDArray[np.float64]]:
    """Distances (pairs,) in blocks of rows; NaN for pairs that share no coordinate."""
    seen = None if present.all() else present.astype(np.float64)
    starts = range(0, len(A), _ROWS_AT_ONCE)
    for start in tqdm(starts, desc="pair distances", delay=2, disable=None):
        rows = min(_ROWS_AT_ONCE, len(A) - start)
        if seen is None:
            block = euclidean_distances(A[start : start + rows], A[start:])
        else:
            block = _masked_distances(A[start:], seen[start:], rows)
        yield block[np.triu_indices(rows, 1, len(A) - start)]


def _masked_distances(
    A: NDArray[np.float64], seen: NDArray[np.float64], rows: int
) -> NDArray[np.float64]:
    """Of the first rows to all: over what both have, the square times d / shared."""
    square = A**2
    squares = square[:rows] @ seen.T + seen[:rows] @ square.T - 2 * A[:rows] @ A.T
    shared = seen[:rows] @ seen.T
    scaled = np.full_like(shared, np.nan)
    np.divide(np.maximum(squares, 0) * A.shape[1], shared, out=scaled, where=shared > 0)
    return np.sqrt(scaled)


def _summed_differences(A: NDArray[np.float64], present: NDArray[np.bool_]) -> NDArray[np.float64]:
    # Sum over pairs of w_ij (a_i - a_j)^2 with w_ij = 1 / shared_ij, the rescaling of the
    # masked distance, opened up so that no (n, n, d) array is needed.
    seen = present.astype(np.float64)
    total = np.zeros(A.shape[1])
    for start in range(0, len(A), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        shared = seen[rows] @ seen.T  # (rows, n)
        weight = np.divide(1, shared, out=np.zeros_like(shared), where=shared > 0)
        total += (A[rows] ** 2 * (weight @ seen)).sum(0) - (A[rows] * (weight @ A)).sum(0)
    return np.maximum(total, 0.0)
