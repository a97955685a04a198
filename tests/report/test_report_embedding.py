"""The map of the embedding is what the embedding says."""

import numpy as np
import pytest

from expclr.errors import DataError
from expclr.report import EmbeddingMap, Projection, Report, embedding_map, render_report
from expclr.windows import Windows


def blank(n, **known):
    return Windows(np.zeros((n, 1, 8)), **known)


def test_neighbours_are_the_nearest_by_euclidean_distance():
    Z = np.random.default_rng(0).normal(size=(40, 7))
    shown = embedding_map(Z, blank(40), n_neighbours=3)
    distances = [[sum((a - b) ** 2) ** 0.5 for b in Z] for a in Z]
    for i, row in enumerate(distances):
        nearest = sorted((d, j) for j, d in enumerate(row) if j != i)[:3]
        assert shown.neighbours[i].tolist() == [j for _, j in nearest]
        np.testing.assert_allclose(shown.distances[i], [d for d, _ in nearest])
    pairs = [distances[i][j] for i in range(40) for j in range(i)]
    assert shown.typical_distance == pytest.approx(np.median(pairs))


def test_pca_keeps_the_distances_of_a_plane():
    rng = np.random.default_rng(0)
    plane = rng.normal(size=(20, 2))
    Z = plane @ np.linalg.qr(rng.normal(size=(6, 6)))[0][:2] + 5
    points = embedding_map(Z, blank(20)).projections[0].points
    for i in range(20):
        for j in range(20):
            expected = np.linalg.norm(plane[i] - plane[j])
            assert np.linalg.norm(points[i] - points[j]) == pytest.approx(expected, abs=1e-9)


def test_the_same_embedding_gives_the_same_page(made):
    windows, Z = made[0].subset(slice(100)), made[1][:100]
    pages = {render_report(Report("r", "", [embedding_map(Z, windows)])) for _ in range(2)}
    assert len(pages) == 1


def test_of_many_windows_a_part_is_shown_under_its_own_numbers():
    y = np.arange(50) % 3
    F = np.arange(50.0)[:, None]
    Z = np.random.default_rng(0).normal(size=(50, 4))
    windows = blank(50, y=y, F=F, group=np.arange(50))
    shown = embedding_map(Z, windows, max_points=20, random_state=1)
    assert len(shown) == 20 == len(set(shown.numbers))
    assert shown.classes.tolist() == y[shown.numbers].tolist()
    assert shown.features.ravel().tolist() == shown.group.tolist() == shown.numbers.tolist()
    assert "20 of 50 windows" in shown.caption
    again = embedding_map(Z, windows, max_points=20, random_state=2)
    assert again.numbers.tolist() != shown.numbers.tolist()


@pytest.mark.parametrize(
    "Z", [np.zeros((1, 3)), np.zeros((30, 3)), np.ones((4, 1)), np.arange(40.0)[:, None]]
)
def test_degenerate_embeddings_can_be_shown(Z):
    shown = embedding_map(Z, blank(len(Z)))
    assert all(np.isfinite(p.points).all() for p in shown.projections)
    assert shown.neighbours.shape == (len(Z), min(5, len(Z) - 1))


@pytest.mark.parametrize(
    ("Z", "said"), [(np.zeros((3, 2)), "for 4 windows"), (np.full((4, 2), np.nan), "in 4 rows")]
)
def test_an_embedding_that_does_not_fit_is_refused(Z, said):
    with pytest.raises(DataError, match=said):
        embedding_map(Z, blank(4))


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({"classes": np.array([0])}, "classes has 1 rows"),
        ({"classes": np.array([0, 2]), "class_names": ("a", "b")}, "go up to 2"),
        ({"features": np.eye(2), "feature_names": ("a",)}, "1 feature_names for 2"),
    ],
)
def test_a_map_that_does_not_fit_is_refused(known, said):
    with pytest.raises(DataError, match=said):
        EmbeddingMap("m", [Projection("PCA", np.eye(2))], caption="c", **known)
