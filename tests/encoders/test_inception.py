import pytest
import torch

from expclr.encoders import Inception
from expclr.encoders.masks import real_steps
from expclr.errors import ConfigError


def _encoder(in_channels=2, **settings):
    torch.manual_seed(0)
    return Inception(in_channels, 5, **({"filters": 4, "kernels": (9, 5)} | settings))


@pytest.mark.parametrize("finest", [60, 10])
@pytest.mark.parametrize("depth", [3, 4])
def test_a_padded_series_has_the_embedding_of_the_series_alone(finest, depth):
    encoder = _encoder(length=60, finest=finest, depth=depth, pooling=("mean", "max", "std"))
    lengths = torch.tensor([60, 33, 7, 1])
    x = torch.randn(4, 2, 60)
    garbage = torch.where(real_steps(lengths, 60).bool(), x, 1e3)
    with torch.no_grad():
        encoder.train()
        encoder(x, lengths)  # running statistics
        encoder.eval()
        together = encoder(garbage, lengths)
        for i, n in enumerate(lengths):
            alone = encoder(x[i : i + 1, :, :n])
            torch.testing.assert_close(together[i : i + 1], alone, rtol=1e-5, atol=1e-5)


def test_padding_has_no_part_in_training():
    encoder = _encoder()
    x, lengths = torch.randn(3, 2, 20), torch.tensor([20, 11, 5])
    outputs = []
    for filling in (0.0, 7.0):
        filled = torch.where(real_steps(lengths, 20).bool(), x, filling)
        encoder.zero_grad()
        z = encoder(filled, lengths)
        z.square().sum().backward()
        outputs.append([z.detach(), *[p.grad.clone() for p in encoder.parameters()]])
    for a, b in zip(*outputs, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize(("length", "halvings"), [(None, 0), (512, 0), (513, 1), (3000, 3)])
def test_only_long_windows_are_strided(length, halvings):
    modules = [m for block in _encoder(length=length).blocks for m in block.inner]
    assert [m.stride for m in modules] == [2] * halvings + [1] * (6 - halvings)


def test_every_weight_learns():
    encoder = _encoder(in_channels=1)
    encoder(torch.randn(6, 1, 40)).square().sum().backward()
    assert all(p.grad.isfinite().all() and p.grad.abs().sum() > 0 for p in encoder.parameters())


def test_even_kernels_are_refused():
    with pytest.raises(ConfigError, match="odd"):
        _encoder(kernels=(9, 4))
