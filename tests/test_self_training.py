"""Windows without a label take part in fine-tuning with the class that is predicted for them."""

import logging
from copy import deepcopy

import numpy as np
import pytest

from expclr import ExpCLR, RepresentationLearner
from expclr.cli import main
from expclr.config import TrainConfig, read_config, run_id
from expclr.errors import ConfigError, DataError
from expclr.many import fit_many
from expclr.self_training import with_predicted
from expclr.train import DivergedError, Schedule

SMALL = {
    "encoder": "tcn",
    "encoder_params": {"width": 8, "blocks": 2, "hidden": 16, "dropout": 0.0},
    "embedding_dim": 6,
    "batch_size": 8,
    "lr": 1e-2,
    "max_epochs": 5,
    "finetune_epochs": 8,
    "device": "cpu",
}


def _fitted(windows, **settings):
    return ExpCLR(**SMALL, **settings).fit(windows)


@pytest.fixture
def few(windows):
    return windows.label_fraction(0.25)


def _by_hand(learner, few, threshold):
    """Fine-tune, predict, and fine-tune the model as it was on all that is known then."""
    first = deepcopy(learner).finetune(few)
    P = first.predict_proba(few)
    sure = (few.y < 0) & (P.max(1) > threshold)
    y = np.where(sure, first.classes_[P.argmax(1)], few.y)
    passes = max(1, round(8 * ((few.y >= 0).sum() / (y >= 0).sum()) ** 0.5))
    return deepcopy(learner).set_params(finetune_epochs=passes).finetune(few.with_(y=y)), passes


def test_it_is_a_second_fine_tuning_of_the_same_encoder_on_predicted_labels_too(windows, few):
    learner, threshold = _fitted(windows), 0.6
    wanted, passes = _by_hand(learner, few, threshold)
    found = deepcopy(learner).set_params(self_training=threshold).finetune(few)
    np.testing.assert_array_equal(found.transform(windows), wanted.transform(windows))
    np.testing.assert_array_equal(found.predict_proba(windows), wanted.predict_proba(windows))
    assert 1 <= passes < 8
    assert [record["epoch"] for record in found.finetune_history_] == list(range(8 + passes))
    plain = deepcopy(learner).finetune(few)
    assert not np.array_equal(found.transform(windows), plain.transform(windows))


def test_each_run_has_a_name_for_its_progress_bar(windows, few):
    fitting = _fitted(windows, self_training=0.6).finetuning(few)
    first = next(fitting)
    second = fitting.send(first.train())
    assert (first.name, second.name) == ("ExpCLRLoss", "self-training")


def test_it_says_how_many_windows_it_took(windows, few, caplog):
    with caplog.at_level(logging.INFO):
        _fitted(windows, self_training=0.6).finetune(few)
    assert f"of {(few.y < 0).sum()} windows without label taken" in caplog.text
    assert "p > 0.6" in caplog.text


@pytest.mark.parametrize("threshold", [0.6, 1, 1.0, None])
def test_without_unlabelled_windows_or_a_threshold_below_one_nothing_changes(
    windows, few, threshold, caplog
):
    learner = _fitted(windows)
    data = windows if threshold == 0.6 else few
    plain = deepcopy(learner).finetune(data)
    with caplog.at_level(logging.INFO):
        found = deepcopy(learner).set_params(self_training=threshold).finetune(data)
    np.testing.assert_array_equal(found.predict_proba(windows), plain.predict_proba(windows))
    assert len(found.finetune_history_) == 8
    assert "self-training" not in caplog.text


def test_when_nothing_is_sure_the_first_fine_tuning_stands(windows, few, caplog):
    learner = _fitted(windows)
    plain = deepcopy(learner).finetune(few)
    with caplog.at_level(logging.INFO):
        found = deepcopy(learner).set_params(self_training=1 - 1e-12).finetune(few)
    np.testing.assert_array_equal(found.predict_proba(windows), plain.predict_proba(windows))
    assert "self-training: 0 of 35 windows" in caplog.text


@pytest.mark.parametrize("threshold", [0, -0.1, 1.5, True, "0.95", float("nan")])
def test_what_is_no_probability_is_refused_before_training(windows, few, threshold):
    learner = _fitted(windows)
    with pytest.raises(ConfigError, match=r"self_training is .*for example 0\.95"):
        learner.set_params(self_training=threshold).finetune(few)
    assert not hasattr(learner, "finetune_history_")


def test_labels_that_are_known_stay_and_a_class_nobody_is_sure_of_keeps_them(caplog):
    codes = np.array([0, 1, 2, -1, -1])
    P = np.array([[0.01, 0.99, 0], [1, 0, 0], [0.5, 0.5, 0], [0, 0.96, 0.04], [0.5, 0.2, 0.3]])
    with caplog.at_level(logging.INFO):
        filled = with_predicted(codes, P, 0.95, classes=np.array(["walk", "sit", "lie"]))
    assert filled.tolist() == [0, 1, 2, 1, -1]
    assert "1 of 2 windows" in caplog.text
    assert "of class walk, lie" in caplog.text


def test_a_class_that_gets_no_window_is_still_among_the_classes(windows, few):
    learner = _fitted(windows, self_training=0.6)
    y = np.where(few.y == 3, -1, few.y)
    y[np.flatnonzero(few.y == 3)[0]] = 3  # one window alone of this class
    learner.finetune(few.with_(y=y))
    assert learner.classes_.tolist() == [0, 1, 2, 3]
    assert learner.predict_proba(windows).shape == (len(windows), 4)


def test_names_and_none_as_labels(windows, few):
    names = np.array([None if code < 0 else windows.class_names[code] for code in few.y], object)
    learner = _fitted(windows, self_training=0.6).finetune(windows.X, names)
    assert learner.classes_.tolist() == sorted(windows.class_names)
    assert len(learner.finetune_history_) > 8
    assert set(learner.predict(windows.X)) <= set(windows.class_names)


def test_windows_without_label_must_be_finite_when_they_take_part(windows, few):
    X = few.X.copy()
    X[np.flatnonzero(few.y < 0)[0], 0, 3] = np.nan
    learner, broken = _fitted(windows), few.with_(X=X)
    deepcopy(learner).finetune(broken)
    with pytest.raises(DataError):
        learner.set_params(self_training=0.6).finetune(broken)


@pytest.mark.parametrize("method", ["expclr", "cross_entropy", "supcon", "expclr_plus"])
@pytest.mark.parametrize("encoder", ["tcn", "rocket"])
def test_every_method_and_encoder_goes_through_it(windows, few, method, encoder):
    params = SMALL["encoder_params"] if encoder == "tcn" else {"num_features": 168, "hidden": 8}
    settings = SMALL | {"encoder": encoder, "encoder_params": params, "max_epochs": 1}
    learner = RepresentationLearner("expclr_plus", **settings, finetune_method=method)
    learner.set_params(self_training=0.3).fit(windows).finetune(few)
    assert len(learner.finetune_history_) > 8
    assert learner.predict(windows).shape == windows.y.shape


def test_many_go_through_it_together_as_alone(windows, few):
    thresholds = (None, 0.6, 0.5, 0.6)
    learners = [
        _fitted(windows, random_state=seed, self_training=threshold)
        for seed, threshold in enumerate(thresholds)
    ]
    alone = [deepcopy(learner).finetune(few) for learner in learners]
    together = dict(fit_many(learners, few, finetune=True))
    assert sorted(together) == [0, 1, 2, 3]
    for number, learner in enumerate(alone):
        np.testing.assert_array_equal(
            together[number].predict_proba(windows), learner.predict_proba(windows)
        )
        assert [r["epoch"] for r in together[number].finetune_history_] == [
            r["epoch"] for r in learner.finetune_history_
        ]


def test_one_that_fails_in_its_second_run_does_not_stop_the_others(windows, few, monkeypatch):
    calls = []

    def breaks_once(schedule: Schedule, **sizes):
        calls.append(sizes)
        if len(calls) == 1:
            raise DivergedError("not this one")
        return schedule

    monkeypatch.setattr("expclr.estimators.shortened", lambda s, *n: breaks_once(s, n=n))
    learners = [_fitted(windows, random_state=seed, self_training=0.6) for seed in (0, 1)]
    together = dict(fit_many(learners, few, finetune=True))
    assert isinstance(together[0], DivergedError)
    assert len(together[1].finetune_history_) == 16


def test_the_setting_is_saved_and_an_old_configuration_keeps_its_name(windows, few, tmp_path):
    learner = _fitted(windows, self_training=0.6).finetune(few)
    loaded = ExpCLR.load(learner.save(tmp_path / "model"), device="cpu")
    assert loaded.self_training == 0.6
    np.testing.assert_array_equal(loaded.predict(windows), learner.predict(windows))
    assert run_id(TrainConfig(self_training=0.95)) != run_id(TrainConfig())
    assert run_id(TrainConfig()) == "df56ffdadd5d"


def test_the_command_line_takes_it(windows, tmp_path, monkeypatch):
    data, model = windows.save(tmp_path / "data"), tmp_path / "model"
    _fitted(windows).save(model)
    tuned = str(tmp_path / "tuned")
    words = ["finetune", str(model), str(data), tuned, "--label_fraction", "0.25"]
    assert main([*words, "--self_training", "0.6"]) == 0
    assert read_config(f"{tuned}/config.yaml").self_training == 0.6
    assert main([*words[:3], str(tmp_path / "other"), "--self_training", "7"]) == 2
