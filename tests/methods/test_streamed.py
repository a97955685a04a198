"""Pair losses by blocks against the same losses over all pairs at once."""

import math

import pytest
import torch

from expclr.errors import ConfigError
from expclr.methods import ExpCLRLoss, PairLoss, QuadraticLoss
from expclr.methods.streamed import Formula, streamed_loss

SETTINGS = [
    {},
    {"normalize": False},
    {"normalize": "detach"},
    {"similarity": "linear", "delta": 2.0},
    {"similarity": "gaussian", "sigma": 3.0},
    {"reference": 4.0},
    {"reference": "dataset"},
]


def _data(n=37, e=5, d=4, *, missing=0.2, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(n, e, generator=generator, dtype=dtype) * 3 + 10
    features = torch.randn(n, d, generator=generator)
    features[torch.rand(n, d, generator=generator) < missing] = math.nan
    features[5] = math.nan  # shares nothing with any window
    z[7] = z[3]  # no distance, whose gradient is 0
    return z.requires_grad_(), features


def _value_and_gradient(loss, z, features):
    value = loss(z, features)
    (gradient,) = torch.autograd.grad(3 * value, z)
    return value.detach(), gradient


def _compare(kind, features, z, rtol=1e-5, **settings):
    dense, streamed = kind(streamed=False, **settings), kind(streamed=True, **settings)
    for loss in (dense, streamed):
        loss.prepare(features, z.shape[1])
    expected = _value_and_gradient(dense, z, features)
    value, gradient = _value_and_gradient(streamed, z, features)
    torch.testing.assert_close(value, expected[0], rtol=rtol, atol=1e-7)
    size = expected[1].norm().clamp_min(1e-7)
    assert (gradient - expected[1]).norm() <= rtol * size
    return streamed


@pytest.mark.parametrize("kind", [ExpCLRLoss, QuadraticLoss, PairLoss])
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_value_and_gradient_are_those_of_all_pairs(kind, settings, missing):
    z, features = _data(missing=missing)
    if not missing:
        features = features.nan_to_num()
    _compare(kind, features, z, **settings)


@pytest.mark.parametrize("tau", [1e-3, 0.1, 10.0, 1e6])
def test_any_temperature_keeps_its_digits(tau):
    z, features = _data()
    _compare(ExpCLRLoss, features, z, tau=tau)


@pytest.mark.parametrize("block", [1, 40, 37 * 5, 37 * 36, 10**6])
def test_the_size_of_a_block_does_not_matter(block):
    z, features = _data(dtype=torch.float64)
    loss = ExpCLRLoss(tau=0.3)
    formula = Formula(loss.pair_loss, loss.similarity, loss.normalize, loss.tau)
    value, gradient = _value_and_gradient(
        lambda z, f: streamed_loss(z, f, formula, block=block), z, features
    )
    expected = _value_and_gradient(ExpCLRLoss(tau=0.3, streamed=False), z, features)
    torch.testing.assert_close((value, gradient), expected, rtol=1e-6, atol=1e-9)


def test_a_batch_without_information_costs_nothing():
    z, _ = _data()
    for features in (torch.ones(37, 4), torch.full((37, 4), math.nan)):
        value, gradient = _value_and_gradient(ExpCLRLoss(streamed=True), z, features)
        assert value == 0
        assert (gradient == 0).all()


def test_collapsed_embeddings_have_finite_gradients():
    _, features = _data()
    z = torch.full((37, 5), 2.0, requires_grad=True)
    _, gradient = _value_and_gradient(ExpCLRLoss(streamed=True), z, features)
    assert gradient.isfinite().all()


def test_large_batches_are_streamed_unasked():
    assert not ExpCLRLoss().streams(64)
    assert ExpCLRLoss().streams(512)
    assert not ExpCLRLoss(similarity="gaussian", sigma="median").streams(10**6)
    with pytest.raises(ConfigError, match="median"):
        ExpCLRLoss(similarity="gaussian", sigma="median", streamed=True)


def test_autocast_does_not_reach_the_pairs():
    z, features = _data()
    expected = ExpCLRLoss(streamed=True)(z, features)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(ExpCLRLoss(streamed=True)(z, features), expected)
