import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests import oracles

from expclr.errors import ConfigError
from expclr.methods.pairs import (
    FeatureSimilarity,
    feature_distances,
    normalise,
    pairwise_distances,
)

numbers = st.floats(-1e3, 1e3, width=32)
scales = st.sampled_from([1e-15, 1e-6, 1.0, 1e6, 1e15])


@given(
    arrays(np.float32, st.tuples(st.integers(2, 9), st.integers(1, 5)), elements=numbers), scales
)
@settings(max_examples=60, deadline=None)
def test_distances_agree_with_the_loop_at_any_scale(values, scale):
    z = torch.tensor(values.astype(np.float64) * scale).float()
    expected = torch.tensor([[oracles.distance(a, b) for b in z] for a in z]).float()
    # The square of what is 1e-18 times the largest value leaves float32.
    torch.testing.assert_close(
        pairwise_distances(z), expected, rtol=2e-6, atol=1e-18 * float(z.abs().max())
    )


def test_distances_to_itself_and_to_duplicates_are_exactly_zero():
    z = torch.randn(64, 100).repeat(2, 1)
    D = pairwise_distances(z)
    assert (D.diagonal() == 0).all()
    assert (D[:64, 64:].diagonal() == 0).all()


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_gradients_are_finite_at_duplicates(scale):
    z = (torch.randn(6, 3).repeat(2, 1) * scale).requires_grad_()
    normalise(pairwise_distances(z), True).square().sum().backward()
    assert z.grad.isfinite().all()


def test_distances_have_the_gradient_of_finite_differences():
    z = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v: normalise(pairwise_distances(v), True), z)


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(2, 8), st.integers(1, 6)),
        elements=st.one_of(st.floats(-100, 100), st.just(math.nan)),
    ),
    scales,
)
@settings(max_examples=60, deadline=None)
def test_feature_distances_agree_with_the_loop_over_shared_features(values, scale):
    f = torch.tensor(values * scale)
    distances, weights = feature_distances(f)
    for i, a in enumerate(f.tolist()):
        for j, b in enumerate(f.tolist()):
            expected = oracles.feature_distance(a, b)
            assert weights[i, j] == (expected is not None)
            assert distances[i, j].item() == pytest.approx(
                expected or 0, rel=1e-5, abs=1e-5 * scale
            )


def test_windows_with_the_same_features_and_gaps_have_distance_zero():
    f = torch.randn(8, 5)
    f[torch.rand(8, 5) < 0.3] = math.nan
    distances, _ = feature_distances(f.repeat(2, 1))
    assert (distances[:8, 8:].diagonal() == 0).all()


def test_bf16_autocast_measures_in_float32():
    z = torch.randn(32, 100)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        D = pairwise_distances(z)
    assert D.dtype == torch.float32
    torch.testing.assert_close(D, pairwise_distances(z))


def test_rows_have_mean_one_after_normalisation():
    D = normalise(pairwise_distances(torch.randn(10, 4)), True)
    torch.testing.assert_close(D.mean(1), torch.ones(10))


def test_detached_normalisation_has_the_same_value_and_another_gradient():
    grads = []
    for mode in (True, "detach"):
        z = torch.arange(12.0).reshape(4, 3).square().requires_grad_()
        D = normalise(pairwise_distances(z), mode)
        D.square().sum().backward()
        grads.append((D.detach(), z.grad))
    torch.testing.assert_close(grads[0][0], grads[1][0])
    assert not torch.allclose(grads[0][1], grads[1][1])


@pytest.mark.parametrize("kind", ["linear", "squared", "gaussian"])
def test_similarities_agree_with_their_formula(kind):
    f = torch.randn(7, 3)
    s, weights = FeatureSimilarity(kind, sigma=2.0)(f)
    d, _ = feature_distances(f)
    expected = [[oracles.similarity(kind, float(v), float(d.max()), 2.0) for v in row] for row in d]
    torch.testing.assert_close(s, torch.tensor(expected), rtol=1e-5, atol=1e-6)
    assert (weights == 1).all()


@pytest.mark.parametrize("kind", ["linear", "squared"])
def test_one_hot_classes_give_the_discrete_similarity(kind):
    y = torch.tensor([0, 1, 1, 2, 0])
    s, _ = FeatureSimilarity(kind)(torch.nn.functional.one_hot(y).float())
    torch.testing.assert_close(s, (y[:, None] == y).float())


def test_a_dataset_reference_is_the_largest_distance_of_the_dataset():
    F = torch.randn(200, 4)
    similarity = FeatureSimilarity("linear", reference="dataset")
    similarity.prepare(F)
    s, _ = similarity(F)
    assert s.min().item() == pytest.approx(0, abs=1e-6)
    part, _ = similarity(F[:5])
    torch.testing.assert_close(part, s[:5, :5])


def test_a_quantile_reference_is_not_moved_by_an_outlier():
    F = torch.randn(200, 4)
    wild = torch.cat([F, torch.full((1, 4), 1e4)])
    by_max, by_quantile = (FeatureSimilarity("linear", reference=r) for r in ("dataset", "q0.95"))
    for similarity in (by_max, by_quantile):
        similarity.prepare(wild)
    assert by_max(F)[0].min() > 0.99
    assert by_quantile(F)[0].min() < 0.1


def test_a_large_dataset_is_measured_among_its_outermost_rows():
    F = torch.randn(6000, 2)
    F[17], F[4018] = 30.0, -30.0
    similarity = FeatureSimilarity("linear", reference="dataset")
    similarity.prepare(F)
    assert similarity.scale.item() == pytest.approx(60 * math.sqrt(2))


def test_the_median_sigma_puts_half_of_the_pairs_below_exp_minus_one():
    F = torch.randn(60, 3)
    s, _ = FeatureSimilarity("gaussian", sigma="median")(F)
    off = s[~torch.eye(60, dtype=torch.bool)]
    assert (off < math.exp(-1)).float().mean().item() == pytest.approx(0.5, abs=0.01)


def test_constant_features_carry_no_weight():
    _, weights = FeatureSimilarity()(torch.ones(4, 3))
    assert (weights == 0).all()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"similarity": "sqared"}, "did you mean 'squared'"),
        ({"reference": "bach"}, "reference is 'bach'"),
        ({"reference": "q1.5"}, "q0.99"),
        ({"reference": -1.0}, "positive"),
        ({"similarity": "gaussian", "sigma": 0.0}, "sigma is 0.0"),
        ({"similarity": "gaussian", "sigma": "mean"}, "median"),
    ],
)
def test_unusable_settings_say_what_is_wanted(settings, words):
    with pytest.raises(ConfigError, match=words):
        FeatureSimilarity(**settings)


def test_a_reference_over_the_dataset_asks_for_the_dataset():
    with pytest.raises(ConfigError, match="prepare"):
        FeatureSimilarity(reference="dataset")(torch.randn(4, 2))
