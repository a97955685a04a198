"""What surrounds a CUDA graph, on the CPU: a recording that is played by calling the step again."""

import logging
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from expclr import fast
from expclr.encoders import ENCODERS, TCN
from expclr.encoders.scaled import ScaledEncoder
from expclr.engine import CapturedEpoch, CaptureError, seeded
from expclr.examples import Examples, Resident
from expclr.methods import METHODS
from expclr.train import Run, Schedule

CPU = torch.device("cpu")
TRAINED = [name for name in METHODS if METHODS[name].trains]


class _Played(CapturedEpoch):
    """A captured epoch without CUDA."""

    def _warm_up(self, state):
        from expclr.engine.capture import _unchanged

        with _unchanged(state):
            loss = self.step(self.order[0])
        return loss.new_zeros(len(self.order), *loss.shape)

    def _record(self):
        return SimpleNamespace(replay=self._next)


@pytest.fixture
def replayed(monkeypatch):
    """Training takes the way it takes on a GPU."""

    def on(examples, device):
        return Resident(torch.from_numpy(examples.X), *examples.others())

    monkeypatch.setattr(Examples, "on", on)
    monkeypatch.setattr(fast, "CapturedEpoch", _Played)


def _run(name, *, epochs=7, dropout=0.1, lr=3e-3, encoder=None, **settings):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3, 64)).astype(np.float32)
    features = torch.from_numpy(rng.normal(size=(50, 5)).astype(np.float32))
    labels = torch.arange(50) % 3
    with seeded(0):
        network = (
            ENCODERS["tstcc"](3, 1408, length=64)
            if name == "tstcc"
            else TCN(3, 12, width=8, blocks=3, hidden=16, dropout=dropout)
        )
        method = METHODS[name]()
        method.prepare(features if method.target == "features" else labels, 12)
        if encoder is not None:
            network = ENCODERS[encoder](3, 12, length=64)
            if hasattr(network, "prepare"):
                network.prepare(torch.from_numpy(X), None)
    examples = Examples(X, features=features, labels=labels)
    schedule = Schedule(epochs, lr, batch_size=16)
    return Run(ScaledEncoder(network, 3), method, examples, schedule, CPU, **settings)


def _losses(run):
    return [record["loss"] for record in run.train()]


@pytest.mark.parametrize("name", TRAINED)
def test_replayed_steps_are_the_plain_ones_to_the_bit(name, replayed, monkeypatch):
    fast_losses = _losses(_run(name))  # 21 steps
    with monkeypatch.context() as patch:
        patch.setattr(Examples, "on", lambda examples, device: examples)
        assert fast_losses == _losses(_run(name))


@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_encoder_is_replayed_as_it_is_trained_plainly(encoder, replayed, monkeypatch, caplog):
    with caplog.at_level(logging.INFO):
        fast_losses = _losses(_run("expclr", encoder=encoder, epochs=2))
    assert "step by step" not in caplog.text
    with monkeypatch.context() as patch:
        patch.setattr(Examples, "on", lambda examples, device: examples)
        assert fast_losses == _losses(_run("expclr", encoder=encoder, epochs=2))


def test_a_step_whose_replay_differs_trains_plainly_and_says_so(replayed, monkeypatch, caplog):
    monkeypatch.setattr(_Played, "_record", lambda self: SimpleNamespace(replay=lambda: None))
    with caplog.at_level(logging.INFO):
        losses = _losses(_run("expclr", epochs=2))
    assert "step by step: replayed steps differ" in caplog.text
    monkeypatch.setattr(Examples, "on", lambda examples, device: examples)
    assert losses == _losses(_run("expclr", epochs=2))


def test_state_is_put_back_when_a_recording_fails(replayed, monkeypatch):
    def refuse(self):
        raise CaptureError("no")

    monkeypatch.setattr(_Played, "_record", refuse)
    losses = _losses(_run("expclr", epochs=2))
    monkeypatch.setattr(Examples, "on", lambda examples, device: examples)
    assert losses == _losses(_run("expclr", epochs=2))
