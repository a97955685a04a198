"""The scikit-learn parts of a feature space: how each kind of column becomes coordinates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from expclr.errors import ConfigError, DataError, suggest
from expclr.features.space_columns import Column

__all__ = ["Scaling", "column_parts", "in_output_order", "learned", "relearn"]

Scaling = Literal["none", "standard", "robust", "quantile"]
SCALINGS: tuple[str, ...] = get_args(Scaling)
_ROLES = ("numeric", "ordinal", "binary", "categorical", "cyclic")
_LEARNED = ("mean_", "center_", "scale_", "quantiles_", "references_")


class SteadyRobustScaler(RobustScaler):
    """RobustScaler that takes the standard deviation where the interquartile range is 0."""

    def fit(self, X: NDArray[np.float64], y: Any = None) -> Self:
        super().fit(X, y)
        self.scale_: NDArray[np.float64]
        low, high = np.nanpercentile(X, self.quantile_range, axis=0)
        self.scale_ = np.where(high > low, self.scale_, np.nanstd(X, axis=0))
        return self


def in_output_order(columns: Sequence[Column]) -> tuple[Column, ...]:
    """The kept columns by role, as the parts put their coordinates side by side."""
    return tuple(sorted((c for c in columns if c.kept), key=lambda c: _ROLES.index(_role(c))))


def column_parts(
    columns: Sequence[Column], numeric: Scaling, *, n: int, random_state: int | None
) -> ColumnTransformer:
    """The unfitted transformer of a coded matrix (n, d) into coordinates."""
    of = {role: [c for c in columns if _role(c) == role] for role in _ROLES}
    together = [
        ("numeric", _scaler(numeric, n, random_state), [c.index for c in of["numeric"]]),
        ("ordinal", StandardScaler(), [c.index for c in of["ordinal"]]),
        ("binary", "passthrough", [c.index for c in of["binary"]]),
    ]
    singly = [
        *((f"categorical {c.index}", _categories(c), [c.index]) for c in of["categorical"]),
        *((f"cyclic {c.index}", _circle(c), [c.index]) for c in of["cyclic"]),
    ]
    parts = [part for part in together if part[2]] + singly
    return ColumnTransformer(parts, sparse_threshold=0, verbose_feature_names_out=False).set_output(
        transform="default"
    )


def learned(parts: ColumnTransformer) -> dict[str, NDArray[np.float64]]:
    """What the fitted scalers learnt, as arrays by name."""
    return {
        f"{role}.{name}": np.array(getattr(step, name), np.float64, order="C")
        for role, step in _scalers(parts)
        for name in _LEARNED
        if hasattr(step, name)
    }


def relearn(
    columns: Sequence[Column], numeric: Scaling, arrays: dict[str, NDArray[np.float64]]
) -> ColumnTransformer:
    """The fitted parts that ``learned`` took the arrays of."""
    # Two rows let scikit-learn set up everything that does not depend on the data.
    parts = column_parts(in_output_order(columns), numeric, n=2, random_state=0)
    parts.fit(np.repeat([[0.0], [1.0]], len(columns), axis=1))
    for role, step in _scalers(parts):
        for name in _LEARNED:
            if hasattr(step, name):
                setattr(step, name, _fitting(arrays, f"{role}.{name}", getattr(step, name)))
    return parts


def _role(column: Column) -> str:
    if column.kind == "categorical" and len(column.vocabulary) <= 2:
        return "binary"
    return column.kind


def _scaler(numeric: str, n: int, random_state: int | None) -> BaseEstimator | str:
    if numeric == "none":
        return "passthrough"
    if numeric == "standard":
        return StandardScaler()
    if numeric == "robust":
        return SteadyRobustScaler(unit_variance=True)
    if numeric == "quantile":
        ranks = QuantileTransformer(n_quantiles=min(1000, n), random_state=random_state)
        return make_pipeline(ranks, StandardScaler())
    raise ConfigError(f"no numeric scaling {numeric!r}: {suggest(str(numeric), list(SCALINGS))}")


def _categories(column: Column) -> Pipeline:
    codes = np.arange(len(column.vocabulary), dtype=np.float64)
    one_hot = OneHotEncoder(categories=[codes], handle_unknown="ignore", sparse_output=False)
    return make_pipeline(one_hot, FunctionTransformer(_mismatch_counts_one))


def _mismatch_counts_one(one_hot: NDArray[np.float64]) -> NDArray[np.float64]:
    known = one_hot.any(axis=1, keepdims=True)
    return np.where(known, one_hot / np.sqrt(2), np.nan)


def _circle(column: Column) -> FunctionTransformer:
    return FunctionTransformer(_on_circle, kw_args={"period": column.period})


def _on_circle(values: NDArray[np.float64], period: float) -> NDArray[np.float64]:
    angle = 2 * np.pi * values / period
    return np.hstack([np.cos(angle), np.sin(angle)])


def _scalers(parts: ColumnTransformer) -> Iterator[tuple[str, BaseEstimator]]:
    for role in ("numeric", "ordinal"):
        part = parts.named_transformers_.get(role)
        if isinstance(part, Pipeline):
            yield from ((role, step) for _, step in part.steps)
        elif isinstance(part, StandardScaler | RobustScaler):
            yield role, part


def _fitting(
    arrays: dict[str, NDArray[np.float64]], name: str, like: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The array of that name, if it can stand where ``like`` stands."""
    array = arrays[name]
    by_rank = name.endswith(("quantiles_", "references_"))
    if by_rank and not (np.diff(array, axis=0) >= 0).all():
        raise DataError(f"{name} does not rise: save the space again")
    if by_rank and len(array) != len(arrays["numeric.references_"]):
        raise DataError(f"{name} has {len(array)} rows, one each is wanted: save the space again")
    if array.shape != like.shape and not (by_rank and array.shape[1:] == like.shape[1:]):
        raise DataError(f"{name} has shape {array.shape}, {like.shape} is wanted: save it again")
    if name.endswith("scale_") and not (array > 0).all():
        raise DataError(f"{name} holds values that are not positive: save the space again")
    return array
