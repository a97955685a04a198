"""Which windows meet in a batch."""

import numpy as np
import pytest
import torch

from expclr import ExpCLR
from expclr.batches import BATCHES, order_of, pairs_together
from expclr.errors import ConfigError
from expclr.examples import Examples
from expclr.train import Schedule


def _examples(n=150, d=3, *, missing=0.1):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(n, d)).astype(np.float32)
    features[rng.random((n, d)) < missing] = np.nan
    return Examples(np.zeros((n, 1, 4), np.float32), features=torch.from_numpy(features))


def _order(batches, examples=None, epoch=0, **settings):
    schedule = Schedule(1, 1e-3, **{"batch_size": 16, "batches": batches} | settings)
    return order_of(_examples() if examples is None else examples, schedule, epoch)


def _distance_of_pairs(order, features):
    first, second = order.flatten().view(-1, 2).T
    return (features[first] - features[second]).norm(dim=1)


@pytest.mark.parametrize("batches", BATCHES)
@pytest.mark.parametrize("size", [2, 15, 16])
def test_an_epoch_sees_a_window_once_at_most_in_batches_of_one_size(batches, size):
    order = _order(batches, batch_size=size)
    assert order.shape == (150 // size, size)
    assert len(order.flatten().unique()) == order.numel()


@pytest.mark.parametrize("batches", BATCHES)
def test_batches_depend_on_seed_and_epoch_alone(batches):
    assert torch.equal(_order(batches), _order(batches))
    assert not torch.equal(_order(batches), _order(batches, epoch=1))
    assert not torch.equal(_order(batches), _order(batches, random_state=1))


def test_pairs_are_nearer_or_farther_than_by_chance():
    examples = _examples(missing=0.0)
    mean = {
        kind: _distance_of_pairs(_order(kind, examples), examples.features).mean().item()
        for kind in ("near", "random", "far")
    }
    assert mean["near"] < 0.6 * mean["random"]
    assert mean["far"] > 1.3 * mean["random"]


def test_of_both_kinds_every_other_pair_is_near():
    features = _examples(n=80, missing=0.0).features
    distance = _distance_of_pairs(
        torch.from_numpy(pairs_together(np.arange(80), features, "both")), features
    )
    assert distance[0::2].mean() < 0.5 * distance[1::2].mean()


def test_without_features_windows_meet_by_chance():
    examples = Examples(np.zeros((50, 1, 4), np.float32))
    assert torch.equal(_order("near", examples), _order("random", examples))


def test_labelled_windows_are_drawn_as_often_as_all():
    labels = torch.full((50,), -1)
    labels[[3, 7, 9]] = 1
    examples = Examples(np.zeros((50, 1, 4), np.float32), labels=labels)
    drawn = _order("labelled", examples, batch_size=10).flatten().bincount(minlength=50)
    assert drawn.sum() == 100
    assert (drawn[[3, 7, 9]] >= 17).all()
    assert (drawn[labels < 0] == 1).all()


def test_unknown_batches_are_refused(windows):
    with pytest.raises(ConfigError, match="random, near, far, both"):
        ExpCLR(batches="nearest", max_epochs=1).fit(windows)


def test_the_estimator_hands_its_choice_on(windows):
    small = {"encoder_params": {"width": 8, "blocks": 2}, "max_epochs": 1, "device": "cpu"}
    losses = {
        kind: ExpCLR(batches=kind, batch_size=16, **small).fit(windows).history_[0]["loss"]
        for kind in BATCHES
    }
    assert len(set(losses.values())) == 4
