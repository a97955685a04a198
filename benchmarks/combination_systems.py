"""The systems that are compared: ours, classifiers on the same networks, and simple rivals."""

from __future__ import annotations

import time
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from combination_data import with_features
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.metrics import accuracy_score, f1_score

from expclr import RepresentationLearner, Windows
from expclr.choice import choose_encoder
from expclr.encoders.hybrid import POOLINGS, _schedule
from expclr.engine import resolve_device
from expclr.evaluation import knn_probe, linear_probe
from expclr.experiments.study_data import Study
from expclr.features import FeatureSpace
from expclr.features.report import readability
from expclr.inputs import read_training_data
from expclr.many import fit_many

SHARES = (0.05, 0.2, 1.0)
ALPHAS = (1e2, 1e3, 1e4)
SELF_TRAINING = 0.95  # the probability of a predicted class that counts as a label
PASSES = 8  # over all labels; over a share of them 1 / sqrt(share) times as many

VIEWS = {"method_params": {"augmentations": "ecg"}}
WAYS: dict[str, dict[str, Any]] = {
    "": {},
    "RR features": {},
    "ECG views": VIEWS,
    "RR features, ECG views": VIEWS,
}

Array = NDArray[Any]
Row = dict[str, Any]


@dataclass(frozen=True)
class How:
    """What all trainings of a call share."""

    device: str = "auto"
    precision: str = "bfloat16"
    tiny: bool = False  # one epoch of small networks, only to see that all of it runs


def settings(encoder: str, length: int, how: How) -> dict[str, Any]:
    """Of a network by its name here; "dilated tcn" is the one inside the hybrid, by itself."""
    found = {"encoder": encoder, "device": how.device, "precision": how.precision}
    params: dict[str, Any] = {}
    if encoder == "dilated tcn":
        strides, dilations = _schedule(length, 8, 7, 320)
        params = {"kernel": 7, "strides": strides, "dilations": dilations, "pooling": POOLINGS}
        found["encoder"] = "tcn"
    if how.tiny:
        params |= {"num_features": 840} if encoder in ("rocket", "hybrid") else {"width": 8}
        found["max_epochs"] = 1
    return found | {"encoder_params": params}


def passes(share: float, how: How) -> int:
    return 1 if how.tiny else round(PASSES * share**-0.5)


def ours(
    study: Study,
    encoder: str,
    way: str,
    seeds: Sequence[int],
    how: How,
    changed: dict[str, Any] | None = None,
) -> list[Row]:
    """Train without labels and read; unless it is a trial, fine-tune on shares as well."""
    train, test = (with_features(w, way.split(", ")[0]) for w in (study.train, study.test))
    own = settings(encoder, train.X.shape[2], how) | WAYS[way] | (changed or {})
    learners = [RepresentationLearner("expclr_plus", **own, random_state=seed) for seed in seeds]
    seconds = fitted(learners, train.with_(y=None))
    rows = [row for learner in learners for row in read(learner, train, test, seconds)]
    if changed is not None:
        return rows
    name = f"ours ({encoder}, {way})" if way else f"ours ({encoder})"
    rows = [{"system": f"{name}, U"} | row for row in rows]
    for share in SHARES:
        tuned = [deepcopy(x).set_params(finetune_epochs=passes(share, how)) for x in learners]
        few = [shared(train, share, seed) for seed in seeds]
        seconds = fitted(tuned, few, finetune=True)
        rows += [
            {"system": f"{name}, SS", "seed": seed, "labels": share, "seconds": seconds}
            | scores(test.y, x.predict(test))
            for seed, x in zip(seeds, tuned, strict=True)
        ]
    return rows


def self_trained(
    study: Study,
    encoder: str,
    seeds: Sequence[int],
    how: How,
    thresholds: Sequence[float | None],
) -> list[Row]:
    """Fine-tuned on few labels alone (None), and with predicted labels of all other windows."""
    train, test, rows = study.train, study.test, list[Row]()
    own = settings(encoder, train.X.shape[2], how)
    learners = [RepresentationLearner("expclr_plus", **own, random_state=seed) for seed in seeds]
    fitted(learners, train.with_(y=None))
    for share in SHARES[:-1]:
        few = [shared(train, share, seed) for seed in seeds]
        for threshold in thresholds:
            changed = {"finetune_epochs": passes(share, how), "self_training": threshold}
            tuned = [deepcopy(x).set_params(**changed) for x in learners]
            seconds = fitted(tuned, few, finetune=True)
            of = {"labels": share, "threshold": threshold, "seconds": seconds}
            rows += [
                of | {"seed": seed} | scores(test.y, x.predict(test))
                for seed, x in zip(seeds, tuned, strict=True)
            ]
    return rows


def fitted(
    learners: Sequence[RepresentationLearner],
    data: Windows | Sequence[Windows],
    *,
    finetune: bool = False,
) -> float:
    """Fit them side by side; seconds by the clock for each."""
    began = time.perf_counter()
    for _, outcome in fit_many(learners, data, finetune=finetune):
        if isinstance(outcome, Exception):
            raise outcome
    return round((time.perf_counter() - began) / len(learners), 1)


def shared(train: Windows, share: float, seed: int) -> Windows:
    return train.label_fraction(share, random_state=seed) if share < 1 else train


def read(
    learner: RepresentationLearner, train: Windows, test: Windows, seconds: float
) -> list[Row]:
    """An encoder trained without labels, with all of them and with shares of them."""
    Z, Z_test, seed = learner.transform(train), learner.transform(test), learner.random_state
    F, F_test = (learner.feature_space_.transform(w.F) for w in (train, test))
    r2 = np.clip(np.nan_to_num(readability(Z, F, Z_test, F_test).r2), 0, 1)
    of: Row = {"seed": seed, "labels": 1.0, "probe": "linear", "seconds": seconds}
    rows = [
        of | {"feature_r2": round(float(r2.mean()), 3)} | probed(Z, train.y, Z_test, test),
        of | {"probe": "1-NN"} | probed(Z, train.y, Z_test, test, knn_probe),
    ]
    for share in SHARES[:-1]:
        known = shared(train, share, seed).y
        row = probed(Z, known, Z_test, test)
        rows.append({"seed": seed, "labels": share, "probe": "linear"} | row)
    return rows


def cross_entropy(study: Study, encoder: str, seeds: Sequence[int], how: How) -> list[Row]:
    """The same network as an ordinary classifier, on the labels alone."""
    train, test, rows = study.train, study.test, []
    own = settings(encoder, train.X.shape[2], how)
    for share in SHARES:
        own |= {"max_epochs": passes(share, how)}
        learners = [RepresentationLearner("cross_entropy", **own, random_state=s) for s in seeds]
        few = [shared(train, share, seed).labelled() for seed in seeds]
        seconds = fitted(learners, few)
        of = {"system": f"cross-entropy ({encoder})", "labels": share, "seconds": seconds}
        rows += [
            of | {"seed": seed} | scores(test.y, learner.predict(test))
            for seed, learner in zip(seeds, learners, strict=True)
        ]
    return rows


def rivals(study: Study, seed: int, how: How) -> list[Row]:
    """What the random convolutions and the expert features give by themselves."""
    train, test = study.train, study.test
    A, F = random_convolutions(study, seed, how), measured_features(train, test)
    few = with_features(train, "RR features"), with_features(test, "RR features")
    kinds = {"features": F}
    if len(few[0].feature_names) < len(train.feature_names):
        kinds["RR features"] = measured_features(*few)
    weight = np.sqrt(A[0].shape[1] / F[0].shape[1])  # as much variance as the convolutions
    both = [np.hstack([a, weight * f]) for a, f in zip(_standard(A), F, strict=True)]
    rows: list[Row] = []
    for share in SHARES:
        known, of = shared(train, share, seed), {"labels": share, "seed": seed}
        for name, (Z, Z_test) in {"rocket": A, "rocket + features (needs features)": both}.items():
            row = scores(test.y, ridge(Z, known, Z_test))
            rows.append(of | {"system": f"{name}, ridge"} | row)
        row = probed(A[0], known.y, A[1], test)
        rows.append(of | {"system": "rocket, logistic regression"} | row)
        for name, (Z, Z_test) in kinds.items():
            row = probed(Z, known.y, Z_test, test)
            rows.append(of | {"system": f"{name}, logistic regression (needs features)"} | row)
            if share == 1:
                row = probed(Z, known.y, Z_test, test, knn_probe) | {"probe": "1-NN"}
                rows.append(of | {"system": f"{name} (needs features)"} | row)
    return rows


def random_convolutions(study: Study, seed: int, how: How) -> tuple[Array, ...]:
    """Those of our encoder of the same seed, of train and test."""
    own = settings("rocket", study.train.X.shape[2], how)
    learner = RepresentationLearner("random", **own, random_state=seed).fit(study.train)
    device = resolve_device(how.device)
    found = [
        learner.fixed_.of(learner.encoder_, w, device=device) for w in (study.train, study.test)
    ]
    return tuple(part.float().numpy() for part in found)


def measured_features(train: Windows, test: Windows) -> tuple[Array, ...]:
    space = FeatureSpace().fit(train.F)
    return tuple(np.nan_to_num(space.transform(w.F), nan=0.0) for w in (train, test))


def chosen(study: Study, seed: int, how: How) -> list[Row]:
    """What ``encoder="auto"`` takes, and what each network scored."""
    found = []
    for kind in ("", "RR features"):
        train = with_features(study.train, kind)
        if kind and len(train.feature_names) == len(study.train.feature_names):
            continue
        own = {"precision": how.precision, "device": how.device, "random_state": seed}
        learner = RepresentationLearner(**own, max_epochs=1 if how.tiny else None)
        began = time.perf_counter()
        choice = choose_encoder(learner, read_training_data(learner, train.with_(y=None), None))
        seconds = round(time.perf_counter() - began, 1)
        tried = [
            {"encoder": t["encoder"], "r2": round(t["score"], 3), "seconds": round(t["seconds"], 1)}
            for t in choice.trials
        ]
        of = {"features": kind or "all", "seed": seed, "seconds": seconds}
        found.append({"system": "auto", "encoder": choice.encoder, "tried": tried} | of)
    return found


def scores(y: Array, predicted: Array) -> Row:
    return {
        "accuracy": round(float(accuracy_score(y, predicted)), 4),
        "macro_f1": round(float(f1_score(y, predicted, average="macro")), 4),
    }


def probed(Z: Array, known: Array, Z_test: Array, test: Windows, probe: Any = linear_probe) -> Row:
    found = probe(Z, known, Z_test, test.y)
    return {name: round(float(found[name]), 4) for name in ("accuracy", "macro_f1")}


def ridge(A: Array, few: Windows, A_test: Array) -> Array:
    """Classes by ridge regression in its dual form; the strength by groups held out."""
    rows = np.flatnonzero(few.y >= 0)
    y, group = few.y[rows], few.group[rows]
    mean, std = A[rows].mean(0), A[rows].std(0)
    scaled = [(part - mean) / np.where(std > 1e-6, std, 1) for part in (A[rows], A_test)]
    K, K_test = scaled[0] @ scaled[0].T, scaled[1] @ scaled[0].T
    held = np.isin(group, np.random.default_rng(0).permutation(np.unique(group))[::4])
    if 0 < held.sum() < len(held) and len(np.unique(y[~held])) == len(np.unique(y)):
        right = [
            (_ridge(K[~held][:, ~held], y[~held], K[held][:, ~held], a) == y[held]).mean()
            for a in ALPHAS
        ]
        return _ridge(K, y, K_test, ALPHAS[int(np.argmax(right))])
    return _ridge(K, y, K_test, ALPHAS[1])


def _ridge(K: Array, y: Array, K_test: Array, alpha: float) -> Array:
    classes = np.unique(y)
    targets = (y[:, None] == classes) * 2.0 - 1
    centre = targets.mean(0)
    solved = cho_solve(cho_factor(K + alpha * np.eye(len(K), dtype=K.dtype)), targets - centre)
    return classes[(K_test @ solved + centre).argmax(1)]


def _standard(A: tuple[Array, ...]) -> list[Array]:
    mean, std = A[0].mean(0), A[0].std(0)
    return [(part - mean) / np.where(std > 1e-6, std, 1) for part in A]
