"""The fast path against the plain loop on CUDA: `python -m pytest -m gpu tests/engine`."""

import copy
import dataclasses
import gc
import logging
import random

import numpy as np
import pytest
import torch

from expclr import fast
from expclr.checkpoint import Checkpoint
from expclr.encoders import ENCODERS, TCN
from expclr.encoders.scaled import ScaledEncoder
from expclr.engine import seeded
from expclr.errors import DataError
from expclr.memory import MemoryWarning
from expclr.methods import METHODS, ExpCLRLoss
from expclr.train import DivergedError, Examples, Run, Schedule
from expclr.train_many import train_many, train_stacked

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]
TRAINED = [name for name in METHODS if METHODS[name].trains]
# Their losses fall by a sixth at least in steps so small that rounding, which Adam enlarges, stays
# below the tolerance.
STEEP = ("quadratic", "logratio", "rkd")


@pytest.fixture(autouse=True)
def _repeatable_kernels(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", True)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


def _run(
    name, *, seed=0, method=None, epochs=5, dropout=0.1, lr=3e-3, precision="auto", **settings
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(128, 3, 64)).astype(np.float32)
    features = torch.from_numpy(rng.normal(size=(128, 5)).astype(np.float32))
    features[3, 2] = torch.nan
    labels = torch.arange(128) % 3
    with seeded(seed):
        network = (
            ENCODERS["tstcc"](3, 1408, length=64)
            if name == "tstcc"
            else TCN(3, 12, width=16, blocks=4, hidden=16, dropout=dropout)
        )
        method = method or METHODS[name]()
        method.prepare(features if method.target == "features" else labels, 12)
    examples = Examples(X, features=features, labels=labels)
    schedule = Schedule(epochs, lr, batch_size=32, random_state=seed, precision=precision)
    return Run(
        ScaledEncoder(network, 3), method, examples, schedule, torch.device("cuda"), **settings
    )


def _plain(run, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(fast, "CapturedEpoch", _refuse)
        return run.train()


def _refuse(*_):
    raise fast.CaptureError("told not to")


def _losses(history):
    return [record["loss"] for record in history]


@pytest.mark.parametrize("name", TRAINED)
def test_captured_steps_are_the_plain_ones(name, monkeypatch, caplog):
    fast, plain = _run(name), _run(name)
    with caplog.at_level(logging.INFO):
        history = fast.train()
    assert "step by step" not in caplog.text
    assert _losses(history) == pytest.approx(_losses(_plain(plain, monkeypatch)), rel=1e-5)


def test_a_run_that_resumes_ends_where_it_would_have_ended(tmp_path):
    whole = _run("expclr").train()
    for epochs, resume in ((2, False), (5, True)):
        checkpoint = Checkpoint(tmp_path / "c", key="k", resume=resume)
        again = _run("expclr", epochs=epochs, checkpoint=checkpoint).train()
    assert _losses(again) == pytest.approx(_losses(whole), rel=1e-4)


class _OnTheHost(ExpCLRLoss):
    """Chooses in Python what a graph would freeze."""

    def forward(self, z, target):
        return super().forward(z, target) * random.choice([1.0, 2.0])


class _Waiting(ExpCLRLoss):
    """Waits for the device."""

    def forward(self, z, target):
        return super().forward(z, target) * (2.0 if bool(z.sum() > 0) else 1.0)


class _Counting(ExpCLRLoss):
    """Changes with every call: the graph knows one value."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, z, target):
        self.calls += 1
        return super().forward(z, target) * self.calls


@pytest.mark.parametrize("kind", [_OnTheHost, _Waiting, _Counting])
def test_what_cannot_be_captured_trains_step_by_step_and_says_so(kind, caplog):
    run = _run("expclr", method=kind())
    with caplog.at_level(logging.INFO):
        history = run.train()
    assert "step by step" in caplog.text
    assert len(history) == 5
    assert len(_run("expclr").train()) == 5  # and what comes after is captured again


@pytest.mark.parametrize("name", [name for name in TRAINED if METHODS[name]().views == 1])
def test_a_stack_trains_as_its_runs_alone(name):
    lr = 3e-4 if name in STEEP else 3e-3
    alone = [_run(name, seed=seed, dropout=0.0, lr=lr, precision="float32") for seed in (0, 1)]
    stacked = copy.deepcopy(alone)
    expected = [_losses(run.train()) for run in alone]
    outcomes = dict(train_stacked(stacked))
    for number in (0, 1):
        assert _losses(outcomes[number]) == pytest.approx(expected[number], rel=3e-3)


def test_many_runs_of_several_kinds_all_arrive(caplog):
    runs = [_run("expclr", seed=seed) for seed in range(3)] + [_run("simclr"), _run("tstcc")]
    runs += [_run("quadratic", lr=3e-3), _run("quadratic", lr=1e-3, seed=1)]
    single = Examples(np.zeros((1, 3, 64), np.float32))
    runs.append(dataclasses.replace(_run("expclr"), examples=single))
    outcomes = dict(train_many(runs))
    assert sorted(outcomes) == list(range(8))
    assert isinstance(outcomes[7], DataError)
    assert all(len(outcomes[number]) == 5 for number in range(7))


def test_a_loss_that_is_not_finite_names_its_step():
    run = _run("expclr")
    run.examples.X[5] = np.inf
    with pytest.raises(DivergedError, match=r"step \d+ of epoch 0"):
        run.train()


@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_encoder_trains_as_it_does_plainly(encoder, monkeypatch):
    def run():
        one = _run("expclr", epochs=2)
        with seeded(0):
            network = ENCODERS[encoder](3, 12, length=64)
            if hasattr(network, "prepare"):
                network.prepare(torch.from_numpy(one.examples.X), None)
        return dataclasses.replace(one, encoder=ScaledEncoder(network, 3))

    assert _losses(run().train()) == pytest.approx(_losses(_plain(run(), monkeypatch)), rel=1e-3)


def test_windows_that_stay_on_the_host_train_the_same(monkeypatch):
    expected = _losses(_plain(_run("expclr"), monkeypatch))
    monkeypatch.setattr(Examples, "on", lambda examples, device: examples)
    assert _losses(_run("expclr").train()) == pytest.approx(expected, rel=1e-5)


@pytest.fixture
def little_memory():
    """One and a half gigabytes beside what earlier tests still hold."""
    gc.collect()
    torch.cuda.empty_cache()
    whole = torch.cuda.get_device_properties(0).total_memory
    held = torch.cuda.memory_reserved()
    torch.cuda.set_per_process_memory_fraction((held + 1.5e9) / whole)
    yield
    torch.cuda.set_per_process_memory_fraction(1.0)
    torch.cuda.empty_cache()


def test_a_batch_without_room_is_encoded_in_parts(little_memory):
    X = np.random.default_rng(0).normal(size=(2048, 3, 512)).astype(np.float32)
    with seeded(0):
        encoder = ScaledEncoder(TCN(3, 12, width=32), 3)  # some five gigabytes at once
    examples = Examples(X, features=torch.randn(2048, 5))
    schedule = Schedule(2, 1e-3, batch_size=2048)
    run = Run(encoder, ExpCLRLoss(), examples, schedule, torch.device("cuda"))
    with pytest.warns(MemoryWarning, match="2048") as told:
        history = run.train()
    assert len(told) == 1
    assert np.isfinite(_losses(history)).all()


def test_a_large_batch_by_blocks_is_right_and_small():
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(8192, 100, generator=generator).cuda().requires_grad_()
    features = torch.randn(8192, 561, generator=generator).cuda()
    peaks, gradients = [], []
    for streamed in (False, True):
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        loss = ExpCLRLoss(streamed=streamed)(z, features)
        gradients.append(torch.autograd.grad(loss, z)[0])
        peaks.append(torch.cuda.max_memory_allocated() - before)
    assert (gradients[1] - gradients[0]).norm() < 1e-5 * gradients[0].norm()
    assert peaks[1] < peaks[0] / 2
    assert peaks[1] < 1e9
