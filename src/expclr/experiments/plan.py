"""What is to be run, in waves that can train side by side, and how long it will take."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from expclr.config import TrainConfig
from expclr.experiments.paper import SYSTEMS
from expclr.experiments.protocol import Encoder, Job, probe_all
from expclr.experiments.study_data import Study
from expclr.experiments.tables import text_table
from expclr.many import fit_many
from expclr.methods import METHODS
from expclr.windows import Windows

__all__ = ["Pace", "Wave", "calibrate", "estimate", "plan_text", "waves"]

CALIBRATION = 10.0  # seconds
AT_ONCE = 64  # jobs in a wave
TWO_VIEWS = 1.9  # a method with two views encodes twice
ROWS = 1000  # of the matrix whose eigenvalues are timed
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
    """How fast this machine is: seconds for a step of ExpCLR, an embedded window, a probe.

    Parameters
    ----------
    side_by_side : int
        Runs that trained at once while it was measured.
    relative : mapping
        (method, encoder) -> its step over ExpCLR's.
    ridge : float
        Seconds of a ridge regression on thousands of columns, for each window cubed.
    """

    step: float
    window: float
    probe: float
    side_by_side: int
    relative: Mapping[tuple[str, str], float] = field(default_factory=dict)
    ridge: float = 0.0


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
    n = len(study.train)
    spread = np.linspace(0, n - 1, min(n, 8 * config.batch_size)).round().astype(int)
    few = study.train.subset(spread)
    step, learner = _step_seconds(config, few.with_(y=None), count)
    started = time.perf_counter()
    Z = learner.transform(few)
    window = (time.perf_counter() - started) / len(few)
    started = time.perf_counter()
    if len(np.unique(few.y)) > 1:  # type: ignore[arg-type]
        probe_all(Z, Z, few.y, few.y, few.y)  # type: ignore[arg-type]
    probe = (time.perf_counter() - started) * n / len(few) / max(1, processes)
    return Pace(step, window, probe, count, _relative(trained, few, device), _ridge_seconds())


def _relative(jobs: Sequence[Job], few: Windows, device: str) -> dict[tuple[str, str], float]:
    """Each method's step over ExpCLR's, both alone, for as many as there is time for."""
    one_each = {(job.method, job.config.encoder): job for job in jobs if job.steps}
    own = replace(TrainConfig(), encoder_params=_network(jobs))
    started = time.perf_counter()
    usual, found = _seconds_alone(own, few, device), {}
    for key, job in one_each.items():
        if time.perf_counter() - started < CALIBRATION:
            found[key] = _seconds_alone(_of_method(job), few, device) / usual
    return found


def _of_method(job: Job) -> TrainConfig:
    """What the job's last stage trains, as a run of its own."""
    params = dict(job.config.method_params) if job.method == job.config.method else {}
    return replace(job.config, method=job.method, method_params=params, batch_size=64)


def _seconds_alone(config: TrainConfig, few: Windows, device: str) -> float:
    """Seconds of a step, from an epoch of one batch and one of three."""
    times = []
    for batches in (1, 1, 3):  # the first one warms up
        part = few.subset(slice(0, batches * config.batch_size))
        learner = Encoder.from_config(replace(config, max_epochs=1, device=device))
        started = time.perf_counter()
        learner.fit(part)
        times.append(time.perf_counter() - started)
    return max(times[2] - times[1], 1e-4) / 2


def _ridge_seconds() -> float:
    """Seconds of finding a matrix's eigenvalues, for each of its rows cubed."""
    A = np.random.default_rng(0).normal(size=(ROWS, ROWS))
    started = time.perf_counter()
    np.linalg.eigh(A + A.T)
    return (time.perf_counter() - started) / ROWS**3


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
    views = TWO_VIEWS if job.steps and METHODS[job.method].views > 1 else 1.0
    relative = pace.relative.get((job.method, job.config.encoder), views)
    size = job.config.batch_size / 64
    probes = pace.probe * (2 if job.run.labels not in (None, 1.0) else 1)
    if job.run.system.startswith("rocket"):
        probes = pace.ridge * job.n**3
    steps = job.steps * pace.step * relative * max(size, 0.5)
    return steps + windows * pace.window + probes + OVERHEAD


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
