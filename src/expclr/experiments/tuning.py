"""Hyper-parameters by validation: one grid and one budget for every method, inside train alone.

``python -m expclr.experiments.tuning --data uci_har --npz FOLDER --out tuning --choices FOLDER``
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from expclr.engine import resolve_device
from expclr.errors import ConfigError, DataError, suggest
from expclr.experiments.budgets import Budget, budget_named
from expclr.experiments.choices import Choices, read_choices, write_choices
from expclr.experiments.execute import Execution
from expclr.experiments.paper import LEARNING_RATES, PAPER_SS, PAPER_U, SYSTEMS, ZOO, Run, foreign
from expclr.experiments.plan import waves
from expclr.experiments.protocol import make_job
from expclr.experiments.reproduce import pending
from expclr.experiments.store import Store, code_version
from expclr.experiments.study_data import Study, open_study
from expclr.experiments.tables import text_table

__all__ = ["TUNED", "OutOfTimeError", "main", "tune"]

log = logging.getLogger(__name__)

RULE = (
    "the highest accuracy of the converged linear probe on a fifth of the training subjects that "
    "was not trained on; mean over seeds and label shares; the smaller learning rate of equals"
)
SHARES = (0.1, 0.5)  # of the labels, where labels are trained on
TUNED = (*PAPER_U, "expclr_plus", *ZOO, "cross_entropy")
SCRATCH = ("expclr", "cross_entropy")
TUNED_SS = (*PAPER_SS, "expclr_plus")
STAGES = ("rates", "own", "labels")

Settings = tuple[tuple[str, Any], ...]


class OutOfTimeError(DataError):
    """The minutes given were over before anything could be chosen."""


def tune(
    data: str = "uci_har",
    *,
    budget: str | None = None,
    seeds: int = 1,
    out: str | Path = "tuning",
    npz: str | Path | None = None,
    choices: str | Path | None = None,
    systems: Sequence[str] = (),
    device: str = "auto",
    minutes: float | None = None,
    rates: Sequence[float] = LEARNING_RATES,
    stages: Sequence[str] = STAGES,
    per_group: int | None = None,
    pack: str | Path | None = None,
) -> Choices:
    """Choose learning rates, epochs and each method's own setting; write them down with scores.

    Test windows are not looked at: every run trains on four fifths of the training groups and is
    read on the others.

    Parameters
    ----------
    data, budget, out, npz, device, minutes, pack
        As in :func:`expclr.experiments.reproduce.reproduce`; what is finished is not run again.
    seeds : int
        Runs that a score is the mean of.
    choices : path, optional
        Folder for ``<dataset>-<budget>.yaml``; default the package's own.
    systems : sequence of str
        Only these; default every one that trains.
    rates : sequence of float
        Learning rates to try; the paper's by default.
    stages : sequence of str
        "rates": learning rate and epochs without labels; "own": after it, the method's own setting;
        "labels": learning rates on labels. All by default. Without "rates" the others go on from
        the choices that are kept, if they were made in the same way.
    per_group : int, optional
        Only so many windows of each group.
    """
    stages = _known(stages, STAGES, "stage")
    wanted = _known(systems, [*TUNED, *foreign(systems)], "system")
    device = str(resolve_device(device))
    schedule = budget_named(budget or ("gpu" if device.startswith("cuda") else "cpu"))
    study = open_study(data, npz=npz, per_group=per_group or schedule.per_group)
    execution = Execution(study, Store(out), code_version(), device=device)
    search = _Search(execution, schedule, seeds, minutes)
    about = _about(study, schedule, rates, seeds)
    before = read_choices(study.name, schedule.name, choices)
    kept = before.systems if "rates" not in stages and _alike(about, before) else {}
    chosen = {name: dict(kept.get(name, {})) for name in wanted}
    if "rates" in stages:
        _without_labels(search, chosen, rates)
    if "own" in stages:
        _knobs(search, chosen)
    if "labels" in stages:
        _with_labels(search, chosen, rates)
    found = {name: stages for name, stages in chosen.items() if stages}
    if not found:
        why = next(iter(execution.failed.values()), "what comes first is the stage 'rates'")
        raise DataError(f"no trial could be trained: {why}")
    made = Choices(study.name, _beside(found, about, before), about, schedule.name)
    log.info("%s\n%s", _table(made), write_choices(made, choices))
    if pack:
        execution.store.pack(pack)
    return made


def _about(study: Study, budget: Budget, rates: Sequence[float], seeds: int) -> dict[str, Any]:
    """How the choices are found."""
    return {
        "rule": RULE,
        "budget": budget.words(),
        "grid": {"lr": [float(rate) for rate in rates], "epochs": list(budget.sweep_epochs)},
        "label_shares": list(SHARES),
        "seeds": seeds,
        "data": study.fingerprint,
        "split": study.split("validation"),
        "validation_groups": [str(g) for g in np.unique(study.validation[1].group)],  # type: ignore[arg-type]
        "code": code_version(),
    }


def _alike(about: Mapping[str, Any], before: Choices) -> bool:
    """Whether what is kept was chosen in the same way, if perhaps by older code."""
    told = ("rule", "budget", "grid", "label_shares", "seeds", "data", "split")
    return all(before.about.get(name) == about[name] for name in told)


def _beside(found: dict[str, Any], about: Mapping[str, Any], before: Choices) -> dict[str, Any]:
    """What was chosen now, and what is kept of other systems if it was chosen alike."""
    if not _alike(about, before):
        return found
    together = {
        name: dict(before.systems.get(name, {})) | found.get(name, {})
        for name in dict.fromkeys([*TUNED, *before.systems, *found])
    }
    return {name: stages for name, stages in together.items() if stages}


def _known(asked: Sequence[str], names: Sequence[str], kind: str) -> Sequence[str]:
    for name in asked:
        if name not in names:
            raise ConfigError(f"no {kind} {name!r} to tune: {suggest(name, list(names))}")
    return asked or names


class _Search:
    """Runs trials on the validation part and reads their scores."""

    def __init__(
        self, execution: Execution, budget: Budget, seeds: int, minutes: float | None
    ) -> None:
        self.execution, self.budget, self.seeds = execution, budget, seeds
        self.minutes, self.started = minutes, time.monotonic()

    def _left(self) -> float | None:
        """Minutes that are left of those given."""
        if self.minutes is None:
            return None
        return max(0.0, self.minutes - (time.monotonic() - self.started) / 60)

    def scores(self, trials: Mapping[Any, tuple[str, str, Settings]]) -> dict[Any, float]:
        """The score of each (system, mode, settings) that could be trained."""
        study, code = self.execution.study, self.execution.code
        jobs = {
            key: [
                make_job(run, study, self.budget, Choices(study.name), code)
                for run in self._runs(*trial)
            ]
            for key, trial in trials.items()
        }
        every = {job.key: job for group in jobs.values() for job in group}
        todo = pending(list(every.values()), self.execution)
        self.execution.run(waves(todo), minutes=self._left())
        done = self.execution.store, self.execution.failed
        if not all(any(key in place for place in done) for key in every):
            raise OutOfTimeError("time is up, nothing is chosen yet: the same command goes on")
        found = {record["id"]: record for record in self.execution.store.results().records}
        return {
            key: float(np.mean([_score(found[job.key]) for job in group]))
            for key, group in jobs.items()
            if all(job.key in found for job in group)
        }

    def _runs(self, system: str, mode: Any, settings: Settings) -> Iterable[Run]:
        name = self.execution.study.name
        for seed in range(self.seeds):
            for share in (None,) if mode == "U" else SHARES:
                yield Run(
                    name, system, mode, seed, share, tuple(sorted(settings)), part="validation"
                )


def _score(record: Mapping[str, Any]) -> float:
    return float(record["metrics"]["subset"]["linear"]["accuracy"])


def _without_labels(
    search: _Search, chosen: dict[str, dict[str, Any]], rates: Sequence[float]
) -> None:
    """Learning rate and epochs of training without labels."""
    names = [name for name in chosen if name != "cross_entropy"]
    grid = [(lr, epochs) for epochs in search.budget.sweep_epochs for lr in rates]
    trials = {
        (name, *point): (name, "U", (("lr", point[0]), ("max_epochs", point[1])))
        for name in names
        for point in grid
    }
    scores = search.scores(trials)
    for name in names:
        _take(
            chosen[name],
            "U",
            search.execution.code,
            {p: scores[name, *p] for p in grid if (name, *p) in scores},
        )


def _knobs(search: _Search, chosen: dict[str, dict[str, Any]]) -> None:
    """Each method's own setting, at the learning rate and epochs that were best."""
    trials = {}
    for name, stages in chosen.items():
        knob = SYSTEMS[name].knob
        for value in knob[1] if knob and "U" in stages else ():
            settings = (*_settings(stages["U"]), (f"method.{knob[0]}", value))  # type: ignore[index]
            trials[name, value] = (name, "U", settings)
    scores = search.scores(trials)
    for name in dict.fromkeys(key[0] for key in scores):
        knob = SYSTEMS[name].knob
        assert knob is not None
        tried = {v: scores[name, v] for v in knob[1] if (name, v) in scores}
        best = max(tried, key=lambda value: tried[value])
        chosen[name]["U"]["knob"] = {str(value): round(score, 4) for value, score in tried.items()}
        if tried[best] > chosen[name]["U"]["score"]:
            chosen[name]["U"] |= {"params": {knob[0]: best}, "score": round(tried[best], 4)}


def _with_labels(
    search: _Search, chosen: dict[str, dict[str, Any]], rates: Sequence[float]
) -> None:
    """Learning rates of training on labels, from scratch and after the choice without labels."""
    epochs = {"S": search.budget.scratch_epochs, "SS": search.budget.finetune_epochs}
    trials: dict[Any, tuple[str, str, Settings]] = {}
    for name, stages in chosen.items():
        for lr in rates if name in SCRATCH else ():
            trials[name, "S", lr] = (name, "S", (("lr", lr),))
        for lr in rates if name in TUNED_SS and "U" in stages else ():
            settings = (*_settings(stages["U"]), ("finetune_lr", lr))
            trials[name, "SS", lr] = (name, "SS", settings)
    scores = search.scores(trials)
    for name, stage in dict.fromkeys(key[:2] for key in scores):
        tried = {
            (lr, epochs[stage]): scores[name, stage, lr]
            for lr in rates
            if (name, stage, lr) in scores
        }
        _take(chosen[name], stage, search.execution.code, tried)


def _settings(found: Mapping[str, Any]) -> Settings:
    own = tuple((f"method.{k}", v) for k, v in found["params"].items())
    return (("lr", found["lr"]), ("max_epochs", found["epochs"]), *own)


def _take(
    stages: dict[str, Any], stage: str, code: str, tried: Mapping[tuple[float, int], float]
) -> None:
    """Keep the best point of a grid, with the scores of all and the code that they are of."""
    if not tried:
        return
    lr, epochs = min(tried, key=lambda point: (-tried[point], point))
    stages[stage] = {
        "lr": float(lr),
        "epochs": int(epochs),
        "params": {},
        "score": round(tried[lr, epochs], 4),
        "code": code,
        "grid": [[float(a), int(b), round(score, 4)] for (a, b), score in tried.items()],
    }


def _table(choices: Choices) -> str:
    rows = [
        [f"{name} ({stage})", f"{found['lr']:g}", found["epochs"], found["score"]]
        for name, stages in choices.systems.items()
        for stage, found in stages.items()
    ]
    return text_table(["system", "learning rate", "epochs", "validation accuracy"], rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line of ``python -m expclr.experiments.tuning``."""
    parser = argparse.ArgumentParser(prog="python -m expclr.experiments.tuning")
    parser.add_argument("--data", default="uci_har")
    parser.add_argument("--budget")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", default="tuning")
    parser.add_argument("--npz")
    parser.add_argument("--choices")
    parser.add_argument("--systems", default="")
    parser.add_argument("--stages", default="", help=f"of {', '.join(STAGES)}")
    parser.add_argument("--rates", default="", help="learning rates, with commas between")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--per-group", type=int)
    parser.add_argument("--pack")
    given = vars(parser.parse_args(arguments))
    for words in ("systems", "stages", "rates"):
        given[words] = [word for word in given[words].split(",") if word]
    given["rates"] = [float(rate) for rate in given["rates"]] or LEARNING_RATES
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        tune(**given)
    except (ConfigError, DataError) as error:
        print(f"tuning: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
