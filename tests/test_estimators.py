import inspect
import json
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from expclr import ExpCLR, RepresentationLearner, Windows
from expclr.config import TrainConfig
from expclr.errors import ConfigError, DataError
from expclr.features.space import FeatureSpace

SMALL = {"width": 16, "blocks": 3, "hidden": 32, "dropout": 0.0}
QUICK = {
    "encoder_params": SMALL,
    "embedding_dim": 6,
    "lr": 1e-2,
    "max_epochs": 2,
    "finetune_epochs": 2,
    "batch_size": 16,
    "device": "cpu",
}


def _est(**settings):
    return ExpCLR(**(QUICK | settings))


@parametrize_with_checks(
    [
        ExpCLR(max_epochs=1, finetune_epochs=1, encoder_params=SMALL, device="cpu"),
        RepresentationLearner("quadratic", max_epochs=1, encoder_params=SMALL, device="cpu"),
        RepresentationLearner(max_epochs=1, finetune_epochs=1, device="cpu"),
    ]
)
def test_scikit_learn_finds_an_estimator_that_keeps_its_contract(estimator, check):
    check(estimator)


def test_every_setting_stands_in_the_table_of_settings_with_its_default():
    table = {name: f.default for name, f in TrainConfig.__dataclass_fields__.items()}
    learner = {
        name: p.default
        for name, p in inspect.signature(RepresentationLearner.__init__).parameters.items()
        if name != "self"
    }
    expclr = inspect.signature(ExpCLR.__init__).parameters
    assert set(learner) == set(table)
    assert (learner.pop("method"), learner.pop("encoder")) == ("expclr_plus", None)
    assert (table["method"], table["encoder"]) == ("expclr", expclr["encoder"].default)
    for name, default in learner.items():
        if not name.endswith("_params"):
            assert default == table[name], name
        if not name.startswith("method"):
            assert expclr[name].default == default, name


def test_distances_follow_the_features_after_training(windows):
    train, test = windows.split_by_group([4, 5])
    est = _est(max_epochs=60).fit(train)
    start = _est(max_epochs=0).fit(train)
    d = torch.pdist(torch.tensor(est.feature_space_.transform(test.F)))
    agreement = [
        np.corrcoef(d, torch.pdist(torch.tensor(e.transform(test))))[0, 1] for e in (start, est)
    ]
    assert agreement[1] > max(0.8, agreement[0] + 0.05)


def test_windows_and_arrays_give_the_same_model(windows):
    by_windows = _est().fit(windows)
    by_arrays = _est().fit(windows.X, windows.F)
    np.testing.assert_array_equal(by_windows.transform(windows), by_arrays.transform(windows.X))


def test_a_table_of_mixed_features_is_taken_as_it_is(windows):
    F = pd.DataFrame({"size": windows.F[:, 0], "gear": np.array(["a", "b", "c"])[windows.y % 3]})
    F.loc[3, "size"] = np.nan
    est = _est().fit(windows.X, F)
    assert est.feature_space_.get_feature_names_out().tolist() == [
        "size",
        "gear=a",
        "gear=b",
        "gear=c",
    ]


def test_univariate_series_need_no_channel_axis(windows):
    X = windows.X[:, 0]
    est = _est().fit(X, windows.F)
    np.testing.assert_allclose(est.transform(X), est.transform(X[:, None]), rtol=1e-6)


def test_series_of_unequal_length_are_embedded_as_if_alone(windows, rng):
    series = [x[:, : rng.integers(10, 33)] for x in windows.X]
    est = _est().fit(series, windows.F)
    alone = np.concatenate([est.transform([s]) for s in series])
    np.testing.assert_allclose(est.transform(series), alone, rtol=1e-4, atol=1e-5)


def test_real_numbers_in_one_dimension_are_one_feature(windows):
    est = _est().fit(windows.X, windows.F[:, 0])
    assert not hasattr(est, "classes_")
    assert est.feature_space_.n_features_in_ == 1


@pytest.mark.parametrize("y", ["names", "numbers", "floats", "booleans"])
def test_labels_of_any_kind_come_back_from_predict(windows, y):
    labels = {
        "names": np.array(["walk", "run"])[windows.y % 2],
        "numbers": windows.y * 3 + 1,
        "floats": windows.y.astype(float),
        "booleans": windows.y > 1,
    }[y]
    est = _est().fit(windows.X, labels)
    predicted = est.predict(windows.X)
    assert predicted.dtype.kind == labels.dtype.kind
    assert set(predicted) <= set(labels)
    assert est.classes_.tolist() == sorted(set(labels.tolist()))
    np.testing.assert_allclose(est.predict_proba(windows.X).sum(1), 1, rtol=1e-6)


def test_fine_tuning_uses_the_labelled_windows_alone(windows):
    est = _est().fit(windows)
    few = windows.label_fraction(0.5)
    other = few.with_(X=np.where(few.y[:, None, None] >= 0, few.X, 99))
    first = clone(est).fit(windows).finetune(few)
    second = clone(est).fit(windows).finetune(other)
    np.testing.assert_array_equal(first.transform(windows), second.transform(windows))
    assert not np.array_equal(first.transform(windows), est.transform(windows))
    assert first.predict(windows).shape == (48,)


def test_unlabelled_may_be_written_in_three_ways(windows):
    codes = windows.label_fraction(0.5).y
    names = np.array([None if c < 0 else f"class {c}" for c in codes], dtype=object)
    floats = np.where(codes < 0, np.nan, codes)
    results = [
        _est().fit(windows).finetune(windows.X, y).transform(windows.X)
        for y in (codes, names, floats)
    ]
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])


def test_predict_is_there_once_classes_are_known(windows):
    est = _est().fit(windows)
    assert not hasattr(est, "predict")
    with pytest.raises(AttributeError):
        est.predict(windows)
    assert hasattr(est.finetune(windows), "predict")
    assert not hasattr(est.fit(windows), "predict")


def test_few_labels_are_read_better_after_training_on_features(windows):
    train, test = windows.split_by_group([4, 5])
    est = _est(max_epochs=60, finetune_epochs=20).fit(train).finetune(train)
    assert (est.predict(test) == test.y).mean() > 0.7


def test_it_works_inside_pipelines_and_searches(windows):
    pipeline = make_pipeline(_est(), LogisticRegression())
    search = GridSearchCV(pipeline, {"expclr__tau": [0.5, 1.0]}, cv=2)
    assert search.fit(windows.X, windows.y).best_score_ >= 0
    own = GridSearchCV(_est(), {"delta": [0.5, 1.0]}, cv=2, scoring="accuracy")
    assert own.fit(windows.X, windows.y).predict(windows.X).shape == (48,)


def test_embeddings_can_be_a_table(windows):
    est = _est().set_output(transform="pandas")
    table = est.fit_transform(windows.X, windows.F)
    assert table.columns[0] == "expclr0"
    assert table.shape == (48, 6)


def test_a_copy_by_pickle_is_the_same(windows):
    est = _est().fit(windows).finetune(windows)
    back = pickle.loads(pickle.dumps(est))
    np.testing.assert_array_equal(back.predict_proba(windows), est.predict_proba(windows))


@pytest.mark.parametrize(
    "space", ["standard", "raw", FeatureSpace("robust", weights={"size": 2.0})]
)
def test_a_saved_model_comes_back_whole(windows, tmp_path, space):
    F = pd.DataFrame(windows.F, columns=windows.feature_names)
    names = np.array(windows.class_names)[windows.y]
    est = _est(feature_space=space, tau=0.7).fit(windows.X, F).finetune(windows.X, names)
    back = ExpCLR.load(est.save(tmp_path / "model"))
    np.testing.assert_array_equal(back.transform(windows), est.transform(windows))
    np.testing.assert_array_equal(back.predict(windows), est.predict(windows))
    np.testing.assert_array_equal(back.feature_space_.transform(F), est.feature_space_.transform(F))
    assert back.tau == 0.7
    assert back.history_ == est.history_
    assert RepresentationLearner.load(tmp_path / "model").method == "expclr"
    again = back.finetune(windows.X, names)
    assert again.predict(windows).shape == (48,)


def test_a_model_folder_holds_no_pickle(windows, tmp_path):
    folder = _est().fit(windows).finetune(windows).save(tmp_path / "model")
    names = {path.suffix for path in folder.iterdir()}
    assert names <= {".yaml", ".json", ".jsonl", ".safetensors"}


def test_a_strangers_folder_runs_no_code(windows, tmp_path):
    folder = _est().fit(windows).save(tmp_path / "model")
    config = (folder / "config.yaml").read_text()
    (folder / "config.yaml").write_text(config.replace("encoder: tcn", "encoder: os:system"))
    with pytest.raises(ConfigError, match="runs no code"):
        RepresentationLearner.load(folder)
    (folder / "config.yaml").write_text(config.replace("method: expclr", "method: os:abort"))
    stranger = RepresentationLearner.load(folder)
    assert stranger.transform(windows).shape == (48, 6)  # needs no method
    with pytest.raises(ConfigError, match="runs no code"):
        stranger.finetune(windows)
    (folder / "config.yaml").write_text("!!python/object/apply:os.system ['true']")
    with pytest.raises(ConfigError, match="YAML"):
        RepresentationLearner.load(folder)


def test_a_damaged_model_folder_is_refused_by_name(windows, tmp_path):
    folder = _est().fit(windows).save(tmp_path / "model")
    for name in ("model.json", "encoder.safetensors", "feature_space.json", "history.jsonl"):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[:-5])
        with pytest.raises(DataError, match=name):
            ExpCLR.load(folder)
        (folder / name).write_bytes(content)
    facts = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(facts | {"format": 99}))
    with pytest.raises(DataError, match="format 1"):
        ExpCLR.load(folder)


def test_a_model_of_another_method_is_not_an_expclr(windows, tmp_path):
    learner = RepresentationLearner("pair", **QUICK).fit(windows)
    folder = learner.save(tmp_path / "model")
    with pytest.raises(ConfigError, match="RepresentationLearner"):
        ExpCLR.load(folder)


def test_foreign_classes_can_be_trained(windows):
    learner = RepresentationLearner("expclr.methods.quadratic:QuadraticLoss", **QUICK)
    assert learner.fit(windows).transform(windows).shape == (48, 6)


def test_a_validation_part_is_recorded(windows):
    est = _est(validation_fraction=0.3).fit(windows)
    assert all(r["validation_loss"] > 0 for r in est.history_)


def test_windows_without_any_feature_are_counted_once(windows):
    F = windows.F.copy()
    F[[3, 7]] = np.nan
    with pytest.warns(UserWarning, match="2 of 48 windows have no expert feature") as caught:
        _est().fit(windows.X, F)
    assert len(caught) == 1


def test_constant_features_are_named_and_left_out(windows):
    F = pd.DataFrame({"size": windows.F[:, 0], "room": 21.0})
    with pytest.warns(UserWarning, match="room"):
        est = _est().fit(windows.X, F)
    assert est.feature_space_.get_feature_names_out().tolist() == ["size"]


def _nan(X):
    X = X.copy()
    X[3, 1, 7] = np.nan
    return X


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, F: (X, F[:-1]), "48 windows and the second argument 47 rows"),
        (lambda X, F: (_nan(X), F), "first in window 3, channel 1, timepoint 7"),
        (lambda X, F: (X, np.column_stack([F, np.full(48, np.nan)])), "x3|column 3|3"),
        (lambda X, F: (X, np.ones_like(F)), "constant|same value"),
        (lambda X, F: (X[:1], F[:1]), "at least 2"),
        (lambda X, F: (X, np.zeros(48, int)), "1 class"),
        (lambda X, F: (X, None), "expert features F or labels y"),
        (lambda X, F: (X[0, 0], F[:1]), "Expected 2D array"),
        (lambda X, F: (np.full((48, 5), object()), F), "no number .*: give numbers"),
        (lambda X, F: (np.ma.masked_less(X, -1.0), F), "X holds NaN or inf in"),
        (lambda X, F: (X.astype(complex), F), "Complex data"),
        (lambda X, F: (X[:0], F[:0]), "0 sample|minimum of 1"),
        (lambda X, F: (np.array([[["a"]]] * 48), F), "convert string"),
        (lambda X, F: ([x[: 1 + i % 2] for i, x in enumerate(X)], F), r"channels"),
    ],
)
def test_bad_data_is_refused_before_training(windows, change, words):
    with pytest.raises(DataError, match=words):
        _est().fit(*change(windows.X, windows.F))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"similarity": "square"}, "did you mean 'squared'"),
        ({"encoder": "tnc"}, "did you mean 'tcn'"),
        ({"batch_size": 1}, "batch_size is 1"),
        ({"encoder_params": {"wdth": 3}}, "TCN has no setting 'wdth': did you mean 'width'"),
        ({"encoder_params": {"width": -1}}, "TCN cannot be made with {'length': 32, 'width': -1}"),
        ({"embedding_dim": 0}, "embedding_dim is 0: give"),
        ({"random_state": -1}, "random_state is -1: give"),
        ({"feature_space": "standrd"}, "'standard', 'raw'"),
        ({"input_scaling": "robust"}, "'standard' or 'none'"),
        ({"device": "tpu9"}, "device 'tpu9'"),
        ({"tau": 0.0}, "tau is 0"),
    ],
)
def test_bad_settings_are_refused_before_training(windows, settings, words):
    with pytest.raises(ConfigError, match=words):
        _est(**settings).fit(windows)


def test_unknown_methods_suggest_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'expclr'"):
        RepresentationLearner("expcrl").fit(np.zeros((4, 1, 8)), np.zeros((4, 2)))


def test_a_transposed_signal_is_noticed_once(windows):
    with pytest.warns(UserWarning, match="transpose") as caught:
        _est().fit(windows.X.transpose(0, 2, 1), windows.F)
    assert len(caught) == 1


def test_other_channels_than_in_training_are_refused(windows):
    est = _est().fit(windows)
    with pytest.raises(DataError, match="expecting 2"):
        est.transform(windows.X[:, :1])


def test_other_lengths_than_in_training_are_fine(windows):
    assert _est().fit(windows).transform(windows.X[:, :, :20]).shape == (48, 6)


def test_windows_of_one_length_can_be_longer_than_a_batch(rng):
    X = Windows(rng.normal(size=(600, 1, 12)))
    est = _est(max_epochs=0).fit(X, rng.normal(size=(600, 2)))
    assert est.transform(X).shape == (600, 6)
