"""Probes of many runs side by side give the numbers that each gives by itself."""

import numpy as np
import pytest
import torch

from expclr.errors import ConfigError, DataError
from expclr.evaluation import PROBES, many_probes, probe_many
from expclr.evaluation.logistic import fit_logistic
from expclr.evaluation.many_logistic import fit_many_logistic


def run(seed, n, classes=4, e=8):
    """Correlated columns of very different scale, as embeddings have them."""
    rng = np.random.default_rng(seed)
    basis = np.random.default_rng(1).normal(size=(e, e)) * np.logspace(0, -2, e)
    centres = np.random.default_rng(2).normal(size=(classes, e))
    y = np.arange(n) % classes
    return (rng.normal(size=(n, e)) + centres[y]) @ basis.T + 5


def data(runs=3):
    y, truth = np.arange(300) % 4, np.arange(200) % 4
    return [run(s, 300) for s in range(runs)], y, [run(50 + s, 200) for s in range(runs)], truth


def test_every_probe_has_its_counterpart():
    assert list(many_probes.KINDS) == list(PROBES)


@pytest.mark.parametrize("name", list(PROBES))
def test_many_runs_score_as_each_alone(name):
    train, y, test, truth = data()
    found = probe_many(train, y, test, truth, probes=[name], device="cpu")
    for i, scores in enumerate(found):
        alone = PROBES[name](train[i], y, test[i], truth)
        assert dict(scores[name]) == dict(alone)
        assert scores[name].protocol == alone.protocol
        np.testing.assert_array_equal(scores[name].predicted, alone.predicted)


def test_runs_may_have_different_labels_and_lack_classes():
    train, y, test, truth = data()
    chosen = np.random.default_rng(0).random((3, 300)) < 0.3
    partly = np.where(chosen, y, -1)
    partly[2][partly[2] == 3] = -1
    truth[:10] = -1
    found = probe_many(train, partly, test, truth, device="cpu")
    for i, scores in enumerate(found):
        for name, one in scores.items():
            alone = PROBES[name](train[i], partly[i], test[i], truth)
            assert dict(one) == dict(alone)
    assert found[2]["linear"].unseen == [3]


@pytest.mark.parametrize("classes", [2, 3, 6])
@pytest.mark.parametrize("gap", [0.5, 50.0])
def test_minimum_is_that_of_the_single_fit_also_where_classes_are_separable(classes, gap):
    rng = np.random.default_rng(0)
    codes = np.tile(np.arange(classes), 40)
    X = rng.normal(size=(40 * classes, 5)) + gap * rng.normal(size=(classes, 5))[codes]
    X -= X.mean(axis=0)
    many = fit_many_logistic(torch.as_tensor(X)[None], torch.as_tensor(codes)[None], classes)
    one = fit_logistic(X, codes)
    assert bool(many.converged.all())
    logits = X @ one.W.T + one.b
    found = many.logits(torch.as_tensor(X)[None])[0]
    np.testing.assert_allclose(
        found.softmax(dim=1), torch.as_tensor(logits).softmax(dim=1), atol=2e-4
    )


def test_many_runs_go_to_the_device_in_parts(monkeypatch):
    train, y, test, truth = data(runs=5)
    whole = probe_many(train, y, test, truth, device="cpu")
    monkeypatch.setattr(many_probes, "AT_ONCE", 2 * 500 * 8)
    monkeypatch.setattr(many_probes, "DISTANCES", 300 * 7)
    parts = probe_many(train, y, test, truth, device="cpu")
    assert [{k: dict(v) for k, v in r.items()} for r in whole] == [
        {k: dict(v) for k, v in r.items()} for r in parts
    ]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_gpu_gives_the_numbers_of_the_cpu():
    train, y, test, truth = data()
    on_gpu, on_cpu = (probe_many(train, y, test, truth, device=d) for d in ("cuda", "cpu"))
    for one, two in zip(on_gpu, on_cpu, strict=True):
        for name in one:
            assert one[name]["accuracy"] == pytest.approx(two[name]["accuracy"], abs=0.01)


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"probes": ["svm"]}, ConfigError, "no probe 'svm'"),
        ({"Z_train": [np.zeros((4, 2)), np.zeros((5, 2))]}, DataError, "shapes"),
        ({"Z_train": []}, DataError, "shapes"),
        ({"Z_test": [np.zeros((4, 3))] * 2}, DataError, "columns"),
        ({"y_train": np.zeros(4)}, DataError, r"classes \[0\]"),
        ({"y_train": np.zeros((3, 4))}, DataError, "3 rows for 2 runs"),
        ({"y_test": np.full(4, -1)}, DataError, "no label"),
        ({"probes": ["knn5"]}, DataError, "k is 5"),
    ],
)
def test_unusable_input_is_refused_with_its_reason(change, error, says):
    Z = [np.arange(8.0).reshape(4, 2)] * 2
    given = {"Z_train": Z, "y_train": [0, 1, 0, 1], "Z_test": Z, "y_test": [0, 1, 0, 1]}
    with pytest.raises(error, match=says):
        probe_many(**given | change, device="cpu")
