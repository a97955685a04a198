"""Error bars over seeds and over subjects."""

import numpy as np
import pytest
from scipy.stats import sem

from expclr.errors import ConfigError, DataError
from expclr.evaluation import knn_probe
from expclr.evaluation.scores import score
from expclr.evaluation.summary import Mean, bootstrap_intervals, summarise


def test_error_is_the_standard_error_not_the_deviation(rng):
    values = rng.normal(size=5)
    assert Mean.of(values).error == pytest.approx(sem(values))
    assert Mean.of(values).mean == pytest.approx(values.mean())


def test_one_run_has_no_error_bar():
    assert np.isnan(Mean.of([0.5]).error)
    assert str(Mean.of([0.5])) == "0.5000"


def test_summary_keeps_what_all_runs_have():
    found = summarise([{"a": 1.0, "b": 2.0}, {"a": 3.0}])
    assert list(found) == ["a"]
    assert found["a"].mean == 2
    with pytest.raises(DataError, match="no run"):
        summarise([])


def test_bootstrap_is_that_of_a_loop_over_groups(rng):
    truth, predicted = rng.integers(0, 3, 300), rng.integers(0, 3, 300)
    predicted[:150] = truth[:150]
    group = np.repeat(np.arange(10), 30)
    found = bootstrap_intervals(score(truth, predicted), group, repeats=4000)
    accuracies = []
    for _ in range(2000):
        rows = np.concatenate([np.flatnonzero(group == g) for g in rng.integers(0, 10, 10)])
        accuracies.append((truth[rows] == predicted[rows]).mean())
    np.testing.assert_allclose(
        found["accuracy"], np.quantile(accuracies, [0.025, 0.975]), atol=0.02
    )
    assert set(found) == {"accuracy", "macro_f1", "kappa"}


def test_kappa_of_a_single_class_has_no_interval():
    y = np.zeros(20, int)
    found = knn_probe(np.arange(20.0)[:, None], y, np.arange(20.0)[:, None], y)
    intervals = bootstrap_intervals(found, np.repeat(np.arange(4), 5))
    assert intervals["accuracy"] == (1, 1)
    assert np.isnan(intervals["kappa"]).all()


def test_groups_that_differ_widen_the_interval(rng):
    truth = rng.integers(0, 2, 400)
    group = np.repeat(np.arange(8), 50)
    alike = np.where(rng.random(400) < 0.75, truth, 1 - truth)
    apart = np.where(group < 6, truth, 1 - truth)

    def width(predicted):
        low, high = bootstrap_intervals(score(truth, predicted), group)["accuracy"]
        return high - low

    assert width(apart) > 3 * width(alike)


def test_groups_of_unlabelled_windows_are_left_out(rng):
    y = np.tile([0, 1, -1], 40)
    Z = y[:, None] + rng.normal(size=(120, 1))
    found = knn_probe(Z, y, Z + 0.1, y)
    group = np.arange(120) // 12
    kept = knn_probe(Z[y >= 0], y[y >= 0], Z[y >= 0] + 0.1, y[y >= 0])
    assert bootstrap_intervals(found, group) == bootstrap_intervals(kept, group[y >= 0])


def test_unusable_input_is_refused_with_its_reason():
    found = score(np.array([0, 1]), np.array([0, 1]))
    with pytest.raises(DataError, match="one group"):
        bootstrap_intervals(found, [1, 1])
    with pytest.raises(DataError, match="shape"):
        bootstrap_intervals(found, [1, 2, 3])
    with pytest.raises(ConfigError, match="confidence"):
        bootstrap_intervals(found, [1, 2], confidence=95)
    with pytest.raises(DataError, match="shape"):
        Mean.of([])
