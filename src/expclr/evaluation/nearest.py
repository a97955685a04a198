"""Exact nearest neighbours of a few queries among very many rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["nearest"]

CHUNK = 2_000  # rows compared in one go, a multiple of BUCKET: their distances stay near the cache
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
    # |z|^2 - 2 z q is one product when rows carry their square behind, and queries a one.
    weights = torch.cat([-2 * Q, Q.new_ones(len(Q), 1)], dim=1).T.contiguous()  # (e + 1, q)
    size, e = min(CHUNK, len(Z)), Z.shape[1]
    chunk, d2 = torch.empty(size, e + 1), torch.empty(size, len(Q))  # fresh memory costs more
    least = torch.empty(-(-len(Z) // BUCKET), len(Q))  # (buckets, q)
    largest = 0.0
    for start in range(0, len(Z), CHUNK):
        n = min(CHUNK, len(Z) - start)
        rows = chunk[:n, :e]
        np.subtract(Z[start : start + n], centre, out=rows.numpy(), casting="same_kind")
        torch.linalg.vecdot(rows, rows, out=chunk[:n, e])
        largest = max(largest, float(chunk[:n, e].max()))
        torch.mm(chunk[:n], weights, out=d2[:n])
        _bucket_minima(d2[:n], least[start // BUCKET : -(-(start + n) // BUCKET)])
    count = min(len(least), k + SPARE)
    values, buckets = least.T.contiguous().topk(count, largest=False)
    if count == len(least):
        return _Near(buckets.numpy(), np.full(len(Q), np.inf))
    squares_q = (Q.double() ** 2).sum(dim=1).numpy()
    rounding = 2.0**-22 * (Z.shape[1] + 8) * (squares_q + largest)
    return _Near(buckets.numpy(), values[:, -1].double().numpy() + squares_q - rounding)


def _bucket_minima(d2: torch.Tensor, least: torch.Tensor) -> None:
    whole = len(d2) // BUCKET
    if whole:
        torch.amin(d2[: whole * BUCKET].view(whole, BUCKET, -1), dim=1, out=least[:whole])
    if whole < len(least):
        torch.amin(d2[whole * BUCKET :], dim=0, out=least[whole])


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
