"""Search is exact, survives a folder, and is judged fairly."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist

from expclr.errors import DataError
from expclr.evaluation import NeighbourIndex, certify, nearest
from expclr.evaluation.nearest import nearest as find_nearest
from expclr.evaluation.retrieval import certify_search, retrieval_quality


def loop(Z, queries, k):
    """Distances to every row, sorted; of equal ones the first row first."""
    d = cdist(queries, Z)
    rows = np.argsort(d, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(d, rows, axis=1), rows


@pytest.mark.parametrize("n", [1, 39, 40, 41, 4000, 4001, 8123])
@pytest.mark.parametrize("offset", [0, 1000])
def test_neighbours_are_those_of_a_comparison_with_every_row(rng, n, offset):
    Z = (rng.normal(size=(n, 8)) + offset).astype(np.float32)
    queries = (rng.normal(size=(5, 8)) + offset).astype(np.float32)
    k = min(n, 7)
    distance, row = find_nearest(Z, queries, k)
    expected_distance, expected_row = loop(Z.astype(float), queries.astype(float), k)
    np.testing.assert_array_equal(row, expected_row)
    np.testing.assert_allclose(distance, expected_distance, rtol=1e-9)


def test_rounding_of_the_first_pass_hides_no_neighbour(rng):
    """Rows of very different size: single precision cannot tell the near ones apart."""
    Z = 1e-4 * rng.normal(size=(6000, 5))
    Z[::3] += 1e4
    queries = 1e-4 * rng.normal(size=(4, 5))
    distance, row = find_nearest(Z, queries, 10)
    expected_distance, expected_row = loop(Z, queries, 10)
    np.testing.assert_array_equal(row, expected_row)
    np.testing.assert_allclose(distance, expected_distance)


def test_rows_at_nearly_the_same_distance_keep_their_order(rng):
    """All of 4,000 rows are within single precision of each other."""
    direction = rng.normal(size=(4000, 50))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    query = np.full((1, 50), 3.0)
    Z = query + direction * (1 + 1e-8 * rng.random((4000, 1)))
    _, row = find_nearest(Z, query, 10)
    np.testing.assert_array_equal(row, loop(Z, query, 10)[1])


def test_neighbours_crowded_into_few_buckets_or_spread_over_many_are_all_found(rng):
    Z = 100 + rng.normal(size=(5000, 3))
    Z[200:230] = rng.normal(size=(30, 3))  # crowded
    Z[1000:4000:100] = rng.normal(size=(30, 3))  # spread
    _, row = find_nearest(Z, np.zeros((1, 3)), 60)
    assert set(row[0]) == set(range(200, 230)) | set(range(1000, 4000, 100))


@settings(max_examples=40, deadline=None)
@given(arrays(np.float64, (90, 2), elements=st.integers(-2, 2)), st.integers(1, 90))
def test_ties_are_given_by_row(Z, k):
    distance, row = find_nearest(Z, Z[:3], k)
    expected_distance, expected_row = loop(Z, Z[:3], k)
    np.testing.assert_allclose(distance, expected_distance)
    np.testing.assert_array_equal(row, expected_row)


def test_many_queries_are_answered_in_parts(rng, monkeypatch):
    Z, queries = rng.normal(size=(300, 3)), rng.normal(size=(25, 3))
    monkeypatch.setattr(nearest, "QUERIES", 7)
    np.testing.assert_array_equal(find_nearest(Z, queries, 4)[1], loop(Z, queries, 4)[1])


def test_similar_leaves_the_window_itself_out_even_among_twins(rng):
    Z = rng.normal(size=(50, 3))
    Z[10:14] = Z[10]
    found = NeighbourIndex(Z).similar([10, 13, 20], k=3)
    assert set(found.index[0]) == {11, 12, 13}
    assert set(found.index[1]) == {10, 11, 12}
    np.testing.assert_array_equal(found.index[2], loop(Z, Z[[20]], 4)[1][0, 1:])


def test_similar_among_more_twins_than_asked_for_never_names_itself():
    found = NeighbourIndex(np.zeros((20, 2))).similar(np.arange(20), k=3)
    assert found.index.shape == (20, 3)
    assert (found.index != np.arange(20)[:, None]).all()


def test_saved_index_gives_the_same_hits_names_and_limits(rng, tmp_path):
    Z, F = rng.normal(size=(60, 4)).astype(np.float32), rng.normal(size=(60, 2))
    names = [f"window {i}" for i in range(60)]
    index = NeighbourIndex(Z, ids=names, certificate=certify(Z, F))
    again = NeighbourIndex.load(index.save(tmp_path / "index"))
    one, two = index.search(Z[:5] + 0.1, k=3), again.search(Z[:5] + 0.1, k=3)
    for field in ("index", "ids", "distance", "feature_low", "feature_high"):
        np.testing.assert_array_equal(getattr(one, field), getattr(two, field))
    assert again.certificate.text() == index.certificate.text()


def test_hits_carry_their_distance_in_units_of_expert_features(rng):
    F = rng.normal(size=(400, 3))
    found = NeighbourIndex(F / 2, certificate=certify(F / 2, F)).search(F[:1] / 2, k=5)
    true = np.linalg.norm(F[found.index[0]] - F[0], axis=1)
    assert (found.feature_low <= true + 1e-9).all()
    assert (true <= found.feature_high + 1e-9).all()
    np.testing.assert_allclose(found.feature_high[0], true, atol=1e-9)


def test_infinite_limit_survives_a_folder(rng, tmp_path):
    certificate = certify(np.zeros((50, 2)), rng.normal(size=(50, 2)))
    index = NeighbourIndex(rng.normal(size=(9, 2)), certificate=certificate)
    again = NeighbourIndex.load(index.save(tmp_path / "index"))
    assert again.certificate.upper == np.inf


def test_broken_folders_are_refused_with_their_name(rng, tmp_path):
    with pytest.raises(DataError, match="no folder"):
        NeighbourIndex.load(tmp_path / "nowhere")
    path = NeighbourIndex(rng.normal(size=(9, 2))).save(tmp_path / "index")
    (path / "Z.npy").write_bytes(b"nonsense")
    with pytest.raises(DataError, match="index"):
        NeighbourIndex.load(path)
    path = NeighbourIndex(rng.normal(size=(9, 2))).save(tmp_path / "index")
    meta = json.loads((path / "meta.json").read_text()) | {"certificate": {"lower": "x"}}
    (path / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(DataError, match="not a readable index"):
        NeighbourIndex.load(path)


def test_pickled_names_are_never_loaded(rng, tmp_path):
    path = NeighbourIndex(rng.normal(size=(3, 2))).save(tmp_path / "index")
    np.save(path / "ids.npy", np.array([{}, {}, {}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="not a readable index"):
        NeighbourIndex.load(path)


@pytest.mark.parametrize(
    ("search", "says"),
    [
        (lambda index: index.search(np.zeros((1, 3)), k=1), "columns"),
        (lambda index: index.search(np.zeros((1, 2)), k=10), "k is 10: 1 to 9"),
        (lambda index: index.similar([0], k=9), "k is 9: 1 to 8"),
        (lambda index: index.search(np.full((1, 2), np.nan)), "NaN"),
        (lambda index: NeighbourIndex(index.Z, ids=["a"]), "ids"),
    ],
)
def test_unusable_input_is_refused_with_its_reason(rng, search, says):
    with pytest.raises(DataError, match=says):
        search(NeighbourIndex(rng.normal(size=(9, 2))))


def test_retrieval_quality_is_that_of_a_loop(rng):
    Z, F, y = rng.normal(size=(80, 3)), rng.normal(size=(80, 2)), rng.integers(0, 3, 80)
    Zq, Fq, yq = rng.normal(size=(20, 3)), rng.normal(size=(20, 2)), rng.integers(0, 3, 20)
    yq[:4] = -1
    found = retrieval_quality(Z, Zq, y=y, y_query=yq, F=F, F_query=Fq, k=5)
    by_Z, by_F = loop(Z, Zq, 5)[1], loop(F, Fq, 5)[1]
    precision = [(y[hits] == label).mean() for hits, label in zip(by_Z, yq, strict=True)]
    agreement = [len(set(a) & set(b)) / 5 for a, b in zip(by_Z, by_F, strict=True)]
    chance = [(y == label).mean() for label in yq[4:]]
    assert found["precision"] == pytest.approx(np.mean(precision[4:]))
    assert found["agreement"] == pytest.approx(np.mean(agreement))
    assert found["precision_by_chance"] == pytest.approx(np.mean(chance))
    assert found["agreement_by_chance"] == 5 / 80


def test_features_themselves_agree_with_themselves(rng):
    F = rng.normal(size=(200, 3))
    found = retrieval_quality(F, F[:20] + 0.01, F=F, F_query=F[:20] + 0.01, k=7)
    assert found["agreement"] == 1


def test_certificate_of_a_search_holds_for_the_neighbours_it_shows():
    """Over repeats, and where the certificate of random pairs does not hold."""
    rng = np.random.default_rng(0)

    def draw(n):
        # Half of F is lost: neighbours in Z may be far apart in F.
        F = rng.normal(size=(n, 4))
        return F[:, :2] + 0.1 * F[:, 2:], F

    Z, F = draw(300)
    Z_new, F_new = draw(40_000)
    distance, hits = find_nearest(Z, Z_new, 1)
    shown = np.linalg.norm(F[hits[:, 0]] - F_new, axis=1) / distance[:, 0]

    def miss(found):
        return ((shown < found.lower) | (shown > found.upper)).mean()

    held = [
        miss(found) <= found.miss_probability
        for found in (certify_search(Z, F, *draw(100)) for _ in range(300))
    ]
    assert 0.91 <= np.mean(held) <= 0.99
    of_random_pairs = certify(*draw(200))
    assert miss(of_random_pairs) > of_random_pairs.miss_probability
