"""Outliers: windows far from what is normal, with p-values from held-out normal windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expclr import arrays
from expclr.errors import ConfigError, DataError
from expclr.evaluation.inputs import rows
from expclr.evaluation.nearest import nearest

__all__ = ["OutlierScores", "ScoreName", "leave_one_class_out", "outlier_scores"]

ScoreName = Literal["knn", "lof"]


@dataclass(frozen=True, eq=False)
class OutlierScores:
    """Scores and p-values of windows, and the scores of the held-out normal ones.

    Attributes
    ----------
    scores : array (n,)
        The larger, the stranger.
    p_values : array (n,)
        For a window as normal as the held-out ones, P(p_value <= a) <= a.
    calibration : array (m,)
        Scores of the held-out normal windows.
    method : str
    """

    scores: NDArray[np.float64]
    p_values: NDArray[np.float64]
    calibration: NDArray[np.float64]
    method: str

    def flagged(self, *, false_discovery_rate: float = 0.1) -> NDArray[np.bool_]:
        """The windows to look at: at most this share of them is expected to be normal.

        Benjamini and Hochberg's step-up rule on the p-values.
        """
        if not 0 < false_discovery_rate < 1:
            raise ConfigError(
                f"false_discovery_rate is {false_discovery_rate}: between 0 and 1 is wanted"
            )
        n = len(self.p_values)
        order = np.sort(self.p_values)
        passed = np.flatnonzero(order <= false_discovery_rate * np.arange(1, n + 1) / n)
        return self.p_values <= (order[passed[-1]] if len(passed) else -1.0)


def outlier_scores(
    Z_normal: ArrayLike,
    Z: ArrayLike,
    *,
    method: ScoreName = "knn",
    k: int = 10,
    group: ArrayLike | None = None,
    held_out: float = 0.3,
    random_state: int = 0,
) -> OutlierScores:
    """Score windows by how far they lie from normal ones.

    A share of the normal windows is held out; where a window's score ranks among theirs is
    its p-value.

    Parameters
    ----------
    Z_normal : array (m, e)
        Embeddings of normal windows.
    Z : array (n, e)
        Embeddings of the windows to score.
    method : "knn" or "lof"
        "knn": distance to the k-th nearest normal window. "lof": local outlier factor, how
        much sparser it is around the window than around its k neighbours.
    k : int
    group : array (m,), optional
        Subject or machine of the normal windows; whole groups are then held out, so that a new
        group is not strange for being new. Windows of one group are alike, so with few groups
        the p-values are approximate.
    held_out : float
        Share of the normal windows, or groups, that calibrates.

    Examples
    --------
    >>> import numpy as np
    >>> normal = np.random.default_rng(0).normal(size=(300, 2))
    >>> found = outlier_scores(normal, [[0.0, 0.0], [9.0, 9.0]])
    >>> found.p_values.round(3).tolist()
    [0.505, 0.011]
    >>> found.flagged().tolist()
    [False, True]
    """
    normal, asked = rows(Z_normal, "Z_normal"), rows(Z, "Z")
    if normal.shape[1] != asked.shape[1]:
        raise DataError(
            f"Z_normal has {normal.shape[1]} columns and Z {asked.shape[1]}: embed both with the "
            "same encoder"
        )
    held = _held_out(len(normal), group, held_out, np.random.default_rng(random_state))
    reference, calibration = normal[~held], normal[held]
    if len(reference) <= k or not len(calibration) or k < 1:
        raise DataError(
            f"{len(reference)} normal windows remain to compare with and {len(calibration)} to "
            f"calibrate with: more than k = {k} and at least 1 are wanted"
        )
    found = _score(reference, np.vstack([calibration, asked]), method, k)
    known, scores = np.sort(found[: len(calibration)]), found[len(calibration) :]
    above = len(known) - np.searchsorted(known, scores, side="left")
    return OutlierScores(scores, (1 + above) / (1 + len(known)), known, method)


def leave_one_class_out(
    Z_train: ArrayLike,
    y_train: ArrayLike,
    Z_test: ArrayLike,
    y_test: ArrayLike,
    *,
    method: ScoreName = "knn",
    k: int = 10,
) -> dict[str, float]:
    """How well each class is told from the others when train lacks it: AUROC, and the mean.

    Embeddings, raw features and those of a random encoder go through it alike.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.repeat([0, 1, 2], 20)
    >>> Z = y[:, None] + np.random.default_rng(0).normal(size=(60, 1)) / 9
    >>> leave_one_class_out(Z, y, Z, y, k=3)["mean"]
    1.0
    """
    from sklearn.metrics import roc_auc_score

    Z_train, Z_test = rows(Z_train, "Z_train"), rows(Z_test, "Z_test")
    y_train = arrays.whole_numbers(y_train, "y_train", len(Z_train))
    y_test = arrays.whole_numbers(y_test, "y_test", len(Z_test))
    Z_test, y_test = Z_test[y_test >= 0], y_test[y_test >= 0]
    classes = np.intersect1d(y_train[y_train >= 0], y_test)
    if len(classes) < 2:
        raise DataError(
            f"{len(classes)} classes are in train and in test: 2 or more are wanted, one to leave "
            "out and one to stay"
        )
    result = {}
    for left_out in classes:
        normal = Z_train[(y_train >= 0) & (y_train != left_out)]
        if len(normal) < 2:
            raise DataError(
                f"without class {left_out} train has {len(normal)} windows: 2 or more are wanted"
            )
        scores = _score(normal, Z_test, method, min(k, len(normal) - 1))
        result[str(left_out)] = float(roc_auc_score(y_test == left_out, scores))
    return result | {"mean": float(np.mean(list(result.values())))}


def _score(
    reference: NDArray[np.float64], asked: NDArray[np.float64], method: str, k: int
) -> NDArray[np.float64]:
    if method == "knn":
        distance, _ = nearest(reference, asked, k)
        return distance[:, -1]
    if method == "lof":
        from sklearn.neighbors import LocalOutlierFactor

        model = LocalOutlierFactor(n_neighbors=k, novelty=True, algorithm="brute")
        return -model.fit(reference).score_samples(asked)
    raise ConfigError(f"method is {method!r}: 'knn' or 'lof' is wanted")


def _held_out(
    m: int, group: ArrayLike | None, share: float, rng: np.random.Generator
) -> NDArray[np.bool_]:
    if not 0 < share < 1:
        raise ConfigError(f"held_out is {share}: a number between 0 and 1 is wanted")
    names, unit = np.unique(
        np.arange(m) if group is None else arrays.groups(group, m), return_inverse=True
    )
    if len(names) < 2:
        raise DataError("one group alone cannot be held out: give normal windows of 2 or more")
    size = min(len(names) - 1, max(1, round(share * len(names))))
    return np.isin(unit, rng.choice(len(names), size, replace=False))
