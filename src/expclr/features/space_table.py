"""Expert features as they come, an array or a DataFrame, read column by column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from expclr.errors import ConfigError, DataError, suggest

__all__ = ["Table", "is_missing", "read_table", "spelling", "spellings"]


class _NoCategoryError(DataError, TypeError):
    """What is not a word or a number, for those who expect either error."""


@dataclass(frozen=True)
class Table:
    """Columns as they came: ``series`` one array each, ``matrix`` when all are numbers."""

    source: Any
    labels: tuple[Any, ...]
    series: tuple[NDArray[Any], ...] = ()
    matrix: NDArray[Any] | None = None
    categories: tuple[tuple[str, ...] | None, ...] = ()
    ordered: tuple[bool, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(str, self.labels))

    def column(self, j: int) -> NDArray[Any]:
        return self.series[j] if self.matrix is None else self.matrix[:, j]

    def position(self, reference: Any) -> int:
        """Where a column is that a setting names by its label, its name or its index."""
        if reference in self.labels:
            return self.labels.index(reference)
        if isinstance(reference, str) and reference in self.names:
            return self.names.index(reference)
        if isinstance(reference, int | np.integer) and 0 <= reference < len(self.labels):
            return int(reference)
        known = suggest(str(reference), list(self.names[:50]))
        raise ConfigError(f"the features have no column {reference!r}: {known}")


def read_table(F: Any, names: Sequence[str] | None = None, *, at_least: int = 1) -> Table:
    """A DataFrame or an array (n, d), checked for shape and infinite values."""
    if hasattr(F, "columns"):
        return _read_frame(F, at_least)
    try:
        array = check_array(
            F,
            dtype=None,
            ensure_all_finite=False,
            ensure_min_samples=at_least,
            input_name="F",
            estimator="FeatureSpace",
        )
    except ValueError as error:
        raise DataError(str(error)) from error
    labels = tuple(f"x{j}" for j in range(array.shape[1])) if names is None else tuple(names)
    if len(labels) != array.shape[1]:
        raise DataError(f"{len(labels)} feature names for {array.shape[1]} columns: give one each")
    _refuse_repeated(labels)
    if array.dtype.kind in "biuf":
        return Table(array, labels, matrix=array)
    return Table(array, labels, series=tuple(array.T))


def _read_frame(frame: Any, at_least: int) -> Table:
    labels = tuple(frame.columns)
    _refuse_repeated(labels)
    n, d = frame.shape
    if n < at_least or d == 0:
        raise DataError(
            f"F has {n} sample(s) and {d} feature(s) (shape=({n}, {d})) while a minimum of "
            f"{at_least} is required: give more windows or columns"
        )
    dtypes = [getattr(frame[label], "dtype", None) for label in labels]
    listed = [getattr(dtype, "categories", None) for dtype in dtypes]
    return Table(
        frame,
        labels,
        series=tuple(np.asarray(frame[label]) for label in labels),
        categories=tuple(None if c is None else tuple(map(spelling, c)) for c in listed),
        ordered=tuple(bool(getattr(dtype, "ordered", False)) for dtype in dtypes),
    )


def _refuse_repeated(labels: tuple[Any, ...]) -> None:
    names = [str(label) for label in labels]
    repeated = (
        sorted({name for name in names if names.count(name) > 1})
        if len(set(names)) < len(names)
        else []
    )
    if repeated:
        raise DataError(f"columns {', '.join(repeated)} occur twice: give every column its name")


def spellings(values: NDArray[Any]) -> list[str | None]:
    return [None if is_missing(value) else spelling(value) for value in values.tolist()]


def spelling(value: Any) -> str:
    """One spelling for 1, 1.0 and True, which a missing value turns into each other."""
    if isinstance(value, Real | np.bool_):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    if isinstance(value, dict | list | set | tuple | np.ndarray):
        raise _NoCategoryError(
            f"argument must be a string or a real number, not {str(value)[:80]!r}: give one word "
            "or number for each window"
        )
    return str(value)


def is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value) or value == ""
    except TypeError:  # pandas.NA has no truth value
        return True
