"""Exact nearest neighbours of a few queries among very many rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["nearest"]

CHUNK = 4_000  # rows compared in one go: their distances to 1,000 queries stay near the cache
BUCKET = 40  # neighbouring rows of which only the nearest is kept in the first pass
QUERIES = 1_000  # queries in one go
SPARE = 4  # buckets looked into beyond the k that must be


@dataclass(frozen=True, eq=False)
class _Near:
    """For each query the buckets that may hold its neighbours, and a limit for all others."""

    buckets: NDArray[np.int64]  # (q, k + SPARE)
    limit: NDArray[np.float64]  # (q,): no row elsewhere has a smaller squared distance


def nearest(
    Z: NDArray[np.floating], queries: NDArray[np.floating], k: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Euclidean distances (q, k) and row numbers (q, k) of the k nearest rows, nearest first.

    A first pass in single precision finds the buckets of rows worth looking into; distances
    within them are taken from differences in double precision. Where rounding in the first
    pass could have hidden a neighbour, that query is compared with every row.

    Examples
    --------
    >>> import numpy as np
    >>> distance, row = nearest(np.array([[0.0], [3.0], [1.0]]), np.array([[0.9]]), 2)
    >>> row.tolist(), distance.round(3).tolist()
    ([[2, 0]], [[0.1, 0.9]])
    """
    centre = Z[:: max(1, len(Z) // 10_000)].mean(axis=0, dtype=np.float64).astype(np.float32)
    distances = np.empty((len(queries), k))
    found = np.empty((len(queries), k), np.int64)
    for start in range(0, len(queries), QUERIES):
        part = slice(start, start + QUERIES)
        near = _first_pass(Z, queries[part], centre, k)
        for at, query in enumerate(queries[part]):
            distances[start + at], found[start + at] = _refine(
                Z, query, near.buckets[at], near.limit[at], k
            )
    return distances, found


def _first_pass(
    Z: NDArray[np.floating],
    queries: NDArray[np.floating],
    centre: NDArray[np.float32],
    k: int,
) -> _Near:
    # Products cancel less when rows and queries are small numbers.
    Q = torch.from_numpy((queries - centre).astype(np.float32, copy=False))
    least = torch.empty(-(-len(Z) // BUCKET), len(Q))  # (buckets, q)
    largest = 0.0
    for start in range(0, len(Z), CHUNK):
        chunk = torch.from_numpy((Z[start : start + CHUNK] - centre).astype(np.float32, copy=False))
        squares = (chunk**2).sum(dim=1, keepdim=True)
        largest = max(largest, float(squares.max()))
        d2 = torch.addmm(squares, chunk, Q.T, alpha=-2)  # (chunk, q), less |q|^2
        least[start // BUCKET : -(-(start + len(chunk)) // BUCKET)] = _bucket_minima(d2)
    count = min(len(least), k + SPARE)
    values, buckets = least.T.contiguous().topk(count, largest=False)
    if count == len(least):
        return _Near(buckets.numpy(), np.full(len(Q), np.inf))
    squares_q = (Q.double() ** 2).sum(dim=1).numpy()
    rounding = 2.0**-22 * (Z.shape[1] + 8) * (squares_q + largest)
    return _Near(buckets.numpy(), values[:, -1].double().numpy() + squares_q - rounding)


def _bucket_minima(d2: torch.Tensor) -> torch.Tensor:
    whole = len(d2) // BUCKET * BUCKET
    minima = d2[:whole].view(-1, BUCKET, d2.shape[1]).amin(dim=1)
    if whole == len(d2):
        return minima
    return torch.cat([minima, d2[whole:].amin(dim=0, keepdim=True)])


def _refine(
    Z: NDArray[np.floating],
    query: NDArray[np.floating],
    buckets: NDArray[np.int64],
    limit: float,
    k: int,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rows = (np.sort(buckets)[:, None] * BUCKET + np.arange(BUCKET)).ravel()
    rows = rows[rows < len(Z)]
    d2 = _squared(Z[rows], query)
    best = np.argsort(d2, kind="stable")[:k]
    if len(best) < k or d2[best[-1]] > limit:
        d2 = np.concatenate([_squared(Z[at : at + CHUNK], query) for at in range(0, len(Z), CHUNK)])
        rows, best = np.arange(len(Z)), np.argsort(d2, kind="stable")[:k]
    return np.sqrt(d2[best]), rows[best]


def _squared(Z: NDArray[np.floating], query: NDArray[np.floating]) -> NDArray[np.float64]:
    difference = Z.astype(np.float64) - query
    return np.einsum("ne,ne->n", difference, difference)
