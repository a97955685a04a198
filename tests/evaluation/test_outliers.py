"""Outlier scores follow their definitions, and p-values mean what they say."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics import roc_auc_score

from expclr.errors import ConfigError, DataError
from expclr.evaluation import outlier_scores
from expclr.evaluation.outliers import leave_one_class_out


def reference_of(normal, found, asked, k):
    """The normal windows that were not held out, found again by their scores."""
    d = np.sort(cdist(asked, normal), axis=1)
    return d[:, k - 1] <= found.scores


def lof_loop(reference, asked, k):
    """Breunig's local outlier factor of each asked row among the reference."""

    def neighbours(z, skip=None):
        d = np.linalg.norm(reference - z, axis=1)
        if skip is not None:
            d[skip] = np.inf
        near = np.argsort(d)[:k]
        return near, d[near]

    own = [neighbours(z, i) for i, z in enumerate(reference)]
    k_distance = np.array([d[-1] for _, d in own])

    def density(near, d):
        return 1 / (np.maximum(d, k_distance[near]).mean() + 1e-10)

    densities = np.array([density(near, d) for near, d in own])
    result = []
    for z in asked:
        near, d = neighbours(z)
        result.append(densities[near].mean() / density(near, d))
    return np.array(result)


def held_out_reference(normal, share=0.3, seed=0):
    held = np.random.default_rng(seed).choice(len(normal), round(share * len(normal)), False)
    return np.delete(normal, held, axis=0)


def test_knn_score_is_the_distance_to_the_kth_normal_window(rng):
    normal, asked = rng.normal(size=(100, 3)), rng.normal(size=(30, 3))
    found = outlier_scores(normal, asked, k=4)
    expected = np.sort(cdist(asked, held_out_reference(normal)), axis=1)[:, 3]
    np.testing.assert_allclose(found.scores, expected)


def test_lof_score_is_the_local_outlier_factor(rng):
    normal, asked = rng.normal(size=(100, 3)), rng.normal(size=(30, 3))
    found = outlier_scores(normal, asked, method="lof", k=4)
    expected = lof_loop(held_out_reference(normal), asked, 4)
    np.testing.assert_allclose(found.scores, expected, rtol=1e-6)


def test_p_value_is_the_rank_among_held_out_normal_windows(rng):
    found = outlier_scores(rng.normal(size=(100, 2)), rng.normal(size=(50, 2)))
    expected = [(1 + (found.calibration >= s).sum()) / 31 for s in found.scores]
    np.testing.assert_allclose(found.p_values, expected)


@pytest.mark.parametrize("method", ["knn", "lof"])
def test_p_values_of_normal_windows_are_uniform_over_repeats(method):
    rng = np.random.default_rng(0)
    p = np.concatenate(
        [
            outlier_scores(
                rng.normal(size=(60, 2)), rng.normal(size=(1, 2)), method=method, random_state=s
            ).p_values
            for s in range(400)
        ]
    )
    for level in (0.1, 0.2, 0.5):
        assert (p <= level).mean() <= level + 3 * np.sqrt(level * (1 - level) / 400)
        assert (p <= level).mean() >= level - 0.06 - 3 * np.sqrt(level * (1 - level) / 400)


def test_flagged_windows_keep_the_false_discovery_rate(rng):
    shares = []
    for seed in range(60):
        normal = rng.normal(size=(600, 2))
        asked = np.vstack([rng.normal(size=(90, 2)), rng.normal(size=(10, 2)) + 8])
        flagged = outlier_scores(normal, asked, random_state=seed).flagged(false_discovery_rate=0.2)
        assert flagged[90:].all()
        shares.append(flagged[:90].sum() / max(1, flagged.sum()))
    assert 0.05 < np.mean(shares) < 0.22


def test_nothing_is_flagged_where_nothing_stands_out(rng):
    found = outlier_scores(rng.normal(size=(200, 2)), np.zeros((5, 2)))
    assert not found.flagged().any()


def test_whole_groups_are_held_out(rng):
    group = np.repeat([0, 1], 50)
    normal = rng.normal(size=(100, 2)) + 100 * group[:, None]
    found = outlier_scores(normal, normal[:1], group=group, held_out=0.5, k=3)
    # One group calibrates, the other, far away, is what it is compared with.
    assert len(found.calibration) == 50
    assert found.calibration.min() > 50


def test_leave_one_class_out_is_the_auroc_of_a_loop(rng):
    y, y_test = rng.integers(0, 3, 90), rng.integers(0, 3, 60)
    Z, Z_test = y[:, None] + rng.normal(size=(90, 2)), y_test[:, None] + rng.normal(size=(60, 2))
    found = leave_one_class_out(Z, y, Z_test, y_test, k=5)
    for c in range(3):
        scores = np.sort(cdist(Z_test, Z[y != c]), axis=1)[:, 4]
        assert found[str(c)] == pytest.approx(roc_auc_score(y_test == c, scores))
    assert found["mean"] == pytest.approx(np.mean([found[str(c)] for c in range(3)]))


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"method": "forest"}, ConfigError, "knn"),
        ({"held_out": 1.0}, ConfigError, "held_out"),
        ({"k": 80}, DataError, "k = 80"),
        ({"group": np.zeros(100)}, DataError, "one group"),
        ({"Z": np.zeros((1, 3))}, DataError, "columns"),
        ({"Z_normal": np.full((9, 2), np.inf)}, DataError, "inf"),
    ],
)
def test_unusable_input_is_refused_with_its_reason(rng, change, error, says):
    given = {"Z_normal": rng.normal(size=(100, 2)), "Z": np.zeros((1, 2))} | change
    with pytest.raises(error, match=says):
        outlier_scores(given.pop("Z_normal"), given.pop("Z"), **given)


def test_single_class_has_nothing_to_leave_out(rng):
    Z = rng.normal(size=(20, 2))
    with pytest.raises(DataError, match="2 or more"):
        leave_one_class_out(Z, np.zeros(20), Z, np.zeros(20))
