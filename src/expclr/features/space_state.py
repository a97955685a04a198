"""A fitted feature space as numbers and words, and back, without running anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.errors import DataError
from expclr.features.space_columns import KINDS, Column

__all__ = ["FORMAT", "columns_from", "columns_to", "finite_arrays", "settings_of", "value_of"]

FORMAT = 1
_TYPES: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "index": int,
    "kind": str,
    "vocabulary": (list, tuple),
    "period": (int, float),
    "weight": (int, float),
    "group": str,
    "kept": bool,
}


def columns_to(columns: tuple[Column, ...]) -> list[dict[str, Any]]:
    """Columns as dicts that JSON can hold."""
    return [asdict(column) | {"vocabulary": list(column.vocabulary)} for column in columns]


def columns_from(values: Any) -> tuple[Column, ...]:
    """Columns from such dicts, each field checked."""
    if not isinstance(values, list) or not values:
        raise _broken("columns", values, "a list of columns")
    columns = tuple(_column(value, index) for index, value in enumerate(values))
    names = [column.name for column in columns]
    if len(set(names)) < len(names) or not any(column.kept for column in columns):
        raise _broken("columns", names, "names that differ, at least one column kept")
    return columns


def settings_of(columns: tuple[Column, ...]) -> dict[str, Any]:
    """The constructor's settings that describe these columns."""
    groups: dict[str, list[str]] = {}
    for column in columns:
        if column.group:
            groups.setdefault(column.group, []).append(column.name)
    return {
        "categorical": [c.name for c in columns if c.kind == "categorical"] or None,
        "ordinal": {c.name: list(c.vocabulary) for c in columns if c.kind == "ordinal"} or None,
        "cyclic": {c.name: c.period for c in columns if c.kind == "cyclic"} or None,
        "weights": {c.name: c.weight for c in columns if c.weight != 1} or None,
        "groups": groups or None,
    }


def value_of(state: Mapping[str, Any], key: str, kind: type | tuple[type, ...]) -> Any:
    """The value of a key, of the type it must have."""
    value = state.get(key)
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise _broken(key, value, " or ".join(k.__name__ for k in kinds))
    return value


def finite_arrays(state: Mapping[str, Any]) -> dict[str, NDArray[np.float64]]:
    """The arrays of a state, which must hold finite float64."""
    arrays = {key: value for key, value in state.items() if isinstance(value, np.ndarray)}
    for key, array in arrays.items():
        if array.dtype != np.float64 or not np.isfinite(array).all():
            raise _broken(key, array.dtype, "finite float64 values")
    return arrays


def _column(value: Any, index: int) -> Column:
    wanted = {field.name for field in fields(Column)}
    if not isinstance(value, Mapping) or set(value) != wanted:
        raise _broken(f"column {index}", value, f"the fields {', '.join(sorted(wanted))}")
    for key, kind in _TYPES.items():
        value_of(value, key, kind)
    if value["index"] != index or value["kind"] not in KINDS:
        raise _broken(f"column {index}", value, f"index {index} and a kind of {KINDS}")
    if not all(isinstance(word, str) for word in value["vocabulary"]):
        raise _broken(f"vocabulary of column {index}", value["vocabulary"], "words")
    if bool(value["vocabulary"]) != (value["kind"] in ("ordinal", "categorical")):
        raise _broken(f"column {index}", value, "a vocabulary for categories and ranks only")
    weight, period = float(value["weight"]), float(value["period"])
    if not 0 <= weight < np.inf or not 0 <= period < np.inf:
        raise _broken(f"column {index}", (weight, period), "a finite weight and period from 0")
    if (value["kind"] == "cyclic") != (period > 0):
        raise _broken(f"period of column {index}", period, "a positive one for cyclic columns only")
    vocabulary = tuple(value["vocabulary"])
    return Column(**{**value, "vocabulary": vocabulary, "weight": weight, "period": period})


def _broken(what: str, got: Any, wanted: str) -> DataError:
    return DataError(
        f"this is not a saved feature space: {what} is {str(got)[:200]!r}, wanted: {wanted}. "
        "Save it again"
    )
