"""Self-training: windows without a label take part with the one a first fine-tuning predicts."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from expclr.errors import ConfigError
from expclr.train import Schedule

__all__ = ["checked_threshold", "shortened", "with_predicted"]

log = logging.getLogger(__name__)


def checked_threshold(threshold: float | None) -> float | None:
    """The probability above which a prediction counts; None where none ever does."""
    if threshold is None or threshold is False:
        return None
    if isinstance(threshold, bool | str) or not 0 < threshold <= 1:
        raise ConfigError(
            f"self_training is {threshold!r}: give the probability above which a predicted class "
            "counts as a label, for example 0.95, or None for no self-training"
        )
    return None if threshold == 1 else float(threshold)


def with_predicted(
    codes: NDArray[np.int64],
    P: NDArray[np.float64],
    threshold: float,
    *,
    classes: NDArray[np.generic],
) -> NDArray[np.int64]:
    """Codes (n,), those of -1 filled in where a probability of P (n, classes) is high enough.

    Labels that were given stay as they are, whatever is predicted for their windows.

    Examples
    --------
    >>> P = np.array([[0.02, 0.98], [0.99, 0.01], [0.6, 0.4]])
    >>> with_predicted(np.array([0, -1, -1]), P, 0.95, classes=np.array(["a", "b"])).tolist()
    [0, 0, -1]
    """
    unknown = codes < 0
    taken = unknown & (P.max(1) > threshold)
    log.info(
        "self-training: %s of %s windows without label taken with a predicted one, p > %g",
        f"{taken.sum():,}",
        f"{unknown.sum():,}",
        threshold,
    )
    filled = np.where(taken, P.argmax(1), codes)
    counts = np.bincount(filled[taken], minlength=len(classes))
    if taken.any() and (counts == 0).any():
        names = ", ".join(str(name) for name in classes[counts == 0])
        log.info("no window without label is surely of class %s: it keeps its labels alone", names)
    return filled


def shortened(schedule: Schedule, known: int, taught: int) -> Schedule:
    """Fewer passes over more windows, by the root of how many more there are; at least one.

    >>> shortened(Schedule(max_epochs=40, lr=1e-3), known=100, taught=1600).max_epochs
    10
    """
    epochs = max(1, round(schedule.max_epochs * (known / taught) ** 0.5))
    return replace(schedule, max_epochs=min(schedule.max_epochs, epochs))
