"""The kernels of the pair losses against all pairs in float64: on a GPU, else interpreted."""

import math
import os

import pytest
import torch
from torch.func import vmap

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton", reason="Triton comes with torch for CUDA")

from expclr.methods import ExpCLRLoss, QuadraticLoss, streamed

pytestmark = pytest.mark.filterwarnings("ignore:Conversion of an array")  # of the interpreter
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SETTINGS = [
    {},
    {"normalize": False},
    {"normalize": "detach"},
    {"similarity": "linear", "delta": 2.0},
    {"similarity": "gaussian", "sigma": 30.0},
    {"reference": 4.0},
    {"reference": "dataset"},
    {"reference": "q0.9"},
]


@pytest.fixture(autouse=True)
def _kernels(monkeypatch):
    monkeypatch.setattr(streamed, "in_kernels", lambda z, features, formula: True)


def _data(n=150, e=20, d=24, *, missing=0.0, seed=0):
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(n, e, generator=generator) * 3 + 10
    features = torch.randn(n, d, generator=generator) - 5
    if missing:
        features[torch.rand(n, d, generator=generator) < missing] = math.nan
        features[5] = math.nan  # shares nothing with any window
    z[7], features[9] = z[3], features[4]  # no distance, whose gradient is 0
    return z.to(DEVICE).requires_grad_(), features.to(DEVICE)


def _value_and_gradient(loss, z, features):
    value = loss(z, features)
    return value.detach(), torch.autograd.grad(3 * value, z)[0]


def _oracle(loss, z, features):
    """Eq. 6 or 5 in float64, with all differences written out."""
    f = features.double()
    apart, there = f[:, None] - f[None], (f[:, None] + f[None]).isfinite()
    shared = there.sum(2)
    squares = apart.nan_to_num(nan=0.0).square().sum(2) * f.shape[1] / shared.clamp_min(1)
    d, weight = squares.sqrt(), (shared > 0).double()
    similarity = loss.similarity
    largest = torch.where(weight > 0, d, 0).amax()
    s = similarity.of_ratio(d / similarity.scale_of(largest).double())
    squares = (z[:, None] - z[None]).square().sum(2)
    D = torch.where(squares > 0, squares.clamp_min(1e-300), 1).sqrt() * (squares > 0)
    if loss.normalize:
        mu = D.mean(1, keepdim=True)
        D = D / (mu if loss.normalize is True else mu.detach())
    L = ((1 - s) * loss.delta - D).square()
    if not isinstance(loss, ExpCLRLoss):
        return (L * weight).sum() / weight.sum()
    top = torch.where(weight > 0, L, 0).detach().amax()
    mean = (torch.expm1((L - top) / loss.tau) * weight).sum() / weight.sum()
    return top + loss.tau * torch.log1p(mean)


def _compare(kind, z, features, rtol=1e-5, **settings):
    loss = kind(streamed=True, **settings)
    loss.prepare(features, z.shape[1])
    loss.to(DEVICE)
    wide = z.detach().double().requires_grad_()
    expected = _value_and_gradient(lambda *tensors: _oracle(loss, *tensors), wide, features)
    value, gradient = _value_and_gradient(loss, z, features)
    torch.testing.assert_close(value.double(), expected[0], rtol=rtol, atol=1e-7)
    error = (gradient - expected[1]).norm() / expected[1].norm().clamp_min(1e-30)
    assert error <= rtol


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("kind", [ExpCLRLoss, QuadraticLoss])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_value_and_gradient_are_those_of_all_pairs(kind, settings, missing):
    _compare(kind, *_data(missing=missing), **settings)


@pytest.mark.parametrize("shape", [(3, 17, 17), (64, 16, 65), (129, 130, 40)])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_any_shape(shape, missing):
    n, e, d = shape
    z, features = (v[:n].detach() for v in _data(max(n, 10), e, d, missing=missing))
    _compare(ExpCLRLoss, z.requires_grad_(), features)


def test_one_row_has_nobody_to_be_far_from():
    z, features = (v[:1].detach() for v in _data())
    value, gradient = _value_and_gradient(ExpCLRLoss(streamed=True), z.requires_grad_(), features)
    assert value == 0
    assert (gradient == 0).all()


@pytest.mark.parametrize("tau", [1e-2, 0.1, 10.0, 1e6])
def test_any_temperature_keeps_its_digits(tau):
    _compare(ExpCLRLoss, *_data(), tau=tau, rtol=1e-5 if tau > 0.05 else 1e-4)


@pytest.mark.parametrize("d", [3, 100])
def test_features_of_few_kinds_are_at_no_distance(d):
    z, _ = _data()
    kinds = torch.rand(5, d, generator=torch.Generator().manual_seed(1))
    _compare(ExpCLRLoss, z, kinds[torch.arange(150) % 5].to(DEVICE) + 100)


def test_tight_groups_of_embeddings():
    generator = torch.Generator().manual_seed(1)
    groups = torch.randn(5, 40, generator=generator)[torch.arange(150) % 5]
    z = groups + 1e-2 * torch.randn(150, 40, generator=generator)
    _compare(ExpCLRLoss, z.to(DEVICE).requires_grad_(), _data()[1])


@pytest.mark.parametrize("scale", [1e-20, 1e15])
def test_any_scale(scale):
    z, features = _data()
    z = (z.detach() * scale).requires_grad_()
    _compare(ExpCLRLoss, z, features / scale)


def test_one_row_far_from_all():
    z, features = _data()
    with torch.no_grad():
        z[0] *= 300
        features[1] *= 1e5
    _compare(ExpCLRLoss, z, features)


@pytest.mark.parametrize("value", [0.1, math.nan])
def test_a_batch_without_information_costs_nothing(value):
    z, _ = _data()
    features = torch.full((150, 40), value, device=DEVICE)
    value, gradient = _value_and_gradient(ExpCLRLoss(streamed=True), z, features)
    assert value == 0
    assert (gradient == 0).all()


def test_collapsed_embeddings_have_finite_gradients():
    z = torch.full((150, 20), 0.1, device=DEVICE, requires_grad=True)
    _, gradient = _value_and_gradient(ExpCLRLoss(streamed=True), z, _data()[1])
    assert gradient.isfinite().all()


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_of_no_number_is_none(value):
    z, features = _data()
    with torch.no_grad():
        z[3, 2] = value
    assert ExpCLRLoss(streamed=True)(z, features).isnan()


def test_models_side_by_side():
    z, features = _data(40)
    both = torch.stack([z.detach(), z.detach() * 2 + 1]).requires_grad_()
    loss = ExpCLRLoss(streamed=True, normalize=False)
    losses = vmap(loss, in_dims=(0, None))(both, features)
    (found,) = torch.autograd.grad(losses.sum(), both)
    for one, value, gradient in zip(both, losses, found, strict=True):
        expected = _value_and_gradient(loss, one.detach().requires_grad_(), features)
        torch.testing.assert_close((value, 3 * gradient), expected)


def test_half_precision_is_measured_in_its_own_digits():
    z, features = _data()
    narrow = z.detach().half().requires_grad_()
    value, gradient = _value_and_gradient(ExpCLRLoss(streamed=True), narrow, features)
    wide = narrow.detach().float().requires_grad_()
    expected = _value_and_gradient(ExpCLRLoss(streamed=True), wide, features)
    assert gradient.dtype == torch.float16
    torch.testing.assert_close(value, expected[0])
    torch.testing.assert_close(gradient, expected[1].half())


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE == "cpu", reason="a CUDA graph needs a GPU")
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_a_graph_holds_them(missing):
    z, features = _data(600, 100, 561, missing=missing)
    loss = ExpCLRLoss(streamed=True)
    expected = _value_and_gradient(loss, z, features)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = _value_and_gradient(loss, z, features)
    graph.replay()
    torch.testing.assert_close(found, expected)


@pytest.mark.gpu
@pytest.mark.skipif(DEVICE == "cpu", reason="tensor cores are those of a GPU")
def test_tensor_cores_keep_the_digits(monkeypatch):
    monkeypatch.undo()
    z, features = _data(3000, 100, 561)
    loss = ExpCLRLoss(streamed=True)
    assert streamed.has_kernels(z, features, loss.formula(1.0))
    found = [_value_and_gradient(loss, z, features) for _ in range(2)]
    assert torch.equal(found[0][1], found[1][1])
    wide = z.detach().double().requires_grad_()
    value, gradient = _value_and_gradient(ExpCLRLoss(streamed=False), wide, features)
    torch.testing.assert_close(found[0][0].double(), value, rtol=1e-5, atol=0)
    assert (found[0][1] - gradient).norm() < 1e-5 * gradient.norm()
