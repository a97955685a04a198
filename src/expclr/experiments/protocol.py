"""From a run of a study to an estimator, and from a fitted estimator to a record."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.config import TrainConfig, run_id
from expclr.encoders import ENCODERS
from expclr.encoders.tstcc import CHANNELS
from expclr.estimators import RepresentationLearner
from expclr.evaluation import PROBES
from expclr.evaluation.linear_head import standardise
from expclr.evaluation.many_probes import probe_many
from expclr.evaluation.scores import Scores, score
from expclr.experiments.budgets import Budget
from expclr.experiments.choices import Choices
from expclr.experiments.paper import SYSTEMS, Run
from expclr.experiments.study_data import Study
from expclr.inputs import Given
from expclr.methods import METHODS
from expclr.windows import Windows

__all__ = [
    "Encoder",
    "Job",
    "data_of",
    "labelled_share",
    "learner_of",
    "make_job",
    "probe_all",
    "probe_together",
    "record_of",
]

PROBED = ("linear", "linear_raw", "knn1", "knn1_raw")
WIDE = 1000  # embeddings with more columns are read by fewer probes: each takes minutes
VERY_WIDE = 5000  # and these by ridge regression alone


@dataclass(frozen=True)
class Job:
    """A run with all of its settings decided.

    Parameters
    ----------
    key : str
        Names the result: run, settings, data, split and code.
    needs : str, optional
        Of a fine-tuning: the key of the run that it goes on from.
    n : int
        Windows that are trained on.
    """

    run: Run
    config: TrainConfig
    chosen_by: str
    budget: str
    key: str
    n: int
    needs: Job | None = None

    @property
    def stage(self) -> int:
        """0: nothing is trained, 1: from scratch, 2: fine-tuned."""
        return {"-": 0, "U": 1, "S": 1, "SS": 2}[self.run.mode]

    @property
    def epochs(self) -> int:
        """Of this stage alone."""
        return self.config.finetune_epochs if self.stage == 2 else self.config.max_epochs or 0

    @property
    def method(self) -> str:
        """What this stage minimises."""
        if self.stage < 2:
            return self.config.method
        return self.config.finetune_method or METHODS[self.config.method].finetune

    @property
    def steps(self) -> int:
        """Training steps of this stage."""
        if self.stage == 0 or not METHODS[self.method].trains:
            return 0
        return self.epochs * max(1, self.n // min(self.config.batch_size, self.n))

    @property
    def shape(self) -> tuple[Any, ...]:
        """Jobs of equal shape can train side by side."""
        c = self.config
        size = (c.encoder, c.embedding_dim, c.batch_size, self.n, self.epochs)
        name = self.run.system if self.stage == 0 else self.method
        return (self.stage, name, *size)


def make_job(run: Run, study: Study, budget: Budget, choices: Choices, code: str) -> Job:
    """Decide the settings of a run."""
    train, _ = study.parts(run.part)
    system = SYSTEMS[run.system]
    config = TrainConfig(method=system.method or "random", random_state=run.seed)
    config = replace(config, method_params=dict(budget.method_params.get(config.method, {})))
    config = _set(config, system.settings)
    if config.encoder == "tcn":
        config = replace(config, encoder_params=dict(budget.encoder_params))
    config = _sized(config, train)
    needs, n, why = None, len(train), "nothing to choose"
    if run.mode in ("S", "SS"):
        n = len(labelled_share(train, run).labelled())
    if run.mode == "SS":
        before = replace(run, mode="U", labels=None, finetune=None, variant=_plain(run))
        needs = make_job(before, study, budget, choices, code)
        config = needs.config
    if run.mode != "-":
        config, why = _chosen(config, run, budget, choices, n)
    config = _set(config, dict(run.variant))
    key = _key(run, config, study, code)
    return Job(run, config, why, budget.name, key, n, needs)


def _plain(run: Run) -> tuple[tuple[str, Any], ...]:
    """The variant of the run before fine-tuning: without what concerns fine-tuning alone."""
    return tuple((k, v) for k, v in run.variant if not k.startswith("finetune_"))


def _chosen(
    config: TrainConfig, run: Run, budget: Budget, choices: Choices, n: int
) -> tuple[TrainConfig, str]:
    """Learning rate, epochs and the method's settings of this stage."""
    usual = {"U": budget.epochs, "S": budget.scratch_epochs, "SS": budget.finetune_epochs}
    system = run.finetune if run.mode == "SS" and run.finetune else run.system
    found, why = choices.of(system, run.mode, epochs=usual[run.mode])
    if run.mode == "U":
        changes: dict[str, Any] = {"lr": found["lr"], "max_epochs": found["epochs"]}
        params = dict(config.method_params) | dict(found["params"])
        return replace(config, method_params=params, **changes), why
    per_epoch = max(1, n // min(config.batch_size, n))
    epochs = max(found["epochs"], -(-budget.least_steps // per_epoch))
    if run.mode == "S":
        return replace(config, lr=found["lr"], max_epochs=epochs), why
    changes = {"finetune_method": run.finetune, "finetune_lr": found["lr"]}
    return replace(config, finetune_epochs=epochs, **changes), why


def _set(config: TrainConfig, settings: Any) -> TrainConfig:
    """Settings by name; "method.tau" is a setting of the method."""
    own = {k: v for k, v in settings.items() if not k.startswith("method.")}
    params = {k[7:]: v for k, v in settings.items() if k.startswith("method.")}
    return replace(config, method_params=dict(config.method_params) | params, **own)


def _sized(config: TrainConfig, windows: Windows) -> TrainConfig:
    """The size of a flattened feature map, where that is the embedding."""
    if config.embedding_dim != "flat":
        return config
    _, c, t = windows.X.shape
    encoder = ENCODERS[config.encoder](c, 1, length=t, **config.encoder_params)
    return replace(config, embedding_dim=CHANNELS * encoder.steps)


def _key(run: Run, config: TrainConfig, study: Study, code: str) -> str:
    told = [run.system, run.mode, run.labels, run.part, study.fingerprint]
    return run_id(config, json.dumps(told), study.split(run.part), code)


def labelled_share(train: Windows, run: Run) -> Windows:
    """Train with the labels that the run may see: nested shares, the same for every system."""
    if run.labels is None or run.labels == 1:
        return train
    return train.label_fraction(run.labels, random_state=run.seed)


def data_of(job: Job, study: Study) -> Windows:
    """What the job trains on: features without labels (U), or labels without features (S, SS)."""
    train, _ = study.parts(job.run.part)
    if job.run.mode == "U":
        return train.with_(y=None)
    return labelled_share(train, job.run).labelled().with_(F=None, feature_names=())


class Encoder(RepresentationLearner):
    """An estimator without its classifier: the probes fit theirs."""

    def _fit_head(self, given: Given) -> None:
        pass


def learner_of(job: Job) -> Encoder:
    """The estimator of a job that starts from scratch."""
    return Encoder.from_config(job.config)


def probe_all(
    Z_train: NDArray[Any],
    Z_test: NDArray[Any],
    y: NDArray[np.int64],
    y_seen: NDArray[np.int64],
    y_test: NDArray[np.int64],
) -> dict[str, Any]:
    """Every probe in both protocols, fitted on the labels seen and, where they differ, on all."""
    started = time.perf_counter()
    fits = {"subset": y_seen}
    if Z_train.shape[1] <= WIDE and not np.array_equal(y_seen, y):
        fits["all"] = y
    found = {
        fitted_on: {
            name: _numbers(probe(Z_train, known, Z_test, y_test))
            for name, probe in _probes(Z_train.shape[1]).items()
        }
        for fitted_on, known in fits.items()
    }
    return {"metrics": found, "seconds": time.perf_counter() - started}


def probe_together(
    Z_train: Sequence[NDArray[Any]],
    Z_test: Sequence[NDArray[Any]],
    y: NDArray[np.int64],
    y_seen: Sequence[NDArray[np.int64]],
    y_test: NDArray[np.int64],
    *,
    device: str,
) -> list[dict[str, Any]]:
    """:func:`probe_all` of many runs at once, by the same probes on a GPU."""
    started = time.perf_counter()
    columns = Z_train[0].shape[1]
    names = list(_probes(columns))
    found = probe_many(Z_train, np.stack(y_seen), Z_test, y_test, probes=names, device=device)
    metrics = [{"subset": {name: _numbers(run[name]) for name in names}} for run in found]
    part = [at for at, seen in enumerate(y_seen) if not np.array_equal(seen, y)]
    if part and columns <= WIDE:
        sides = [Z_train[at] for at in part], [Z_test[at] for at in part]
        on_all = probe_many(sides[0], y, sides[1], y_test, probes=names, device=device)
        for at, run in zip(part, on_all, strict=True):
            metrics[at]["all"] = {name: _numbers(run[name]) for name in names}
    seconds = (time.perf_counter() - started) / len(metrics)
    return [{"metrics": numbers, "seconds": seconds} for numbers in metrics]


def _probes(columns: int) -> dict[str, Any]:
    if columns > VERY_WIDE:
        return {"linear": ridge_probe}
    names = ("linear", "knn1_raw") if columns > WIDE else PROBED
    return {name: PROBES[name] for name in names}


def ridge_probe(Z_train: Any, y_train: Any, Z_test: Any, y_test: Any) -> Scores:
    """Ridge regression on the classes, its penalty by leave-one-out: for thousands of columns."""
    from sklearn.linear_model import RidgeClassifierCV

    seen, asked = y_train >= 0, y_test >= 0
    mean, scale = standardise(Z_train[seen], "standard")
    ridge = RidgeClassifierCV(alphas=np.logspace(-3, 3, 10))
    ridge.fit((Z_train[seen] - mean) / scale, y_train[seen])
    predicted = ridge.predict((Z_test[asked] - mean) / scale)
    found = score(y_test[asked], predicted, protocol="ridge, standardised", trained=y_train[seen])
    found["n_train"] = float(seen.sum())
    return found


def _numbers(scores: Any) -> dict[str, Any]:
    kept = ("accuracy", "macro_f1", "kappa", "n_train", "n_test", "converged")
    values = {k: float(scores[k]) for k in kept if k in scores}
    numbers = {k: round(v, 6) if np.isfinite(v) else None for k, v in values.items()}
    return numbers | {"protocol": scores.protocol}


def record_of(
    job: Job,
    study: Study,
    code: str,
    hardware: dict[str, Any],
    learner: RepresentationLearner | None,
    probed: dict[str, Any],
    seconds: dict[str, float],
) -> dict[str, Any]:
    """All that is kept of a finished run."""
    run = job.run
    seen = labelled_share(study.parts(run.part)[0], run)
    assert seen.y is not None
    history = _history(learner, job)
    return {
        "id": job.key,
        "run": {
            "dataset": run.dataset,
            "system": run.system,
            "mode": run.mode,
            "labels": run.labels,
            "seed": run.seed,
            "variant": dict(run.variant),
            "finetune": run.finetune,
            "part": run.part,
        },
        "budget": job.budget,
        "config": {k: v for k, v in vars(job.config).items() if k != "device"},
        "config_hash": run_id(replace(job.config, random_state=0)),
        "chosen_by": job.chosen_by,
        "code": code,
        "data": study.fingerprint,
        "split": study.split(run.part),
        "label_subset": hashlib.sha256((seen.y >= 0).tobytes()).hexdigest()[:12],
        "labels_seen": int((seen.y >= 0).sum()),
        "hardware": hardware,
        "seconds": {k: round(v, 3) for k, v in (seconds | {"probe": probed["seconds"]}).items()},
        "epochs": len(history),
        "steps": job.steps,
        "last_loss": history[-1]["loss"] if history else None,
        "metrics": probed["metrics"],
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _history(learner: RepresentationLearner | None, job: Job) -> list[dict[str, Any]]:
    if learner is None:
        return []
    return learner.finetune_history_ if job.stage == 2 else learner.history_
