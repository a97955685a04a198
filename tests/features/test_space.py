"""FeatureSpace: what a unit of distance is, for every kind of column."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import nan_euclidean_distances
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from expclr.errors import ConfigError, DataError
from expclr.features.space import FeatureSpace


def normal(n=200, d=4, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d)) * [1, 10, 0.1, 3][:d] + 5


def holed(F, share=0.2, seed=1):
    F = F.copy()
    F[np.random.default_rng(seed).random(F.shape) < share] = np.nan
    return F


def mixed(n=60, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "load": rng.normal(3, 2, n),
            "hour": rng.uniform(0, 24, n),
            "gear": rng.choice(["low", "mid", "high"], n),
            "on": rng.random(n) < 0.5,
            "wear": pd.Categorical(
                rng.choice(["new", "used", "worn"], n), ["new", "used", "worn"], ordered=True
            ),
            "kind": pd.Categorical(rng.choice([10, 20, 30], n)),
        }
    )
    frame.loc[rng.random(n) < 0.2, "load"] = np.nan
    frame.loc[rng.random(n) < 0.2, "gear"] = None
    return frame


def distance(Z, i, j):
    return float(np.linalg.norm(Z[i].astype(float) - Z[j].astype(float)))


def test_default_is_mean_and_deviation_of_the_values_that_are_there():
    F = holed(normal())
    Z = FeatureSpace().fit_transform(F)
    for j in range(F.shape[1]):
        values = [v for v in F[:, j] if v == v]
        mean = sum(values) / len(values)
        std = (sum((v - mean) ** 2 for v in values) / len(values)) ** 0.5
        np.testing.assert_allclose(Z[:, j], (F[:, j] - mean) / std, rtol=1e-6, atol=1e-6)
    assert Z.dtype == np.float32
    assert (np.isnan(Z) == np.isnan(F)).all()


def test_no_scaling_leaves_the_values():
    F = holed(normal())
    np.testing.assert_array_equal(FeatureSpace("none").fit_transform(F), F.astype(np.float32))


def test_robust_scaling_ignores_outliers_and_survives_a_column_mostly_zero():
    F = np.random.default_rng(0).standard_normal((4000, 2))
    F[:200, 0] = 1e6
    F[:, 1] = 0
    F[:100, 1] = 500
    Z = FeatureSpace("robust").fit_transform(F)
    assert np.std(Z[200:, 0]) == pytest.approx(1, abs=0.1)
    np.testing.assert_allclose(np.ptp(Z[:, 1]), 500 / np.std(F[:, 1]), rtol=1e-6)


def test_quantile_scaling_keeps_ranks_bounds_outliers_and_has_unit_variance():
    F = holed(np.random.default_rng(0).standard_normal((300, 1)))
    F[0] = 1e9
    space = FeatureSpace("quantile").fit(F)
    Z = space.transform(F)[:, 0]
    seen = ~np.isnan(F[:, 0])
    assert (np.diff(Z[seen][np.argsort(F[seen, 0])]) > 0).all()
    assert Z[seen].std() == pytest.approx(1, abs=1e-5)
    assert np.nanmax(Z) < 2
    np.testing.assert_array_equal(space.transform([[1e30]]), np.nanmax(Z))


def test_dtypes_decide_the_kind():
    frame = mixed()
    frame["count"] = pd.array([None, *range(1, len(frame))], dtype="Int64")
    frame["numbers"] = pd.Series([None, *np.linspace(0, 1, len(frame) - 1)], dtype=object)
    kinds = {c.name: c.kind for c in FeatureSpace().fit(frame).columns_}
    assert kinds == {
        "load": "numeric",
        "hour": "numeric",
        "gear": "categorical",
        "on": "categorical",
        "wear": "ordinal",
        "kind": "categorical",
        "count": "numeric",
        "numbers": "numeric",
    }


def test_a_mismatch_counts_like_one_standard_deviation():
    frame = pd.DataFrame({"gear": ["a", "b", "c", "a"], "on": [True, True, True, False]})
    Z = FeatureSpace().fit_transform(frame)
    assert distance(Z, 0, 1) == pytest.approx(1)
    assert distance(Z, 1, 2) == pytest.approx(1)
    assert distance(Z, 0, 3) == pytest.approx(1)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT, "", "never seen"])
def test_a_missing_or_unseen_category_is_missing(missing):
    space = FeatureSpace().fit(pd.DataFrame({"gear": ["a", "b", "c"], "x": [0.0, 1.0, 2.0]}))
    Z = space.transform(pd.DataFrame({"gear": [missing, "a"], "x": [0.0, 1.0]}, dtype=object))
    names = space.get_feature_names_out()
    assert np.isnan(Z[0, np.char.startswith(names.astype(str), "gear")]).all()
    assert not np.isnan(Z[1]).any()
    assert not np.isnan(Z[0, names == "x"]).any()


def test_an_empty_word_is_no_category():
    space = FeatureSpace().fit(pd.DataFrame({"gear": ["a", "", "b"]}))
    assert space.columns_[0].vocabulary == ("a", "b")


def test_one_category_has_one_spelling_whatever_a_missing_value_made_of_its_type():
    space = FeatureSpace(categorical=["state"]).fit(pd.DataFrame({"state": [1, 2, 3]}))
    whole = space.transform(pd.DataFrame({"state": [1, 3]}))
    for other in ([1.0, 3.0], ["1", "3"], pd.array([1, 3], "Int64"), [np.float32(1), 3]):
        np.testing.assert_array_equal(space.transform(pd.DataFrame({"state": other})), whole)
    flags = FeatureSpace().fit(pd.DataFrame({"on": [True, False]}))
    objects = pd.DataFrame({"on": [np.True_, False, None]}, dtype=object)
    np.testing.assert_array_equal(flags.transform(objects), [[1], [0], [np.nan]])


def test_ordinal_columns_stand_at_their_standardised_position():
    frame = pd.DataFrame({"wear": ["used", "new", "worn", "new"], "level": [30, 10, 20, 10]})
    space = FeatureSpace(ordinal={"wear": ["new", "used", "worn"], "level": [10, 20, 30]})
    Z = space.fit_transform(frame)
    np.testing.assert_allclose(Z[:, 0], StandardScaler().fit_transform([[1], [0], [2], [0]])[:, 0])
    np.testing.assert_allclose(Z[:, 1], StandardScaler().fit_transform([[2], [0], [1], [0]])[:, 0])
    listed = FeatureSpace(ordinal=["level"]).fit(frame[["level"]])
    np.testing.assert_allclose(listed.transform(frame[["level"]])[:, 0], Z[:, 1])


def test_ordinal_words_need_their_order():
    frame = pd.DataFrame({"wear": ["new", "used", "broken"]})
    with pytest.raises(ConfigError, match="give their order"):
        FeatureSpace(ordinal=["wear"]).fit(frame)
    with pytest.raises(DataError, match=r"'broken'.*not in its order"):
        FeatureSpace(ordinal={"wear": ["new", "used"]}).fit(frame)


def test_cyclic_columns_close_the_circle_at_radius_one():
    F = np.array([[23.0], [1.0], [3.0], [15.0], [np.nan]])
    Z = FeatureSpace(cyclic={0: 24}).fit_transform(F)
    assert distance(Z, 0, 1) == pytest.approx(distance(Z, 1, 2))
    assert distance(Z, 2, 3) == pytest.approx(2)
    assert np.isnan(Z[4]).all()


def test_weights_multiply_the_squared_distance():
    F = normal(d=3)
    plain = FeatureSpace().fit(F).transform(F)
    space = FeatureSpace(groups={"both": ["x0", 1]}, weights={"both": 3, "x1": 2})
    Z = space.fit(F).transform(F)
    wanted = ((plain[0] - plain[1]) ** 2 * [3, 6, 1]).sum()
    assert distance(Z, 0, 1) ** 2 == pytest.approx(wanted, rel=1e-5)


def test_weight_zero_leaves_the_column_out():
    F = normal(d=3)
    space = FeatureSpace(weights={"x1": 0}).fit(F)
    assert space.get_feature_names_out().tolist() == ["x0", "x2"]
    np.testing.assert_array_equal(
        space.transform(F), FeatureSpace().fit(F[:, [0, 2]]).transform(F[:, [0, 2]])
    )


def test_array_columns_go_by_index_or_by_the_names_given():
    F = normal(d=3)
    a = FeatureSpace(weights={1: 4}).fit(F)
    b = FeatureSpace(weights={"peak": 4}).fit(F, feature_names=["rms", "peak", "mean"])
    np.testing.assert_array_equal(a.transform(F), b.transform(F))
    assert b.get_feature_names_out().tolist() == ["rms", "peak", "mean"]


def near_copies(n=1500, copies=60, noise=0.02):
    rng = np.random.default_rng(0)
    shared, rare = rng.standard_normal((2, n))
    return np.column_stack([shared[:, None] + noise * rng.standard_normal((n, copies)), rare])


def test_decorrelation_keeps_near_copies_from_outvoting_a_rare_measurement():
    F = near_copies()
    groups = {"copies": list(range(60)), "rare": [60]}
    share = {
        decorrelate: FeatureSpace(groups=groups, decorrelate=decorrelate)
        .fit(F)
        .distance_shares(F)["rare"]
        for decorrelate in (False, True, 0.1)
    }
    assert share[False] < 0.02
    assert share[True] > 0.3
    assert share[0.1] > 0.3


@pytest.mark.parametrize("decorrelate", [0.2, "ledoit_wolf", "oas"])
def test_decorrelated_distances_are_those_of_shrunk_pca_whitening(decorrelate):
    from sklearn.covariance import OAS, LedoitWolf, shrunk_covariance

    F = np.random.default_rng(0).standard_normal((300, 5)) @ np.random.default_rng(1).normal(
        size=(5, 5)
    )
    S = (F - F.mean(0)) / F.std(0)
    covariance = {
        0.2: shrunk_covariance(S.T @ S / len(S), 0.2),
        "ledoit_wolf": LedoitWolf().fit(S).covariance_,
        "oas": OAS().fit(S).covariance_,
    }[decorrelate]
    values, vectors = np.linalg.eigh(covariance)
    pca = S @ vectors / np.sqrt(values)
    Z = FeatureSpace(decorrelate=decorrelate).fit_transform(F)
    for i, j in [(0, 1), (5, 9), (200, 299)]:
        assert distance(Z, i, j) == pytest.approx(np.linalg.norm(pca[i] - pca[j]), rel=1e-5)


def test_a_missing_value_enters_whitening_by_its_expectation_and_its_coordinate_stays_missing():
    F = near_copies(n=300, copies=4)
    space = FeatureSpace(decorrelate=0.3).fit(F)
    G = F[:4].copy()
    G[1, [0, 2]] = np.nan
    G[2, 4] = np.nan
    G[3] = np.nan
    Z = space.transform(G)
    assert (np.isnan(Z) == np.isnan(G)).all()

    S = (F - F.mean(0)) / F.std(0)
    C = 0.7 * S.T @ S / len(S) + 0.3 * np.eye(5)
    values, vectors = np.linalg.eigh(C)
    root = vectors / np.sqrt(values) @ vectors.T
    for i in (1, 2):
        x = (G[i] - F.mean(0)) / F.std(0)
        m = np.isnan(x)
        x[m] = C[np.ix_(m, ~m)] @ np.linalg.inv(C[np.ix_(~m, ~m)]) @ x[~m]
        np.testing.assert_allclose(Z[i][~m], (x @ root)[~m], rtol=1e-4, atol=1e-5)


def test_decorrelation_is_learnt_from_the_pairs_of_values_that_are_there():
    F = near_copies(n=4000, copies=4)
    full = FeatureSpace(decorrelate=0.2).fit(F).decorrelation_.whitening_
    part = FeatureSpace(decorrelate=0.2).fit(holed(F, 0.4)).decorrelation_.whitening_
    np.testing.assert_allclose(part, full, atol=0.1)


def test_weights_count_after_decorrelation():
    F = near_copies(n=300, copies=4)
    plain = FeatureSpace(decorrelate=True).fit_transform(F)
    weighed = FeatureSpace(decorrelate=True, weights={"x4": 4}).fit_transform(F)
    np.testing.assert_allclose(weighed, plain * [1, 1, 1, 1, 2], rtol=1e-6)


def test_constant_columns_are_left_out_and_named():
    F = normal(d=4)
    F[:, 1] = 0.1
    F[:, 3] = 1e8 + 1e-9 * np.arange(len(F))
    with pytest.warns(UserWarning, match="constant: x1, x3"):
        space = FeatureSpace().fit(F)
    assert space.get_feature_names_out().tolist() == ["x0", "x2"]
    assert space.transform(F).shape == (200, 2)


def test_nothing_but_constant_columns_is_refused():
    with pytest.raises(DataError, match="no column is left: 3 of 3 are constant"):
        FeatureSpace().fit(np.ones((5, 3)))


def test_a_column_without_values_is_refused_by_name():
    frame = pd.DataFrame({"a": [1.0, 2.0], "empty": [np.nan, np.nan], "words": [None, None]})
    with pytest.raises(DataError, match="column empty, words"):
        FeatureSpace().fit(frame)


def test_a_row_without_values_is_allowed_and_counted():
    F = normal()
    F[[3, 7]] = np.nan
    F[10:20, 1] = np.nan
    space = FeatureSpace(decorrelate=True).fit(F)
    assert space.n_empty_rows_ == 2
    assert np.isnan(space.transform(F)[[3, 7]]).all()


def test_columns_missing_too_often_are_left_out_and_named():
    F = normal()
    F[:150, 2] = np.nan
    with pytest.warns(UserWarning, match="more than 50% of rows: x2"):
        space = FeatureSpace(max_missing=0.5).fit(F)
    assert space.get_feature_names_out().tolist() == ["x0", "x1", "x3"]


def slow_pairs(Z):
    """Squared pair distances, and the part of each coordinate, straight from the definition."""
    n, d = Z.shape
    squares, parts = [], np.zeros(d)
    for i in range(n):
        for j in range(i):
            shared = [k for k in range(d) if Z[i, k] == Z[i, k] and Z[j, k] == Z[j, k]]
            if not shared:
                continue
            terms = {k: (float(Z[i, k]) - float(Z[j, k])) ** 2 * d / len(shared) for k in shared}
            squares.append(sum(terms.values()))
            for k, term in terms.items():
                parts[k] += term
    return np.array(squares), parts / len(squares)


@pytest.mark.parametrize("share", [0, 0.3, 0.8])
def test_distance_shares_are_those_of_the_mean_squared_masked_distance(share):
    F = holed(normal(n=40), share)
    space = FeatureSpace(groups={"pair": [0, 2]}, weights={3: 5}).fit(F)
    squares, parts = slow_pairs(space.transform(F))
    shares = space.distance_shares(F)
    total = squares.mean()
    assert shares["pair"] == pytest.approx((parts[0] + parts[2]) / total, rel=1e-5)
    assert shares["x3"] == pytest.approx(parts[3] / total, rel=1e-5)
    assert sum(shares.values()) == pytest.approx(1)
    assert list(shares) == ["pair", "x1", "x3"]


@pytest.mark.parametrize("share", [0, 0.3, 0.8])
@pytest.mark.parametrize("n", [40, 700])
def test_reference_is_the_maximum_or_a_quantile_of_all_pair_distances(share, n):
    F = holed(normal(n=n), share)
    space = FeatureSpace().fit(F)
    D = nan_euclidean_distances(space.transform(F).astype(float))
    D = D[np.triu_indices(n, 1)]
    D = D[~np.isnan(D)]
    assert space.reference(F) == pytest.approx(D.max(), rel=1e-6)
    assert space.reference(F, 0.9) == pytest.approx(np.quantile(D, 0.9), rel=1e-5)


def test_a_quantile_reference_is_not_moved_by_one_outlier():
    F = normal(n=300)
    space = FeatureSpace().fit(F)
    G = F.copy()
    G[0] = 1e6
    assert space.reference(G) > 1000 * space.reference(F)
    assert space.reference(G, 0.95) < 1.1 * space.reference(F, 0.95)


def test_reference_of_drawn_rows_is_close_and_the_same_again():
    F = normal(n=900)
    space = FeatureSpace().fit(F)
    drawn = space.reference(F, 0.9, max_rows=300)
    assert drawn == space.reference(F, 0.9, max_rows=300)
    assert drawn == pytest.approx(space.reference(F, 0.9), rel=0.05)


def test_rows_that_do_not_differ_have_no_reference():
    space = FeatureSpace().fit(normal())
    with pytest.raises(DataError, match="no two rows of F differ"):
        space.reference(np.ones((5, 4)))
    with pytest.raises(ConfigError, match="quantile is 0"):
        space.reference(normal(), 0)


@pytest.mark.parametrize("setting", ["none", "standard", "robust", "quantile", "decorrelate"])
def test_scikit_learns_estimator_checks_pass(setting):
    space = FeatureSpace(decorrelate=True) if setting == "decorrelate" else FeatureSpace(setting)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "left out of the feature space")
        check_estimator(space, on_skip=None)


def test_it_works_in_a_pipeline_and_clones():
    frame = mixed()
    space = FeatureSpace(cyclic={"hour": 24}, weights={"gear": 2})
    pipe = make_pipeline(clone(space), StandardScaler()).set_output(transform="pandas")
    out = pipe.fit_transform(frame)
    assert list(out.columns) == list(space.fit(frame).get_feature_names_out())


def test_columns_at_transform_must_be_those_of_fit():
    frame = mixed()
    space = FeatureSpace().fit(frame)
    with pytest.raises(ValueError, match="same order"):
        space.transform(frame[frame.columns[::-1]])
    with pytest.raises(ValueError, match="missing"):
        space.transform(frame.drop(columns="gear"))
    with pytest.raises(DataError, match="'load' was numbers"):
        space.transform(frame.assign(load="heavy"))
    with pytest.raises(DataError, match="'load' was numbers"):
        space.transform(frame.assign(load=pd.Timestamp("2020-01-01")))


@pytest.mark.parametrize(
    ("F", "message"),
    [
        ([[1.0, np.inf], [2, 3]], "1 infinite values .*'x1'"),
        ([[1.0, 1e200], [2, 3]], "'x1' reaches 1e\\+200"),
        (pd.DataFrame({"t": pd.to_datetime(["2020-01-01", "2021-01-01"])}), "the hour, as a cyc"),
        (pd.DataFrame({"id": [f"w{i % 1001}" for i in range(1500)]}), "is it an identifier"),
        (pd.DataFrame({"id": [f"w{i}" for i in range(21)]}), "21 windows: is it an identifier"),
        (pd.DataFrame([[1, 2], [2, 1]], columns=["a", "a"]), "columns a occur twice"),
        (pd.DataFrame({"a": [1.0]}), "minimum of 2"),
        (pd.DataFrame({"a": [[1], [2]]}), "one word or number"),
        (np.zeros(5), "1D array"),
        (np.array([[1j], [2j]]), "Complex data"),
    ],
)
def test_unusable_features_are_refused(F, message):
    with pytest.raises(DataError, match=message):
        FeatureSpace().fit(F)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"numeric": "standart"}, "did you mean 'standard'"),
        ({"weights": {"lod": 2}}, "did you mean 'load'"),
        ({"weights": {"load": -1}}, "number from 0"),
        ({"groups": {"load": ["gear"]}}, "no column has"),
        ({"groups": {"a": ["gear"], "b": ["gear"]}}, "put it in one"),
        ({"cyclic": {"hour": 0}}, "positive number"),
        ({"cyclic": ["hour"]}, "give a dict"),
        ({"cyclic": {"hour": 24}, "categorical": ["hour"]}, "give it one kind"),
        ({"categorical": "gear"}, r"\['gear'\]"),
        ({"decorrelate": 1.5}, "up to 1"),
        ({"decorrelate": "lw"}, "ledoit_wolf"),
        ({"max_missing": 2}, "from 0 to 1"),
    ],
)
def test_unusable_settings_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        FeatureSpace(**settings).fit(mixed())


def test_values_beyond_float32_are_refused():
    space = FeatureSpace("none").fit(normal())
    with pytest.raises(DataError, match="'x0' goes beyond"):
        space.transform(np.full((1, 4), 1e50))
