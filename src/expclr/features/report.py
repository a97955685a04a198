"""Which of the expert's features can be read from an embedding, and which got lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GroupKFold, KFold
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tqdm import tqdm

from expclr import arrays
from expclr.errors import ConfigError, DataError
from expclr.features.space import FeatureSpace
from expclr.features.space_columns import describe, encode
from expclr.features.space_table import read_table
from expclr.features.space_whiten import equal_rows
from expclr.windows import Windows, as_windows

__all__ = ["FeatureReport", "feature_report", "readability"]

_ALPHAS = tuple(10.0**k for k in range(-2, 5))
_FEWEST = 5  # values of a feature below which nothing is said about it


@dataclass(frozen=True, eq=False)
class FeatureReport:
    """How well each expert feature can be read from an embedding.

    Parameters
    ----------
    names : tuple of str
    r2 : array (d,)
        Of a ridge regression from the embedding, on held-out windows; 0 is what the training
        mean gives, negative is worse.
    agreement : array (d,)
        1 - (mean difference to the k nearest windows) / (mean difference to random windows):
        1 when neighbours have the same value, 0 when they are as different as any two.
    present : array (d,)
        Share of the held-out windows that have the feature.
    """

    names: tuple[str, ...]
    r2: NDArray[np.float64]
    agreement: NDArray[np.float64]
    present: NDArray[np.float64]

    def rows(self) -> list[dict[str, Any]]:
        """One dict a feature, the best read first; None where nothing can be said."""
        order = np.argsort(-np.nan_to_num(self.r2, nan=-np.inf), kind="stable")
        return [
            {
                "feature": self.names[j],
                "r2": _or_none(self.r2[j]),
                "agreement": _or_none(self.agreement[j]),
                "present": float(self.present[j]),
            }
            for j in order
        ]


def feature_report(
    est: Any,
    X: Any,
    F: Any = None,
    *,
    group: ArrayLike | None = None,
    k: int = 10,
    folds: int = 5,
    random_state: int = 0,
) -> FeatureReport:
    """Read every expert feature from ``est.transform(X)``, always on groups left out.

    Give windows that the encoder was not trained on. The regression and the neighbours come
    from the other groups: ``folds`` parts by group, or two random halves where no group is
    known, each read from the rest.

    Parameters
    ----------
    est : object with ``transform``
    X : Windows or array (n, c, t)
    F : array (n, d) or DataFrame, optional
        Default the Windows' own. Columns of a DataFrame that are not numbers are read by
        the coordinates of :class:`~expclr.features.space.FeatureSpace`.
    group : array (n,), optional
        Default the Windows' own.
    k : int
        Neighbours.
    folds : int
        At most; fewer where there are fewer groups.
    random_state : int

    Returns
    -------
    FeatureReport

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 1, 8))
    >>> F = np.stack([X.mean(axis=(1, 2)), rng.standard_normal(200)], axis=1)
    >>> means = SimpleNamespace(transform=lambda X: X.mean(axis=2))
    >>> report = feature_report(means, X, F, group=np.arange(200) % 4)
    >>> [(row["feature"], round(row["r2"]) == 1) for row in report.rows()]
    [('f0', True), ('f1', False)]
    """
    windows = X if isinstance(X, Windows) else as_windows(X)
    values, names = _values_and_names(windows, F)
    group = windows.group if group is None else arrays.groups(group, len(windows))
    Z = _embedding(est.transform(X), len(windows))
    sums = [
        _sums(Z[train], values[train], Z[test], values[test], k=k, random_state=random_state)
        for train, test in _splits(len(Z), group, folds, random_state)
    ]
    return _report(np.sum(sums, axis=0), names)


def readability(
    Z_train: ArrayLike,
    F_train: ArrayLike,
    Z_test: ArrayLike,
    F_test: ArrayLike,
    names: Sequence[str] = (),
    *,
    k: int = 10,
    random_state: int = 0,
) -> FeatureReport:
    """The same for one split of your own: regression and neighbours from train, read on test.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Z = rng.standard_normal((300, 2))
    >>> report = readability(Z[:200], Z[:200] @ [[1, 1], [0, 2]], Z[200:], Z[200:, :2])
    >>> report.names
    ('f0', 'f1')
    """
    Z_train, Z_test = _embedding(Z_train), _embedding(Z_test)
    F_train = arrays.features(F_train, len(Z_train))
    F_test = arrays.features(F_test, len(Z_test))
    if F_train.shape[1] != F_test.shape[1] or Z_train.shape[1] != Z_test.shape[1]:
        raise DataError(
            f"train has Z {Z_train.shape} and F {F_train.shape}, test Z {Z_test.shape} and F "
            f"{F_test.shape}: the same columns are wanted on both sides"
        )
    sums = _sums(Z_train, F_train, Z_test, F_test, k=k, random_state=random_state)
    return _report(sums, _named(names, F_train.shape[1]))


def _values_and_names(
    windows: Windows, F: Any
) -> tuple[NDArray[np.floating[Any]], tuple[str, ...]]:
    if F is None:
        if windows.F is None:
            raise DataError("no features: give F, or Windows that hold them")
        return windows.F, _named(windows.feature_names, windows.F.shape[1])
    if hasattr(F, "columns"):
        F, names = _numbers(F)
    else:
        names = windows.feature_names
    values = arrays.features(F, len(windows))
    return values, _named(names, values.shape[1])


def _numbers(frame: Any) -> tuple[NDArray[np.floating[Any]], tuple[str, ...]]:
    table = read_table(frame)
    columns = describe(table, categorical=None, ordinal=None, cyclic=None)
    if all(column.kind == "numeric" for column in columns):
        return encode(table, columns), table.names
    space = FeatureSpace().fit(frame)
    return space.transform(frame), tuple(space.get_feature_names_out())


def _named(names: Sequence[str], d: int) -> tuple[str, ...]:
    names = tuple(map(str, names))
    return names if len(names) == d else tuple(f"f{j}" for j in range(d))


def _embedding(Z: Any, n: int | None = None) -> NDArray[np.floating[Any]]:
    array = arrays.numbers(Z, "the embedding")
    if array.ndim != 2 or len(array) != (len(array) if n is None else n):
        raise DataError(f"the embedding has shape {array.shape} for {n} windows: (n, e) is wanted")
    if not np.isfinite(array).all():
        raise DataError("the embedding holds NaN or inf: drop those windows first")
    return array


def _splits(
    n: int, group: NDArray[Any] | None, folds: int, random_state: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    if group is None:
        splitter, folds = KFold(2, shuffle=True, random_state=random_state), 2
    else:
        folds = min(folds, len(np.unique(group)))
        if folds < 2:
            raise DataError(
                f"{len(np.unique(group))} group(s) in {folds} fold(s): at least 2 groups and 2 "
                "folds are wanted, or group=None for random halves"
            )
        splitter = GroupKFold(folds)
    split = splitter.split(np.zeros(n), groups=group)
    return iter(tqdm(split, total=folds, desc="features", delay=2, disable=None))


def _sums(
    Z_train: NDArray[Any],
    F_train: NDArray[Any],
    Z_test: NDArray[Any],
    F_test: NDArray[Any],
    *,
    k: int,
    random_state: int,
) -> NDArray[np.float64]:
    """What a report is made of, added up over test windows: rows of length d."""
    low = np.fmin.reduce(F_train, axis=0)  # makes a constant exactly 0
    low = np.where(np.isnan(low), 0.0, low)
    F_train, F_test = F_train - low, F_test - low
    predicted, mean = _ridge(Z_train, F_train, Z_test)
    read = ~np.isnan(F_test) & ~np.isnan(predicted)
    error = np.where(read, F_test - predicted, 0.0)
    spread = np.where(read, F_test - mean, 0.0)
    rng = np.random.default_rng(random_state)
    anyone = rng.integers(len(Z_train), size=(len(Z_test), max(k, 20)))
    return np.stack(
        [
            (error**2).sum(axis=0),
            (spread**2).sum(axis=0),
            *_differences(F_test, F_train, _neighbours(Z_train, Z_test, k)),
            *_differences(F_test, F_train, anyone),
            (~np.isnan(F_test)).sum(axis=0),
            np.full(F_test.shape[1], len(F_test)),
        ]
    )


def _ridge(
    Z_train: NDArray[Any], F_train: NDArray[Any], Z_test: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Predictions (n, d) and training means (d,), NaN for features too rarely there."""
    predicted = np.full((len(Z_test), F_train.shape[1]), np.nan)
    mean = np.full(F_train.shape[1], np.nan)
    # Features missing in the same windows are one regression with many targets.
    missing = np.isnan(F_train).T
    for columns in tqdm(equal_rows(missing), desc="regressions", delay=2, disable=None):
        rows = ~missing[columns[0]]
        if rows.sum() < _FEWEST:
            continue
        targets = F_train[np.ix_(rows, columns)].astype(np.float64)
        model = make_pipeline(StandardScaler(), RidgeCV(_ALPHAS, alpha_per_target=True))
        predicted[:, columns] = (
            model.fit(Z_train[rows], targets).predict(Z_test).reshape(len(Z_test), -1)
        )
        mean[columns] = targets.mean(axis=0)
    return predicted, mean


def _neighbours(Z_train: NDArray[Any], Z_test: NDArray[Any], k: int) -> NDArray[np.int64]:
    if k < 1:
        raise ConfigError(f"k is {k}: give at least 1 neighbour")
    index = NearestNeighbors(n_neighbors=min(k, len(Z_train)), algorithm="brute").fit(Z_train)
    return index.kneighbors(Z_test, return_distance=False)


def _differences(
    F_test: NDArray[Any], F_train: NDArray[Any], partners: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sum and number (d,) of the differences to partners (n, k), where both have the value."""
    total, count = np.zeros((2, F_test.shape[1]))
    for partner in partners.T:
        difference = np.abs(F_test - F_train[partner])
        total += np.nansum(difference, axis=0)
        count += (~np.isnan(difference)).sum(axis=0)
    return total, count


def _report(sums: NDArray[np.float64], names: tuple[str, ...]) -> FeatureReport:
    error, spread, near, n_near, far, n_far, present, n = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        r2 = np.where(spread > 0, 1 - error / spread, np.nan)
        agreement = np.where(far > 0, 1 - (near / n_near) / (far / n_far), np.nan)
    return FeatureReport(names, r2, agreement, present / n)


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
