"""Simulated labelling: accuracy against the number of labels, by who chose them."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from expclr import arrays
from expclr.errors import ConfigError, DataError
from expclr.evaluation.inputs import rows
from expclr.evaluation.probes import knn_probe, linear_probe
from expclr.evaluation.suggestions import suggest_labels

__all__ = ["Chooser", "label_loop"]

Chooser = Literal["suggested", "random"]


def label_loop(
    Z: ArrayLike,
    y: ArrayLike,
    Z_test: ArrayLike,
    y_test: ArrayLike,
    *,
    chooser: Chooser = "suggested",
    budgets: tuple[int, ...] = (10, 20, 30, 50, 100, 200),
    random_state: int = 0,
) -> list[dict[str, float]]:
    """Label windows up to each budget, fit a linear probe on them, read its test accuracy.

    With fewer than two classes among the labels the nearest labelled window decides.

    Parameters
    ----------
    Z, y : arrays (n, e) and (n,)
        Embeddings of the windows to choose from, and the labels a person would give.
    Z_test, y_test : arrays
    chooser : "suggested" or "random"
        :func:`suggest_labels`, or chance.
    budgets : tuple of int
        Numbers of labels, rising.

    Returns
    -------
    list of dict
        A record of labels, classes and accuracy, macro_f1, kappa for each budget.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.repeat([0, 1, 2], 30)
    >>> Z = y[:, None] + np.random.default_rng(0).normal(size=(90, 1)) / 9
    >>> [r["classes"] for r in label_loop(Z, y, Z, y, budgets=(3,))]
    [3.0]
    """
    Z, Z_test = rows(Z, "Z"), rows(Z_test, "Z_test")
    truth = arrays.whole_numbers(y, "y", len(Z))
    Z, truth = Z[truth >= 0], truth[truth >= 0]
    if list(budgets) != sorted(set(budgets)) or not budgets or not 1 <= budgets[-1] <= len(Z):
        raise DataError(f"budgets are {budgets}: rising numbers from 1 to {len(Z)} are wanted")
    chosen = np.empty(0, np.int64)
    chance = np.random.default_rng(random_state).permutation(len(Z))
    records = []
    for budget in tqdm(budgets, desc="labels", disable=None, delay=2):
        if chooser == "random":
            chosen = chance[:budget]
        elif chooser == "suggested":
            more = _suggest(Z, truth, chosen, budget - len(chosen), random_state)
            chosen = np.concatenate([chosen, more])
        else:
            raise ConfigError(f"chooser is {chooser!r}: 'suggested' or 'random' is wanted")
        records.append(_judge(Z[chosen], truth[chosen], Z_test, y_test))
    return records


def _suggest(
    Z: NDArray[np.float64],
    truth: NDArray[np.int64],
    chosen: NDArray[np.int64],
    n: int,
    random_state: int,
) -> NDArray[np.int64]:
    known = np.full(len(Z), -1)
    known[chosen] = truth[chosen]
    return suggest_labels(Z, n, y=known, random_state=random_state)


def _judge(
    Z: NDArray[np.float64], y: NDArray[np.int64], Z_test: NDArray[np.float64], y_test: ArrayLike
) -> dict[str, float]:
    classes = len(np.unique(y))
    found = linear_probe(Z, y, Z_test, y_test) if classes > 1 else knn_probe(Z, y, Z_test, y_test)
    kept = {name: found[name] for name in ("accuracy", "macro_f1", "kappa")}
    return {"labels": float(len(y)), "classes": float(classes), **kept}
