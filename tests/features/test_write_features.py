"""write_features: kept beside the windows, whole or not at all, and not computed twice."""

import json

import numpy as np
import pandas as pd
import pytest

from expclr.cli import main
from expclr.errors import DataError
from expclr.features import extract, write_features
from expclr.features.store import copy_windows
from expclr.windows import Windows


@pytest.fixture
def folder(rng, tmp_path):
    windows = Windows(rng.normal(size=(20, 2, 100)), y=np.arange(20) % 3, sfreq=50.0, name="mine")
    return windows.save(tmp_path / "store")


def test_features_and_what_is_known_of_them_lie_beside_the_windows(folder):
    before = Windows.load(folder)
    assert write_features(folder, "basic")
    after = Windows.load(folder)
    F, names = extract("basic", before)
    np.testing.assert_array_equal(after.F, F)
    assert after.feature_names == names
    np.testing.assert_array_equal(after.X, before.X)
    np.testing.assert_array_equal(after.y, before.y)
    assert (after.name, after.sfreq) == ("mine", 50.0)
    noted = json.loads((folder / "meta.json").read_text())["features"]
    assert noted["extractor"] == "basic"
    assert noted["version"] == "1"
    assert noted["units"][:2] == ["x", "x"]


def test_nothing_is_computed_while_nothing_changed(folder, monkeypatch):
    assert write_features(folder, "basic")
    stamp = (folder / "F.npy").stat().st_mtime_ns
    assert not write_features(folder, "basic")
    assert (folder / "F.npy").stat().st_mtime_ns == stamp


def test_other_windows_or_another_extractor_are_computed(folder):
    write_features(folder, "basic")
    X = np.load(folder / "X.npy")
    X[3] += 1
    np.save(folder / "X.npy", X)
    assert write_features(folder, "basic")
    np.testing.assert_array_equal(Windows.load(folder).F, extract("basic", X, 50.0)[0])
    assert write_features(folder, "eeg29")
    assert Windows.load(folder).F.shape == (20, 58)


def test_features_from_elsewhere_are_computed_again(folder):
    write_features(folder, "basic")
    Windows.load(folder).with_(F=np.zeros((20, 1)), feature_names=("zero",)).save(folder)
    assert write_features(folder, "basic")


def test_a_function_is_trusted_only_with_a_version(folder):
    def top(x, sfreq):
        return x.max(axis=2)

    assert write_features(folder, top)
    assert write_features(folder, top)
    top.version = "1"
    assert write_features(folder, top)
    assert not write_features(folder, top)


def test_a_failure_leaves_the_old_features(folder):
    write_features(folder, "basic")
    old = Windows.load(folder).F

    def broken(x, sfreq):
        raise RuntimeError("no")

    with pytest.raises(DataError, match="'broken' failed on window 0"):
        write_features(folder, broken)
    np.testing.assert_array_equal(Windows.load(folder).F, old)
    assert [path.name for path in folder.parent.iterdir()] == ["store"]


def test_the_detector_of_an_ecg_is_named(rng, tmp_path):
    pytest.importorskip("sleepecg")
    pytest.importorskip("pywt")
    folder = Windows(rng.normal(size=(2, 1, 400)), sfreq=100.0).save(tmp_path / "ecg")
    write_features(folder, "ecg88")
    noted = json.loads((folder / "meta.json").read_text())["features"]
    assert noted["uses"] == "R peaks by sleepecg.detect_heartbeats"


def test_a_table_is_kept_as_features_too(folder, tmp_path):
    pd.DataFrame({"window": range(20), "wear": range(20)}).to_csv(tmp_path / "w.csv", index=False)
    assert write_features(folder, tmp_path / "w.csv")
    after = Windows.load(folder)
    np.testing.assert_array_equal(after.F[:, 0], range(20))
    assert after.feature_names == ("wear",)


def test_missing_values_are_counted(folder):
    X = np.load(folder / "X.npy")
    X[:4, 1] = 0
    np.save(folder / "X.npy", X)
    write_features(folder, "basic")
    missing = json.loads((folder / "meta.json").read_text())["features"]["missing"]
    assert missing["ch1_spectral_entropy"] == 4
    assert "ch0_mean" not in missing


def test_a_copy_leaves_the_windows_as_they_are_and_is_kept(folder, tmp_path):
    windows, copy = Windows.load(folder), tmp_path / "new" / "copy"
    assert copy_windows((windows, None), copy) == [copy]
    assert write_features(copy, "basic")
    copy_windows((windows, None), copy)
    assert not write_features(copy, "basic")
    assert Windows.load(folder).F is None
    copy_windows((windows.with_(y=windows.y + 1), None), copy)
    assert Windows.load(copy).F is None


def test_both_parts_are_copied(folder, tmp_path):
    windows = Windows.load(folder)
    parts = windows.subset(slice(0, 12)), windows.subset(slice(12, 20))
    train, test = copy_windows(parts, tmp_path / "two")
    assert (train.name, test.name) == ("train", "test")
    assert [len(Windows.load(part)) for part in (train, test)] == [12, 8]


def test_the_command_takes_a_dataset_by_its_name(tmp_path, capsys):
    assert main(["features", "basic", "machine", "--out", str(tmp_path / "m")]) == 0
    assert main(["features", "basic", "machine", "--out", str(tmp_path / "m")]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert [line.rpartition(" ")[2] for line in lines[:4]] == ["written"] * 2 + ["unchanged"] * 2
    assert Windows.load(tmp_path / "m" / "test").F.shape[1] == 45
    assert main(["features", "basic", "machine"]) == 2
    assert "say with --out" in capsys.readouterr().err
