"""Error bars: over seeds, and over subjects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expclr import arrays
from expclr.errors import ConfigError, DataError
from expclr.evaluation.scores import Scores, confusion_matrix, rates

__all__ = ["Mean", "bootstrap_intervals", "summarise"]


@dataclass(frozen=True)
class Mean:
    """Mean and standard error of n values; the error is NaN for one value.

    Examples
    --------
    >>> str(Mean.of([0.95, 0.96, 0.97]))
    '0.9600 ± 0.0058'
    >>> f"{Mean.of([95.0, 96.0, 97.0]):.2f}"
    '96.00 ± 0.58'
    """

    mean: float
    error: float
    n: int

    @classmethod
    def of(cls, values: ArrayLike) -> Mean:
        """Of one value a seed."""
        array = np.asarray(values, dtype=np.float64)
        if array.ndim != 1 or not len(array):
            raise DataError(f"values have shape {array.shape}: a list of 1 value or more is wanted")
        n = len(array)
        error = float(array.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
        return cls(float(array.mean()), error, n)

    def __format__(self, form: str) -> str:
        mean = format(self.mean, form or ".4f")
        return f"{mean} ± {format(self.error, form or '.4f')}" if self.n > 1 else mean

    def __str__(self) -> str:
        return format(self)


def summarise(runs: Sequence[Mapping[str, float]]) -> dict[str, Mean]:
    """Mean and standard error over runs of every number that all of them have.

    Examples
    --------
    >>> summarise([{"accuracy": 0.9}, {"accuracy": 0.8}])["accuracy"].n
    2
    """
    if not runs:
        raise DataError("no run to take the mean of: give one dict of numbers a run")
    common = [name for name in runs[0] if all(name in run for run in runs)]
    return {name: Mean.of([run[name] for run in runs]) for name in common}


def bootstrap_intervals(
    scores: Scores,
    group: ArrayLike,
    *,
    confidence: float = 0.95,
    repeats: int = 2000,
    random_state: int = 0,
) -> dict[str, tuple[float, float]]:
    """Percentile intervals of accuracy, macro_f1 and kappa under resampling of whole groups.

    Windows of one subject are alike, so resampling windows would promise too much.

    Parameters
    ----------
    scores : Scores
        Of a probe.
    group : array
        Subject of each test window, as many as the probe was given.
    confidence : float
    repeats : int

    Examples
    --------
    >>> import numpy as np
    >>> from expclr.evaluation import knn_probe
    >>> rng = np.random.default_rng(0)
    >>> y = np.tile([0, 1], 50)
    >>> Z = y[:, None] + rng.normal(size=(100, 1))
    >>> found = knn_probe(Z, y, Z + 0.1, y)
    >>> low, high = bootstrap_intervals(found, np.repeat(np.arange(10), 10))["accuracy"]
    >>> bool(low < found["accuracy"] < high)
    True
    """
    if not 0 < confidence < 1 or repeats < 1:
        raise ConfigError(
            f"confidence is {confidence} and repeats {repeats}: between 0 and 1, and 1 or more"
        )
    names, member = np.unique(arrays.groups(group, scores.asked)[scores.rows], return_inverse=True)
    if len(names) < 2:
        raise DataError("one group alone shows no spread: give test windows of 2 groups or more")
    k = len(scores.classes)
    tables = np.stack(
        [
            confusion_matrix(
                scores.truth[member == g], scores.predicted[member == g], scores.classes
            ).ravel()
            for g in range(len(names))
        ]
    )
    even = np.full(len(names), 1 / len(names))
    drawn = np.random.default_rng(random_state).multinomial(len(names), even, size=repeats)
    resampled = rates((drawn @ tables).reshape(repeats, k, k))  # (3, repeats)
    tail = (1 - confidence) / 2
    names_of = ("accuracy", "macro_f1", "kappa")
    return {m: _limits(v, tail) for m, v in zip(names_of, resampled, strict=True)}


def _limits(values: NDArray[np.float64], tail: float) -> tuple[float, float]:
    """Quantiles of the values that are defined; kappa of one class never is."""
    known = values[np.isfinite(values)]
    low, high = np.quantile(known, [tail, 1 - tail]) if len(known) else (np.nan, np.nan)
    return float(low), float(high)
