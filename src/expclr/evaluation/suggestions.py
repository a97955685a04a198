"""Which windows to label next: typical and diverse ones first, then telling ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expclr import arrays
from expclr.errors import DataError
from expclr.evaluation.inputs import rows
from expclr.evaluation.linear_head import fit_linear_head
from expclr.evaluation.nearest import nearest

__all__ = ["suggest_labels"]

REFERENCE = 5_000  # windows against which it is measured how typical one is
NEIGHBOURS = 10
CLUSTERS = 500  # most clusters made at once

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


def suggest_labels(
    Z: ArrayLike,
    n: int,
    labelled: ArrayLike | None = None,
    *,
    y: ArrayLike | None = None,
    random_state: int = 0,
) -> Rows:
    """The n windows whose labels would teach most, the most useful first.

    While no two classes are known: one typical window of each region that has no label yet.
    After that: one of each region in which the linear head is unsure about many windows,
    weighed by how typical it is.

    Parameters
    ----------
    Z : array (m, e)
        Embeddings of all windows.
    n : int
        How many to suggest.
    labelled : array, optional
        Rows that have a label, or a mask (m,) of bool; default those with a class in ``y``.
    y : array (m,), optional
        Classes, -1 where not known.

    Returns
    -------
    array (n,) of int
        Rows of Z without a label.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.repeat([[0.0], [5.0], [9.0]], 20, axis=0)
    >>> Z += np.random.default_rng(0).normal(size=Z.shape) / 10
    >>> sorted((suggest_labels(Z, 3) // 20).tolist())
    [0, 1, 2]
    >>> (suggest_labels(Z, 1, labelled=[0, 59]) // 20).tolist()
    [1]
    """
    Z = rows(Z, "Z")
    classes = _classes(len(Z), y)
    known = _known(len(Z), labelled, classes)
    if not 1 <= n <= int((~known).sum()):
        raise DataError(
            f"n is {n}: 1 to {int((~known).sum())}, the windows without a label, are wanted"
        )
    typical = _typical(Z, np.random.default_rng(random_state))
    taught = classes[known & (classes >= 0)]
    if len(np.unique(taught)) < 2:
        return _start(Z, n, known, typical, random_state)
    return _telling(Z, n, known, classes, typical, random_state)


def _start(Z: Array, n: int, known: Mask, typical: Array, random_state: int) -> Rows:
    """The most typical window of each of the largest regions that hold no label."""
    region = _regions(Z, n + int(known.sum()), random_state)
    size, taught = np.bincount(region), np.bincount(region[known], minlength=region.max() + 1)
    # Few labels first, then many windows: regions are gone round until n are chosen.
    turns = np.lexsort([-size, taught])
    return _in_turn(np.flatnonzero(~known), region, typical, turns, n)


def _telling(
    Z: Array, n: int, known: Mask, classes: Rows, typical: Array, random_state: int
) -> Rows:
    """One window of each of the regions with the most uncertainty in all.

    A window is uncertain as far as its two best classes are equally probable. The sum over a
    region is its mean uncertainty times how many windows it stands for. Both choices were made
    on held-out training subjects of UCI HAR, with a trained and an untrained encoder: entropy
    did worse, and taking the most uncertain windows themselves did worse than chance.
    """
    taught, candidates = known & (classes >= 0), np.flatnonzero(~known)
    p = fit_linear_head(Z[taught], classes[taught]).predict_proba(Z[candidates])
    second, best = np.sort(p, axis=1)[:, -2:].T
    uncertain = np.zeros(len(Z))
    uncertain[candidates] = 1 - (best - second)
    region = _regions(Z, n + int(known.sum()), random_state)
    turns = np.argsort(-np.bincount(region, weights=uncertain), kind="stable")
    return _in_turn(candidates, region, uncertain * typical, turns, n)


def _in_turn(candidates: Rows, region: Rows, value: Array, turns: Rows, n: int) -> Rows:
    """The best candidate of each region in the order of ``turns``, then the second best, ..."""
    ordered = candidates[np.argsort(-value[candidates], kind="stable")]
    place = np.empty(len(turns), np.int64)
    place[turns] = np.arange(len(turns))
    by_region = np.argsort(region[ordered], kind="stable")
    counts = np.bincount(region[ordered], minlength=len(turns))
    round_ = np.empty(len(ordered), np.int64)
    round_[by_region] = np.concatenate([np.arange(c) for c in counts])
    return ordered[np.lexsort([place[region[ordered]], round_])][:n]


def _typical(Z: Array, rng: np.random.Generator) -> Array:
    """One over the mean distance to the nearest windows of a reference sample."""
    reference = Z[np.sort(rng.permutation(len(Z))[:REFERENCE])]
    # Nearest of all is the window itself where it belongs to the sample: of no weight then.
    distance, _ = nearest(reference, Z, min(NEIGHBOURS + 1, len(reference)))
    spread = distance.mean(axis=1)
    floor = np.median(spread) * 1e-3
    return 1 / np.maximum(spread, floor if floor > 0 else 1.0)


def _regions(Z: Array, count: int, random_state: int) -> Rows:
    """k-means clusters, numbered without gaps; each distinct row one when there are no more."""
    from sklearn.cluster import KMeans, MiniBatchKMeans

    distinct, region = np.unique(Z, axis=0, return_inverse=True)
    count = min(count, CLUSTERS)
    if len(distinct) > count:
        model = KMeans if len(Z) <= REFERENCE else MiniBatchKMeans
        region = model(count, n_init=1, max_iter=30, random_state=random_state).fit_predict(Z)
        region = np.unique(region, return_inverse=True)[1]
    return region.ravel().astype(np.int64)


def _classes(m: int, y: ArrayLike | None) -> Rows:
    return np.full(m, -1) if y is None else arrays.whole_numbers(y, "y", m)


def _known(m: int, labelled: ArrayLike | None, classes: Rows) -> Mask:
    if labelled is None:
        return classes >= 0
    given = np.asarray(labelled)
    if given.dtype == bool and given.shape == (m,):
        return given
    known = np.zeros(m, dtype=bool)
    if given.size and (given.dtype.kind not in "iu" or given.min() < 0 or given.max() >= m):
        raise DataError(f"labelled must hold rows from 0 to {m - 1}, or a mask of {m} bools")
    known[given.astype(np.int64)] = True
    return known
