"""The paper, rerun: plan, estimate, run what is missing, resume after any interruption.

``python -m expclr.experiments.reproduce all --data uci_har --npz FOLDER --out results`` does
without the command line's own dependencies.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from expclr.engine import resolve_device
from expclr.errors import ConfigError, DataError
from expclr.experiments import untrained
from expclr.experiments.budgets import budget_named
from expclr.experiments.choices import Choices, read_choices
from expclr.experiments.execute import Execution
from expclr.experiments.paper import EXPERIMENTS, Run, foreign, runs_of
from expclr.experiments.plan import calibrate, plan_text, waves
from expclr.experiments.protocol import Job, make_job
from expclr.experiments.store import Store, code_version
from expclr.experiments.study_data import Study, open_study

__all__ = ["main", "pending", "reproduce"]

log = logging.getLogger(__name__)


def reproduce(
    experiments: str | Sequence[str] = "all",
    *,
    data: str = "uci_har",
    seeds: int = 5,
    budget: str | None = None,
    out: str | Path = "results",
    npz: str | Path | None = None,
    choices: str | Path | None = None,
    device: str = "auto",
    systems: Sequence[str] = (),
    minutes: float | None = None,
    pack: str | Path | None = None,
    smoke: bool = False,
    show_only: bool = False,
    estimated: bool = True,
    per_group: int | None = None,
) -> int:
    """Run experiments of the paper into a results folder; return how many runs are left.

    Parameters
    ----------
    experiments : str or sequence of str
        Keys of ``EXPERIMENTS``, in one string with commas between or not, or "all".
    data : str
        A dataset, or the paper's name of one.
    seeds : int
    budget : "cpu" or "gpu", optional
        Epochs and network sizes; default by the device.
    out : path
        Results folder: what is finished there is not run again.
    npz : path, optional
        Folder of exported datasets instead of raw files.
    choices : path, optional
        Folder of hyper-parameters other than the package's own.
    device : str
    systems : sequence of str
        Only these systems; ``"my_module:MyMethod"`` is trained without labels.
    minutes : float, optional
        Begin no further wave of runs after so many minutes.
    pack : path, optional
        Write all results into this one file at the end, too.
    smoke : bool
        One tiny run of everything, on the dataset "machine".
    show_only : bool
        Show the plan, run nothing.
    estimated : bool
        Time this machine first, and say how long the plan will take.
    per_group : int, optional
        Only so many windows of each group: for trying things out.
    """
    if smoke:
        data, seeds, budget = "machine", 1, "smoke"
    device = str(resolve_device(device))
    schedule = budget_named(budget or ("gpu" if device.startswith("cuda") else "cpu"))
    study = open_study(data, npz=npz, per_group=per_group or schedule.per_group)
    store = Store(out)
    chosen = Choices(study.name) if smoke else read_choices(study.name, schedule.name, choices)
    execution = Execution(study, store, code_version(), device=device)
    runs = _selected(runs_of(experiments, study.name, seeds, also=foreign(systems)), systems)
    jobs = [make_job(run, study, schedule, chosen, code_version()) for run in runs]
    todo = pending(jobs, execution)
    _show(
        study, execution, todo, sum(job.key in store for job in jobs), fast=smoke or not estimated
    )
    if show_only or not todo:
        left = len(todo)
    else:
        left = execution.run(waves(todo), minutes=minutes)
    for failure in execution.failed.values():
        log.warning("failed: %s", failure)
    if pack:
        log.info("packed into %s", store.pack(pack))
    return left


def _selected(runs: Sequence[Run], systems: Sequence[str]) -> list[Run]:
    known = {run.system for run in runs}
    unknown = sorted(set(systems) - known)
    if unknown:
        raise ConfigError(f"no system {unknown[0]!r} in these experiments: {', '.join(known)}")
    kept = [run for run in runs if not systems or run.system in systems]
    missing = sorted({run.system for run in kept if not untrained.available(run.system)})
    if missing:
        log.warning("left out, not in this version: %s", ", ".join(missing))
    return [run for run in kept if run.system not in missing]


def pending(jobs: Sequence[Job], execution: Execution) -> list[Job]:
    """Jobs without a result, and those whose model one of them goes on from but is not there."""
    todo = {job.key: job for job in jobs if job.key not in execution.store}
    bases = {job.needs.key: job.needs for job in todo.values() if job.needs}
    again = {key: job for key, job in bases.items() if not execution.has_model(job)}
    return list((again | todo).values())


def _show(study: Study, execution: Execution, todo: list[Job], done: int, *, fast: bool) -> None:
    log.info("%s: %s, %s", study.name, study.train, study.test)
    if not todo or fast:
        log.info("%d runs to do, %d done already", len(todo), done)
        return
    pace = calibrate(study, todo, device=execution.device, processes=execution.processes)
    windows = len(study.train) + len(study.test)
    log.info("%s", plan_text(todo, done, pace, windows))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line of ``python -m expclr.experiments.reproduce``."""
    parser = argparse.ArgumentParser(
        prog="python -m expclr.experiments.reproduce", description="Rerun the paper."
    )
    parser.add_argument("experiments", nargs="*", help=f"{', '.join(EXPERIMENTS)} or all")
    parser.add_argument("--data", default="uci_har")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--budget")
    parser.add_argument("--out", default="results")
    parser.add_argument("--npz", help="folder of exported datasets")
    parser.add_argument("--choices", help="folder of hyper-parameters")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--systems", default="", help="only these, with commas between")
    parser.add_argument("--minutes", type=float, help="begin no further wave after so long")
    parser.add_argument("--pack", help="write all results into this one file, too")
    parser.add_argument("--smoke", action="store_true", help="one tiny run of everything")
    parser.add_argument("--show-only", action="store_true", help="show the plan, run nothing")
    parser.add_argument("--per-group", type=int, help="only so many windows of each group")
    given = vars(parser.parse_args(arguments))
    words = [name for word in given["experiments"] for name in word.split(",") if name]
    given["experiments"] = words or ["all"]
    given["systems"] = [name for name in given["systems"].split(",") if name]
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        return 1 if reproduce(**given) else 0
    except (ConfigError, DataError) as error:
        print(f"reproduce: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
