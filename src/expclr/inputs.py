"""What a user hands to an estimator, read once: windows, expert features, labels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import validate_data

from expclr import arrays
from expclr.errors import DataError, DataTypeError
from expclr.windows import Windows, warn_if_transposed

__all__ = ["Given", "read_labels", "read_training_data", "read_windows"]


@dataclass(frozen=True)
class Given:
    """Windows, with features as they were given and labels as codes into ``classes``."""

    windows: Windows
    features: Any = None  # (n, d) array or DataFrame
    codes: NDArray[np.int64] | None = None  # (n,), -1 where unlabelled
    classes: NDArray[Any] | None = None


def read_training_data(estimator: Any, X: Any, y: Any) -> Given:
    """Read ``fit``'s arguments; a two-dimensional y is features, a one-dimensional one is either.

    One-dimensional y holds labels, unless it holds real numbers: then it is a single feature.
    """
    windows = read_windows(estimator, X, reset=True).check_finite()
    if len(windows) < 2:
        raise DataError(
            f"X holds n_samples={len(windows)}, 1 sample: at least 2 windows are wanted"
        )
    if y is None:
        labels = (None, None) if windows.y is None else read_labels(windows.y, windows)
        return Given(windows, windows.F, *labels)
    values = y if hasattr(y, "columns") else np.asarray(arrays.unmasked(y))
    _same_length(windows, values)
    if values.ndim == 1 and _is_measurement(values):
        return Given(windows, values[:, None])
    if values.ndim == 2:
        return Given(windows, values)
    return Given(windows, None, *read_labels(values, windows))


def read_windows(estimator: Any, X: Any, *, reset: bool) -> Windows:
    """X as Windows, checked against what the estimator was fitted on unless ``reset``."""
    X = arrays.unmasked(X)
    if isinstance(X, list | tuple) and len(X) and np.ndim(X[0]) == 2:
        X, lengths = arrays.pad(X)
    else:
        lengths = None
    flat = not isinstance(X, Windows) and _dimensions(X) < 3
    same_columns = flat and (reset or estimator.flat_)
    windows = X
    if not isinstance(X, Windows):
        array = _checked(estimator, X, reset=reset, same_columns=same_columns)
        windows = Windows(array, lengths=lengths)
    if reset:
        _remember(estimator, windows, flat=flat)
    elif windows.X.shape[1] != estimator.channels_:
        raise DataError(
            f"X has {windows.X.shape[1]} channels, but {type(estimator).__name__} is expecting "
            f"{estimator.channels_}: give the channels it was fitted on"
        )
    return windows


def _dimensions(X: Any) -> int:
    try:
        return int(X.ndim) if hasattr(X, "ndim") else np.asarray(X).ndim
    except ValueError as error:
        raise DataError(f"X is ragged ({error}): give a list of (c, t_i) arrays") from error


def _checked(estimator: Any, X: Any, *, reset: bool, same_columns: bool) -> NDArray[Any]:
    """scikit-learn's own checks: numbers, dimensions, the same columns as before."""
    try:
        return validate_data(
            estimator,
            X,
            reset=reset,
            dtype=("float32", "float64"),
            ensure_all_finite=False,
            ensure_2d=same_columns,
            allow_nd=True,
        )
    except TypeError as error:
        raise DataTypeError(f"X holds what is no number ({error}): give numbers") from error
    except ValueError as error:
        raise DataError(" ".join(str(error).split())) from error


def _remember(estimator: Any, windows: Windows, *, flat: bool) -> None:
    _, estimator.channels_, estimator.length_ = windows.X.shape
    estimator.flat_ = flat  # (n, t) without a channel axis: scikit-learn's columns are timepoints
    estimator.n_features_in_ = estimator.length_ if flat else estimator.channels_
    warn_if_transposed(windows)


def read_labels(y: Any, windows: Windows) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Labels of any kind as codes and the classes they stand for; -1, None, NaN are unlabelled."""
    values = np.asarray(y)
    _same_length(windows, values)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise DataError(f"y has shape {values.shape}: one label for each window is wanted")
    known = np.array([not _is_unknown(v) for v in values.tolist()], dtype=bool)
    classes, found = np.unique(_plain(values[known]), return_inverse=True)
    if len(classes) < 2:
        raise DataError(
            f"y holds {len(classes)} class(es) {classes.tolist()}, where -1, None and NaN mean "
            "unlabelled: at least 2 classes are wanted"
        )
    codes = np.full(len(values), -1)
    codes[known] = found
    return codes, classes


def _is_unknown(value: Any) -> bool:
    return value is None or value != value or (not isinstance(value, bool | str) and value == -1)


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    """Objects as what they hold: numbers or strings."""
    return np.array(values.tolist()) if values.dtype == object else values


def _is_measurement(values: NDArray[Any]) -> bool:
    if values.dtype.kind != "f":
        return False
    present = values[np.isfinite(values)]
    return len(present) > 0 and str(type_of_target(present)).startswith("continuous")


def _same_length(windows: Windows, y: Any) -> None:
    if y.ndim == 0 or len(y) != len(windows):
        rows = "a single value" if y.ndim == 0 else f"{len(y)} rows"
        raise DataError(
            f"X holds {len(windows)} windows and the second argument {rows}: give one row a window"
        )


def warn_of_empty_rows(features: NDArray[np.float32]) -> None:
    """Say once how many windows have no expert feature at all."""
    empty = int(np.isnan(features).all(axis=1).sum())
    if empty:
        warnings.warn(
            f"{empty} of {len(features)} windows have no expert feature: they have no weight "
            "in the comparison of pairs",
            UserWarning,
            stacklevel=4,
        )
