import pickle

import pytest
import torch

from expclr.errors import ConfigError
from expclr.methods.base import unchanged
from expclr.methods.views import DOMAINS, VIEWS, compose
from expclr.methods.views_amplitude import dropout, gain, jitter, scaling
from expclr.methods.views_published import sleepprior, tstcc_strong, tstcc_weak
from expclr.methods.views_sensor import lead_swap, rotation, sign_flip
from expclr.methods.views_time import permutation, shift, time_mask


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def _counting(b, c, t):
    """Values that tell window, channel and timepoint."""
    return torch.arange(1.0, b * c * t + 1).reshape(b, c, t)


@pytest.mark.parametrize("name", list(VIEWS))
def test_every_view_gives_other_windows_of_the_same_shape(name):
    x = torch.randn(8, 6, 40)
    before = x.clone()
    first, second = VIEWS[name](x, None), VIEWS[name](x, None)
    assert first.shape == x.shape
    assert first.dtype == x.dtype
    assert first.isfinite().all()
    assert torch.equal(x, before)
    assert not torch.equal(first, second)  # drawn anew at each call
    assert not torch.equal(first, x)


@pytest.mark.parametrize("name", list(VIEWS))
def test_every_view_follows_the_global_seed(name):
    x = torch.randn(4, 3, 40)
    torch.manual_seed(5)
    first = VIEWS[name](x, None)
    torch.manual_seed(5)
    assert torch.equal(first, VIEWS[name](x, None))


@pytest.mark.parametrize("name", list(VIEWS))
def test_every_view_treats_windows_one_by_one(name):
    x = torch.ones(64, 3, 40) * torch.linspace(1, 2, 40)
    x = x * torch.tensor([1.0, 2.0, 3.0])[:, None]
    assert len(VIEWS[name](x, None).flatten(1).unique(dim=0)) > 1


@pytest.mark.parametrize("name", list(VIEWS))
def test_padding_has_no_part_in_any_view(name):
    x, lengths = torch.randn(6, 3, 20), torch.tensor([20, 13, 7, 2, 1, 20])
    padding = torch.arange(20) >= lengths[:, None]
    outputs = []
    for filling in (0.0, 1e6):
        torch.manual_seed(3)
        filled = torch.where(padding[:, None], filling, x)
        outputs.append(VIEWS[name](filled, lengths).masked_fill(padding[:, None], 0))
    torch.testing.assert_close(*outputs)


@pytest.mark.parametrize(
    ("per", "constant"), [("window", (1, 2)), ("channel", (2,)), ("step", (1,)), ("value", ())]
)
def test_gains_are_shared_over_what_is_asked_for(per, constant):
    for view in (scaling, gain):
        y = view(torch.ones(500, 4, 5), per=per)
        for axis in (1, 2):
            spread = y.std(dim=axis).max()
            assert (spread < 1e-6) == (axis in constant)


def test_gains_have_the_mean_and_spread_that_are_asked_for():
    y = scaling(torch.full((400, 3, 50), 2.0), mean=3.0, sigma=0.5, per="value")
    assert y.mean().item() == pytest.approx(6.0, abs=0.02)
    assert y.std().item() == pytest.approx(1.0, abs=0.02)
    y = gain(torch.ones(10_000, 1, 1), low=0.5, high=0.7)
    assert 0.5 <= y.min() < 0.501
    assert 0.699 < y.max() <= 0.7


def test_jitter_has_the_spread_that_is_asked_for():
    assert jitter(torch.zeros(100, 3, 50), sigma=0.3).std().item() == pytest.approx(0.3, abs=0.01)


def test_dropout_zeroes_whole_timepoints_and_leaves_the_rest():
    x = _counting(50, 3, 40)
    y = dropout(x, p=0.2)
    dropped = y == 0
    assert torch.equal(dropped.any(1), dropped.all(1))
    assert torch.equal(y[~dropped], x[~dropped])
    assert dropped.float().mean().item() == pytest.approx(0.2, abs=0.03)


def _pieces(y):
    """In how many unbroken runs each window's timepoints come."""
    return 1 + (y[:, 0].diff(dim=1) != 1).sum(1)


def test_permutation_moves_unbroken_pieces_of_all_channels_together():
    x = torch.arange(40.0).expand(2000, 3, 40)
    y = permutation(x, max_segments=6)
    assert torch.equal(y.sort(dim=2).values, x)
    assert torch.equal(y[:, 0], y[:, 2])
    pieces = _pieces(y)
    assert pieces.max() == 5
    assert (pieces == 1).float().mean() > 1 / 5  # one piece, or several that fell into place


def test_permutation_cuts_and_orders_evenly():
    from expclr.methods.views_time import _segments

    x = torch.zeros(6000, 1, 12)
    segment = _segments(x, None, 4)
    count = 1 + (segment.diff(dim=1) > 0).sum(1)
    assert torch.bincount(count).tolist()[1:] == pytest.approx([2000] * 3, rel=0.06)
    cuts = (segment.diff(dim=1) > 0).sum(0)
    assert cuts.tolist() == pytest.approx([6000 / 11] * 11, rel=0.2)
    y = permutation(torch.arange(12.0).expand(6000, 1, 12), max_segments=3)
    moved = (y[:, 0, 0] != 0).float().mean()  # two pieces in half the windows, swapped in half
    assert moved.item() == pytest.approx(1 / 4, abs=0.03)


def test_the_original_permutation_loses_all_channels_but_the_first():
    x = _counting(5, 3, 40)
    y = permutation(x, first_channel_into_all=True)
    assert torch.equal(y[:, 0].sort(dim=1).values, x[:, 0])
    assert torch.equal(y[:, 1], y[:, 0])
    assert not torch.equal(permutation(x)[:, 1], permutation(x)[:, 0])


def test_shift_rolls_around_by_at_most_its_fraction():
    x, lengths = torch.arange(40.0).expand(500, 2, 40), torch.tensor([40, 20]).repeat(250)
    y = shift(x, lengths, fraction=0.1)
    for n, most in ((40, 4), (20, 2)):
        rows = y[lengths == n, 0]
        assert set(((n - rows[:, 0]) % n).tolist()) == {
            float(s % n) for s in range(-most, most + 1)
        }
        assert torch.equal(rows[:, :n].sort(dim=1).values, x[0, 0, :n].expand(250, n))
        assert torch.equal(rows[:, n:], x[0, 0, n:].expand(250, 40 - n))


def test_time_mask_zeroes_one_stretch_within_the_real_part():
    lengths = torch.tensor([100, 40]).repeat(300)
    y = time_mask(torch.ones(600, 2, 100), lengths, fraction=0.15)
    masked = y == 0
    assert torch.equal(masked[:, 0], masked[:, 1])
    edges = masked[:, 0].float().diff(dim=1).abs().sum(1)
    assert edges.max() <= 2
    for n in (100, 40):
        count = masked[lengths == n, 0].sum(1)
        assert count.max() <= 0.15 * n + 1
        assert count.float().mean().item() == pytest.approx(0.075 * n, rel=0.15)
        assert not masked[lengths == n, 0, n:].any()


def test_rotation_turns_all_vectors_of_a_window_alike():
    x = torch.randn(50, 7, 30)
    x[:, 3:6] = 2 * x[:, :3]
    y = rotation(x, axes=6)
    torch.testing.assert_close(y[:, :3].norm(dim=1), x[:, :3].norm(dim=1))
    torch.testing.assert_close(y[:, 3:6], 2 * y[:, :3])
    assert torch.equal(y[:, 6], x[:, 6])
    basis = rotation(torch.eye(3).expand(1000, 3, 3))
    torch.testing.assert_close(torch.linalg.det(basis), torch.ones(1000))


def test_rotation_angles_reach_from_zero_to_the_largest():
    turn = rotation(torch.eye(3).expand(2000, 3, 3), max_degrees=30)
    trace = turn.diagonal(dim1=1, dim2=2).sum(1)
    degrees = torch.rad2deg(((trace - 1) / 2).clamp(-1, 1).acos())
    assert degrees.max().item() == pytest.approx(30, abs=0.2)
    assert degrees.mean().item() == pytest.approx(15, abs=0.7)


def test_sign_flip_turns_whole_windows():
    x = _counting(1000, 2, 5)
    y = sign_flip(x, p=0.3)
    flipped = (y == -x).flatten(1)
    assert torch.equal(flipped.any(1), flipped.all(1))
    assert flipped[:, 0].float().mean().item() == pytest.approx(0.3, abs=0.05)


def test_lead_swap_reorders_the_channels_of_some_windows():
    x = _counting(600, 3, 5)
    y = lead_swap(x, p=0.5)
    assert torch.equal(y.sort(dim=1).values, x)
    same = (y == x).flatten(1).all(1).float().mean().item()
    assert same == pytest.approx(1 / 2 + 1 / 12, abs=0.06)


def test_sleep_prior_views_change_a_window_slightly():
    x = torch.ones(3000, 2, 100)
    y = sleepprior(x)
    masked = (y == 0).any(2).all(1)
    loud = ((y - y[:, :1, :1]).abs() < 1e-6).flatten(1).all(1) & (y[:, 0, 0] != 1)
    noisy = ~masked & ~loud & (y.flatten(1).std(1) > 1e-4)
    for part in (masked, loud, noisy):
        assert part.float().mean().item() == pytest.approx(1 / 3, abs=0.04)
    assert y[loud].min() >= 0.95
    assert y[loud].max() <= 1.05
    assert y[noisy].std().item() == pytest.approx(0.01, rel=0.05)


def test_ts_tcc_views_are_noise_times_the_signal_and_pieces_plus_noise():
    weak = tstcc_weak(torch.ones(300, 3, 50))
    assert torch.equal(weak[:, 0], weak[:, 2])
    assert weak.mean().item() == pytest.approx(2, abs=0.05)
    assert weak[:, 0].std().item() == pytest.approx(1.1, abs=0.05)
    strong = tstcc_strong(torch.zeros(300, 3, 50))
    assert strong.std().item() == pytest.approx(0.8, abs=0.02)
    pieces = tstcc_strong(torch.arange(50.0).expand(9, 3, 50), sigma=0.0)
    assert torch.equal(pieces.sort(dim=2).values, torch.arange(50.0).expand(9, 3, 50))


def test_views_are_composed_in_order_with_their_settings():
    view = compose({"scaling": {"sigma": 0.0, "mean": 3.0}, "jitter": {"sigma": 0.0}})
    torch.testing.assert_close(view(torch.ones(2, 1, 4), None), torch.full((2, 1, 4), 3.0))
    both = compose(["dropout", "sign_flip"])(torch.ones(200, 1, 50), None)
    assert set(both.unique().tolist()) == {-1.0, 0.0, 1.0}


def test_a_function_is_a_view_as_it_is():
    def doubled(x, lengths):
        return 2 * x

    assert compose(doubled) is doubled
    assert compose(["tests.methods.test_views:halved"])(torch.ones(1), None).item() == 0.5


def halved(x, lengths):
    return x / 2


def test_composed_views_can_be_sent_to_other_processes():
    view = pickle.loads(pickle.dumps(compose(["scaling", "shift"])))
    assert view(torch.ones(2, 1, 8), None).shape == (2, 1, 8)


@pytest.mark.parametrize(
    ("view", "settings", "words"),
    [
        (scaling, {"sigma": -1.0}, "sigma is -1"),
        (scaling, {"per": "row"}, "window, channel, step, value"),
        (gain, {"low": 2.0}, "low must not be above"),
        (jitter, {"sigma": -1.0}, "sigma is -1"),
        (dropout, {"p": 1.0}, "p is 1"),
        (permutation, {"max_segments": 1}, "at least 2"),
        (shift, {"fraction": 2.0}, "from 0 to 1"),
        (time_mask, {"fraction": -0.1}, "from 0 to 1"),
        (rotation, {"axes": 4}, "4 of 8 channels"),
        (rotation, {}, "set axes"),
        (sign_flip, {"p": 2.0}, "p is 2"),
    ],
)
def test_unusable_settings_are_refused(view, settings, words):
    with pytest.raises(ConfigError, match=words):
        view(torch.ones(2, 8, 10), None, **settings)


def test_no_view_at_all_leaves_windows_as_they_are():
    assert compose(()) is compose({}) is unchanged


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_kind_of_sensor_names_its_views(domain):
    x = torch.randn(4, 6, 32)
    seen = compose(domain)(x, torch.tensor([32, 20, 32, 9]))
    assert seen.shape == x.shape
    assert (seen != x).any(dim=(1, 2)).all()


def test_an_unknown_kind_of_sensor_is_told_the_nearest():
    with pytest.raises(ConfigError, match="motion"):
        compose("motoin")
