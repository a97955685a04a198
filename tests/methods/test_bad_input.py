"""What a method cannot work with is said, before training where that can be known."""

import warnings

import numpy as np
import pytest
import torch

from expclr import RepresentationLearner
from expclr.errors import ConfigError, DataError
from expclr.methods import METHODS, CrossEntropy, NTXentLoss, SleepPriorLoss, SupConLoss
from expclr.methods.base import Batch, Method
from expclr.train import EmptyBatchWarning

TARGETED = [name for name in METHODS if METHODS[name].target != "none"]
PAIRED = [n for n in METHODS if METHODS[n].target == "features" and not METHODS[n].alone]
X = np.random.default_rng(0).normal(size=(24, 2, 16)).astype(np.float32)
F = np.random.default_rng(1).normal(size=(24, 3)).astype(np.float32)
Y = np.arange(24) % 3


def learner(method, **settings):
    small = {"encoder_params": {"width": 4, "blocks": 2}, "max_epochs": 2, "batch_size": 8}
    return RepresentationLearner(method, **small | settings)


@pytest.mark.parametrize("name", TARGETED)
def test_a_method_without_its_target_says_so_before_training(name, monkeypatch):
    def never(*_, **__):
        raise AssertionError

    monkeypatch.setattr("expclr.train.epochs", never)
    wanted = "features F or labels y" if METHODS[name].target == "features" else "give y"
    with pytest.raises(DataError, match=wanted):
        learner(name).fit(X)


@pytest.mark.parametrize("name", TARGETED)
def test_targets_of_the_wrong_shape_are_named(name):
    method, z = METHODS[name](), torch.randn(8, 3)
    features = METHODS[name].target == "features"
    wanted = r"features \(b, d\)" if features else r"labels \(b,\)"
    with pytest.raises(DataError, match=f"no target: give {wanted}"):
        method(z)
    other = torch.randn(8) if features else torch.eye(8)
    with pytest.raises(DataError, match=f"shape .*: give {wanted}"):
        method(z, other)
    three = torch.randn(3, 2) if features else torch.arange(3)
    with pytest.raises(DataError, match="8 embeddings for 3 targets"):
        method(z, three)


class TwoViews(Method):
    """Has two views of nothing."""

    target = "none"
    views = 2

    def forward(self, z, target=None):
        return z.sum()


@pytest.mark.parametrize("method", [NTXentLoss(augmentations=()), TwoViews()])
def test_two_views_that_nobody_draws_are_refused(method):
    with pytest.raises(ConfigError, match=r"compares two views .* give augmentations"):
        method.step(lambda x, lengths: x[:, 0], Batch(torch.randn(4, 2, 8)))


def fitted_with_warnings(name, targets, **settings):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        made = learner(name, **settings).fit(X, targets)
    return made, [w for w in found if w.category is EmptyBatchWarning]


@pytest.mark.parametrize("name", PAIRED)
def test_batches_without_information_are_told_of_once_and_train_nothing(name):
    same = np.zeros((24, 3))
    same[0] = 1.0  # in one batch of six
    made, (warning,) = fitted_with_warnings(name, same, batch_size=4)
    assert str(warning.message).startswith("5 of 6 batches taught nothing")
    assert all(np.isfinite(record["loss"]) for record in made.history_)


def test_batches_of_one_class_are_told_of_once():
    _, (warning,) = fitted_with_warnings("supcon", np.r_[0, np.ones(23, dtype=int)])
    assert str(warning.message).startswith("2 of 3 batches taught nothing")
    assert not fitted_with_warnings("supcon", Y)[1]
    assert not fitted_with_warnings("expclr", F)[1]


def test_more_neighbours_than_a_batch_has_are_refused_in_training():
    with pytest.raises(ConfigError, match="9 neighbours in a batch of 8"):
        learner("sleepprior", method_params={"neighbours": 9}).fit(X, F)


@pytest.mark.parametrize("kind", [NTXentLoss, SupConLoss, SleepPriorLoss])
@pytest.mark.parametrize("temperature", [0, -0.5, float("nan")])
def test_temperatures_that_are_not_positive_are_refused(kind, temperature):
    with pytest.raises(ConfigError, match="positive"):
        kind(temperature=temperature)


def test_more_classes_than_the_head_has_are_named():
    with pytest.raises(ConfigError, match="3 classes for a head of 2"):
        learner("cross_entropy", method_params={"classes": 2}).fit(X, Y)
    with pytest.raises(DataError, match="classes 0 to 1"):
        CrossEntropy(classes=2)(torch.randn(4, 3), torch.tensor([0, 1, 2, -1]))
    with pytest.raises(ConfigError, match="give classes, or call prepare"):
        CrossEntropy()(torch.randn(4, 3), torch.tensor([0, 1, 2, -1]))
