"""Many estimators at once: seeds, learning rates, methods, parts of the labels."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from expclr.errors import DataError
from expclr.estimators import FittedSpaces, Fitting, RepresentationLearner
from expclr.inputs import read_training_data
from expclr.train import History, Run
from expclr.train_many import train_many
from expclr.windows import Windows

__all__ = ["fit_many"]

log = logging.getLogger(__name__)

Under = tuple[Fitting[RepresentationLearner], Run]  # a fit, and the run it waits for


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
    return _together(learners, each, finetune=finetune)


def _together(
    learners: Sequence[RepresentationLearner], each: Sequence[Windows], *, finetune: bool
) -> Iterator[tuple[int, RepresentationLearner | Exception]]:
    """Each fit up to its training, all trainings together, and again while a fit has another."""
    fits: dict[int, Under] = {}
    spaces: FittedSpaces = {}
    for number, (learner, windows) in enumerate(zip(learners, each, strict=True)):
        try:
            fitting = _begin(learner, windows, spaces, finetune=finetune)
            fits[number] = fitting, next(fitting)
        except Exception as error:
            yield number, _told(number, error)
    while fits:
        numbers, further = list(fits), dict[int, Under]()
        for at, outcome in train_many([run for _, run in fits.values()]):
            number = numbers[at]
            fitting, _ = fits.pop(number)  # what has finished frees its memory
            found = _go_on(fitting, outcome)
            if isinstance(found, Run):
                further[number] = fitting, found
            else:
                yield number, _told(number, found)
        fits = dict(sorted(further.items()))


def _begin(
    learner: RepresentationLearner, windows: Windows, spaces: FittedSpaces, *, finetune: bool
) -> Fitting[RepresentationLearner]:
    if finetune:
        return learner.finetuning(windows)
    return learner.fitting(read_training_data(learner, windows, None), spaces=spaces)


def _go_on(
    fitting: Fitting[RepresentationLearner], outcome: History | Exception
) -> Run | RepresentationLearner | Exception:
    """The next run of a fit, or how it ended."""
    if isinstance(outcome, Exception):
        return outcome
    try:
        return fitting.send(outcome)
    except StopIteration as stop:
        learner: RepresentationLearner = stop.value
        return learner
    except Exception as error:
        return error


def _told(
    number: int, outcome: RepresentationLearner | Exception
) -> RepresentationLearner | Exception:
    if isinstance(outcome, Exception):
        log.warning("run %d failed: %s", number, outcome)
    return outcome
