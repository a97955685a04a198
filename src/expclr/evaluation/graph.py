"""A graph of neighbours: search among more rows than can be compared one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from expclr.errors import ConfigError, DataError

__all__ = ["Graph"]

ADDED = 10_000  # rows added in one go
LOOKED_AT = 128  # rows the search keeps in sight: more finds more of the true neighbours
SPARE = 2  # times as many candidates as neighbours wanted


class Graph:
    """Hierarchical navigable small worlds (Malkov and Yashunin, 2018), by the library usearch.

    Nearly all true neighbours are found, in time that hardly grows with the rows. Distances are
    those of the embeddings themselves, in double precision.
    """

    def __init__(self, index: Any) -> None:
        self.index = index
        index.expansion_search = LOOKED_AT

    @classmethod
    def of(cls, Z: NDArray[np.floating]) -> Graph:
        """Build the graph of embeddings (n, e), which may be memory-mapped."""
        index = _kind()(ndim=Z.shape[1], metric="l2sq", dtype="f32")
        starts = range(0, len(Z), ADDED)
        for start in tqdm(starts, "graph", disable=len(starts) < 5 or None, leave=False):
            rows = np.asarray(Z[start : start + ADDED], np.float32)
            index.add(np.arange(start, start + len(rows)), rows)
        return cls(index)

    @classmethod
    def load(cls, path: Path, Z: NDArray[np.floating]) -> Graph:
        """Read what ``save`` wrote about these embeddings."""
        try:
            index = _kind().restore(str(path))
        except (RuntimeError, ValueError, OSError) as error:
            raise DataError(f"{path} is not a readable graph ({error}): save it again") from error
        if index is None or (len(index), index.ndim) != Z.shape:
            raise DataError(f"{path} is no graph of {len(Z)} x {Z.shape[1]} embeddings: save again")
        return cls(index)

    def save(self, path: Path) -> None:
        """Write a file in usearch's own format, which holds numbers only."""
        self.index.save(str(path))

    def nearest(
        self, Z: NDArray[np.floating], queries: NDArray[np.floating], k: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Distances (q, k) and rows (q, k) of the nearest rows found, nearest first."""
        count = min(len(Z), SPARE * k)
        found = self.index.search(np.asarray(queries, np.float32), count)
        rows = np.asarray(found.keys).reshape(len(queries), -1).astype(np.int64)
        if rows.shape[1] < k or not ((rows >= 0) & (rows < len(Z))).all():
            raise DataError("the graph is not of these embeddings: save the index again")
        distance = np.stack([_distances(Z[r], q) for r, q in zip(rows, queries, strict=True)])
        order = np.argsort(distance, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(distance, order, 1), np.take_along_axis(rows, order, 1)


def _distances(rows: NDArray[np.floating], query: NDArray[np.floating]) -> NDArray[np.float64]:
    distances: NDArray[np.float64] = np.linalg.norm(rows.astype(np.float64) - query, axis=1)
    return distances


def _kind() -> Any:
    try:
        from usearch.index import Index
    except ImportError as error:
        raise ConfigError(
            'approximate=True needs usearch: pip install "expclr[ann]", or leave it out'
        ) from error
    return Index
