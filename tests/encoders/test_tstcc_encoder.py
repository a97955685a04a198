import pytest
import torch

from expclr.encoders.masks import real_steps
from expclr.encoders.tstcc import TSTCCEncoder
from expclr.errors import DataError


def _encoder(embedding_dim=10, length=40, **settings):
    torch.manual_seed(0)
    return TSTCCEncoder(2, embedding_dim, length=length, **settings)


@pytest.mark.parametrize(("length", "steps"), [(128, 18), (3000, 127)])
def test_the_feature_map_has_the_published_size(length, steps):
    encoder = TSTCCEncoder(1, 128 * steps, length=length).eval()
    x = torch.randn(2, 1, length)
    assert encoder.features(x).shape == (2, 128, steps)
    torch.testing.assert_close(encoder(x), encoder.features(x).flatten(1))


def test_other_sizes_are_orthogonal_projections_of_the_map():
    encoder = _encoder()
    W = encoder.head.weight
    torch.testing.assert_close(W @ W.T, torch.eye(10), atol=1e-5, rtol=0)
    assert encoder(torch.randn(3, 2, 40)).shape == (3, 10)


@pytest.mark.parametrize("length", [40, None])
def test_a_padded_series_has_the_embedding_of_the_series_alone(length):
    encoder = _encoder(length=length)
    lengths = torch.tensor([40, 33, 7, 1])
    x = torch.randn(4, 2, 40)
    garbage = torch.where(real_steps(lengths, 40).bool(), x, 1e3)
    with torch.no_grad():
        encoder.train()
        encoder(x, lengths)  # running statistics
        encoder.eval()
        together = encoder(garbage, lengths)
        for i, n in enumerate(lengths):
            alone = encoder(x[i : i + 1, :, :n])
            torch.testing.assert_close(together[i : i + 1], alone, rtol=1e-5, atol=1e-5)
        all_real = encoder(x, torch.full((4,), 40))
        torch.testing.assert_close(all_real, encoder(x), rtol=1e-5, atol=1e-5)


def test_padding_has_no_part_in_training():
    encoder = _encoder(dropout=0.0)
    x, lengths = torch.randn(3, 2, 40), torch.tensor([40, 21, 5])
    outputs = []
    for filling in (0.0, 7.0):
        filled = torch.where(real_steps(lengths, 40).bool(), x, filling)
        encoder.zero_grad()
        z = encoder(filled, lengths)
        z.square().sum().backward()
        outputs.append([z.detach(), *[p.grad.clone() for p in encoder.parameters()]])
    for a, b in zip(*outputs, strict=True):
        torch.testing.assert_close(a, b)


def test_windows_longer_than_the_encoder_are_refused():
    with pytest.raises(DataError, match="80 timepoints for an encoder of length 40"):
        _encoder()(torch.randn(2, 2, 80))
