"""Probes reach the minimum, agree with scikit-learn, and report what they could not do."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, cohen_kappa_score, confusion_matrix, f1_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from expclr.errors import ConfigError, DataError
from expclr.evaluation import PROBES, fit_linear_head, knn_probe, linear_probe
from expclr.evaluation.probes import LinearHead


def overlapping(n: int, classes: int, seed: int, e: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Correlated columns of very different scale, as embeddings have them."""
    rng = np.random.default_rng(seed)
    mixing = np.random.default_rng(1).normal(size=(e, e)) * np.logspace(0, -2, e)
    y = rng.integers(0, classes, n)
    centres = np.random.default_rng(2).normal(size=(classes, e))
    return (rng.normal(size=(n, e)) + centres[y]) @ mixing.T + 5, y


@pytest.mark.parametrize("classes", [2, 3, 7])
@pytest.mark.parametrize("scaling", ["standard", "raw"])
def test_linear_head_is_the_converged_logistic_regression(classes, scaling):
    Z, y = overlapping(400, classes, seed=0)
    head = fit_linear_head(Z, y, scaling=scaling)
    scaler = StandardScaler(with_std=scaling == "standard").fit(Z)
    oracle = LogisticRegression(solver="newton-cholesky", tol=1e-10, max_iter=1000)
    oracle.fit(scaler.transform(Z), y)
    expected = oracle.predict_proba(scaler.transform(Z))
    np.testing.assert_allclose(head.predict_proba(Z), expected, atol=2e-4)
    assert head.converged
    assert head.W.shape == (classes, 12)
    assert head.b.shape == (classes,)


def test_linear_head_minimises_the_penalised_loss_of_a_loop():
    Z, y = overlapping(60, 3, seed=3)
    mean, scale = Z.mean(axis=0), Z.std(axis=0)
    head = fit_linear_head(Z, y, C=0.5)

    def loss(W, b):
        total = (W * scale).ravel() @ (W * scale).ravel() / 2
        for z, label in zip(Z, y, strict=True):
            logits = W @ z + b
            total += 0.5 * (np.log(np.exp(logits).sum()) - logits[label])
        return total

    best = loss(head.W, head.b)
    rng = np.random.default_rng(0)
    for _ in range(20):
        W = head.W + 1e-2 * rng.normal(size=head.W.shape) / scale
        b = head.b - (W - head.W) @ mean
        assert loss(W, b) > best


def test_predictions_do_not_depend_on_the_scale_of_standardised_columns():
    Z, y = overlapping(200, 3, seed=0)
    head = fit_linear_head(Z, y)
    other = fit_linear_head(Z * np.logspace(-4, 4, 12) + 3, y)
    np.testing.assert_allclose(
        head.predict_proba(Z), other.predict_proba(Z * np.logspace(-4, 4, 12) + 3), atol=1e-4
    )


def test_head_made_of_its_arrays_alone_predicts_the_same():
    Z, y = overlapping(100, 3, seed=0)
    head = fit_linear_head(Z, y)
    again = LinearHead(head.W, head.b)
    np.testing.assert_array_equal(again.predict(Z), head.predict(Z))
    np.testing.assert_allclose(again.predict_proba(Z).sum(axis=1), 1)


def test_constant_and_nearly_constant_columns_do_no_harm():
    Z, y = overlapping(100, 2, seed=0)
    wide = np.hstack([Z, np.full((100, 1), 0.1), np.full((100, 1), 1e9)])
    wide[::2, -2] += 1e-17
    np.testing.assert_allclose(
        fit_linear_head(wide, y).predict_proba(wide),
        fit_linear_head(Z, y).predict_proba(Z),
        atol=1e-4,
    )


def test_more_columns_than_windows_converges_even_without_preconditioner(monkeypatch):
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(30, 300)), np.arange(30) % 3
    head = fit_linear_head(Z, y)
    monkeypatch.setattr("expclr.evaluation.logistic.WIDEST", 10)
    plain = fit_linear_head(Z, y)
    assert head.converged
    assert plain.converged
    np.testing.assert_allclose(head.predict_proba(Z), plain.predict_proba(Z), atol=1e-4)


@pytest.mark.parametrize("name", list(PROBES))
def test_every_probe_gives_the_numbers_of_scikit_learn(name):
    Z, y = overlapping(300, 4, seed=0)
    Z_test, y_test = overlapping(200, 4, seed=5)
    found = PROBES[name](Z, y, Z_test, y_test)
    assert all(isinstance(value, float) for value in found.values())
    predicted = found.predicted
    assert found["accuracy"] == pytest.approx(accuracy_score(y_test, predicted))
    assert found["macro_f1"] == pytest.approx(f1_score(y_test, predicted, average="macro"))
    assert found["kappa"] == pytest.approx(cohen_kappa_score(y_test, predicted))
    np.testing.assert_array_equal(found.confusion, confusion_matrix(y_test, predicted))
    assert (found["n_train"], found["n_test"]) == (300, 200)


@pytest.mark.parametrize("scaling", ["standard", "raw"])
def test_knn_probe_is_the_brute_force_neighbour_vote(scaling):
    Z, y = overlapping(300, 4, seed=0)
    Z_test, y_test = overlapping(200, 4, seed=5)
    scaler = StandardScaler(with_std=scaling == "standard").fit(Z)
    oracle = KNeighborsClassifier(3, algorithm="kd_tree").fit(scaler.transform(Z), y)
    found = knn_probe(Z, y, Z_test, y_test, k=3, scaling=scaling)
    np.testing.assert_array_equal(found.predicted, oracle.predict(scaler.transform(Z_test)))


def test_protocols_are_named():
    Z, y = overlapping(50, 2, seed=0)
    named = {name: PROBES[name](Z, y, Z, y).protocol for name in PROBES}
    assert named["linear"] == "linear, standardised"
    assert named["linear_raw"] == "linear, raw"
    assert named["knn1_raw"] == "1-NN, raw"
    assert len(set(named.values())) == len(named)


def test_unlabelled_windows_are_left_out():
    Z, y = overlapping(100, 2, seed=0)
    partly = y.astype(float)
    partly[::3], partly[1::3] = -1, np.nan
    found = linear_probe(Z, partly, Z, partly)
    expected = linear_probe(Z[2::3], y[2::3], Z[2::3], y[2::3])
    assert dict(found) == dict(expected)


def test_linear_head_is_fitted_on_labelled_windows_only():
    Z, y = overlapping(100, 2, seed=0)
    partly = np.where(np.arange(100) % 3, -1, y)
    head, expected = fit_linear_head(Z, partly), fit_linear_head(Z[::3], y[::3])
    np.testing.assert_array_equal(head.classes, [0, 1])
    np.testing.assert_array_equal(head.W, expected.W)


def test_classes_that_train_lacks_are_counted_as_errors_and_named(caplog):
    Z, y = overlapping(200, 3, seed=0)
    found = linear_probe(Z[y < 2], y[y < 2], Z, y)
    assert found["unseen_classes"] == 1
    assert found.unseen == [2]
    assert found.recall[2] == 0
    assert "2" in caplog.text
    assert found["accuracy"] == pytest.approx((found.predicted == y).mean())


def test_record_is_json_even_where_kappa_is_undefined():
    Z, y = overlapping(100, 2, seed=0)
    only = Z[y == 0][:1]
    found = knn_probe(Z, y, only, [0])
    assert np.isnan(found["kappa"])
    record = json.loads(json.dumps(found.record(), allow_nan=False))
    assert record["kappa"] is None
    assert record["recall"] == {"0": 1.0}


def test_windows_pass_through_the_same_probes_flattened():
    Z, y = overlapping(60, 2, seed=0)
    windows = Z.reshape(60, 3, 4)
    assert dict(linear_probe(windows, y, windows, y)) == dict(linear_probe(Z, y, Z, y))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"y_train": np.zeros(20, int)}, "one class only"),
        ({"y_train": np.full(20, -1)}, "no label"),
        ({"y_test": np.full(20, -1)}, "no label"),
        ({"Z_test": np.zeros((20, 3))}, "columns"),
        ({"Z_train": np.full((20, 2), np.nan)}, "NaN"),
        ({"y_train": np.zeros(7, int)}, "shape"),
        ({"Z_train": np.zeros(20)}, "shape"),
    ],
)
def test_unusable_input_is_refused_with_its_reason(change, says):
    rng = np.random.default_rng(0)
    given = {"Z_train": rng.normal(size=(20, 2)), "y_train": np.arange(20) % 2}
    given |= {"Z_test": rng.normal(size=(20, 2)), "y_test": np.arange(20) % 2}
    with pytest.raises(DataError, match=says):
        linear_probe(**given | change)


def test_settings_out_of_range_are_refused():
    Z, y = overlapping(20, 2, seed=0)
    with pytest.raises(DataError, match="1 to 20"):
        knn_probe(Z, y, Z, y, k=21)
    with pytest.raises(ConfigError, match="standard"):
        linear_probe(Z, y, Z, y, scaling="minmax")
