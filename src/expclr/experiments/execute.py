"""Runs waves of jobs: train side by side, probe beside that, keep each result at once."""

from __future__ import annotations

import copy
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

from tqdm import tqdm

from expclr.engine import resolve_device
from expclr.errors import DataError
from expclr.estimators import RepresentationLearner
from expclr.experiments import untrained
from expclr.experiments.plan import Wave
from expclr.experiments.protocol import (
    VERY_WIDE,
    WIDE,
    Encoder,
    Job,
    data_of,
    labelled_share,
    learner_of,
    probe_all,
    probe_together,
)
from expclr.experiments.protocol import record_of as record
from expclr.experiments.store import Store
from expclr.experiments.study_data import Study
from expclr.many import fit_many
from expclr.model_folder import environment
from expclr.windows import Windows

__all__ = ["Execution", "probe_processes"]

log = logging.getLogger(__name__)

FOREVER = 1e9
GRACE = 30.0  # seconds for the probes under way when time is up
Finished = tuple[Job, RepresentationLearner | None, dict[str, float], Any]


class Probed(Protocol):
    """A probe's result, now or later."""

    def ready(self) -> bool:
        """Whether it is there."""

    def get(self) -> dict[str, Any]:
        """The result; waits for it."""


@dataclass(frozen=True)
class Known:
    """A result that is there."""

    found: dict[str, Any]

    def ready(self) -> bool:
        return True

    def get(self) -> dict[str, Any]:
        return self.found


def probe_processes() -> int:
    """How many processes probe: none of their own on few cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(0, (cores or 1) - 2) if (cores or 1) > 3 else 0


class Execution:
    """One study's jobs on one device, into one store.

    Parameters
    ----------
    study : Study
    store : Store
    code : str
        The code version that results are kept under.
    device : str
    processes : int, optional
        That probe beside the training; default by the number of cores.
    """

    def __init__(
        self,
        study: Study,
        store: Store,
        code: str,
        *,
        device: str = "auto",
        processes: int | None = None,
    ) -> None:
        self.study, self.store, self.code, self.device = study, store, code, device
        self.processes = probe_processes() if processes is None else processes
        self.hardware = environment()
        self.failed: dict[str, str] = {}
        self._models: dict[str, RepresentationLearner] = {}
        self._wanted: set[str] = set()
        self._waiting: list[tuple[Probed, Finished]] = []

    def run(self, waves: Sequence[Wave], *, minutes: float | None = None) -> int:
        """Run the waves in order until all is done or time is up; return how many jobs are left."""
        started, asked = time.monotonic(), [job for wave in waves for job in wave.jobs]
        self._wanted = {job.needs.key for job in asked if job.needs}
        out_of_time = False
        with self._pool() as submit, tqdm(total=len(asked), unit="run", disable=None) as bar:
            for wave in waves:
                out_of_time = minutes is not None and time.monotonic() - started > 60 * minutes
                if out_of_time:
                    break
                bar.set_description(wave.words())
                before = time.monotonic()
                self._run_wave(wave, submit, bar)
                log.info("%s: %.1f s", wave.words(), time.monotonic() - before)
            self._collect(bar, until=time.monotonic() + (GRACE if out_of_time else FOREVER))
            self._waiting = []
        left = sum(job.key not in self.store for job in asked)
        if out_of_time:
            log.warning("time is up: %d runs are left, the same command goes on", left)
        return left

    def _run_wave(self, wave: Wave, submit: Callable[[Finished], Probed], bar: Any) -> None:
        side_by_side: list[Finished] = []
        for done in self._wave(wave):
            if self._on_gpu(done):
                side_by_side.append(done)
                continue
            self._waiting.append((submit(done), done))
            self._collect(bar)
        try:
            self._waiting += self._probed_together(side_by_side)
        except RuntimeError as error:  # out of the GPU's memory, say
            log.warning("probing one by one: %s", str(error).splitlines()[0])
            self._waiting += [(submit(done), done) for done in side_by_side]
        self._collect(bar)

    @contextmanager
    def _pool(self) -> Iterator[Callable[[Finished], Probed]]:
        """Something that probes a finished job and gives a future."""
        if not self.processes:
            yield lambda done: Known(probe_all(*self._probed(done)))
            return
        # Not forked: a process that holds a GPU must not be.
        context = get_context("spawn")
        with context.Pool(self.processes, _one_thread) as pool:
            yield lambda done: pool.apply_async(probe_all, self._probed(done))

    def _on_gpu(self, done: Finished) -> bool:
        """Whether many such embeddings are probed at once on the device they come from."""
        return resolve_device(self.device).type == "cuda" and done[3][0].shape[1] <= VERY_WIDE

    def _probed_together(self, many: Sequence[Finished]) -> list[tuple[Probed, Finished]]:
        if not many:
            return []
        # Of wide ones each has a matrix of gigabytes to itself.
        at_once = len(many) if many[0][3][0].shape[1] <= WIDE else 1
        found: list[dict[str, Any]] = []
        for start in range(0, len(many), at_once):
            each = [self._probed(done) for done in many[start : start + at_once]]
            Z_train, Z_test, seen = ([arguments[i] for arguments in each] for i in (0, 1, 3))
            y, y_test = each[0][2], each[0][4]
            found += probe_together(Z_train, Z_test, y, seen, y_test, device=self.device)
        return [(Known(probed), done) for probed, done in zip(found, many, strict=True)]

    def _probed(self, done: Finished) -> tuple[Any, ...]:
        job, _, _, (Z_train, Z_test) = done
        train, test = self.study.parts(job.run.part)
        return Z_train, Z_test, train.y, labelled_share(train, job.run).y, test.y

    def _collect(self, bar: Any, *, until: float | None = None) -> None:
        """Write the results of finished probes; wait for the others until some moment."""
        while True:
            waiting = []
            for probed, done in self._waiting:
                if probed.ready():
                    self._write(done, probed.get())
                    bar.update()
                else:
                    waiting.append((probed, done))
            self._waiting = waiting
            if not waiting or until is None or time.monotonic() > until:
                return
            time.sleep(0.05)

    def _write(self, done: Finished, probed: dict[str, Any]) -> None:
        job, learner, seconds, _ = done
        made = record(job, self.study, self.code, self.hardware, learner, probed, seconds)
        self.store.add(made)

    def _wave(self, wave: Wave) -> Iterator[Finished]:
        """Finished jobs with their embeddings, as they come."""
        if wave.stage == 0 and wave.jobs[0].run.system != "random":
            yield from self._represented(wave)
            return
        learners, ready = [], []
        for job in wave.jobs:
            learner = self._learner(job)
            if learner is None:
                self._fail(job, DataError("the run that it goes on from failed"))
                continue
            learners.append(learner)
            ready.append(job)
        data = self._data(ready)
        started = time.perf_counter()
        for at, outcome in fit_many(learners, data, finetune=wave.stage == 2):
            spent, started = time.perf_counter() - started, time.perf_counter()
            if isinstance(outcome, Exception):
                self._fail(ready[at], outcome)
                continue
            self._keep(ready[at], outcome)
            yield self._embedded(ready[at], outcome, spent)
            started = time.perf_counter()

    def _data(self, jobs: Sequence[Job]) -> list[Windows]:
        """What each job trains on; the same object where it is the same."""
        made: dict[Any, Windows] = {}
        keys = []
        for job in jobs:
            whole = job.run.labels in (None, 1.0)
            key = job.run.mode == "U", job.run.labels, None if whole else job.run.seed
            keys.append(key)
            if key not in made:
                made[key] = data_of(job, self.study)
        return [made[key] for key in keys]

    def _represented(self, wave: Wave) -> Iterator[Finished]:
        known: dict[tuple[str, int], Any] = {}
        for job in wave.jobs:
            train, test = self.study.parts(job.run.part)
            key = (job.run.system, job.run.seed if job.run.system != "raw_features" else 0)
            started = time.perf_counter()
            if key not in known:
                device = resolve_device(self.device)
                known[key] = untrained.represent(
                    job.run.system, train, test, seed=job.run.seed, device=device
                )
            yield job, None, {"represent": time.perf_counter() - started}, known[key]

    def _learner(self, job: Job) -> RepresentationLearner | None:
        if job.needs is None:
            return learner_of(job).set_params(device=self.device)
        before = self._model(job.needs.key)
        if before is None:
            return None
        learner = copy.deepcopy(before)
        names = ("finetune_method", "finetune_lr", "finetune_epochs")
        return learner.set_params(**{name: getattr(job.config, name) for name in names})

    def _model(self, key: str) -> RepresentationLearner | None:
        folder = self._folder(key)
        if key not in self._models and folder.is_dir():
            self._models[key] = Encoder.load(folder, device=self.device)
        return self._models.get(key)

    def has_model(self, job: Job) -> bool:
        """Whether a fine-tuning can go on from the job without running it again."""
        return job.key in self._models or self._folder(job.key).is_dir()

    def _keep(self, job: Job, learner: RepresentationLearner) -> None:
        if job.key in self._wanted:
            self._models[job.key] = learner
            learner.save(self._folder(job.key))

    def _folder(self, key: str) -> Path:
        return self.store.folder / "models" / key

    def _embedded(self, job: Job, learner: RepresentationLearner, spent: float) -> Finished:
        train, test = self.study.parts(job.run.part)
        started = time.perf_counter()
        embeddings = learner.transform(train), learner.transform(test)
        seconds = {"train": spent, "embed": time.perf_counter() - started}
        return job, learner, seconds, embeddings

    def _fail(self, job: Job, error: Exception) -> None:
        self.failed[job.key] = f"{job.run.words()}: {error}"
        log.warning("failed: %s", self.failed[job.key])


def _one_thread() -> None:
    """Many processes with many threads each only wait for each other."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)
