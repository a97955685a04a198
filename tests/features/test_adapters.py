"""Other libraries' features: their values, named by channel, or a word on how to get them."""

import builtins

import numpy as np
import pytest

from expclr.errors import ConfigError
from expclr.features import extract
from expclr.features.adapters import CATCH22


@pytest.fixture
def X():
    X = np.random.default_rng(0).normal(size=(3, 2, 120)).cumsum(axis=2)
    X[2, 1, 5] = np.nan
    return X


def test_catch22_is_aeons(X):
    aeon = pytest.importorskip("aeon.transformations.collection.feature_based")
    F, names = extract("catch22", X, 50.0)
    assert F.shape == (3, 44)
    assert names[22] == f"ch1_{CATCH22[0]}"
    np.testing.assert_allclose(F[:2], aeon.Catch22().fit_transform(X[:2]))
    alone = aeon.Catch22(features=list(CATCH22)).fit_transform(X[:2])  # by name: the same order
    np.testing.assert_allclose(F[:2], alone)
    assert np.isnan(F[2, 22:]).all()


@pytest.mark.parametrize(("name", "library"), [("tsfresh", "tsfresh"), ("tsfel", "tsfel")])
def test_many_features_of_each_channel(X, name, library):
    pytest.importorskip(library)
    F, names = extract(name, X, 50.0)
    assert F.shape == (3, len(names))
    assert len(set(names)) == len(names) > 200
    half = len(names) // 2
    assert [n.replace("ch1_", "ch0_", 1) for n in names[half:]] == list(names[:half])
    assert np.isnan(F[2, half:]).all()
    np.testing.assert_array_equal(F[:, half:], extract(name, X[:, 1:], 50.0)[0])


def test_a_library_that_is_not_there_is_named_with_its_extra(X, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name.partition(".")[0] in ("tsfresh", "sleepecg"):
            raise ImportError(f"No module named {name!r}")
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setattr("expclr.features.adapters.import_module", without)
    with pytest.raises(ConfigError, match=r'needs tsfresh: pip install "expclr\[bench\]"'):
        extract("tsfresh", X, 50.0)
    with pytest.raises(ConfigError, match=r'needs sleepecg: pip install "expclr\[ecg\]"'):
        extract("ecg88", X, 100.0)
