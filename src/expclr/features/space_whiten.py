"""Decorrelation: whitening with shrinkage that keeps each column's name and missing values."""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.covariance import OAS, ledoit_wolf_shrinkage, shrunk_covariance
from tqdm import tqdm

from expclr.errors import ConfigError

__all__ = ["Decorrelation", "equal_rows", "shrinkage_setting"]

_ESTIMATED = ("ledoit_wolf", "oas")


def equal_rows(masks: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
    """The positions of the rows (n, d) that are equal, one array for each different row."""
    found: dict[bytes, list[int]] = {}
    for i, row in enumerate(np.packbits(masks, axis=1)):
        found.setdefault(row.tobytes(), []).append(i)
    return [np.array(rows) for rows in found.values()]


def shrinkage_setting(value: Any) -> bool | float | str:
    """The setting itself, when it says how to decorrelate; True stands for 0.5."""
    if isinstance(value, bool) or (isinstance(value, str) and value in _ESTIMATED):
        return value
    if isinstance(value, Real) and 0 < float(value) <= 1:
        return float(value)
    raise ConfigError(
        f"decorrelate is {value!r}: give False, True (0.5), a shrinkage above 0 and up to 1, "
        "'ledoit_wolf' or 'oas'"
    )


class Decorrelation(TransformerMixin, BaseEstimator):
    """Whiten columns by the symmetric root of their shrunk covariance.

    Distances are those of PCA whitening; the symmetric root only turns the result back, so
    that coordinate j still stands for column j, its weight and its missing values.

    Parameters
    ----------
    shrinkage : True (0.5), float in (0, 1], "ledoit_wolf" or "oas"
        How far the covariance moves towards a multiple of the identity. It limits how much a
        direction of small variance is amplified: Ledoit-Wolf and OAS estimate the covariance
        best, and with many windows shrink little, so that noise among near-copies counts as
        much as what they share.

    Notes
    -----
    The covariance of two columns is taken over the rows that have both. A missing value
    enters the other coordinates by its expectation given the values the row has (normal
    model, shrunk covariance), and its own coordinate stays NaN: the pair distance leaves it
    out. A row with nothing in it stays NaN.

    Examples
    --------
    >>> import numpy as np
    >>> a, b = np.random.default_rng(0).standard_normal((2, 500))
    >>> X = np.stack([a, a, a, b], axis=1)  # three copies of one measurement
    >>> Z = Decorrelation(0.01).fit_transform(X)
    >>> (Z.var(axis=0) / Z.var(axis=0).sum()).round(2).tolist()
    [0.17, 0.17, 0.17, 0.5]
    """

    def __init__(self, shrinkage: bool | float | str = True) -> None:
        self.shrinkage = shrinkage

    def fit(self, X: NDArray[np.float64], y: Any = None) -> Self:
        """Learn mean and whitening from X (n, d), NaN allowed."""
        present = ~np.isnan(X)
        self.mean_ = np.nanmean(X, axis=0)
        filled = np.where(present, X - self.mean_, 0.0)
        both = present.T.astype(np.float64) @ present
        covariance = filled.T @ filled / np.maximum(both, 1)
        self.shrinkage_ = self._intensity(filled)
        self.whitening_ = _inverse_root(covariance, self.shrinkage_)
        return self

    def transform(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Whitened X (n, d); NaN where X is NaN."""
        missing = np.isnan(X)
        centred = X - self.mean_
        if missing.any():
            centred = _expected(centred, missing, self.whitening_ @ self.whitening_)
        return np.where(missing, np.nan, centred @ self.whitening_)

    def _intensity(self, filled: NDArray[np.float64]) -> float:
        if self.shrinkage == "ledoit_wolf":
            return float(ledoit_wolf_shrinkage(filled, assume_centered=True))
        if self.shrinkage == "oas":
            return float(OAS(assume_centered=True).fit(filled).shrinkage_)
        return 0.5 if self.shrinkage is True else float(self.shrinkage)


def _inverse_root(covariance: NDArray[np.float64], shrinkage: float) -> NDArray[np.float64]:
    shrunk = shrunk_covariance(covariance, shrinkage)
    values, vectors = np.linalg.eigh(shrunk)
    # Covariances over different rows need not be positive; a true one is never below this.
    lowest = max(shrinkage * np.trace(covariance) / len(covariance), 1e-10 * values[-1])
    return vectors / np.sqrt(np.maximum(values, lowest)) @ vectors.T


def _expected(
    centred: NDArray[np.float64], missing: NDArray[np.bool_], precision: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Centred rows, each missing value replaced by its mean given the row's other values."""
    filled = np.where(missing, 0.0, centred)
    for rows in tqdm(equal_rows(missing), desc="missing values", delay=2, disable=None):
        gone = missing[rows[0]]
        if gone.any() and not gone.all():
            pull = filled[np.ix_(rows, ~gone)] @ precision[np.ix_(~gone, gone)]
            filled[np.ix_(rows, gone)] = -np.linalg.solve(precision[np.ix_(gone, gone)], pull.T).T
    return filled
