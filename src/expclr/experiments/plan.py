"""What is to be run, in waves that can train side by side, and how long it will take."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from expclr.config import TrainConfig
from expclr.experiments.paper import SYSTEMS
from expclr.experiments.protocol import Encoder, Job, probe_all
from expclr.experiments.study_data import Study
from expclr.experiments.tables import text_table
from expclr.many import fit_many
from expclr.methods import METHODS

__all__ = ["Pace", "Wave", "calibrate", "estimate", "plan_text", "waves"]

CALIBRATION = 10.0  # seconds
AT_ONCE = 64  # jobs in a wave
TWO_VIEWS = 1.9  # a method with two views encodes twice
OVERHEAD = 0.05  # seconds for each job beside its steps, embedding and probes


@dataclass(frozen=True)
class Wave:
    """Jobs of one shape."""

    jobs: tuple[Job, ...]

    @property
    def stage(self) -> int:
        """As of its jobs."""
        return self.jobs[0].stage

    def words(self) -> str:
        """What trains, and how often."""
        job = self.jobs[0]
        kind = {0: "represent", 1: "train", 2: "fine-tune"}[job.stage]
        return f"{kind} {len(self.jobs)} x {job.method if job.stage else job.run.system}"


@dataclass(frozen=True)
class Pace:
    """How fast this machine is: seconds for a step of ExpCLR, an embedded window, a probe."""

    step: float
    window: float
    probe: float
    side_by_side: int


def waves(jobs: Iterable[Job]) -> list[Wave]:
    """Jobs by shape, those that others go on from first."""
    groups: dict[Any, list[Job]] = {}
    for job in sorted(jobs, key=lambda job: job.stage):  # stable: the plan's order within a stage
        groups.setdefault(job.shape, []).append(job)
    return [
        Wave(tuple(group[start : start + AT_ONCE]))
        for group in groups.values()
        for start in range(0, len(group), AT_ONCE)
    ]


def calibrate(study: Study, jobs: Sequence[Job], *, device: str, processes: int) -> Pace:
    """Time steps, embedding and probes for about ten seconds on the study's own windows."""
    trained = [job for job in jobs if job.stage and job.steps] or list(jobs)
    most = max((wave.jobs for wave in waves(trained)), key=len)
    count = min(len(most), 32) if device.startswith("cuda") else 1
    config = replace(
        TrainConfig(device=device, encoder_params=_network(trained)), finetune_epochs=0
    )
    few = study.train.subset(slice(0, 8 * config.batch_size)).with_(y=None)
    step, learner = _step_seconds(config, few, count)
    started = time.perf_counter()
    Z = learner.transform(few)
    window = (time.perf_counter() - started) / len(few)
    y = study.train.y[: len(few)]  # type: ignore[index]
    started = time.perf_counter()
    if len(set(y.tolist())) > 1:
        probe_all(Z, Z, y, y, y)
    probe = (time.perf_counter() - started) * len(study.train) / len(few) / max(1, processes)
    return Pace(step, window, probe, count)


def _network(jobs: Sequence[Job]) -> dict[str, Any]:
    """The encoder's settings of most jobs."""
    return dict(jobs[0].config.encoder_params) if jobs[0].config.encoder == "tcn" else {}


def _step_seconds(config: TrainConfig, few: Any, count: int) -> tuple[float, Encoder]:
    """Seconds a run-step from a shorter and a longer training, so that starting up cancels out."""
    per_epoch = max(1, len(few) // config.batch_size)
    times, epochs = [], [1, 2]
    while True:
        for number in epochs:
            learners = [
                Encoder.from_config(replace(config, max_epochs=number, random_state=seed))
                for seed in range(count)
            ]
            started = time.perf_counter()
            for _, outcome in fit_many(learners, few):
                if isinstance(outcome, Exception):
                    raise outcome
            times.append((number, time.perf_counter() - started))
        (a, short), (b, long) = times[-2:]
        step = max(long - short, 1e-6) / ((b - a) * per_epoch * count)
        if long > CALIBRATION / 3 or b >= 32:
            return step, learners[0]
        epochs = [b, 4 * b]


def estimate(job: Job, pace: Pace, windows: int) -> float:
    """Seconds of one job when its wave is wide."""
    views = TWO_VIEWS if job.stage and _views(job) > 1 else 1.0
    size = job.config.batch_size / 64
    return (
        job.steps * pace.step * views * max(size, 0.5)
        + windows * pace.window
        + pace.probe * (2 if job.run.labels not in (None, 1.0) else 1)
        + OVERHEAD
    )


def _views(job: Job) -> int:
    return int(METHODS[job.method].views)


def plan_text(jobs: Sequence[Job], done: int, pace: Pace, windows: int) -> str:
    """The plan as a table: a row for each system and mode, and the time it will take."""
    rows: dict[tuple[str, str], list[float]] = {}
    for job in jobs:
        row = rows.setdefault((SYSTEMS[job.run.system].label, job.run.mode), [0, 0, 0.0])
        row[0] += 1
        row[1] += job.steps
        row[2] += estimate(job, pace, windows)
    lines = [
        [f"{label} ({mode})", int(n), int(steps), _clock(seconds)]
        for (label, mode), (n, steps, seconds) in rows.items()
    ]
    total = sum(row[2] for row in rows.values())
    table = text_table(["system", "runs", "steps", "time"], lines)
    return (
        f"{table}\n\n{len(jobs)} runs to do, {done} done already; "
        f"{sum(job.steps for job in jobs):,} steps at about {1 / pace.step:,.0f} a second: "
        f"about {_clock(total)}"
    )


def _clock(seconds: float) -> str:
    """Seconds as people say them.

    >>> _clock(42), _clock(600), _clock(9000)
    ('42 s', '10 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
