import numpy as np
import pytest
import torch

from expclr.encoders.scaled import ScaledEncoder, channel_statistics
from expclr.errors import ConfigError
from expclr.windows import Windows


class _Same(torch.nn.Module):
    def forward(self, x, lengths=None):
        return x


def test_each_channel_has_mean_zero_and_deviation_one(rng):
    X = rng.normal(size=(3000, 2, 10)) * [[[5], [0.01]]] + [[[1e3], [-2]]]
    encoder = ScaledEncoder(_Same(), 2)
    encoder.fit(Windows(X), "standard")
    scaled = encoder(torch.tensor(X, dtype=torch.float32)).numpy()
    np.testing.assert_allclose(scaled.mean((0, 2)), 0, atol=2e-3)
    np.testing.assert_allclose(scaled.std((0, 2)), 1, rtol=2e-3)


def test_padding_does_not_count(rng):
    X = rng.normal(3, 2, size=(50, 1, 20))
    lengths = rng.integers(1, 21, 50)
    real = np.concatenate([x[0, :n] for x, n in zip(X, lengths, strict=True)])
    for i, n in enumerate(lengths):
        X[i, :, n:] = 0
    mean, std = channel_statistics(Windows(X, lengths=lengths))
    np.testing.assert_allclose([mean[0], std[0]], [real.mean(), real.std()], rtol=1e-5)


def test_a_constant_channel_stays_finite():
    encoder = ScaledEncoder(_Same(), 1)
    encoder.fit(Windows(np.full((5, 1, 4), 7.3)), "standard")
    assert encoder(torch.full((5, 1, 4), 7.3)).abs().max() < 1e-5


def test_scaling_can_be_left_out():
    encoder = ScaledEncoder(_Same(), 1)
    encoder.fit(Windows(np.full((5, 1, 4), 7.0)), "none")
    assert (encoder(torch.ones(1, 1, 4)) == 1).all()
    with pytest.raises(ConfigError, match="'standard' or 'none'"):
        encoder.fit(Windows(np.ones((5, 1, 4))), "robust")
