"""A fitted linear classifier as plain arrays: what a linear probe is, and what predict uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax

from expclr import arrays
from expclr.errors import ConfigError, DataError
from expclr.evaluation.inputs import rows
from expclr.evaluation.logistic import fit_logistic

__all__ = ["LinearHead", "Scaling", "fit_linear_head", "standardise"]

Scaling = Literal["standard", "raw"]


@dataclass(frozen=True, eq=False)
class LinearHead:
    """Class c of an embedding z is argmax of W z + b; the scaling is folded into both.

    Parameters
    ----------
    W : array (C, e)
        A row for each class; two rows when there are two classes.
    b : array (C,)
    classes : array (C,) of int, optional
        The class that each row stands for; default 0 ... C - 1.
    converged : bool
        Whether the fit reached its minimum.

    Examples
    --------
    >>> import numpy as np
    >>> head = LinearHead(np.array([[1.0], [-1.0]]), np.zeros(2), np.array([3, 5]))
    >>> head.predict([[2.0], [-2.0]]).tolist()
    [3, 5]
    """

    W: NDArray[np.float64]
    b: NDArray[np.float64]
    classes: NDArray[np.int64] = None  # type: ignore[assignment]  # set below
    converged: bool = True

    def __post_init__(self) -> None:
        if self.classes is None:
            object.__setattr__(self, "classes", np.arange(len(self.W)))

    def decision_function(self, Z: ArrayLike) -> NDArray[np.float64]:
        """Logits (n, C)."""
        Z = rows(Z, "Z")
        if Z.shape[1] != self.W.shape[1]:
            raise DataError(
                f"Z has {Z.shape[1]} columns, the head was fitted on {self.W.shape[1]}: embed "
                "both with the same encoder"
            )
        return Z @ self.W.T + self.b

    def predict(self, Z: ArrayLike) -> NDArray[np.int64]:
        """The most probable class of each row."""
        return self.classes[self.decision_function(Z).argmax(axis=1)]

    def predict_proba(self, Z: ArrayLike) -> NDArray[np.float64]:
        """The probability of each class (n, C), in the order of ``classes``."""
        return softmax(self.decision_function(Z), axis=1)


def fit_linear_head(
    Z: ArrayLike, y: ArrayLike, *, scaling: Scaling = "standard", C: float = 1.0
) -> LinearHead:
    """Fit logistic regression to convergence on the labelled rows.

    Parameters
    ----------
    Z : array (n, e)
        Embeddings, expert features or raw windows; windows (n, c, t) are flattened.
    y : array (n,) of int
        Classes; rows with -1 or NaN are left out.
    scaling : "standard" or "raw"
        Whether columns are brought to mean 0 and variance 1 first.
    C : float
        Inverse strength of the penalty, as in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> head = fit_linear_head(np.array([[0.0], [1.0], [9.0], [10.0]]), [0, 0, 1, 1])
    >>> head.predict([[2.0], [7.0]]).tolist()
    [0, 1]
    """
    Z = rows(Z, "Z")
    y = arrays.whole_numbers(y, "y", len(Z))
    Z, y = Z[y >= 0], y[y >= 0]
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        known = f"one class only ({classes[0]})" if len(classes) else "no class at all"
        raise DataError(f"the labels hold {known}: a classifier needs labels of 2 classes or more")
    mean, scale = standardise(Z, scaling)
    found = fit_logistic((Z - mean) / scale, codes, C=arrays.positive(C, "C"))
    W = np.ascontiguousarray(found.W / scale)
    return LinearHead(W, found.b - W @ mean, classes, found.converged)


def standardise(Z: NDArray[Any], scaling: Scaling) -> tuple[NDArray[Any], NDArray[Any]]:
    """Mean and scale of each column; the scale is 1 for raw and for constant columns."""
    if scaling not in ("standard", "raw"):
        raise ConfigError(f"scaling is {scaling!r}: 'standard' or 'raw' is wanted")
    mean, scale = Z.mean(axis=0), np.ones(Z.shape[1])
    if scaling == "standard":
        deviation = Z.std(axis=0)
        # What is left of a constant column by rounding must not be blown up to variance 1.
        varies = deviation > 10 * np.finfo(np.float64).eps * (np.abs(mean) + deviation)
        scale[varies] = deviation[varies]
    return mean, scale
