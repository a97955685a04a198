"""Many estimators at once: seeds, learning rates, methods, parts of the labels."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from expclr.errors import DataError
from expclr.estimators import RepresentationLearner
from expclr.windows import Windows

__all__ = ["fit_many"]

log = logging.getLogger(__name__)


def fit_many(
    learners: Sequence[RepresentationLearner],
    data: Windows | Sequence[Windows],
    *,
    finetune: bool = False,
) -> Iterator[tuple[int, RepresentationLearner | Exception]]:
    """Fit estimators side by side where the device can; hand each over when it is done.

    Parameters
    ----------
    learners : sequence of RepresentationLearner
        Fitted in place; with ``finetune`` they are fitted already.
    data : Windows, or one Windows for each learner
    finetune : bool
        Go on with labels (``finetune``) instead of starting with ``fit``.

    Yields
    ------
    int, RepresentationLearner or Exception
        The learner's place in ``learners``, and itself, or what went wrong: one that fails does
        not stop the others. In the order they finish.

    Examples
    --------
    >>> import numpy as np
    >>> from expclr import ExpCLR, Windows
    >>> rng = np.random.default_rng(0)
    >>> windows = Windows(rng.normal(size=(12, 2, 32)), F=rng.normal(size=(12, 3)))
    >>> learners = [ExpCLR(max_epochs=1, random_state=seed) for seed in (0, 1)]
    >>> [number for number, fitted in fit_many(learners, windows)]
    [0, 1]
    """
    each = [data] * len(learners) if isinstance(data, Windows) else list(data)
    if len(each) != len(learners):
        raise DataError(
            f"{len(each)} data for {len(learners)} learners: give one Windows for all, or one each"
        )
    if len({id(learner) for learner in learners}) < len(learners):
        raise DataError("a learner occurs twice: make copies with sklearn.base.clone")
    return _one_by_one(learners, each, finetune=finetune)


def _one_by_one(
    learners: Sequence[RepresentationLearner], each: Sequence[Windows], *, finetune: bool
) -> Iterator[tuple[int, RepresentationLearner | Exception]]:
    for number, (learner, windows) in enumerate(zip(learners, each, strict=True)):
        outcome: RepresentationLearner | Exception
        try:
            outcome = learner.finetune(windows) if finetune else learner.fit(windows)
        except Exception as error:
            log.warning("run %d failed: %s", number, error)
            outcome = error
        yield number, outcome
