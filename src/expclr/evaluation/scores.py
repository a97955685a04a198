"""How well predicted classes agree with the true ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Scores", "confusion_matrix", "rates", "score"]


class Scores(dict[str, float]):
    """A dict of floats that also knows its protocol, its confusion matrix and its predictions.

    Attributes
    ----------
    protocol : str
        What was fitted to what, in words.
    classes : array (k,)
        Every class of train, test or prediction, sorted.
    confusion : array (k, k) of int
        Row: true class, column: predicted class.
    recall : dict
        From each class of the test data to its recall.
    unseen : list
        Classes of the test data that train lacks.
    truth, predicted : arrays (n,)
        Of the labelled test windows.
    rows : array (n,) of int
        Which of the ``asked`` test windows these are.
    asked : int
        How many test windows the probe was given.
    """

    protocol: str
    classes: NDArray[np.int64]
    confusion: NDArray[np.int64]
    unseen: list[int]
    truth: NDArray[np.int64]
    predicted: NDArray[np.int64]
    rows: NDArray[np.int64]
    asked: int

    @property
    def recall(self) -> dict[int, float]:
        support = self.confusion.sum(axis=1)
        hits = np.diag(self.confusion)
        return {
            int(c): float(h / s) for c, h, s in zip(self.classes, hits, support, strict=True) if s
        }

    def record(self) -> dict[str, Any]:
        """All of it as JSON would have it; an undefined kappa is None."""
        numbers = {key: value if np.isfinite(value) else None for key, value in self.items()}
        return {
            "protocol": self.protocol,
            **numbers,
            "recall": {str(c): r for c, r in self.recall.items()},
            "classes": self.classes.tolist(),
            "confusion": self.confusion.tolist(),
            "unseen": self.unseen,
        }


def score(
    truth: NDArray[np.int64],
    predicted: NDArray[np.int64],
    *,
    protocol: str = "",
    trained: NDArray[np.int64] | None = None,
) -> Scores:
    """Accuracy, macro-F1 and kappa of predictions; ``trained`` are the classes of train.

    Examples
    --------
    >>> import numpy as np
    >>> found = score(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 0]))
    >>> {k: round(v, 3) for k, v in found.items()}
    {'accuracy': 0.75, 'macro_f1': 0.733, 'kappa': 0.5, 'n_test': 4.0, 'unseen_classes': 0.0}
    >>> found.recall
    {0: 1.0, 1: 0.5}
    """
    trained = np.unique(truth) if trained is None else np.unique(trained)
    classes = np.unique(np.concatenate([truth, predicted, trained]))
    confusion = confusion_matrix(truth, predicted, classes)
    unseen = np.setdiff1d(truth, trained).tolist()
    accuracy, macro_f1, kappa = rates(confusion)
    found = Scores(
        accuracy=float(accuracy),
        macro_f1=float(macro_f1),
        kappa=float(kappa),
        n_test=float(len(truth)),
        unseen_classes=float(len(unseen)),
    )
    found.protocol, found.classes, found.confusion = protocol, classes, confusion
    found.unseen, found.truth, found.predicted = unseen, truth, predicted
    found.rows, found.asked = np.arange(len(truth)), len(truth)
    return found


def confusion_matrix(
    truth: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any]
) -> NDArray[np.int64]:
    """Counts (k, k), row the true class, column the predicted one."""
    k = len(classes)
    cells = np.searchsorted(classes, truth) * k + np.searchsorted(classes, predicted)
    return np.bincount(cells, minlength=k * k).reshape(k, k)


def rates(confusion: NDArray[Any]) -> NDArray[np.float64]:
    """Accuracy, macro-F1 and Cohen's kappa of confusion matrices (..., k, k), as (3, ...).

    Macro-F1 is over the classes that occur in truth or prediction. Kappa is NaN when both
    hold one and the same class only: there is no agreement beyond chance to measure.
    """
    M = confusion.astype(np.float64)
    total = M.sum(axis=(-2, -1))
    hits = np.diagonal(M, axis1=-2, axis2=-1)
    true, said = M.sum(axis=-1), M.sum(axis=-2)
    occurs = (true + said) > 0
    f1 = 2 * hits / np.where(occurs, true + said, 1)
    accuracy = hits.sum(axis=-1) / total
    chance = (true * said).sum(axis=-1) / total**2
    with np.errstate(invalid="ignore"):
        kappa = (accuracy - chance) / np.where(chance == 1, np.nan, 1 - chance)
    return np.stack([accuracy, f1.sum(axis=-1) / occurs.sum(axis=-1), kappa])
