"""Pair ratios equal the definition, also where rows coincide or features are missing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from expclr.errors import DataError
from expclr.evaluation import bilipschitz, pair_ratios
from expclr.evaluation.distances import Rows


def loop(Z, F):
    """Definition 1, pair by pair."""
    ratios = []
    for i in range(len(Z)):
        for j in range(i + 1, len(Z)):
            shared = ~np.isnan(F[i]) & ~np.isnan(F[j])
            if not shared.any():
                continue
            scale = F.shape[1] / shared.sum()
            f = np.sqrt(scale * ((F[i] - F[j])[shared] ** 2).sum())
            z = np.sqrt(((Z[i] - Z[j]) ** 2).sum())
            if f == 0 and z == 0:
                continue
            ratios.append(np.inf if z == 0 else f / z)
    return np.array(ratios)


def test_ratios_are_those_of_the_definition_in_order_of_pairs(rng, monkeypatch):
    monkeypatch.setattr(pair_ratios, "BLOCK", 70)
    Z, F = rng.normal(size=(40, 5)) + 100, rng.normal(size=(40, 8)) * 1e3
    found = bilipschitz(Z, F)
    np.testing.assert_allclose(found.ratios, loop(Z, F), rtol=1e-9)
    assert found.l_minus == found.ratios.min()
    assert found.l_plus == found.ratios.max()
    assert found.pairs == 40 * 39 // 2


def test_missing_features_leave_distances_over_the_shared_ones(rng):
    Z, F = rng.normal(size=(30, 5)), rng.normal(size=(30, 4))
    F[rng.random(F.shape) < 0.5] = np.nan
    found = bilipschitz(Z, F)
    expected = loop(Z, F)
    np.testing.assert_allclose(found.ratios, expected, rtol=1e-9)
    assert found.incomparable == 30 * 29 // 2 - len(expected) > 0


def test_close_pairs_far_from_the_origin_keep_their_digits(rng):
    Z = np.repeat(rng.normal(size=(10, 4)), 3, axis=0) + 1e-7 * rng.normal(size=(30, 4))
    F = np.repeat(1e3 * rng.normal(size=(10, 6)), 3, axis=0) + 1e-6 * rng.normal(size=(30, 6))
    np.testing.assert_allclose(bilipschitz(Z, F).ratios, loop(Z, F), rtol=1e-6)


def test_same_embedding_with_different_features_makes_l_plus_infinite_and_says_so(rng):
    Z, F = rng.normal(size=(10, 3)), rng.normal(size=(10, 3))
    Z[4] = Z[7]
    found = bilipschitz(Z, F)
    assert found.l_plus == np.inf
    assert found.collapsed == 1
    assert np.isinf(found.ratios).sum() == 1
    assert "1 pairs have different features but the same embedding" in found.text()


def test_pairs_that_coincide_in_both_are_left_out_and_counted(rng):
    Z, F = rng.normal(size=(10, 3)), rng.normal(size=(10, 3))
    Z[4], F[4] = Z[7], F[7]
    found = bilipschitz(Z, F)
    assert (found.undefined, found.pairs) == (1, 44)
    assert np.isfinite(found.l_plus)


def test_proportional_embedding_has_distortion_one(rng):
    F = rng.normal(size=(50, 6))
    rotation, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    found = bilipschitz(F @ rotation / 3, F)
    assert found.l_minus == pytest.approx(3)
    assert found.distortion == pytest.approx(1)


def test_scaling_the_features_scales_the_limits(rng):
    Z, F = rng.normal(size=(30, 3)), rng.normal(size=(30, 3))
    one, ten = bilipschitz(Z, F), bilipschitz(Z, 10 * F)
    np.testing.assert_allclose(ten.ratios, 10 * one.ratios)


def test_sample_of_ratios_favours_no_part_of_the_windows(rng, monkeypatch):
    Z, F = rng.normal(size=(300, 3)), rng.normal(size=(300, 3))
    F[150:] *= 100
    exact = bilipschitz(Z, F)
    monkeypatch.setattr(pair_ratios, "KEPT", 4000)
    monkeypatch.setattr(pair_ratios, "BLOCK", 9000)
    found = bilipschitz(Z, F)
    assert (found.ratios > 10).mean() == pytest.approx((exact.ratios > 10).mean(), abs=0.03)


def test_beyond_the_kept_pairs_limits_stay_exact_and_ratios_become_a_sample(rng, monkeypatch):
    Z, F = rng.normal(size=(200, 3)), rng.normal(size=(200, 3))
    exact = bilipschitz(Z, F)
    monkeypatch.setattr(pair_ratios, "KEPT", 2000)
    monkeypatch.setattr(pair_ratios, "BLOCK", 3000)
    found = bilipschitz(Z, F)
    assert (found.l_minus, found.l_plus) == pytest.approx((exact.l_minus, exact.l_plus))
    assert found.sampled
    assert 1900 <= len(found.ratios) <= 2000
    assert np.isin(found.ratios.round(8), exact.ratios.round(8)).all()
    assert np.median(found.ratios) == pytest.approx(np.median(exact.ratios), rel=0.1)


@settings(max_examples=50, deadline=None)
@given(
    st.integers(2, 8).flatmap(
        lambda n: st.tuples(
            arrays(np.float64, (n, 2), elements=st.integers(-2, 2)),
            arrays(np.float64, (n, 2), elements=st.one_of(st.integers(-2, 2), st.just(np.nan))),
        )
    )
)
def test_any_mixture_of_ties_and_gaps_follows_the_definition(given_arrays):
    Z, F = given_arrays
    expected = loop(Z, F)
    if not len(expected):
        with pytest.raises(DataError, match="no pair"):
            bilipschitz(Z, F)
        return
    found = bilipschitz(Z, F)
    np.testing.assert_allclose(found.ratios, expected, rtol=1e-9)
    assert found.collapsed == np.isinf(expected).sum()


def test_listed_pairs_have_the_distances_of_the_block(rng):
    F = rng.normal(size=(20, 4))
    F[rng.random(F.shape) < 0.3] = np.nan
    rows = Rows.of(F, "F", gaps=True)
    i, j = np.triu_indices(20, 1)
    everything = slice(0, 20)
    np.testing.assert_allclose(rows.pairs(i, j), rows.block(everything, everything)[i, j])


@pytest.mark.parametrize(
    ("Z", "F", "says"),
    [
        (np.zeros((3, 2)), np.zeros((4, 2)), "same number"),
        (np.zeros((1, 2)), np.zeros((1, 2)), "2 or more"),
        (np.full((3, 2), np.nan), np.zeros((3, 2)), "Z holds NaN"),
        (np.zeros((3, 2)), np.full((3, 2), np.inf), "F holds inf"),
        (np.zeros((3, 2)), np.ones((3, 2)), "no pair has a ratio"),
        (np.eye(3), np.full((3, 2), np.nan), "share no known feature"),
    ],
)
def test_unusable_input_is_refused_with_its_reason(Z, F, says):
    with pytest.raises(DataError, match=says):
        bilipschitz(Z, F)
