"""What kind of column each expert feature is, and the table as one matrix of floats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from expclr.errors import ConfigError, DataError
from expclr.features.space_table import Table, is_missing, spelling, spellings

__all__ = ["KINDS", "Column", "Kind", "describe", "encode"]

Kind = Literal["numeric", "ordinal", "categorical", "cyclic"]
KINDS: tuple[str, ...] = get_args(Kind)
_MOST_CATEGORIES = 1000
_FEW = 20  # categories, which may all be different by chance
_LARGEST = 1e100  # its square, summed over any number of rows, is still a float


@dataclass(frozen=True)
class Column:
    """One expert feature as the space understands it."""

    name: str
    index: int
    kind: Kind = "numeric"
    vocabulary: tuple[str, ...] = ()
    period: float = 0.0
    weight: float = 1.0
    group: str = ""
    kept: bool = True

    def coordinates(self, name: str | None = None) -> list[str]:
        """The names of the coordinates this column takes in the space."""
        name = self.name if name is None else name
        if self.kind == "cyclic":
            return [f"{name}_cos", f"{name}_sin"]
        if self.kind == "categorical" and len(self.vocabulary) > 2:
            return [f"{name}={value}" for value in self.vocabulary]
        return [name]


def describe(
    table: Table,
    *,
    categorical: Sequence[Any] | None,
    ordinal: Sequence[Any] | Mapping[Any, Sequence[Any]] | None,
    cyclic: Mapping[Any, float] | None,
) -> list[Column]:
    """The columns of a training table: settings first, then what the dtypes say."""
    chosen: dict[int, Column] = {}

    def choose(reference: Any, **changes: Any) -> None:
        j = table.position(reference)
        if j in chosen:
            raise ConfigError(
                f"column {table.names[j]!r} is given as {chosen[j].kind} and as "
                f"{changes['kind']}: give it one kind"
            )
        chosen[j] = Column(table.names[j], j, **changes)

    for reference in _listed(categorical, "categorical"):
        choose(reference, kind="categorical")
    for reference, period in _mapped(cyclic, "cyclic").items():
        choose(reference, kind="cyclic", period=_period(reference, period))
    for reference in _listed(ordinal, "ordinal"):
        given = ordinal[reference] if isinstance(ordinal, Mapping) else ()
        choose(reference, kind="ordinal", vocabulary=tuple(map(spelling, given)))
    columns = [chosen.get(j) or _by_dtype(table, j) for j in range(len(table.labels))]
    return [_with_vocabulary(table, column) for column in columns]


def encode(table: Table, columns: Sequence[Column]) -> NDArray[np.float64]:
    """The table as floats (n, d): categories by their position, NaN for missing or unknown."""
    if table.matrix is not None and not any(column.vocabulary for column in columns):
        matrix = np.asarray(table.matrix, np.float64)
    else:
        matrix = np.column_stack(
            [_codes(table, c) if c.vocabulary else _floats(table, c) for c in columns]
        )
    _refuse_infinite(matrix, columns)
    return matrix


def _listed(setting: Any, what: str) -> list[Any]:
    if setting is None:
        return []
    if isinstance(setting, str):
        raise ConfigError(f"{what}={setting!r}: give a list of columns, [{setting!r}]")
    return list(setting)


def _mapped(setting: Any, what: str) -> Mapping[Any, Any]:
    if setting is not None and not isinstance(setting, Mapping):
        raise ConfigError(f"{what}={setting!r}: give a dict, column: value")
    return {} if setting is None else setting


def _period(reference: Any, period: Any) -> float:
    if not (isinstance(period, Real) and 0 < float(period) < np.inf):
        raise ConfigError(
            f"cyclic column {reference!r} has the period {period!r}: give a positive number, "
            "24 for hours, 360 for degrees"
        )
    return float(period)


def _by_dtype(table: Table, j: int) -> Column:
    column = Column(table.names[j], j)
    if table.ordered and table.ordered[j]:
        return replace(column, kind="ordinal")
    if table.categories and table.categories[j] is not None:
        return replace(column, kind="categorical")
    values = table.column(j)
    if values.dtype.kind in "iuf" or (values.dtype.kind == "b" and table.matrix is not None):
        return column
    if values.dtype.kind in "cmMV":
        raise DataError(
            f"column {column.name!r} is of type {values.dtype}: give numbers or categories "
            "(of a time for example the hour, as a cyclic column with period 24)"
        )
    present = [value for value in values.ravel() if not is_missing(value)]
    numbers = all(isinstance(v, Real) and not isinstance(v, bool | np.bool_) for v in present)
    return column if numbers else replace(column, kind="categorical")


def _with_vocabulary(table: Table, column: Column) -> Column:
    if column.kind not in ("ordinal", "categorical"):
        return column
    present = [key for key in spellings(table.column(column.index)) if key is not None]
    found = set(present)
    if not found:
        return replace(column, kind="numeric")  # nothing in it: refused by name later
    if column.kind == "ordinal":
        return replace(column, vocabulary=_order(table, column, found))
    if len(found) > _MOST_CATEGORIES or len(found) == len(present) > _FEW:
        raise DataError(
            f"column {column.name!r} holds {len(found)} categories in {len(present)} windows: is "
            "it an identifier? Leave it out, or give it as numbers"
        )
    return replace(column, vocabulary=tuple(sorted(found)))


def _order(table: Table, column: Column, found: set[str]) -> tuple[str, ...]:
    order = column.vocabulary
    if not order and table.ordered and table.ordered[column.index]:
        order = table.categories[column.index] or ()
    if not order:
        order = _numeric_order(column, found)
    if len(set(order)) < len(order):
        raise ConfigError(f"the order of column {column.name!r} names a value twice: {order}")
    unknown = sorted(found - set(order))
    if unknown:
        raise DataError(
            f"column {column.name!r} holds {', '.join(map(repr, unknown[:5]))}, not in its order "
            f"{', '.join(order)}: add what is missing"
        )
    return order


def _numeric_order(column: Column, found: set[str]) -> tuple[str, ...]:
    try:
        return tuple(sorted(found, key=float))
    except ValueError:
        raise ConfigError(
            f"ordinal column {column.name!r} holds words: give their order, "
            f"ordinal={{{column.name!r}: [lowest, ..., highest]}}"
        ) from None


def _codes(table: Table, column: Column) -> NDArray[np.float64]:
    position = {value: i for i, value in enumerate(column.vocabulary)}
    keys = spellings(table.column(column.index))
    return np.array([np.nan if k is None else position.get(k, np.nan) for k in keys], np.float64)


def _floats(table: Table, column: Column) -> NDArray[np.float64]:
    values = table.column(column.index)
    if values.dtype.kind in "biuf":
        return values.astype(np.float64)
    try:
        return np.array([np.nan if is_missing(v) else float(v) for v in values], np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"column {column.name!r} was numbers in training and now is not ({error}): "
            "give numbers, NaN where missing"
        ) from error


def _refuse_infinite(matrix: NDArray[np.float64], columns: Sequence[Column]) -> None:
    if not len(matrix):
        return
    largest = np.fmax.reduce(np.abs(matrix), axis=0)
    if not (largest > _LARGEST).any():
        return
    bad = int(np.flatnonzero(largest > _LARGEST)[0])
    count = int(np.isinf(matrix).sum())
    if count:
        raise DataError(
            f"F holds {count} infinite values (infinity), the first in column "
            f"{columns[bad].name!r}: use NaN for missing"
        )
    raise DataError(
        f"column {columns[bad].name!r} reaches {largest[bad]:.3g}: give it in a unit that keeps "
        f"it below {_LARGEST:g}"
    )
