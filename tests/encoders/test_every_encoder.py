"""What holds for every network in the registry."""

import pytest
import torch

from expclr.encoders import ENCODERS
from expclr.encoders.masks import real_steps

C, T, E = 2, 40, 6
SMALL = {"rocket": {"num_features": 500}, "hybrid": {"num_features": 500, "width": 8}}
every = pytest.mark.parametrize("name", ENCODERS)
FIXED = [name for name in ENCODERS if hasattr(ENCODERS[name], "fixed")]


def _encoder(name, seed=0):
    torch.manual_seed(seed)
    encoder = ENCODERS[name](C, E, length=T, **SMALL.get(name, {}))
    if hasattr(encoder, "prepare"):
        encoder.prepare(torch.randn(30, C, T), None)
    return encoder.eval()


@every
def test_windows_become_finite_embeddings(name):
    encoder = _encoder(name)
    for x in (torch.randn(5, C, T), torch.ones(5, C, T), torch.zeros(1, C, T)):
        assert encoder(x).shape == (len(x), E)
        assert encoder(x).isfinite().all()


@every
def test_every_weight_has_a_finite_gradient(name):
    encoder = _encoder(name).train()
    encoder(torch.randn(8, C, T), torch.tensor([T, 30, 20, 10] * 2)).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in encoder.parameters())


@every
@torch.no_grad()
def test_padding_is_not_seen(name):
    encoder, x = _encoder(name), torch.randn(3, C, T)
    lengths = torch.tensor([T, 25, 9])
    garbage = torch.where(real_steps(lengths, T).bool(), x, 1e3)
    together = encoder(garbage, lengths)
    for i, n in enumerate(lengths):
        alone = encoder(x[i : i + 1, :, :n])
        torch.testing.assert_close(together[i : i + 1], alone, rtol=1e-4, atol=1e-4)


@every
@torch.no_grad()
def test_its_state_and_its_arguments_are_all_there_is(name):
    """A folder holds both and nothing else, and is loaded under any seed."""
    encoder, other, x = _encoder(name), _encoder(name, seed=1), torch.randn(4, C, T)
    other.load_state_dict(encoder.state_dict())
    assert torch.equal(other(x), encoder(x))


@pytest.mark.parametrize("name", FIXED)
@torch.no_grad()
def test_what_is_fixed_is_the_same_in_training_and_can_be_given(name):
    encoder, x = _encoder(name), torch.randn(4, C, T)
    fixed = encoder.fixed(x, None)
    assert torch.equal(encoder(x, fixed=fixed), encoder(x))
    assert torch.equal(encoder.train().fixed(x, None), fixed)
