"""Search: the windows most like a given one, with what the distance says about features."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expclr.errors import DataError
from expclr.evaluation.certificates import Certificate
from expclr.evaluation.graph import Graph
from expclr.evaluation.inputs import embedding
from expclr.evaluation.nearest import nearest
from expclr.storage import new_folder, read_json, write_json

__all__ = ["NeighbourIndex", "Neighbours"]

FORMAT = 1
GRAPH = "graph.usearch"


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The k nearest windows of each of q queries, nearest first.

    Attributes
    ----------
    index : array (q, k) of int
        Their rows in the index.
    ids : array (q, k)
        Their names; the rows again when the index was given none.
    distance : array (q, k)
        Embedding distances.
    feature_low, feature_high : arrays (q, k) or None
        Between what the certificate says that the distance of expert features lies.
    """

    index: NDArray[np.int64]
    ids: NDArray[Any]
    distance: NDArray[np.float64]
    feature_low: NDArray[np.float64] | None = None
    feature_high: NDArray[np.float64] | None = None


class NeighbourIndex:
    """Search among embeddings: exact, or in a graph where there are too many for that.

    Parameters
    ----------
    Z : array (n, e)
        Embeddings; may be memory-mapped.
    ids : array (n,), optional
        Names of the windows, numbers or strings.
    certificate : Certificate, optional
        Of :func:`certify`: gives every hit its distance in units of expert features. It
        speaks of two windows drawn at random; that of :func:`certify_search` speaks of a
        query and its neighbours.
    approximate : bool
        Search in a graph, which takes long to build and then hardly any time among tens of
        millions of embeddings; it may miss a neighbour. Needs ``pip install "expclr[ann]"``.

    Examples
    --------
    >>> import numpy as np
    >>> index = NeighbourIndex(np.array([[0.0], [1.0], [5.0]]), ids=["a", "b", "c"])
    >>> found = index.search([[4.0]], k=2)
    >>> found.ids.tolist(), found.distance.tolist()
    ([['c', 'b']], [[1.0, 3.0]])
    """

    def __init__(
        self,
        Z: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        certificate: Certificate | None = None,
        approximate: bool = False,
    ) -> None:
        self.Z = embedding(Z, "Z")
        self.ids = None if ids is None else np.asarray(ids)
        self.certificate = certificate
        if self.ids is not None and self.ids.dtype.kind == "O":
            self.ids = self.ids.astype(str)
        if self.ids is not None and self.ids.shape != (len(self.Z),):
            raise DataError(
                f"ids has shape {self.ids.shape} for {len(self.Z)} embeddings: one each is wanted"
            )
        self.graph = Graph.of(self.Z) if approximate else None

    def __len__(self) -> int:
        return len(self.Z)

    def search(self, queries: ArrayLike, k: int = 10) -> Neighbours:
        """The k nearest embeddings of each query (q, e)."""
        queries = embedding(queries, "queries")
        if queries.shape[1] != self.Z.shape[1]:
            raise DataError(
                f"queries have {queries.shape[1]} columns, the index {self.Z.shape[1]}: embed "
                "both with the same encoder"
            )
        if not 1 <= k <= len(self):
            raise DataError(f"k is {k}: 1 to {len(self)}, the embeddings in the index, are wanted")
        return self._named(*self._nearest(queries, k))

    def similar(self, rows: ArrayLike, k: int = 10) -> Neighbours:
        """The k nearest embeddings of embeddings in the index, themselves left out."""
        rows = np.atleast_1d(np.asarray(rows))
        if not 1 <= k < len(self):
            raise DataError(f"k is {k}: 1 to {len(self) - 1}, the other embeddings, are wanted")
        distance, index = self._nearest(self.Z[rows], k + 1)
        # Twins may stand before the row itself, or in its place: then the last one goes.
        others = index != rows[:, None]
        others[others.all(axis=1), -1] = False
        shape = (len(rows), k)
        return self._named(distance[others].reshape(shape), index[others].reshape(shape))

    def _nearest(
        self, queries: NDArray[np.floating], k: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        if self.graph is None:
            return nearest(self.Z, queries, k)
        return self.graph.nearest(self.Z, queries, k)

    def _named(self, distance: NDArray[np.float64], index: NDArray[np.int64]) -> Neighbours:
        ids = index if self.ids is None else self.ids[index]
        if self.certificate is None:
            return Neighbours(index, ids, distance)
        return Neighbours(index, ids, distance, *self.certificate.feature_distance(distance))

    def save(self, path: str | Path) -> Path:
        """Write a folder of .npy files, meta.json and the graph, if there is one."""
        with new_folder(path) as folder:
            np.save(folder / "Z.npy", self.Z, allow_pickle=False)
            if self.ids is not None:
                np.save(folder / "ids.npy", self.ids, allow_pickle=False)
            if self.graph is not None:
                self.graph.save(folder / GRAPH)
            write_json(
                folder / "meta.json",
                {
                    "format": FORMAT,
                    "rows": len(self),
                    "certificate": None if self.certificate is None else self.certificate.record(),
                },
            )
        return Path(path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Open a folder written by ``save``; the embeddings stay on disk until they are used."""
        folder = Path(path)
        if not folder.is_dir():
            raise DataError(f"no folder {folder}: give a folder that NeighbourIndex.save wrote")
        meta = read_json(folder / "meta.json")
        if not isinstance(meta, dict) or meta.get("format") != FORMAT:
            raise DataError(f"{folder}/meta.json is not of format {FORMAT}: save the index again")
        try:
            Z = np.load(folder / "Z.npy", mmap_mode="r", allow_pickle=False)
            named = (folder / "ids.npy").exists()
            ids = np.load(folder / "ids.npy", allow_pickle=False) if named else None
            kept = meta.get("certificate")
            certificate = None if kept is None else Certificate.of_record(kept)
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"{folder} is not a readable index ({error}): save it again") from error
        index = cls(Z, ids=ids, certificate=certificate)
        if (folder / GRAPH).exists():
            index.graph = Graph.load(folder / GRAPH, index.Z)
        return index
