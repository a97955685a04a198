import pytest
import torch

from expclr.encoders import Hybrid
from expclr.encoders.masks import real_steps
from expclr.errors import ConfigError, DataError

SMALL = {"length": 50, "num_features": 500, "hidden": 16, "width": 8, "blocks": 4, "kernel": 3}


def _encoder(x=None, lengths=None, **settings):
    torch.manual_seed(0)
    encoder = Hybrid(2, 5, **(SMALL | settings))
    encoder.prepare(torch.randn(30, 2, 50) if x is None else x, lengths)
    return encoder.eval()


def test_features_given_and_features_computed_give_one_embedding():
    encoder, x = _encoder(), torch.randn(7, 2, 50)
    assert torch.equal(encoder(x, fixed=encoder.fixed(x)), encoder(x))


@pytest.mark.parametrize("side", ["random_side", "learned_side"])
def test_both_sides_reach_the_embedding_and_learn(side):
    encoder, x = _encoder(), torch.randn(6, 2, 50)
    encoder.train()(x).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in encoder.parameters())
    gradients = [p.grad.abs().sum() for p in getattr(encoder, side).parameters()]
    assert min(gradients) > 0
    assert encoder.tcn.blocks[0].first.convolution.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("norm", ["batch", "layer", "none"])
@pytest.mark.parametrize("length", [50, 700])
def test_a_padded_series_has_the_embedding_of_the_series_alone(norm, length):
    lengths = torch.tensor([length, 44, 20, 9])
    x = torch.randn(4, 2, length)
    encoder = _encoder(x, lengths, norm=norm, length=length)
    garbage = torch.where(real_steps(lengths, length).bool(), x, 1e3)
    with torch.no_grad():
        together = encoder(garbage, lengths)
        for i, n in enumerate(lengths):
            torch.testing.assert_close(
                together[i : i + 1], encoder(x[i : i + 1, :, :n]), rtol=1e-4, atol=1e-4
            )


def test_a_saved_encoder_gives_the_same_embedding():
    encoder, x = _encoder(), torch.randn(4, 2, 50)
    torch.manual_seed(9)
    other = Hybrid(2, 5, **SMALL).eval()
    other.load_state_dict(encoder.state_dict())
    assert torch.equal(other(x), encoder(x))


def test_a_linear_head_joins_both_sides_directly():
    assert _encoder(hidden=0).head.in_features == 420 + 3 * 8


def test_unusable_settings_are_refused():
    with pytest.raises(ConfigError, match="length is missing"):
        Hybrid(2, 5)
    with pytest.raises(DataError, match="7 timepoints"):
        Hybrid(2, 5, length=7)
