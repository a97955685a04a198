"""Which windows to label next: those that stand for most of what is not known yet."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expclr import arrays
from expclr.errors import DataError
from expclr.evaluation.inputs import rows
from expclr.evaluation.linear_head import fit_linear_head

__all__ = ["suggest_labels"]

SAMPLE = 5_000  # windows that are compared with each other: 100 MB of similarities
BLOCK = 500  # columns of similarities looked at in one go

Array = NDArray[np.floating[Any]]
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

    A labelled window stands for those around it, as far as each lies within the reach that a
    window has where it is: dense regions have short reaches. Windows are chosen one after the
    other so that as many as possible are stood for: typical ones of different regions. Once two
    classes are known, a window counts by how uncertain the linear head is about it.

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
    order = np.random.default_rng(random_state).permutation(len(Z))
    # Labelled windows first: what they stand for must not be asked for again.
    order = order[np.argsort(~known[order], kind="stable")]
    half = min(int(known.sum()), SAMPLE // 2)
    sample = np.concatenate([order[:half], order[known.sum() :][: SAMPLE - half]])
    chosen = sample[_cover(Z, sample, known[sample], _uncertain(Z, sample, known, classes), n)]
    if len(chosen) == n:
        return chosen
    rest = order[~known[order] & ~np.isin(order, chosen)]
    return np.concatenate([chosen, rest[: n - len(chosen)]])


def _uncertain(Z: Array, sample: Rows, known: Mask, classes: Rows) -> Array:
    """One less the gap of probability between the two best classes; 1 while nothing is known.

    On held-out training subjects of UCI HAR this did better than entropy, with a trained and
    with an untrained encoder; taking the most uncertain windows themselves did worse than chance.
    """
    taught = known & (classes >= 0)
    if len(np.unique(classes[taught])) < 2:
        return np.ones(len(sample))
    p = fit_linear_head(Z[taught], classes[taught]).predict_proba(Z[sample])
    second, best = np.sort(p, axis=1)[:, -2:].T
    return 1 - (best - second)


def _cover(Z: Array, sample: Rows, known: Mask, weight: Array, n: int) -> Rows:
    """Up to n unlabelled rows of the sample, each the one that adds most to what is stood for.

    What a window would add only shrinks as others are chosen, so an old value is an upper limit:
    most need not be looked at again.
    """
    K = _similarities(Z[sample], max(1, len(sample) // (n + int(known.sum()))))
    covered = K[known].max(axis=0) if known.any() else np.zeros(len(K), K.dtype)
    weight = weight.astype(K.dtype)
    blocks = [slice(start, start + BLOCK) for start in range(0, len(K), BLOCK)]
    gain = np.concatenate([np.maximum(K[at] - covered, 0) @ weight for at in blocks])
    gain[known] = -1
    chosen: list[int] = []
    while len(chosen) < min(n, int((~known).sum())):
        best = int(gain.argmax())
        gain[best] = -1
        adds = np.maximum(K[best] - covered, 0) @ weight
        if adds < gain.max():
            gain[best] = adds
            continue
        chosen.append(best)
        covered = np.maximum(covered, K[best])
    return np.array(chosen, np.int64)


def _similarities(Z: Array, reach: int) -> NDArray[np.float32]:
    """exp(-d_ij^2 / (2 r_i r_j)), where r_i is the distance to the reach-th nearest window."""
    centred = (Z - Z.mean(axis=0)).astype(np.float32)
    squares = (centred**2).sum(axis=1)
    d2 = centred @ centred.T
    d2 *= -2
    d2 += squares[:, None]
    d2 += squares
    np.maximum(d2, 0, out=d2)
    np.fill_diagonal(d2, 0)
    blocks = [slice(start, start + BLOCK) for start in range(0, len(Z), BLOCK)]
    at = min(reach, len(Z) - 1)
    r = np.sqrt(np.concatenate([np.partition(d2[rows], at, axis=1)[:, at] for rows in blocks]))
    r = np.maximum(r, np.median(r) * 1e-3 or 1e-12)
    d2 /= -2 * r[:, None]
    d2 /= r
    return np.exp(d2, out=d2)


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
