"""Search in a graph finds nearly all true neighbours, at their true distances."""

import sys

import numpy as np
import pytest

from expclr.errors import ConfigError, DataError
from expclr.evaluation import NeighbourIndex

pytest.importorskip("usearch", reason='needs pip install "expclr[ann]"')


@pytest.fixture
def Z(rng):
    return rng.normal(size=(3000, 10)).astype(np.float32)


def test_nearly_all_neighbours_are_found_at_their_distances(Z, rng):
    queries = rng.normal(size=(100, 10))
    exact = NeighbourIndex(Z).search(queries, k=10)
    found = NeighbourIndex(Z, approximate=True).search(queries, k=10)
    pairs = zip(found.index, exact.index, strict=True)
    assert np.mean([len(np.intersect1d(a, b)) for a, b in pairs]) / 10 > 0.95
    assert (np.diff(found.distance, axis=1) >= 0).all()
    own = np.linalg.norm(Z[found.index].astype(float) - queries[:, None], axis=2)
    np.testing.assert_allclose(found.distance, own, rtol=1e-12)


def test_a_window_is_not_its_own_neighbour(Z):
    found = NeighbourIndex(Z, approximate=True).similar(np.arange(50), k=5)
    assert not (found.index == np.arange(50)[:, None]).any()


def test_a_graph_survives_a_folder_and_is_not_built_again(Z, tmp_path, monkeypatch):
    index = NeighbourIndex(Z, approximate=True)
    index.save(tmp_path / "index")
    monkeypatch.setattr("expclr.evaluation.graph.Graph.of", None)
    again = NeighbourIndex.load(tmp_path / "index")
    assert again.graph is not None
    for name in ("index", "distance"):
        a, b = (getattr(i.search(Z[:9], k=4), name) for i in (index, again))
        np.testing.assert_array_equal(a, b)


def test_a_graph_of_other_embeddings_or_a_damaged_one_is_refused(Z, tmp_path):
    for name, rows in (("one", Z), ("two", Z[:50])):
        NeighbourIndex(rows, approximate=True).save(tmp_path / name)
    graph = tmp_path / "one" / "graph.usearch"
    graph.write_bytes((tmp_path / "two" / "graph.usearch").read_bytes())
    with pytest.raises(DataError, match="graph of 3000 x 10"):
        NeighbourIndex.load(tmp_path / "one")
    graph.write_bytes(b"not a graph")
    with pytest.raises(DataError, match=r"graph\.usearch"):
        NeighbourIndex.load(tmp_path / "one")


def test_without_the_library_it_says_what_to_install(Z, monkeypatch):
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(ConfigError, match=r"expclr\[ann\]"):
        NeighbourIndex(Z, approximate=True)
