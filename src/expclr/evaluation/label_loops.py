"""Simulated labelling: accuracy against the number of labels, by who chose them."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from expclr import arrays
from expclr.errors import ConfigError, DataError
from expclr.evaluation.inputs import rows
from expclr.evaluation.linear_head import fit_linear_head
from expclr.evaluation.scores import score
from expclr.evaluation.suggestions import suggest_labels

__all__ = ["PROTOCOL", "Chooser", "label_loop"]

Chooser = Literal["suggested", "random"]

PROTOCOL = "linear, standardised"  # of the probe that judges


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
    """Label windows up to each budget, and read what a linear probe makes of them.

    The probe is the standardised one; labels of one class make every window of that class.

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
    asked = arrays.whole_numbers(y_test, "y_test", len(Z_test))
    Z, truth = Z[truth >= 0], truth[truth >= 0]
    Z_test, asked = Z_test[asked >= 0], asked[asked >= 0]
    if not len(asked):
        raise DataError("y_test holds no label: nothing to judge a choice by")
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
        records.append(_judge(Z[chosen], truth[chosen], Z_test, asked))
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
    Z: NDArray[np.float64],
    y: NDArray[np.int64],
    Z_test: NDArray[np.float64],
    asked: NDArray[np.int64],
) -> dict[str, float]:
    classes = np.unique(y)
    several = len(classes) > 1
    said = fit_linear_head(Z, y).predict(Z_test) if several else np.repeat(classes, len(asked))
    found = score(asked, said, trained=y)
    kept = {name: found[name] for name in ("accuracy", "macro_f1", "kappa")}
    return {"labels": float(len(y)), "classes": float(len(classes)), **kept}
