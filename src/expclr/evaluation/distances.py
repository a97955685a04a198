"""Exact Euclidean distances between rows that may have gaps, block by block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expclr import arrays
from expclr.errors import DataError

__all__ = ["Rows"]

NEAR = 1e-6  # squared distance relative to the squared norms below which products cancel
GATHER = 1 << 24  # numbers gathered in one go when distances are taken from differences

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows whose distances are asked for; NaN in a row is a gap.

    A distance over the shared columns only is scaled up by sqrt(d / shared), the best guess
    of what it would be over all d; it is NaN when two rows share no column.

    Parameters
    ----------
    values : array (n, d)
        Centred, zero in the gaps.
    known : array (n, d) of 0 and 1, or None when there are no gaps
    squares : array (n,)
        Squared norms.
    twin : array (n,) of int
        Equal for identical rows.
    """

    values: Array
    known: Array | None
    squares: Array
    twin: NDArray[np.int64]

    @classmethod
    def of(cls, A: ArrayLike, what: str, *, gaps: bool = False) -> Self:
        """Check and centre the rows of an array (n, d) or (n, ...)."""
        array = arrays.numbers(A, what).astype(np.float64)
        if array.ndim < 2 or 0 in array.shape:
            raise DataError(f"{what} has shape {array.shape}: (n, d) with a row a window is wanted")
        array = array.reshape(len(array), -1)
        missing = np.isnan(array)
        if np.isinf(array).any() or (missing.any() and not gaps):
            raise DataError(
                f"{what} holds {'inf' if gaps else 'NaN or inf'} in "
                f"{int((~np.isfinite(array)).any(axis=1).sum())} of {len(array)} rows: "
                "fill or drop them first"
            )
        _, twin = np.unique(array, axis=0, return_inverse=True)
        if not missing.any():
            values = array - array.mean(axis=0)
            return cls(values, None, (values**2).sum(axis=1), twin.ravel())
        known = (~missing).astype(np.float64)
        mean = np.where(missing, 0, array).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        values = np.where(missing, 0, array - mean)
        return cls(values, known, (values**2).sum(axis=1), twin.ravel())

    def __len__(self) -> int:
        return len(self.values)

    def block(self, rows: slice, columns: slice) -> Array:
        """Distances (rows, columns) through matrix products, exact where those would cancel."""
        a, b = self.values[rows], self.values[columns]
        d2 = a @ b.T
        d2 *= -2
        if self.known is None:
            d2 += self.squares[rows, None]
            d2 += self.squares[columns]
        else:
            ka, kb = self.known[rows], self.known[columns]
            d2 += (a**2) @ kb.T
            d2 += ka @ (b**2).T
        self._repair(d2, rows, columns)
        if self.known is not None:
            with np.errstate(divide="ignore", invalid="ignore"):
                d2 *= self.values.shape[1] / (ka @ kb.T)
        return np.sqrt(d2, out=d2)

    def pairs(self, i: NDArray[np.int64], j: NDArray[np.int64]) -> Array:
        """Distances of the listed pairs, from differences."""
        d2 = self._squared(i, j)
        if self.known is not None:
            shared = np.einsum("nd,nd->n", self.known[i], self.known[j])
            with np.errstate(divide="ignore", invalid="ignore"):
                d2 *= self.values.shape[1] / shared
        return np.sqrt(d2)

    def _repair(self, d2: Array, rows: slice, columns: slice) -> None:
        low = NEAR * (self.squares[rows, None] + self.squares[columns])
        i, j = np.nonzero(d2 <= low)
        # Identical rows need no arithmetic, and there may be millions of such pairs.
        d2[i, j] = 0
        differ = self.twin[rows][i] != self.twin[columns][j]
        i, j = i[differ], j[differ]
        d2[i, j] = self._squared(i + (rows.start or 0), j + (columns.start or 0))

    def _squared(self, i: NDArray[Any], j: NDArray[Any]) -> Array:
        """Sums of squared differences over the shared columns."""
        result = np.empty(len(i))
        step = max(1, GATHER // self.values.shape[1])
        for start in range(0, len(i), step):
            at = slice(start, start + step)
            difference = self.values[i[at]] - self.values[j[at]]
            if self.known is not None:
                difference *= self.known[i[at]] * self.known[j[at]]
            result[at] = np.einsum("nd,nd->n", difference, difference)
        return result
