import pytest
import torch

from expclr.encoders import Rocket
from expclr.encoders.rocket import StandardRocket
from expclr.errors import ConfigError

SMALL = {"length": 50, "num_features": 500, "hidden": 16}


def _encoder(x=None, **settings):
    torch.manual_seed(0)
    encoder = Rocket(2, 5, **(SMALL | settings))
    encoder.prepare(torch.randn(30, 2, 50) if x is None else x)
    return encoder.eval()


def test_features_given_and_features_computed_give_one_embedding():
    encoder, x = _encoder(), torch.randn(7, 2, 50)
    assert torch.equal(encoder(x, fixed=encoder.fixed(x)), encoder(x))
    nothing = torch.full_like(x, torch.nan)
    assert torch.equal(encoder(nothing, fixed=encoder.fixed(x)), encoder(x))


def test_a_store_in_halves_moves_embeddings_little():
    encoder, x = _encoder(torch.randn(30, 2, 700), length=700), torch.randn(7, 2, 700)
    stored = encoder.fixed(x).to(encoder.fixed_dtype)
    difference = (encoder(x, fixed=stored) - encoder(x)).abs().max()
    assert difference < 0.02 * encoder(x).std()


def test_training_windows_have_standardised_features():
    x = torch.randn(30, 2, 50)
    encoder = _encoder(x)
    scaled = encoder.rocket.scale(encoder.fixed(x))
    torch.testing.assert_close(scaled.mean(0), torch.zeros(len(scaled[0])), atol=1e-4, rtol=0)
    assert ((scaled.std(0, correction=0) - 1).abs() < 1e-3).float().mean() > 0.9


def test_constant_features_are_divided_by_one():
    encoder = _encoder(torch.ones(5, 2, 50))
    assert (encoder.rocket.std == 1).all()
    assert encoder(torch.randn(3, 2, 50)).isfinite().all()


def test_one_window_is_enough_to_prepare():
    encoder = _encoder(torch.randn(1, 2, 50))
    assert encoder(torch.randn(3, 2, 50)).isfinite().all()


def test_a_saved_encoder_gives_the_same_embedding():
    encoder, x = _encoder(), torch.randn(4, 2, 50)
    torch.manual_seed(9)
    other = Rocket(2, 5, **SMALL).eval()
    other.load_state_dict(encoder.state_dict())
    assert torch.equal(other(x), encoder(x))


def test_only_the_head_is_trained():
    encoder, x = _encoder(), torch.randn(6, 2, 50)
    encoder.train()(x).sum().backward()
    assert {name.split(".")[0] for name, _ in encoder.named_parameters()} == {"head"}
    assert all(p.grad is not None and p.grad.isfinite().all() for p in encoder.parameters())


@pytest.mark.parametrize("norm", ["batch", "layer", "none"])
@pytest.mark.parametrize("hidden", [0, 8])
def test_heads_of_every_kind_give_embeddings(norm, hidden):
    encoder = _encoder(norm=norm, hidden=hidden).train()
    assert encoder(torch.randn(4, 2, 50)).shape == (4, 5)


def test_unusable_settings_are_refused():
    with pytest.raises(ConfigError, match="length is missing"):
        Rocket(2, 5)
    with pytest.raises(ConfigError, match="'batch', 'layer' or 'none'"):
        _encoder(norm="weight")
    with pytest.raises(ConfigError, match="length"):
        StandardRocket(2, None, 1000, 32)
