"""Advice is given where it is due, and not otherwise."""

import numpy as np
import pytest

from expclr import Windows
from expclr.advice import advise, same_group_share
from expclr.fuse import fuse


def _windows(seed, groups, *, classes_follow):
    """Two features: f0 is the mean of X, f1 cannot be seen in X; classes follow one of them."""
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(400, 2))
    X = F[:, :1, None] + 0.01 * rng.normal(size=(400, 1, 16))
    y = (F[:, classes_follow] > 0).astype(int)
    return Windows(X, F, y, group=rng.choice(groups, 400))


def _means(windows):
    return windows.X.mean(2)


def _advice(classes_follow, transform=_means):
    train = _windows(0, ["a", "b", "c"], classes_follow=classes_follow)
    held = _windows(1, ["d", "e"], classes_follow=classes_follow)
    Z, F = (transform(train), transform(held)), (train.F, held.F)
    return {a.about: a for a in advise(Z, train, held, F=F, names=["f0", "f1"])}


def test_features_that_cannot_be_read_are_named():
    advice = _advice(0)["features"]
    assert list(advice.values["unread"]) == ["f1"]
    assert "f1 R2 -0.0" in advice.text


def test_fusing_is_advised_only_where_it_helps():
    assert "include_features" in _advice(1)["fusing"].text
    assert "fusing" not in _advice(0)


def test_an_embedding_of_the_group_is_noticed():
    def groups(windows):
        return np.unique(windows.group, return_inverse=True)[1][:, None] + windows.X.mean(2) / 1e6

    assert _advice(0, transform=groups)["groups"].values["same_group"] > 0.95
    assert "groups" not in _advice(0)


def test_windows_without_features_labels_or_groups_give_no_advice():
    bare = Windows(np.random.default_rng(0).normal(size=(20, 1, 16)))
    assert advise((_means(bare), _means(bare)), bare, bare, F=None) == []


def test_same_group_share_of_chance_is_chance():
    rng = np.random.default_rng(0)
    share, chance = same_group_share(rng.normal(size=(2000, 2)), rng.integers(5, size=2000))
    assert share == pytest.approx(chance, abs=0.04)
    assert chance == pytest.approx(0.2, abs=0.01)


def test_fusing_ignores_units_and_fills_missing_features_with_the_mean():
    rng = np.random.default_rng(0)
    Z, F = rng.normal(3, 1, (50, 4)), rng.normal(7, 1, (50, 2))
    F[0, 0] = np.nan
    both = fuse(Z, F)(Z, F)
    np.testing.assert_allclose(fuse(10 * Z, 0.1 * F)(10 * Z, 0.1 * F), both, atol=1e-5)
    assert both[0, 4] == 0
    assert both[:, :4].var(0).sum() == pytest.approx(1)


def test_a_constant_part_does_not_divide_by_zero():
    Z, F = np.random.default_rng(0).normal(size=(9, 2)), np.ones((9, 3))
    assert np.isfinite(fuse(Z, F)(Z, F)).all()
