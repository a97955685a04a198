"""Data of a study: splits that share no group, files that carry a dataset elsewhere."""

import numpy as np
import pytest

from expclr.datasets import load_dataset
from expclr.errors import ConfigError, DataError
from expclr.experiments.export import main as export
from expclr.experiments.study_data import Study, open_study, read_parts, thinned, write_parts


@pytest.fixture(scope="module")
def study():
    return open_study("machine", per_group=5)


def test_validation_shares_no_group_with_what_is_trained_on_nor_with_test(study):
    train, held = study.parts("validation")
    assert not set(train.group) & set(held.group)
    assert not set(held.group) & set(study.test.group)
    assert len(train) + len(held) == len(study.train)


def test_the_split_tells_parts_and_sizes_apart(study):
    other = Study(study.name, thinned(study.train, 4), study.test)
    names = {study.split("test"), study.split("validation"), other.split("test")}
    assert len(names) == 3


def test_an_exported_file_gives_back_what_was_written(study, tmp_path):
    train, test = read_parts(write_parts(tmp_path / "m.npz", study.train, study.test))
    step = np.asarray(study.train.X).std(axis=(0, 2))[:, None] / 256
    assert (np.abs(train.X - study.train.X) <= 0.501 * step).all()
    assert (np.abs(test.X - study.test.X) <= 0.501 * step).all()
    np.testing.assert_allclose(test.F, study.test.F, rtol=1e-3)
    np.testing.assert_array_equal(train.y, study.train.y)
    np.testing.assert_array_equal(train.group, study.train.group)
    assert train.feature_names == study.train.feature_names
    assert train.sfreq == study.train.sfreq


def test_windows_with_far_values_are_kept_as_they_are(study, tmp_path):
    X = np.asarray(study.train.X).copy()
    X[0, 0, 0] = 1e6
    train, test = read_parts(write_parts(tmp_path / "m.npz", study.train.with_(X=X), study.test))
    np.testing.assert_array_equal(train.X, X)
    assert test.X.shape == study.test.X.shape


def test_smooth_windows_take_less_room_than_in_half_precision(study, tmp_path):
    smooth = np.cumsum(np.asarray(study.train.X), axis=2)
    path = write_parts(tmp_path / "m.npz", study.train.with_(X=smooth), study.train)
    np.savez_compressed(tmp_path / "half.npz", smooth.astype(np.float16))
    with np.load(path) as held:
        np.savez_compressed(tmp_path / "steps.npz", held["X_train"])
    assert (tmp_path / "steps.npz").stat().st_size < 0.9 * (tmp_path / "half.npz").stat().st_size


def test_values_beyond_half_precision_keep_single_precision(study, tmp_path):
    big = study.train.with_(F=np.asarray(study.train.F) * 1e6)
    train, _ = read_parts(write_parts(tmp_path / "m.npz", big, study.test))
    np.testing.assert_allclose(train.F, big.F, rtol=1e-6)


def test_features_that_half_precision_would_crush_keep_single_precision(study, tmp_path):
    tiny = study.train.with_(F=np.asarray(study.train.F) * 1e-9)
    train, _ = read_parts(write_parts(tmp_path / "m.npz", tiny, study.test))
    np.testing.assert_allclose(train.F, tiny.F, rtol=1e-6)


def test_the_exporter_runs_as_a_program(tmp_path, capsys):
    assert export([str(tmp_path), "machine"]) == 0
    assert "machine.npz" in capsys.readouterr().out
    study = open_study("machine", npz=tmp_path)
    assert len(study.train) == len(load_dataset("machine")[0])


def test_missing_data_are_named_before_anything_runs(tmp_path, monkeypatch):
    with pytest.raises(DataError, match="no file"):
        open_study("machine", npz=tmp_path)
    monkeypatch.setenv("EXPCLR_DATA", str(tmp_path))
    with pytest.raises(DataError, match="expclr fetch uci_har"):
        open_study("har")
    with pytest.raises(ConfigError, match="uci_har"):
        open_study("uci_hra")


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / "machine.npz").write_bytes(b"PK no")
    with pytest.raises(DataError, match="not a readable"):
        open_study("machine", npz=tmp_path)
