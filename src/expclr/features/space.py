"""FeatureSpace: the space in which the distance of two windows' expert features is taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from expclr.errors import DataError
from expclr.features.space_choice import chosen, grouped, weighed
from expclr.features.space_columns import describe, encode
from expclr.features.space_pairs import coordinate_shares, draw_rows, pair_reference
from expclr.features.space_parts import (
    SCALINGS,
    Scaling,
    column_parts,
    in_output_order,
    learned,
    relearn,
)
from expclr.features.space_state import (
    FORMAT,
    columns_from,
    columns_to,
    finite_arrays,
    settings_of,
    value_of,
)
from expclr.features.space_table import read_table
from expclr.features.space_whiten import Decorrelation, shrinkage_setting

__all__ = ["FeatureSpace"]

_SCALED = ("numeric", "ordinal")


class FeatureSpace(TransformerMixin, BaseEstimator):
    """Expert features of any kind as coordinates whose Euclidean distance is meant.

    Fitted on training features, saved with the model. One unit is one standard deviation of a
    numeric column, one mismatch of a category, or one radius of a cyclic column's circle.

    Parameters
    ----------
    numeric : {"standard", "none", "robust", "quantile"}
        Scaling of numeric columns: (F - mean) / std over the values that are there; as they
        are (the paper's raw distance); median and interquartile range, in units of a normal
        standard deviation (where that range is 0, the standard deviation); rank among the
        training values, at unit variance.
    categorical : list of columns, optional
        Taken as categories besides the columns of type bool, category and string, which are
        anyway. Unseen values at transform are missing values.
    ordinal : list of columns or {column: [lowest, ..., highest]}, optional
        Standardised position in an order, besides ordered categories of a DataFrame.
    cyclic : {column: period}, optional
        Angles, hours, days: points on a circle of radius 1.
    weights : {column or group: weight}, optional
        What a column's squared difference is multiplied by; of a group, that of each of its
        columns. 0 leaves the column out.
    groups : {group: columns}, optional
        Names for sets of columns, for ``weights`` and ``distance_shares``.
    decorrelate : bool, float in (0, 1], "ledoit_wolf" or "oas"
        Whiten the numeric and ordinal columns with this shrinkage (True: 0.5), so that
        near-copies of one measurement do not outvote a rare one; see
        :class:`~expclr.features.space_whiten.Decorrelation`. It also amplifies what varies
        little, which can cost much where the copies carry what matters.
    max_missing : float
        Columns missing in more than this share of rows are left out, with a warning.
    random_state : int or None
        For the rows drawn where all pairs would be too many.

    Attributes
    ----------
    columns_ : tuple
        What each input column was taken as.
    n_empty_rows_ : int
        Training rows without any value; they are at no distance from anything.

    Notes
    -----
    Missing values stay NaN in every coordinate of their column. The distance of a pair is
    taken over the coordinates both have, its square times d' / shared, as by scikit-learn's
    ``nan_euclidean_distances``. Constant columns are left out with a warning.

    An array has columns by index, or by the names given to ``fit``; its columns are numeric
    unless said otherwise.

    Examples
    --------
    >>> import pandas as pd
    >>> F = pd.DataFrame({"load": [1.0, 3.0, None, 2.0], "hour": [23.0, 1, 12, 6],
    ...                   "gear": ["low", "high", "mid", "low"]})
    >>> space = FeatureSpace(cyclic={"hour": 24}, weights={"gear": 2}).fit(F)
    >>> space.get_feature_names_out().tolist()
    ['load', 'gear=high', 'gear=low', 'gear=mid', 'hour_cos', 'hour_sin']
    >>> print(space.transform(F)[:3].round(2))
    [[-1.22  0.    1.    0.    0.97 -0.26]
     [ 1.22  1.    0.    0.    0.97  0.26]
     [  nan  0.    0.    1.   -1.    0.  ]]
    """

    def __init__(
        self,
        numeric: Scaling = "standard",
        *,
        categorical: Sequence[Any] | None = None,
        ordinal: Sequence[Any] | Mapping[Any, Sequence[Any]] | None = None,
        cyclic: Mapping[Any, float] | None = None,
        weights: Mapping[Any, float] | None = None,
        groups: Mapping[str, Sequence[Any]] | None = None,
        decorrelate: bool | float | str = False,
        max_missing: float = 1.0,
        random_state: int | None = 0,
    ) -> None:
        self.numeric = numeric
        self.categorical = categorical
        self.ordinal = ordinal
        self.cyclic = cyclic
        self.weights = weights
        self.groups = groups
        self.decorrelate = decorrelate
        self.max_missing = max_missing
        self.random_state = random_state

    def fit(self, F: Any, y: Any = None, *, feature_names: Sequence[str] | None = None) -> Self:
        """Learn the space from training features.

        Parameters
        ----------
        F : array (n, d) or DataFrame
            NaN where a value is missing.
        y : ignored
        feature_names : sequence of str, optional
            Names of an array's columns.
        """
        table = read_table(F, feature_names or None, at_least=2)
        validate_data(self, table.source, skip_check_array=True)
        self.n_features_in_ = len(table.labels)
        columns = describe(
            table, categorical=self.categorical, ordinal=self.ordinal, cyclic=self.cyclic
        )
        columns = weighed(grouped(columns, table, self.groups), table, self.weights)
        matrix = encode(table, columns)
        self.columns_ = chosen(columns, matrix, self.max_missing)
        self._fit_parts(matrix)
        return self

    def _fit_parts(self, matrix: NDArray[np.float64]) -> None:
        kept = in_output_order(self.columns_)
        self.parts_ = column_parts(
            kept, self.numeric, n=len(matrix), random_state=self.random_state
        )
        Z = self.parts_.fit_transform(matrix)
        self.decorrelation_ = None
        if shrinkage_setting(self.decorrelate) is not False and self._n_scaled():
            self.decorrelation_ = Decorrelation(self.decorrelate).fit(Z[:, : self._n_scaled()])
        self.n_empty_rows_ = int(np.isnan(Z).all(axis=1).sum())

    def transform(self, F: Any) -> NDArray[np.float32]:
        """Coordinates (n, d') float32 of features (n, d), NaN where missing."""
        check_is_fitted(self)
        table = read_table(F)
        validate_data(self, table.source, reset=False, skip_check_array=True)
        Z = self._coordinates(encode(table, self.columns_))
        self._refuse_overflow(Z)
        return Z.astype(np.float32)

    def _coordinates(self, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        Z = self.parts_.transform(matrix)
        if self.decorrelation_ is not None:
            scaled = self._n_scaled()
            Z[:, :scaled] = self.decorrelation_.transform(Z[:, :scaled])
        weights = [c.weight for c in in_output_order(self.columns_) for _ in c.coordinates()]
        return Z * np.sqrt(weights)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[Any]:
        """Names of the coordinates: ``load``, ``gear=low``, ``hour_cos``."""
        check_is_fitted(self)
        known = [column.name for column in self.columns_]
        names = known if input_features is None else [str(name) for name in input_features]
        if len(names) != len(known):
            raise DataError(
                f"input_features should have length equal to the number of features, "
                f"{len(known)}, got {len(names)}"
            )
        if hasattr(self, "feature_names_in_") and names != known:
            raise DataError("input_features is not equal to feature_names_in_")
        out = [c.coordinates(names[c.index]) for c in in_output_order(self.columns_)]
        return np.array([name for names in out for name in names], dtype=object)

    def distance_shares(self, F: Any, *, max_rows: int = 4096) -> dict[str, float]:
        """What share of the mean squared pair distance each group or column makes up.

        With missing values it is taken over the pairs of at most ``max_rows`` drawn rows.

        Examples
        --------
        >>> F = np.array([[0.0, 1.0, 5.0], [1.0, 0.0, 3.0], [2.0, 3.0, 9.0]])
        >>> space = FeatureSpace(groups={"speed": ["x0", "x1"]}, weights={"x2": 2})
        >>> shares = space.fit(F).distance_shares(F)
        >>> {name: round(share, 3) for name, share in shares.items()}
        {'speed': 0.5, 'x2': 0.5}
        """
        Z = self.transform(F)
        if np.isnan(Z).any():
            Z = Z[draw_rows(len(Z), max_rows, self.random_state)]
        owners = [c for c in in_output_order(self.columns_) for _ in c.coordinates()]
        shares: dict[str, float] = {c.group or c.name: 0.0 for c in self.columns_ if c.kept}
        for owner, share in zip(owners, coordinate_shares(Z).tolist(), strict=True):
            shares[owner.group or owner.name] += share
        return shares

    def reference(self, F: Any, quantile: float = 1.0, *, max_rows: int = 10_000) -> float:
        """The largest pair distance over a dataset, or a quantile that outliers do not move.

        Of more than ``max_rows`` rows, as many are drawn.

        Examples
        --------
        >>> F = np.array([[0.0], [1.0], [2.0], [9.0]])
        >>> FeatureSpace("none").fit(F).reference(F)
        9.0
        """
        Z = self.transform(F)
        return pair_reference(Z[draw_rows(len(Z), max_rows, self.random_state)], quantile)

    def state(self) -> dict[str, Any]:
        """The fitted space as values for JSON and numpy arrays, for ``from_state``."""
        check_is_fitted(self)
        arrays = learned(self.parts_)
        if self.decorrelation_ is not None:
            arrays["decorrelation.mean"] = self.decorrelation_.mean_
            arrays["decorrelation.whitening"] = self.decorrelation_.whitening_
        seed = self.random_state
        return {
            "format": FORMAT,
            "numeric": self.numeric,
            "decorrelate": self.decorrelate,
            "max_missing": float(self.max_missing),
            "random_state": None if seed is None else int(seed),
            "framed": hasattr(self, "feature_names_in_"),
            "empty_rows": self.n_empty_rows_,
            "columns": columns_to(self.columns_),
            **arrays,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The fitted space that ``state`` describes; its transforms are equal to the bit.

        Only numbers and words are read, and each is checked: no content runs code.
        """
        try:
            return cls._from_state(state)
        except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(
                f"this is not a saved feature space ({error!r}): save it again"
            ) from error

    @classmethod
    def _from_state(cls, state: Mapping[str, Any]) -> Self:
        if state["format"] != FORMAT or state["numeric"] not in SCALINGS:
            raise DataError(
                f"feature space of format {state['format']!r} with scaling {state['numeric']!r}: "
                f"this version reads format {FORMAT} with {', '.join(SCALINGS)}"
            )
        columns = columns_from(state["columns"])
        space = cls(
            state["numeric"],
            **settings_of(columns),
            decorrelate=shrinkage_setting(value_of(state, "decorrelate", (bool, float, int, str))),
            max_missing=float(value_of(state, "max_missing", (float, int))),
            random_state=value_of(state, "random_state", (int, type(None))),
        )
        space.columns_ = columns
        space.n_empty_rows_ = value_of(state, "empty_rows", int)
        space.n_features_in_ = len(columns)
        if value_of(state, "framed", bool):
            space.feature_names_in_ = np.array([c.name for c in columns], dtype=object)
        space._restore_parts(finite_arrays(state))
        return space

    def _restore_parts(self, arrays: dict[str, NDArray[np.float64]]) -> None:
        self.parts_ = relearn(self.columns_, self.numeric, arrays)
        self.decorrelation_ = None
        d = self._n_scaled()
        if self.decorrelate is not False and d:
            self.decorrelation_ = Decorrelation()
            self.decorrelation_.mean_ = arrays["decorrelation.mean"].reshape(d)
            self.decorrelation_.whitening_ = arrays["decorrelation.whitening"].reshape(d, d)

    def _n_scaled(self) -> int:
        return sum(column.kept and column.kind in _SCALED for column in self.columns_)

    def _refuse_overflow(self, Z: NDArray[np.float64]) -> None:
        bad = (np.abs(Z) > np.finfo(np.float32).max).any(axis=0)
        if bad.any():
            raise DataError(
                f"{self.get_feature_names_out()[bad][0]!r} goes beyond what float32 holds: give "
                "that column in another unit, or numeric='standard'"
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
