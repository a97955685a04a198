"""A step of every method needs no value of a tensor: such a step can be a CUDA graph.

Tensors without values, on torch's device "meta", stand for a GPU. They refuse ``.item()``,
``bool()``, masks as indices and copies to the CPU, and do not mix with tensors on the CPU.
"""

import contextlib
import random

import numpy as np
import pytest
import torch

from expclr.encoders import ENCODERS, TCN
from expclr.encoders.scaled import ScaledEncoder
from expclr.loss import loss_of
from expclr.methods import METHODS
from expclr.methods.base import Batch
from expclr.methods.views import VIEWS

TRAINED = [name for name in METHODS if METHODS[name].trains]
REFUSED = (RuntimeError, NotImplementedError)


@pytest.fixture(autouse=True)
def _no_autocast(monkeypatch):
    """Which does not know the device."""
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: contextlib.nullcontext())


def _model(name):
    torch.manual_seed(0)
    features, labels = torch.randn(12, 5), torch.arange(12) % 3
    network = (
        ENCODERS["tstcc"](3, 1408, length=64)
        if name == "tstcc"
        else TCN(3, 12, width=8, blocks=3, hidden=16)
    )
    method = METHODS[name]()
    method.prepare(
        features if method.target == "features" else labels, network(_windows()).shape[1]
    )
    return torch.nn.ModuleList([ScaledEncoder(network, 3), method])


def _windows():
    return torch.zeros(12, 3, 64)


def _batch():
    features, labels = torch.zeros(12, 5), torch.zeros(12, dtype=torch.long)
    return Batch(_windows().to("meta"), None, features.to("meta"), labels.to("meta"))


def _host_randomness():
    state = np.random.get_state(legacy=False)["state"]
    return torch.get_rng_state().tolist(), random.getstate(), state["key"].tolist(), state["pos"]


@pytest.mark.parametrize("name", TRAINED)
def test_a_step_of_every_method_needs_no_value_of_a_tensor(name):
    model = _model(name).to("meta").train()
    before = _host_randomness()
    loss = loss_of(model[0], model[1], _batch())
    loss.backward()
    assert loss.device.type == "meta"
    assert all(p.grad is None or p.grad.device.type == "meta" for p in model.parameters())
    assert _host_randomness() == before


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_is_drawn_where_the_windows_are(name):
    before = _host_randomness()
    for lengths in (None, torch.zeros(12, dtype=torch.long, device="meta")):
        assert VIEWS[name](_windows().to("meta"), lengths).shape == (12, 3, 64)
    assert _host_randomness() == before


@pytest.mark.parametrize("name", ENCODERS)
def test_every_encoder_needs_no_value_of_a_tensor(name):
    encoder = ENCODERS[name](3, 12, length=64)
    if hasattr(encoder, "prepare"):
        encoder.prepare(torch.randn(12, 3, 64), None)
    encoder.to("meta").train()(_windows().to("meta")).sum().backward()


def _waits_for_a_number(z):
    return z * float(z.sum())


def _waits_for_a_choice(z):
    return z if z.sum() > 0 else -z


def _waits_for_a_shape(z):
    return z[z > 0]


def _waits_for_the_values(z):
    return z.cpu()


def _draws_on_the_host(z):
    return z + torch.rand(z.shape)


@pytest.mark.parametrize(
    "waiting",
    [
        _waits_for_a_number,
        _waits_for_a_choice,
        _waits_for_a_shape,
        _waits_for_the_values,
        _draws_on_the_host,
    ],
)
def test_a_step_that_waits_is_noticed(waiting):
    with pytest.raises(REFUSED):
        waiting(torch.zeros(3, 4, device="meta"))
