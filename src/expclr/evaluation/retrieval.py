"""How good a search is: by label, by expert features, and with a certificate of its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from expclr import arrays
from expclr.errors import DataError
from expclr.evaluation.certificates import Certificate, certify_ratios
from expclr.evaluation.distances import Rows
from expclr.evaluation.inputs import rows
from expclr.evaluation.nearest import nearest

__all__ = ["certify_search", "retrieval_quality"]

BLOCK = 1_000_000  # pairs of query and row compared in one go


def retrieval_quality(
    Z: ArrayLike,
    Z_query: ArrayLike,
    *,
    y: ArrayLike | None = None,
    y_query: ArrayLike | None = None,
    F: ArrayLike | None = None,
    F_query: ArrayLike | None = None,
    k: int = 10,
) -> dict[str, float]:
    """Search every query among the rows of Z, and judge the k hits.

    Parameters
    ----------
    Z, Z_query : arrays (n, e) and (q, e)
        Embeddings of the windows to be found and of the windows asked about, for example of
        train and test.
    y, y_query : arrays, optional
        Classes, -1 where not known; such windows take no part in the precision.
    F, F_query : arrays, optional
        Expert features as scaled for training; NaN where missing.
    k : int

    Returns
    -------
    dict
        ``precision``: share of hits of the query's class, and ``precision_by_chance``.
        ``agreement``: share of the k nearest by expert features that are among the hits, and
        ``agreement_by_chance``.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.arange(8.0)[:, None]
    >>> found = retrieval_quality(Z, Z + 0.1, y=[0] * 4 + [1] * 4, y_query=[0] * 4 + [1] * 4, k=2)
    >>> found["precision"], found["precision_by_chance"]
    (0.9375, 0.5)
    """
    Z, Z_query = rows(Z, "Z"), rows(Z_query, "Z_query")
    if not 1 <= k <= len(Z):
        raise DataError(f"k is {k}: 1 to {len(Z)}, the rows of Z, are wanted")
    result: dict[str, float] = {"k": float(k)}
    if y is not None and y_query is not None:
        labels = arrays.whole_numbers(y, "y", len(Z))
        asked = arrays.whole_numbers(y_query, "y_query", len(Z_query))
        result |= _precision(Z, Z_query, labels, asked, k)
    if F is not None and F_query is not None:
        result |= _agreement(Z, Z_query, _together(F, F_query, len(Z), len(Z_query)), k)
    if len(result) == 1:
        raise DataError("nothing to judge hits by: give y and y_query, or F and F_query")
    return result


def certify_search(
    Z: ArrayLike,
    F: ArrayLike,
    Z_query: ArrayLike,
    F_query: ArrayLike,
    *,
    k: int = 1,
    confidence: float = 0.95,
    holds: float | None = None,
    random_state: int = 0,
) -> Certificate:
    """The certificate of what a search returns, rather than of two windows drawn at random.

    Neighbours are no random pairs: where the embedding errs, it errs towards showing them.
    Each query is paired with one of its k nearest rows of Z, drawn at random; as Z stays the
    same, these pairs are as independent as the queries are.

    Parameters
    ----------
    Z, F : arrays (n, e) and (n, d)
        Embeddings and expert features of the indexed windows.
    Z_query, F_query : arrays (q, e) and (q, d)
        Of held-out windows.
    k : int
        How many hits a search shows.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> F, F_query = rng.normal(size=(500, 3)), rng.normal(size=(300, 3))
    >>> found = certify_search(F / 2, F, F_query / 2, F_query, k=5)
    >>> round(found.lower, 3), round(found.upper, 3), found.n_pairs
    (2.0, 2.0, 300)
    """
    Z, Z_query = rows(Z, "Z"), rows(Z_query, "Z_query")
    features = _together(F, F_query, len(Z), len(Z_query))
    if not 1 <= k <= len(Z):
        raise DataError(f"k is {k}: 1 to {len(Z)}, the rows of Z, are wanted")
    distance, hits = nearest(Z, Z_query, k)
    queries = np.arange(len(Z_query))
    drawn = np.random.default_rng(random_state).integers(0, k, len(queries))
    z = distance[queries, drawn]
    f = features.pairs(hits[queries, drawn], len(Z) + queries)
    kept = ~np.isnan(f) & ((f > 0) | (z > 0))
    with np.errstate(divide="ignore"):
        ratios = f[kept] / z[kept]
    return certify_ratios(
        ratios,
        confidence=confidence,
        holds=holds,
        subject=f"a new window and one of its {k} nearest of {len(Z):,} indexed windows",
        left_out=int((~kept).sum()),
    )


def _together(F: ArrayLike, F_query: ArrayLike, n: int, q: int) -> Rows:
    features = arrays.features(F, n).astype(np.float64)
    asked = arrays.features(F_query, q).astype(np.float64)
    if features.shape[1] != asked.shape[1]:
        raise DataError(
            f"F has {features.shape[1]} columns and F_query {asked.shape[1]}: the same features "
            "are wanted"
        )
    return Rows.of(np.vstack([features, asked]), "F", gaps=True)


def _precision(
    Z: NDArray[np.float64],
    Z_query: NDArray[np.float64],
    y: NDArray[np.int64],
    asked: NDArray[np.int64],
    k: int,
) -> dict[str, float]:
    Z, y = Z[y >= 0], y[y >= 0]
    Z_query, asked = Z_query[asked >= 0], asked[asked >= 0]
    if len(Z) < k or not len(asked):
        raise DataError(f"{len(Z)} labelled rows and {len(asked)} labelled queries: too few for k")
    _, hits = nearest(Z, Z_query, k)
    classes, counts = np.unique(y, return_counts=True)
    share = dict(zip(classes.tolist(), counts / len(y), strict=True))
    return {
        "precision": float((y[hits] == asked[:, None]).mean()),
        "precision_by_chance": float(np.mean([share.get(c, 0.0) for c in asked.tolist()])),
    }


def _agreement(
    Z: NDArray[np.float64], Z_query: NDArray[np.float64], features: Rows, k: int
) -> dict[str, float]:
    _, hits = nearest(Z, Z_query, k)
    n, q = len(Z), len(Z_query)
    common = 0
    step = max(1, BLOCK // n)
    for start in tqdm(range(0, q, step), desc="neighbours by features", disable=None, delay=2):
        stop = min(q, start + step)
        d = features.block(slice(n + start, n + stop), slice(0, n))
        np.nan_to_num(d, copy=False, nan=np.inf)  # nothing shared: not a neighbour
        wanted = np.argpartition(d, k - 1, axis=1)[:, :k]
        common += int((hits[start:stop, :, None] == wanted[:, None, :]).sum())
    return {"agreement": common / (q * k), "agreement_by_chance": k / n}
