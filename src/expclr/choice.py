"""Which network can carry what the expert measures: short trainings, read on other groups."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from tqdm import tqdm

from expclr.errors import ConfigError, DataError
from expclr.evaluation import linear_probe
from expclr.features.report import readability
from expclr.inputs import Given
from expclr.windows import Windows

if TYPE_CHECKING:
    from expclr.estimators import RepresentationLearner

__all__ = ["CANDIDATES", "EncoderChoice", "choose_encoder"]

log = logging.getLogger(__name__)

CANDIDATES = ("rocket", "tcn", "hybrid")  # the cheapest to train first
LEAD = 0.02  # in score, that a dearer network must have: less is what another seed changes
FALLBACK = "rocket"  # where nothing can be compared
FEWEST = 60  # windows below which a short training says nothing
TRAINED_ON, READ_ON = 2000, 1000  # windows of a trial
STEPS = 300  # of a trial: fixed, so that the choice does not depend on how busy a machine is


@dataclass(frozen=True)
class EncoderChoice:
    """The network that was taken, and what each one scored."""

    encoder: str
    why: str
    trials: tuple[dict[str, Any], ...] = ()  # encoder, score, seconds


def choose_encoder(learner: RepresentationLearner, given: Given) -> EncoderChoice:
    """Train each candidate for a short while; keep the one whose embedding can be read best.

    Of those that are within ``LEAD`` of the best, the cheapest to train.

    What is read are the expert features, by ridge regression, on groups left out; without
    features, the classes. No label is looked at where there are features.

    Parameters
    ----------
    learner : RepresentationLearner
        Whose settings, but for the encoder, the trials are made with.
    given : Given
        The training windows and what is known of them.
    """
    n, _, t = given.windows.X.shape
    if t < 9:
        return EncoderChoice("tcn", f"windows of {t} timepoints are too short for the others")
    if given.features is None and given.codes is None:
        return EncoderChoice(FALLBACK, "without features or labels there is nothing to judge by")
    if n < FEWEST:
        return EncoderChoice(FALLBACK, f"{n} windows are too few to compare networks")
    known, held = _parts(given, learner.random_state or 0)
    trials = tuple(
        _trial(learner, name, known, held)
        for name in tqdm(CANDIDATES, "encoder", unit="trial", disable=None, leave=False)
    )
    best = max(trial["score"] for trial in trials)
    taken = next(trial for trial in trials if trial["score"] >= best - LEAD)
    scores = ", ".join(f"{trial['encoder']} {trial['score']:.3f}" for trial in trials)
    what = "features (mean R2)" if given.features is not None else "classes (macro-F1)"
    why = f"{what} read on held-out windows after {STEPS} steps: {scores}"
    if taken["score"] < best:
        why += f"; {taken['encoder']} costs less, and no other leads by more than {LEAD}"
    log.info("encoder %s: %s", taken["encoder"], why)
    return EncoderChoice(taken["encoder"], why, trials)


def _trial(learner: RepresentationLearner, name: str, known: Given, held: Given) -> dict[str, Any]:
    started = time.perf_counter()
    steps = max(1, len(known.windows) // min(learner.batch_size, len(known.windows)))
    short = clone(learner).set_params(
        encoder=name,
        max_epochs=min(learner.max_epochs or STEPS, math.ceil(STEPS / steps)),
        validation_fraction=0.0,
    )
    try:
        short.fit(known.windows, known.codes if known.features is None else known.features)
        score = _score(short, known, held)
    except (ConfigError, DataError) as error:
        log.info("encoder %s left out: %s", name, error)
        score = -math.inf
    return {"encoder": name, "score": score, "seconds": time.perf_counter() - started}


def _score(short: RepresentationLearner, known: Given, held: Given) -> float:
    Z_known, Z_held = short.transform(known.windows), short.transform(held.windows)
    if known.features is None:
        assert known.codes is not None
        assert held.codes is not None
        a, b = known.codes >= 0, held.codes >= 0
        return linear_probe(Z_known[a], known.codes[a], Z_held[b], held.codes[b])["macro_f1"]
    F_known, F_held = (short.feature_space_.transform(part.features) for part in (known, held))
    r2 = readability(Z_known, F_known, Z_held, F_held).r2
    return float(np.clip(np.nan_to_num(r2), 0, 1).mean())


def _parts(given: Given, random_state: int) -> tuple[Given, Given]:
    """Some windows to train on and some of other groups to read from."""
    rng = np.random.default_rng(random_state)
    held = _held_out(given.windows, rng)
    return (
        _rows(given, _some(np.flatnonzero(~held), TRAINED_ON, rng)),
        _rows(given, _some(np.flatnonzero(held), READ_ON, rng)),
    )


def _held_out(windows: Windows, rng: np.random.Generator) -> NDArray[np.bool_]:
    groups = np.arange(len(windows)) if windows.group is None else windows.group
    known = np.unique(groups)
    if len(known) < 2:
        groups, known = np.arange(len(windows)), np.arange(len(windows))
    chosen = rng.permutation(known)[: max(1, round(0.3 * len(known)))]
    return np.isin(groups, chosen)


def _some(rows: NDArray[np.int64], most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return np.sort(rng.permutation(rows)[:most])


def _rows(given: Given, rows: NDArray[np.int64]) -> Given:
    features = given.features
    if features is not None:
        features = features.iloc[rows] if hasattr(features, "iloc") else features[rows]
    codes = None if given.codes is None else given.codes[rows]
    return Given(given.windows.subset(rows), features, codes, given.classes)
