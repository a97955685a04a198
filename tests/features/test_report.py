"""feature_report: what can be read from an embedding, measured on windows left out."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import StandardScaler

from expclr.errors import ConfigError, DataError
from expclr.features.report import feature_report, readability
from expclr.windows import Windows

FIRST_CHANNEL = SimpleNamespace(transform=lambda X: np.asarray(X)[:, 0])


def windows_and_features(n=400, seed=0):
    """X (n, 1, 6), whose values are the embedding; F: read, half read, noise, constant."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 1, 6)).astype(np.float32)
    known, noise = X[:, 0] @ [1.0, -2, 0, 3, 0, 1], rng.standard_normal(n)
    F = np.column_stack([known, known / known.std() + noise, noise, np.full(n, 0.1)])
    return X, F, np.arange(n) % 7


def test_features_in_the_embedding_are_read_and_others_are_not():
    X, F, group = windows_and_features()
    report = feature_report(FIRST_CHANNEL, X, F, group=group)
    assert report.r2[0] > 0.999
    assert report.r2[1] == pytest.approx(0.5, abs=0.1)
    assert report.r2[2] < 0.02
    assert report.agreement[0] > 0.4
    assert report.agreement[2] == pytest.approx(0, abs=0.05)
    assert np.isnan(report.r2[3])
    assert np.isnan(report.agreement[3])
    rows = report.rows()
    assert [row["feature"] for row in rows] == ["f0", "f1", "f2", "f3"]
    assert rows[3] == {"feature": "f3", "r2": None, "agreement": None, "present": 1.0}


def test_r2_is_that_of_a_ridge_regression_feature_by_feature_and_fold_by_fold():
    X, F, group = windows_and_features(n=90)
    F = F[:, :3]
    F[np.random.default_rng(3).random(F.shape) < 0.2] = np.nan
    report = feature_report(FIRST_CHANNEL, X, F, group=group, folds=3)
    for j in range(3):
        error = spread = 0.0
        for train, test in GroupKFold(3).split(X, groups=group):
            train, test = (part[~np.isnan(F[part, j])] for part in (train, test))
            scaler = StandardScaler().fit(X[train, 0])
            ridge = RidgeCV(10.0 ** np.arange(-2, 5)).fit(
                scaler.transform(X[train, 0]), F[train, j]
            )
            guess = ridge.predict(scaler.transform(X[test, 0]))
            error += sum((F[test, j] - guess) ** 2)
            spread += sum((F[test, j] - F[train, j].mean()) ** 2)
        assert report.r2[j] == pytest.approx(1 - error / spread, abs=1e-6)


def test_agreement_is_the_nearest_difference_over_that_of_any_two():
    X, F, _ = windows_and_features(n=900)
    F = F[:, :3]
    F[np.random.default_rng(3).random(F.shape) < 0.2] = np.nan
    Z = X[:, 0].astype(np.float64)
    report = readability(Z[:500], F[:500], Z[500:], F[500:], k=3)
    near, far = [[], [], []], [[], [], []]
    for i in range(500, 900):
        order = sorted(range(500), key=lambda other: ((Z[i] - Z[other]) ** 2).sum())
        for rank, other in enumerate(order):
            for j in range(3):
                difference = abs(F[i, j] - F[other, j])
                if difference == difference:
                    far[j].append(difference)
                    if rank < 3:
                        near[j].append(difference)
    wanted = [1 - np.mean(a) / np.mean(b) for a, b in zip(near, far, strict=True)]
    np.testing.assert_allclose(report.agreement, wanted, atol=0.03)


def test_missing_values_of_one_feature_do_not_touch_another():
    X, F, group = windows_and_features()
    whole = feature_report(FIRST_CHANNEL, X, F, group=group)
    G = F.copy()
    G[:300, 1] = np.nan
    part = feature_report(FIRST_CHANNEL, X, G, group=group)
    np.testing.assert_allclose(part.r2[[0, 2]], whole.r2[[0, 2]], rtol=1e-9)
    np.testing.assert_allclose(part.agreement[[0, 2]], whole.agreement[[0, 2]], rtol=1e-9)
    assert part.present.tolist() == [1, 0.25, 1, 1]


def test_a_feature_that_is_hardly_ever_there_is_not_judged():
    X, F, group = windows_and_features()
    F[3:, 1] = np.nan
    F[:, 2] = np.nan
    report = feature_report(FIRST_CHANNEL, X, F, group=group)
    assert np.isnan(report.r2[1])
    assert report.present[2] == 0
    assert np.isnan(report.agreement[2])


def test_what_only_tells_groups_apart_is_not_read_on_other_groups():
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(8), 40)
    code = rng.standard_normal((8, 30))[group]
    X = (code + 0.01 * rng.standard_normal(code.shape))[:, None].astype(np.float32)
    F = rng.standard_normal(8)[group][:, None]
    assert feature_report(FIRST_CHANNEL, X, F).r2[0] > 0.99
    assert feature_report(FIRST_CHANNEL, X, F, group=group).r2[0] < 0.3


def test_windows_bring_features_names_and_groups():
    X, F, group = windows_and_features()
    windows = Windows(X, F=F, group=group, feature_names=("a", "b", "c", "d"))
    est = SimpleNamespace(transform=lambda windows: windows.X[:, 0])
    report = feature_report(est, windows)
    assert report.names == ("a", "b", "c", "d")
    wanted = feature_report(FIRST_CHANNEL, X, F, group=group)
    np.testing.assert_array_equal(report.r2, wanted.r2)


def test_a_frame_brings_its_names_and_words_are_read_as_coordinates():
    X, F, group = windows_and_features()
    frame = pd.DataFrame({"level": F[:, 0], "state": np.where(F[:, 0] > 0, "high", "low")})
    report = feature_report(FIRST_CHANNEL, X, frame, group=group)
    assert report.names == ("level", "state")
    assert report.r2[0] > 0.999
    assert 0.4 < report.r2[1] < 0.9
    numbers = feature_report(FIRST_CHANNEL, X, frame[["level"]], group=group)
    np.testing.assert_allclose(numbers.r2, report.r2[:1], rtol=1e-5)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"F": None}, DataError, "no features"),
        ({"F": np.zeros((3, 2))}, DataError, "F has shape"),
        ({"group": np.zeros(400)}, DataError, "at least 2 groups"),
        ({"k": 0}, ConfigError, "k is 0"),
        ({"est": SimpleNamespace(transform=lambda X: X[:5, 0])}, DataError, "the embedding has"),
        ({"est": SimpleNamespace(transform=lambda X: X[:, 0] * np.nan)}, DataError, "holds NaN"),
    ],
)
def test_unusable_input_is_refused(change, error, message):
    X, F, group = windows_and_features()
    given = {"est": FIRST_CHANNEL, "X": X, "F": F, "group": group} | change
    with pytest.raises(error, match=message):
        feature_report(given.pop("est"), given.pop("X"), given.pop("F"), **given)


def test_train_and_test_must_have_the_same_columns():
    with pytest.raises(DataError, match="the same columns"):
        readability(np.ones((9, 2)), np.ones((9, 1)), np.ones((4, 3)), np.ones((4, 1)))
