"""Which columns enter a feature space, in which group and with which weight."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.errors import ConfigError, DataError
from expclr.features.space_columns import Column
from expclr.features.space_table import Table

__all__ = ["chosen", "grouped", "weighed"]


def grouped(
    columns: list[Column], table: Table, groups: Mapping[str, Sequence[Any]] | None
) -> list[Column]:
    columns = list(columns)
    for group, members in (groups or {}).items():
        if not isinstance(group, str) or group in table.names:
            raise ConfigError(f"group {group!r}: give a name that no column has")
        for j in map(table.position, [members] if isinstance(members, str) else members):
            if columns[j].group:
                raise ConfigError(
                    f"column {columns[j].name!r} is in group {columns[j].group!r} and in "
                    f"{group!r}: put it in one"
                )
            columns[j] = replace(columns[j], group=group)
    return columns


def weighed(
    columns: list[Column],
    table: Table,
    weights: Mapping[Any, float] | None,
) -> list[Column]:
    columns = list(columns)
    groups = {column.group for column in columns} - {""}
    for reference, weight in (weights or {}).items():
        if not (isinstance(weight, Real) and 0 <= float(weight) < np.inf):
            raise ConfigError(f"weight of {reference!r} is {weight!r}: give a number from 0")
        if isinstance(reference, str) and reference in groups:
            members = [column.index for column in columns if column.group == reference]
        else:
            members = [table.position(reference)]
        for j in members:
            columns[j] = replace(columns[j], weight=columns[j].weight * float(weight))
    return columns


def chosen(
    columns: list[Column], matrix: NDArray[np.float64], max_missing: float
) -> tuple[Column, ...]:
    """The columns, with those marked that the space leaves out."""
    if not 0 <= max_missing <= 1:
        raise ConfigError(f"max_missing is {max_missing}: give a share of rows from 0 to 1")
    missing = np.isnan(matrix).mean(axis=0)
    names = np.array([column.name for column in columns], dtype=object)
    if (missing == 1).any():
        raise DataError(
            f"no value at all in column {', '.join(names[missing == 1])}: leave it out of F"
        )
    constant, sparse = _constant(matrix), missing > max_missing
    asked_out = np.array([column.weight == 0 for column in columns])
    if (constant | sparse | asked_out).all():
        raise DataError(
            f"no column is left: {int(constant.sum())} of {len(columns)} are constant, "
            f"{int(sparse.sum())} missing in more than {max_missing:.0%} of rows, "
            f"{int(asked_out.sum())} of weight 0. Give features that vary"
        )
    _warn_left_out("constant", names[constant & ~asked_out])
    _warn_left_out(f"missing in more than {max_missing:.0%} of rows", names[sparse & ~constant])
    kept = ~(constant | sparse | asked_out)
    return tuple(replace(c, kept=bool(k)) for c, k in zip(columns, kept, strict=True))


def _constant(matrix: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Columns whose variance is what rounding alone can make (StandardScaler's bound)."""
    mean, variance = np.nanmean(matrix, axis=0), np.nanvar(matrix, axis=0)
    noise = len(matrix) * np.finfo(np.float64).eps
    same = np.fmin.reduce(matrix, axis=0) == np.fmax.reduce(matrix, axis=0)
    return same | (variance <= noise * variance + (noise * mean) ** 2) | (variance < 1e-200)


def _warn_left_out(why: str, names: NDArray[Any]) -> None:
    if len(names):
        shown = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
        warnings.warn(
            f"left out of the feature space, as {why}: {shown}", UserWarning, stacklevel=4
        )
