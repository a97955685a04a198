"""Probes: what a simple classifier makes of frozen embeddings, features or raw windows."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expclr import arrays
from expclr.errors import DataError
from expclr.evaluation.inputs import rows
from expclr.evaluation.linear_head import LinearHead, Scaling, fit_linear_head, standardise
from expclr.evaluation.scores import Scores, score

__all__ = [
    "LinearHead",
    "fit_linear_head",
    "knn1",
    "knn1_raw",
    "knn5",
    "knn_probe",
    "linear_probe",
    "linear_raw",
]

logger = logging.getLogger(__name__)

_SPOKEN = {"standard": "standardised", "raw": "raw"}


@dataclass(frozen=True, eq=False)
class _Split:
    """The labelled rows of both sides."""

    Z_train: NDArray[np.float64]
    y_train: NDArray[np.int64]
    Z_test: NDArray[np.float64]
    y_test: NDArray[np.int64]
    rows: NDArray[np.int64]
    asked: int


def linear_probe(
    Z_train: ArrayLike,
    y_train: ArrayLike,
    Z_test: ArrayLike,
    y_test: ArrayLike,
    *,
    scaling: Scaling = "standard",
    C: float = 1.0,
) -> Scores:
    """Converged logistic regression on (optionally) standardised columns.

    Parameters
    ----------
    Z_train, Z_test : arrays (n, e)
        Embeddings, expert features or raw windows; windows (n, c, t) are flattened.
    y_train, y_test : arrays (n,)
        Classes; rows with -1, None or NaN are left out.
    scaling : "standard" or "raw"
        Whether columns are brought to mean 0 and variance 1 (of train) first.
    C : float
        Inverse strength of the penalty, as in scikit-learn.

    Returns
    -------
    Scores
        A dict with accuracy, macro_f1, kappa, n_train, n_test, unseen_classes and converged;
        its attributes hold protocol, recall of each class and confusion matrix.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> found = linear_probe(Z, [0, 0, 1, 1], Z + 0.5, [0, 0, 1, 1])
    >>> found["accuracy"], found.protocol
    (1.0, 'linear, standardised')
    """
    data = _labelled(Z_train, y_train, Z_test, y_test)
    head = fit_linear_head(data.Z_train, data.y_train, scaling=scaling, C=C)
    found = _score(data, head.predict(data.Z_test), f"linear, {_SPOKEN[scaling]}")
    found["converged"] = float(head.converged)
    return found


def knn_probe(
    Z_train: ArrayLike,
    y_train: ArrayLike,
    Z_test: ArrayLike,
    y_test: ArrayLike,
    *,
    k: int = 1,
    scaling: Scaling = "raw",
) -> Scores:
    """Majority vote of the k nearest training rows (Euclidean, exact).

    The parameters are those of :func:`linear_probe`. The default scaling is raw: the distance
    of the embedding itself is what is judged.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> knn_probe(Z, [0, 0, 1, 1], Z + 0.4, [0, 0, 1, 1], k=1)["accuracy"]
    1.0
    """
    from sklearn.neighbors import KNeighborsClassifier

    data = _labelled(Z_train, y_train, Z_test, y_test)
    if not 1 <= k <= len(data.Z_train):
        raise DataError(f"k is {k}: 1 to {len(data.Z_train)}, the labelled windows, are wanted")
    mean, scale = standardise(data.Z_train, scaling)
    # Single precision halves the time; centring keeps its rounding small beside the spread.
    near = KNeighborsClassifier(n_neighbors=k, algorithm="brute")
    near.fit(((data.Z_train - mean) / scale).astype(np.float32), data.y_train)
    predicted = near.predict(((data.Z_test - mean) / scale).astype(np.float32))
    return _score(data, predicted, f"{k}-NN, {_SPOKEN[scaling]}")


linear_raw = partial(linear_probe, scaling="raw")
knn1 = partial(knn_probe, k=1, scaling="standard")
knn1_raw = partial(knn_probe, k=1, scaling="raw")
knn5 = partial(knn_probe, k=5, scaling="standard")


def _score(data: _Split, predicted: NDArray[np.int64], protocol: str) -> Scores:
    found = score(data.y_test, predicted, protocol=protocol, trained=data.y_train)
    found["n_train"] = float(len(data.y_train))
    found.rows, found.asked = data.rows, data.asked
    if found.unseen:
        logger.warning(
            "test holds classes that train lacks (%s): all of their windows count as errors",
            ", ".join(map(str, found.unseen)),
        )
    return found


def _labelled(
    Z_train: ArrayLike, y_train: ArrayLike, Z_test: ArrayLike, y_test: ArrayLike
) -> _Split:
    Z_train, Z_test = rows(Z_train, "Z_train"), rows(Z_test, "Z_test")
    if Z_train.shape[1] != Z_test.shape[1]:
        raise DataError(
            f"Z_train has {Z_train.shape[1]} columns and Z_test {Z_test.shape[1]}: embed both "
            "with the same encoder"
        )
    y_train = arrays.whole_numbers(y_train, "y_train", len(Z_train))
    y_test = arrays.whole_numbers(y_test, "y_test", len(Z_test))
    known, asked = y_train >= 0, y_test >= 0
    for side, mask in (("y_train", known), ("y_test", asked)):
        if not mask.any():
            raise DataError(f"{side} holds no label: a probe needs labelled windows on both sides")
    return _Split(
        Z_train[known],
        y_train[known],
        Z_test[asked],
        y_test[asked],
        np.flatnonzero(asked),
        len(y_test),
    )
