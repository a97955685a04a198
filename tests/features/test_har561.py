"""har561: the formulas, the published values, and what odd input becomes."""

import csv
import os
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from har561_oracle import har561_loop
from scipy import signal

from expclr.errors import ConfigError, DataError
from expclr.features import extract, har_scale, har_windows
from expclr.features.har561 import har561, har561_values
from expclr.features.har_signals import HAR_CHANNELS, har_channels, har_signals

DATA = os.environ.get("EXPCLR_DATA")


@pytest.fixture
def har(rng):
    """(40, 9, 129) with drift, gravity and noise, each with the sample after its end."""
    x = rng.normal(size=(40, 9, 129)).cumsum(axis=2) * 0.05 + rng.normal(size=(40, 9, 129)) * 0.1
    x[:, 6:] += rng.normal(size=(40, 3, 1))
    return x


def column(F, name):
    return F[:, har561.names(9).index(name)]


def test_each_value_is_that_of_the_loop_over_windows(har):
    np.testing.assert_allclose(
        har561_values(har, next_sample=True), har561_loop(har), rtol=1e-9, atol=1e-9
    )


def test_windows_without_a_next_sample_repeat_the_last_jerk(har):
    short = har[..., :-1]
    repeated = np.concatenate([short, 2 * short[..., -1:] - short[..., -2:-1]], axis=2)
    np.testing.assert_allclose(har561(short, 50.0), har561_loop(repeated), rtol=1e-9, atol=1e-9)


def test_names_are_unique_and_described():
    names = har561.names(HAR_CHANNELS)
    assert len(names) == len(set(names)) == 561
    assert all(len(line) > 10 for line in har561.describe(HAR_CHANNELS).values())
    units = dict(zip(names, har561.units(HAR_CHANNELS), strict=True))
    assert units["tBodyAcc-mean()-X"] == "g"
    assert units["tBodyGyroJerk-energy()-Z"] == "(rad/s/sample)^2"


def test_signals_are_those_of_the_named_filters():
    rng = np.random.default_rng(1)
    acc, gyro = rng.normal(size=(2, 500, 3))
    signals = har_signals(acc, gyro)
    middle = signal.medfilt(acc[:, 1], 3)
    total = signal.sosfilt(signal.butter(10, 20, fs=50, output="sos"), middle)
    gravity = signal.sosfilt(signal.butter(3, 0.3, fs=50, output="sos"), total)
    np.testing.assert_allclose(signals["total_acc"][1], total, atol=1e-12)
    np.testing.assert_allclose(signals["gravity_acc"][1], gravity, atol=1e-12)
    np.testing.assert_allclose(signals["body_acc"][1], total - gravity, atol=1e-12)
    jerk = np.append(np.diff(total - gravity), 0)
    np.testing.assert_allclose(signals["body_acc_jerk"][1], jerk, atol=1e-12)
    turn = signal.sosfilt(signal.butter(10, 20, fs=50, output="sos"), signal.medfilt(gyro[:, 2], 3))
    drift = signal.sosfilt(signal.butter(2, 0.1, fs=50, output="sos"), turn)
    np.testing.assert_allclose(signals["body_gyro"][2], turn - drift, atol=1e-12)


def test_a_recording_at_100_hz_becomes_nearly_the_one_at_50_hz():
    t = np.arange(4000) / 100
    acc = np.sin(2 * np.pi * np.outer(t, [0.7, 2, 3]))
    fine, coarse = har_windows(acc, acc, sfreq=100), har_windows(acc[::2], acc[::2])
    assert fine.X.shape == coarse.X.shape
    np.testing.assert_allclose(fine.X[2:], coarse.X[2:], atol=0.02)


def test_a_gap_makes_only_its_own_windows_missing():
    rng = np.random.default_rng(2)
    acc, gyro = rng.normal(size=(2, 640, 3))
    acc[300, 1] = np.nan
    windows = har_windows(acc, gyro)
    lost = np.isnan(windows.F).any(axis=1)
    touched = [start <= 300 <= start + 128 for start in range(0, 513, 64)]
    assert lost.tolist() == touched
    assert np.isnan(windows.F[lost]).all()


def test_jerk_is_zero_at_the_end_of_a_recording_and_nowhere_else():
    acc, gyro = np.random.default_rng(3).normal(size=(2, 192, 3))
    x = har_channels(har_signals(acc, gyro))
    x = np.append(x, x[:, -1:], axis=1)
    expected = har561_loop(np.stack([x[:, :129], x[:, 64:]]))
    np.testing.assert_allclose(har_windows(acc, gyro).F, expected, rtol=1e-8, atol=1e-9)


def test_acceleration_in_other_units_is_noticed(caplog):
    acc, gyro = np.random.default_rng(3).normal(size=(2, 192, 3))
    har_signals(acc + np.eye(3)[2], gyro)
    assert not caplog.text
    har_signals(9.80665 * (0.1 * acc + np.eye(3)[2]), gyro)
    assert "Divide by 9.80665" in caplog.text


def test_starts_choose_the_windows():
    acc, gyro = np.random.default_rng(3).normal(size=(2, 640, 3))
    chosen = har_windows(acc, gyro, starts=[64, 512])
    every = har_windows(acc, gyro)
    np.testing.assert_array_equal(chosen.F, every.F[[1, 8]])
    with pytest.raises(DataError, match="do not fit a recording of 640 samples"):
        har_windows(acc, gyro, starts=[600])


@pytest.mark.parametrize("t", [128, 101])
def test_flat_and_zero_channels_are_defined_or_missing_but_never_rounding(har, t):
    har[0] = 0
    har[1, 3:6] = 0.1
    F = har561_values(har[..., : t + 1], next_sample=True)
    assert column(F, "tBodyAcc-std()-X")[0] == 0
    assert column(F, "tBodyGyro-std()-X")[1] == 0
    assert column(F, "tBodyGyro-mean()-X")[1] == 0.1
    assert column(F, "tBodyGyro-arCoeff()-X,2")[1] == 0
    for name in ("tBodyGyro-correlation()-X,Y", "fBodyGyro-meanFreq()-X", "fBodyGyro-skewness()-Z"):
        assert np.isnan(column(F, name)[:2]).all()
        assert np.isfinite(column(F, name)[2:]).all()
    assert not np.isinf(F).any()


def test_gravity_that_is_constant_but_for_rounding_is_predicted_by_its_last_value(har):
    har[:, 6:] = har[:, :3] + 0.1 * np.arange(1, 4)[:, None]
    F = har561_values(har, next_sample=True)
    ar = np.stack([column(F, f"tGravityAcc-arCoeff()-Y,{lag}") for lag in (1, 2, 3, 4)], axis=1)
    np.testing.assert_allclose(ar, np.tile([-1.0, 0, 0, 0], (40, 1)), atol=1e-12)


def test_clipped_channels_have_finite_values(har):
    assert np.isfinite(har561_values(np.clip(har, -0.2, 0.2), next_sample=True)).all()


def test_a_window_with_nan_is_missing_and_the_others_are_not(har):
    whole = har561(har, 50.0)
    har[7, 4, 100] = np.nan
    F = har561(har, 50.0)
    assert np.isnan(F[7]).all()
    np.testing.assert_array_equal(np.delete(F, 7, axis=0), np.delete(whole, 7, axis=0))


def test_other_window_lengths_keep_the_bands_in_hertz():
    t = np.arange(256) / 50
    window = np.zeros((1, 9, 256))
    window[0, 0] = np.sin(2 * np.pi * 10 * t)  # bin 25.6 of 128 samples
    F = har561(window, 50.0)
    assert column(F, "fBodyAcc-maxInds-X")[0] == pytest.approx(24.5)
    assert column(F, "fBodyAcc-bandsEnergy()-25,32-X")[0] > 1e-3
    assert column(F, "fBodyAcc-bandsEnergy()-17,24-X")[0] < 1e-3


def test_a_low_rate_names_the_bands_that_are_missing(caplog):
    X = np.random.default_rng(4).normal(size=(3, 9, 64))
    F, names = extract("har561", X, 25.0)
    missing = [name for name, column in zip(names, F.T, strict=True) if np.isnan(column).any()]
    bands = {"33,40", "41,48", "49,56", "57,64", "33,48", "49,64", "25,48"}
    assert {name.split("-")[2] for name in missing} == bands
    assert "sfreq 25 Hz ends at 12.5 Hz" in caplog.text
    assert "33-40" in caplog.text


@pytest.mark.parametrize("shape", [(2, 6, 128), (2, 9, 10)])
def test_wrong_shapes_say_what_is_wanted(shape):
    with pytest.raises(DataError, match="har561 wants"):
        extract("har561", np.zeros(shape), 50.0)


def test_recordings_of_wrong_shape_say_what_is_wanted():
    with pytest.raises(DataError, match=r"acc has shape \(3, 99\): \(t, 3\) is wanted"):
        har_signals(np.zeros((3, 99)), np.zeros((99, 3)))
    with pytest.raises(DataError, match="99 timepoints and gyro 98"):
        har_signals(np.zeros((99, 3)), np.zeros((98, 3)))
    with pytest.raises(DataError, match="no timepoint"):
        har_signals(np.full((99, 3), np.nan), np.zeros((99, 3)))


def test_scaling_is_by_train_unless_the_published_one_is_asked_for():
    train, test = np.array([[0.0], [2.0]]), np.array([[4.0]])
    assert har_scale(train, test)[1].tolist() == [[3.0]]
    assert har_scale(train, test, scaling="published")[0].tolist() == [[-1.0], [0.0]]
    with pytest.raises(ConfigError, match="'train' or 'published'"):
        har_scale(train, test, scaling="both")


@pytest.mark.skipif(not DATA, reason="EXPCLR_DATA is not set: no real recordings")
def test_raw_recordings_give_the_published_features():
    """All 10,299 rows of UCI HAR, to 1e-6, from the recordings of the same people."""
    with open(Path(DATA) / "hapt" / "har_window_index.csv") as file:
        index = list(csv.DictReader(file))
    experiment = np.array([int(row["hapt_experiment"]) for row in index])
    start = np.array([int(row["start_sample0"]) for row in index])
    train = np.array([row["split"] == "train" for row in index])
    F = np.empty((len(index), 561))
    with zipfile.ZipFile(Path(DATA) / "hapt" / "hapt_raw.zip") as archive:
        for e in np.unique(experiment):
            (acc,) = [n for n in archive.namelist() if n.startswith(f"RawData/acc_exp{e:02d}")]
            raw = [numbers(archive, n) for n in (acc, acc.replace("acc", "gyro"))]
            here = np.flatnonzero(experiment == e)
            signals = har_channels(har_signals(*raw))
            X = np.stack([signals[:, start[i] : start[i] + 129] for i in here])
            F[here] = har561_values(X, next_sample=True)
            if e == 1:
                windows = har_windows(*raw, starts=start[here])
                np.testing.assert_array_equal(windows.F, F[here])
    scaled = har_scale(F[train], F[~train], scaling="published")
    with zipfile.ZipFile(Path(DATA) / "uci_har" / "UCI HAR Dataset.zip") as archive:
        names = archive.read("UCI HAR Dataset/features.txt").decode().splitlines()
        for part, mine in zip(("train", "test"), scaled, strict=True):
            published = numbers(archive, f"UCI HAR Dataset/{part}/X_{part}.txt")
            np.testing.assert_allclose(mine, published, rtol=0, atol=1e-6)
    published_names = [name.partition(" ")[2].strip() for name in names]
    assert len(F) == 10_299
    assert all(n.startswith(p) for n, p in zip(har561.names(9), published_names, strict=True))


def numbers(archive, name):
    with archive.open(name) as file:
        return pd.read_csv(file, sep=r"\s+", header=None).to_numpy()
