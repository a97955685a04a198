"""The network is chosen by what can be read on other groups, and kept in the saved model."""

import logging

import numpy as np
import pytest
import torch

from expclr import RepresentationLearner, Windows
from expclr import choice as choices
from expclr.errors import ConfigError, DataError
from expclr.inputs import read_training_data


class Mean(torch.nn.Module):
    """Sees the mean of a window."""

    def __init__(self, in_channels, embedding_dim, *, length=None):
        super().__init__()
        self.linear = torch.nn.Linear(in_channels, embedding_dim)

    def seen(self, x):
        return x.mean(2)

    def forward(self, x, lengths=None):
        return self.linear(self.seen(x))


class Spread(Mean):
    """Sees the standard deviation of a window."""

    def seen(self, x):
        return x.std(2)


class Fails(Mean):
    """Cannot be built for these windows."""

    def __init__(self, *args, **others):
        raise ConfigError("not these windows")


def _windows(n=160, *, spread):
    rng = np.random.default_rng(0)
    F = rng.uniform(1, 3, (n, 1))
    X = (
        F[:, :, None] * rng.normal(size=(n, 1, 64))
        if spread
        else F[:, :, None] * np.ones((1, 1, 64))
    )
    return Windows(X, F, (F[:, 0] > 2).astype(int), group=np.arange(n) % 8)


@pytest.fixture(autouse=True)
def three_candidates(monkeypatch):
    names = tuple(f"{__name__}:{kind.__name__}" for kind in (Fails, Mean, Spread))
    monkeypatch.setattr(choices, "CANDIDATES", names)


def _learner(**settings):
    settings = {"method": "decoding", "lr": 0.05, "max_epochs": 30} | settings
    return RepresentationLearner(encoder="auto", embedding_dim=4, device="cpu", **settings)


@pytest.mark.parametrize(("spread", "best"), [(True, "Spread"), (False, "Mean")])
def test_the_network_that_can_read_the_features_is_taken(spread, best, caplog):
    with caplog.at_level(logging.INFO):
        learner = _learner().fit(_windows(spread=spread))
    assert learner.encoder_name_.endswith(f":{best}")
    assert "not these windows" in caplog.text
    assert learner.encoder_choice_.why.count("held-out") == 1
    assert max(trial["score"] for trial in learner.encoder_choice_.trials) > 0.5


@pytest.mark.parametrize(
    ("scores", "taken", "cheaper"),
    [
        ((0.675, 0.625, 0.678), "rocket", True),
        ((0.451, 0.512, 0.484), "tcn", False),
        ((0.4, 0.45, 0.465), "tcn", True),
        ((0.4, 0.45, 0.475), "hybrid", False),
        ((0.5, 0.5, 0.5), "rocket", False),
        ((-np.inf, 0.3, 0.31), "tcn", True),
    ],
)
def test_a_dearer_network_must_lead_by_more_than_another_seed_changes(
    scores, taken, cheaper, monkeypatch, caplog
):
    score_of = dict(zip(("rocket", "tcn", "hybrid"), scores, strict=True))
    monkeypatch.setattr(choices, "CANDIDATES", tuple(score_of))
    monkeypatch.setattr(
        choices, "_trial", lambda learner, name, *parts: {"encoder": name, "score": score_of[name]}
    )
    given = read_training_data(_learner(), _windows(spread=True).with_(y=None), None)
    with caplog.at_level(logging.INFO):
        choice = choices.choose_encoder(_learner(), given)
    assert choice.encoder == taken
    assert ("costs less, and no other leads by more than 0.02" in choice.why) == cheaper
    assert choice.why in caplog.text


def test_without_features_classes_decide():
    windows = _windows(spread=True)
    learner = _learner(method="cross_entropy").fit(windows.with_(F=None))
    assert learner.encoder_name_.endswith(":Spread")
    assert "macro-F1" in learner.encoder_choice_.why


@pytest.mark.parametrize(
    ("n", "t", "word"), [(20, 64, "too few"), (160, 8, "too short"), (160, 64, "nothing to judge")]
)
def test_where_nothing_can_be_compared_a_network_is_taken_without_trials(n, t, word):
    X, bare = np.random.default_rng(0).normal(size=(n, 2, t)), "nothing" in word
    learner = RepresentationLearner("simclr" if bare else "expclr", encoder="auto", max_epochs=1)
    learner.fit(Windows(X, None if bare else X.mean(2)))
    assert word in learner.encoder_choice_.why
    assert learner.encoder_name_ == ("tcn" if t < 9 else choices.FALLBACK)


def test_a_saved_model_names_its_network(tmp_path, monkeypatch):
    monkeypatch.setattr(choices, "CANDIDATES", ("tcn", f"{__name__}:Fails"))
    windows = _windows(spread=True)
    learner = _learner(max_epochs=1).fit(windows)
    loaded = RepresentationLearner.load(learner.save(tmp_path / "model"))
    assert loaded.encoder == loaded.encoder_name_ == "tcn"
    np.testing.assert_array_equal(loaded.transform(windows), learner.transform(windows))


def test_settings_of_one_network_are_refused():
    with pytest.raises(ConfigError, match="name it instead of 'auto'"):
        _learner(encoder_params={"width": 3}).fit(_windows(spread=True))


def test_included_features_stand_behind_the_embedding_everywhere(tmp_path):
    windows = _windows(spread=True)
    settings = {"encoder": "tcn", "encoder_params": {"width": 4}, "include_features": True}
    learner = RepresentationLearner("expclr", embedding_dim=4, max_epochs=1, **settings)
    learner.fit(windows).finetune(windows.label_fraction(0.5))
    assert learner.transform(windows).shape == (len(windows), 5)
    assert learner.predict(windows).shape == (len(windows),)
    loaded = RepresentationLearner.load(learner.save(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.predict_proba(windows), learner.predict_proba(windows))
    with pytest.raises(DataError, match="include_features"):
        learner.transform(windows.X)


def test_the_default_is_the_joint_objective_with_a_network_that_was_chosen():
    windows = _windows(spread=True)
    learner = RepresentationLearner(embedding_dim=4, device="cpu", max_epochs=2).fit(windows)
    assert (learner.config.method, learner.config.encoder) == ("expclr_plus", "auto")
    assert len(learner.encoder_choice_.trials) == 3
    assert RepresentationLearner("simclr").config.encoder == "tcn"
