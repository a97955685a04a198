from itertools import combinations

import numpy as np
import pytest
import torch

from expclr.encoders.masks import real_steps
from expclr.encoders.minirocket import MiniRocket, dilations_of, golden_quantiles
from expclr.errors import ConfigError, DataError


def _dyadic(*shape):
    """Multiples of 1/64: their convolutions have no rounding, so ties are ties everywhere."""
    return torch.round(64 * torch.randn(*shape)) / 64


def _fitted(channels=1, length=60, num_features=1000, x=None, **settings):
    torch.manual_seed(0)
    transform = MiniRocket(channels, length, num_features=num_features, **settings)
    transform.fit(_dyadic(10, channels, length) if x is None else x)
    return transform


def _convolution(series, taps, channels, dilation):
    """One kernel on one series of float64, (c, t) -> (t,), zeros outside."""
    t = series.shape[1]
    out = np.zeros(t)
    for i in range(t):
        for tap in range(9):
            at = i + (tap - 4) * dilation
            if 0 <= at < t:
                weight = 2 if tap in taps else -1
                out[i] += weight * sum(series[c, at] for c in channels)
    return out


def _loop(transform, series):
    """The published formula, one number at a time."""
    features = []
    for i, (dilation, count) in enumerate(transform.dilations):
        for k, taps in enumerate(combinations(range(9), 3)):
            channels = np.flatnonzero(transform.channels[i, k].numpy())
            output = _convolution(series, taps, channels, dilation)
            if (i + k) % 2:
                output = output[4 * dilation : max(4 * dilation, len(output) - 4 * dilation)]
            for _ in range(count):
                bias = float(transform.biases[len(features)])
                features.append(np.mean(output > bias) if len(output) else 0)
    return np.array(features)


@pytest.mark.parametrize(("channels", "length"), [(1, 9), (1, 60), (4, 33), (20, 41)])
def test_features_are_those_of_the_formula(channels, length):
    transform = _fitted(channels, length, num_features=300)
    x = _dyadic(3, channels, length)
    expected = [_loop(transform, series) for series in x.double().numpy()]
    np.testing.assert_allclose(transform(x), np.array(expected), atol=1e-6)


def test_biases_are_quantiles_of_the_convolutions_of_the_training_window():
    x = _dyadic(1, 1, 40)
    transform = _fitted(1, 40, 400, x=x)
    quantiles, expected = golden_quantiles(transform.num_features).numpy(), []
    for dilation, count in transform.dilations:
        for taps in combinations(range(9), 3):
            output = _convolution(x[0].double().numpy(), taps, [0], dilation)
            at = quantiles[len(expected) : len(expected) + count]
            expected.extend(np.quantile(output, at))
    np.testing.assert_allclose(transform.biases, expected, atol=1e-5)


def test_biases_come_from_different_training_windows():
    levels = torch.arange(1.0, 201)[:, None, None]
    transform = _fitted(1, 40, 84, x=levels * torch.randn(1, 1, 40))
    assert len(transform.draws.mul(200).long().unique()) > 40
    assert transform.biases.abs().max() > 5 * transform.biases.abs().median()


@pytest.mark.parametrize("length", [9, 10, 24, 100, 128, 512, 2500])
def test_dilations_fit_the_series_and_share_all_features(length):
    dilations, counts = zip(*dilations_of(length, 10_000, 32), strict=True)
    assert dilations[0] == 1
    assert dilations[-1] * 8 < length
    assert sum(counts) == 119  # 9,996 features
    assert len(dilations) <= 32
    assert list(dilations) == sorted(set(dilations))


def test_kernels_look_at_one_to_nine_channels_and_more_often_at_few():
    torch.manual_seed(0)
    sizes = MiniRocket(20, 3000).channels.sum(2).flatten()
    counts = torch.bincount(sizes, minlength=10)
    assert sizes.min() == 1
    assert sizes.max() == 9
    assert counts[1] > 2 * counts[5] > counts[9] > 0


def test_the_same_seed_gives_the_same_features_and_another_seed_others():
    x = torch.randn(8, 5, 50)
    outputs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        transform = MiniRocket(5, 50, num_features=500)
        transform.fit(x)
        outputs.append(transform(x))
    assert torch.equal(outputs[0], outputs[1])
    assert not torch.equal(outputs[0], outputs[2])


@pytest.mark.parametrize("length", [50, 700])
def test_features_of_a_window_do_not_depend_on_its_company(length):
    transform = _fitted(3, length, x=torch.randn(10, 3, length))
    x = torch.randn(203, 3, length)
    together = transform(x)
    for rows in (slice(0, 1), slice(7, 12), slice(100, 203)):
        assert torch.equal(transform(x[rows]), together[rows])


@pytest.mark.parametrize("memory", [1, 10**5, 10**9])
def test_chunks_of_any_size_give_the_same_counts(monkeypatch, memory):
    transform, x = _fitted(2, 600), _dyadic(20, 2, 600)
    expected = transform(x)
    for name in ("_TABLE", "_CACHE"):
        monkeypatch.setattr(f"expclr.encoders.tiles.{name}", memory)
    assert torch.equal(transform(x), expected)


@pytest.mark.parametrize("steps", [1, 7, 255])
def test_tiles_of_any_length_give_the_same_counts(monkeypatch, steps):
    transform, x = _fitted(2, 600), _dyadic(20, 2, 600)
    lengths = torch.randint(9, 601, (20,))
    expected = transform(x), transform(x, lengths)
    monkeypatch.setattr("expclr.encoders.tiles._TILE", 256 * steps)
    assert torch.equal(transform(x), expected[0])
    assert torch.equal(transform(x, lengths), expected[1])


@pytest.mark.parametrize("memory", [1, 5000, 10**9])
@pytest.mark.parametrize("channels", [2, 20])
def test_the_way_of_a_gpu_gives_the_same_features(monkeypatch, memory, channels):
    transform, x = _fitted(channels, 600), _dyadic(11, channels, 600)
    lengths = torch.randint(9, 601, (11,))
    x = x * real_steps(lengths, 600)
    monkeypatch.setattr("expclr.encoders.minirocket.MEMORY", memory)
    size, chunk = transform._whole(channels, 600)
    for given in (None, lengths):
        parts = [slice(start, start + size) for start in range(0, 11, size)]
        found = [chunk(x[part], None if given is None else given[part]) for part in parts]
        torch.testing.assert_close(torch.cat(found), transform(x, given), atol=1e-6, rtol=0)


def test_threads_change_neither_features_nor_their_own_number():
    transform, x, before = _fitted(3, 300), torch.randn(300, 3, 300), torch.get_num_threads()
    outputs = []
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            outputs.append(transform(x))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*outputs)


def test_features_can_be_trained_on_after_inference_mode():
    transform, x = _fitted(2, 40), torch.randn(3, 2, 40)
    with torch.inference_mode():
        expected = transform(x)
    weights = torch.ones(len(expected[0]), requires_grad=True)
    (transform(x) @ weights).sum().backward()
    torch.testing.assert_close(weights.grad, expected.sum(0))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_gives_the_features_of_the_cpu():
    transform, x = _fitted(3, 300), _dyadic(50, 3, 300)
    lengths = torch.randint(9, 301, (50,))
    for given in (None, lengths):
        expected = transform.cpu()(x, given)
        there = None if given is None else given.cuda()
        torch.testing.assert_close(transform.cuda()(x.cuda(), there).cpu(), expected)


def test_a_padded_series_has_the_features_of_the_series_alone():
    transform = _fitted(2, 100)
    lengths = torch.tensor([100, 64, 30, 9])
    x = _dyadic(4, 2, 100)
    filled = torch.where(real_steps(lengths, 100).bool(), x, torch.nan)
    together = transform(filled, lengths)
    for i, n in enumerate(lengths):
        torch.testing.assert_close(together[i : i + 1], transform(x[i : i + 1, :, :n]))


def test_padding_has_no_part_in_the_biases():
    lengths = torch.tensor([60, 41, 20])
    x = _dyadic(3, 1, 60)
    filled = torch.where(real_steps(lengths, 60).bool(), x, 1e6)
    torch.manual_seed(0)
    transform = MiniRocket(1, 60, num_features=500)
    transform.fit(filled, lengths)
    assert transform.biases.abs().max() < 100


def test_longer_and_shorter_windows_than_those_of_training_are_taken():
    transform = _fitted(2, 100)
    assert transform(torch.randn(3, 2, 150)).isfinite().all()
    assert transform(torch.randn(3, 2, 9)).isfinite().all()


def test_constant_windows_have_finite_features():
    transform = _fitted(2, 40, x=torch.ones(4, 2, 40))
    assert transform(torch.ones(3, 2, 40)).isfinite().all()


def test_halves_keep_the_features_to_a_quarter_of_a_step():
    """What a store of float16 loses is far below one timepoint of the window."""
    features = _fitted(1, 1000, 2000)(torch.randn(5, 1, 1000))
    assert (features.half().float() - features).abs().max() <= 0.25 / 1000


def test_a_saved_transform_gives_the_same_features():
    transform, x = _fitted(3, 40), torch.randn(4, 3, 40)
    torch.manual_seed(5)
    other = MiniRocket(3, 40, num_features=1000)
    other.load_state_dict(transform.state_dict())
    assert torch.equal(other(x), transform(x))


def test_series_shorter_than_a_kernel_are_refused():
    with pytest.raises(DataError, match="8 timepoints"):
        MiniRocket(1, 8)
    transform = _fitted(1, 40)
    with pytest.raises(DataError, match="5 timepoints"):
        transform(torch.randn(2, 1, 5))
    with pytest.raises(DataError, match="3 timepoints"):
        transform(torch.randn(2, 1, 40), torch.tensor([40, 3]))
    with pytest.raises(DataError, match="8 timepoints"):
        transform.fit(torch.randn(2, 1, 40), torch.tensor([8, 40]))


def test_unusable_settings_are_refused():
    with pytest.raises(ConfigError, match="at least 84 features"):
        MiniRocket(1, 40, num_features=50)
    with pytest.raises(ConfigError, match="max_dilations=0"):
        MiniRocket(1, 40, max_dilations=0)


@pytest.mark.parametrize("t", [20, 300])
def test_other_implementations_agree(t):
    """Same kernels, dilations, biases and order of features as aeon's."""
    pytest.importorskip("aeon")
    from aeon.transformations.collection.convolution_based import MiniRocket as Other

    other = Other(random_state=0)
    x = _dyadic(12, 3, t)
    other.fit(x.numpy())
    sizes, flat, dilations, counts, biases = other.parameters
    transform = MiniRocket(3, t)
    assert transform.dilations == list(zip(dilations, counts, strict=True))
    chosen = torch.zeros(len(sizes), 3, dtype=torch.bool)
    for row, subset in enumerate(np.split(flat, np.cumsum(sizes)[:-1])):
        chosen[row, subset] = True
    transform.channels.copy_(chosen.view_as(transform.channels))
    transform.biases.copy_(torch.from_numpy(np.asarray(biases)))
    np.testing.assert_allclose(transform(x), other.transform(x.numpy()), atol=1e-6)


def test_other_implementations_take_the_same_biases():
    pytest.importorskip("aeon")
    from aeon.transformations.collection.convolution_based import MiniRocket as Other

    x = _dyadic(1, 1, 130)
    other = Other(random_state=0)
    other.fit(x.numpy())
    np.testing.assert_allclose(
        _fitted(1, 130, 10_000, x=x).biases, other.parameters[-1], 1e-5, 5e-6
    )
