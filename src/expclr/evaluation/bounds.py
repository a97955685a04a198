"""Bounds on the share of new pairs that fall outside an interval: the paper's and exact ones.

N pairs were drawn independently; delta is 1 - confidence; all functions take arrays of N too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta

__all__ = [
    "bound_comparison",
    "clopper_pearson_bound",
    "hoeffding_bound",
    "order_statistics_bound",
    "paper_one_sided_bound",
    "paper_training_bound",
    "paper_validation_bound",
]


def paper_validation_bound(N: ArrayLike, delta: float) -> Any:
    """Appendix D.1: miss probability of the range of N validation pairs.

    Examples
    --------
    >>> round(float(paper_validation_bound(1000, 0.05)), 3)
    0.396
    """
    N = np.asarray(N, dtype=np.float64)
    return np.sqrt(8 * np.log(2 * N * (2 * N - 1) * 4 / delta) / N)


def paper_one_sided_bound(N: ArrayLike, delta: float) -> Any:
    """Appendix D.3: probability that a new pair exceeds the largest of N validation pairs.

    Examples
    --------
    >>> round(float(paper_one_sided_bound(1000, 0.05)), 3)
    0.31
    """
    N = np.asarray(N, dtype=np.float64)
    return np.sqrt(8 * np.log(8 * N / delta) / N)


def paper_training_bound(misses: ArrayLike, N: ArrayLike, delta: float) -> Any:
    """Appendix D.2: miss probability of a given interval that ``misses`` of N pairs missed.

    Examples
    --------
    >>> round(float(paper_training_bound(0, 1000, 0.05)), 3)
    0.061
    """
    N = np.asarray(N, dtype=np.float64)
    return np.asarray(misses) / N + np.sqrt(np.log(2 / delta) / N)


def hoeffding_bound(misses: ArrayLike, N: ArrayLike, delta: float) -> Any:
    """The tight constant for what Appendix D.2 bounds: one-sided Hoeffding.

    Examples
    --------
    >>> round(float(hoeffding_bound(0, 1000, 0.05)), 3)
    0.039
    """
    N = np.asarray(N, dtype=np.float64)
    return np.asarray(misses) / N + np.sqrt(np.log(1 / delta) / (2 * N))


def clopper_pearson_bound(misses: ArrayLike, N: ArrayLike, delta: float) -> Any:
    """Exact: the largest miss probability that gives so few misses with probability delta.

    Examples
    --------
    >>> round(float(clopper_pearson_bound(0, 1000, 0.05)), 4)
    0.003
    """
    misses, N = np.broadcast_arrays(np.asarray(misses, float), np.asarray(N, float))
    inside = misses < N
    found = beta.ppf(1 - delta, misses + 1, np.where(inside, N - misses, 1))
    return np.where(inside, found, 1.0)[()]


def order_statistics_bound(N: ArrayLike, delta: ArrayLike, *, gaps: ArrayLike = 2) -> Any:
    """Exact: miss probability of an interval between two of N ordered pair ratios.

    N values cut the line into N + 1 gaps, each of which a new value falls into with the same
    probability; the share outside is Beta(gaps, N + 1 - gaps) for any continuous
    distribution, and smaller when values tie.

    Parameters
    ----------
    gaps : int
        How many gaps lie outside: 2 for [min, max], 1 when one side is open.

    Examples
    --------
    >>> round(float(order_statistics_bound(1000, 0.05)), 4)
    0.0047
    """
    inside = np.asarray(N, dtype=np.float64) + 1 - np.asarray(gaps)
    found = beta.ppf(1 - np.asarray(delta), gaps, np.maximum(inside, 1))
    return np.where(inside > 0, found, 1.0)[()]


def bound_comparison(
    N: Sequence[int] | NDArray[np.int64] | None = None,
    *,
    miss_share: float = 0.05,
    confidence: float = 0.95,
) -> dict[str, list[float]]:
    """The paper's figure of both bounds over the number of validation pairs, exact ones added.

    Parameters
    ----------
    N : sequence of int, optional
        Numbers of pairs; default 10 to 100,000 in even steps of the logarithm.
    miss_share : float
        Share of the validation pairs outside the training interval: .05 in the paper.
    confidence : float

    Returns
    -------
    dict
        ``n_pairs`` and one list a bound, as the formulas give them (they may exceed 1).

    Examples
    --------
    >>> table = bound_comparison([1000])
    >>> for name, values in table.items():
    ...     print(name, round(values[0], 4))
    n_pairs 1000
    paper_validation 0.3958
    paper_training 0.1107
    exact_validation 0.0047
    exact_training 0.0629
    hoeffding_training 0.0887
    """
    N = np.unique(np.logspace(1, 5, 81).round().astype(int)) if N is None else np.asarray(N)
    delta = 1 - confidence
    # The number of misses is whole: rounding it up keeps the exact bound above the truth.
    misses = np.ceil(miss_share * N - 1e-9)
    bounds = {
        "paper_validation": paper_validation_bound(N, delta),
        "paper_training": paper_training_bound(miss_share * N, N, delta),
        "exact_validation": order_statistics_bound(N, delta),
        "exact_training": clopper_pearson_bound(misses, N, delta),
        "hoeffding_training": hoeffding_bound(miss_share * N, N, delta),
    }
    return {"n_pairs": N.tolist()} | {name: b.tolist() for name, b in bounds.items()}
