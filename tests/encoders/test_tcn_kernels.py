"""The kernels of a TCN against convolutions in float64: on a GPU, else in Triton's interpreter."""

import os

import pytest
import torch
from torch.func import vmap
from torch.nn import functional

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton", reason="Triton comes with torch for CUDA")

from expclr.encoders import TCN, tcn_matmul
from expclr.encoders.tcn_kernels import convolved
from expclr.engine.adam_kernel import stepped
from expclr.engine.stacked import BETAS, EPSILON, _adam

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SHAPES = [  # c, n, stride, dilation, t, taps
    (5, 16, 1, 1, 20, 3),
    (16, 40, 2, 4, 33, 3),
    (70, 80, 1, 8, 20, 5),
    (16, 16, 2, 1, 12, 1),
]


def _oracle(x, weight, bias, scale, plus, stride, dilation):
    x, weight = x.double().transpose(1, 2), weight.double().transpose(1, 2)
    reach = dilation * (weight.shape[2] // 2)
    y = functional.conv1d(x, weight, bias.double(), stride, reach, dilation)
    y = y.relu().transpose(1, 2) * (1 if scale is None else scale[:, None].double())
    return y if plus is None else (y + plus.double()).relu()


def _tensors(c, n, stride, t, taps, models=2, b=3):
    generator = torch.Generator().manual_seed(0)

    def drawn(*shape):
        return torch.randn(models, *shape, generator=generator).to(DEVICE).requires_grad_()

    kept = (drawn(b, n) > 0).float() * 1.5
    return drawn(b, t, c), drawn(n, taps, c), drawn(n), kept, drawn(b, (t - 1) // stride + 1, n)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("added", [False, True])
def test_convolutions_of_many_models_and_their_gradients(shape, scaled, added):
    c, n, stride, dilation, t, taps = shape
    x, weight, bias, kept, past = _tensors(c, n, stride, t, taps)
    scale, plus = kept if scaled else None, past if added else None
    dims = (0, 0, 0, 0 if scaled else None, 0 if added else None)

    def one(*tensors):
        return convolved(*tensors, stride=stride, dilation=dilation)

    y = vmap(one, in_dims=dims)(x, weight, bias, scale, plus)
    expected = torch.stack(
        [
            _oracle(
                *(None if v is None else v[k] for v in (x, weight, bias, scale, plus)), *shape[2:4]
            )
            for k in range(2)
        ]
    )
    inputs = [x, weight, bias] + ([past] if added else [])
    direction = torch.randn_like(y)
    found = torch.autograd.grad(y, inputs, direction)
    wanted = torch.autograd.grad(expected, inputs, direction.double())
    for got, oracle in zip([y, *found], [expected, *wanted], strict=True):
        assert (got - oracle).norm() < 1e-5 * oracle.norm()


@pytest.mark.parametrize("settings", [{}, {"strides": (2, 1, 2)}, {"kernel": 5, "norm": "none"}])
@pytest.mark.parametrize("padded", [False, True])
def test_a_tcn_of_kernels_is_the_same_function(settings, padded, monkeypatch):
    torch.manual_seed(0)
    tcn = TCN(3, 6, width=16, blocks=3, dropout=0.0, pooling=("mean", "max", "std"), **settings)
    x, lengths = torch.randn(5, 3, 20), torch.tensor([20, 7, 13, 1, 2]) if padded else None
    expected = tcn.double()(x.double(), lengths)
    wanted = torch.autograd.grad(expected.sum(), list(tcn.parameters()))
    tcn.float().to(DEVICE)
    monkeypatch.setattr(tcn_matmul, "has_kernels", lambda x: True)
    lengths = None if lengths is None else lengths.to(DEVICE)
    z = tcn_matmul.tcn_as_products(tcn, x.to(DEVICE), lengths)
    found = torch.autograd.grad(z.sum(), list(tcn.parameters()))
    torch.testing.assert_close(z.cpu().double(), expected, rtol=1e-4, atol=1e-5)
    for got, oracle in zip(found, wanted, strict=True):
        torch.testing.assert_close(got.cpu().double(), oracle, rtol=1e-3, atol=1e-4)


def test_adam_in_one_pass_is_adam():
    generator = torch.Generator().manual_seed(0)
    weights, gradient, first, second = (
        torch.rand(3, 700, generator=generator).to(DEVICE) for _ in range(4)
    )
    lr = torch.tensor([[1e-3], [1e-2], [0.1]], device=DEVICE)
    other = [v.clone() for v in (weights, first, second)]
    for step in (1.0, 2.0, 3.0):
        steps = torch.tensor(step, device=DEVICE)
        stepped(weights, gradient, first, second, steps, lr, BETAS, EPSILON)
        _adam(other[0], gradient, other[1], other[2], steps, lr)
    for got, expected in zip((weights, first, second), other, strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
