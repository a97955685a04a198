"""ecg88: the formulas, known beats, real records, and what odd input becomes."""

import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sleepecg")
pytest.importorskip("pywt")

from ecg88_oracle import ecg88_loop, higuchi, one_channel, rr_values
from sleepecg import detect_heartbeats

from expclr.errors import DataError
from expclr.features import ecg_windows, extract
from expclr.features.ecg88 import ecg88, ecg88_values
from expclr.features.higuchi import higuchi as higuchi_dimension
from expclr.features.rpeaks import _with_silence, find_rpeaks
from expclr.features.rr import rr_features

DATA = os.environ.get("EXPCLR_DATA")
BEATS = [150, 340, 560, 745, 960, 1150, 1390, 1600, 1780, 2010, 2190]


def synthetic(beats, t=2500, sfreq=250.0):
    """A channel with a narrow R peak and a wide T wave at each beat."""
    at = (np.arange(t)[:, None] - np.array(beats)) / sfreq
    return (np.exp(-((at / 0.012) ** 2)) + 0.15 * np.exp(-(((at - 0.25) / 0.05) ** 2))).sum(axis=1)


def named(F, channels=1):
    return dict(zip(ecg88.names(channels), F.T, strict=True))


@pytest.fixture
def noisy(rng):
    """Four windows of two channels: irregular beats, some of another form, noise."""
    windows = []
    for i in range(4):
        beats = 100 + np.cumsum(rng.integers(150, 260, size=11))
        x = synthetic(beats[beats < 2500]) + 0.05 * rng.normal(size=2500)
        if i > 1:
            x[beats[4] - 20 : beats[4] + 20] = rng.normal(size=40)
        windows.append(np.stack([x, -0.3 * x + 0.05 * rng.normal(size=2500)]))
    return np.array(windows)


def test_each_value_is_that_of_the_loop_over_windows(noisy):
    np.testing.assert_allclose(ecg88(noisy, 250.0), ecg88_loop(noisy, 250.0), rtol=1e-8, atol=1e-10)


def test_rr_features_of_known_beats_come_out_exactly():
    F = named(ecg88(synthetic(BEATS)[None, None], 250.0))
    expected = rr_values(np.array(BEATS, float), 250.0)
    assert F["ch0_rri_min"] == min(np.diff(BEATS)) / 250
    assert F["ch0_rri_median"] == np.median(np.diff(BEATS)) / 250
    np.testing.assert_allclose([F[f"ch0_{name}"][0] for name in RR_NAMES], expected, rtol=1e-12)
    assert F["ch0_rpeak_rejected_fraction"] == 0
    assert F["ch0_rpeak_detection_success"] == 11 / np.ceil(10 / np.median(np.diff(BEATS) / 250))


RR_NAMES = [name for name in (n.removeprefix("ch0_") for n in ecg88.names(1)) if "rr" in name] + [
    name.removeprefix("ch0_") for name in ecg88.names(1) if "pnn" in name
]


def test_a_change_of_exactly_10_ms_is_not_above_10_ms():
    peaks = np.array([[0, 100, 210, 300, 400]], float)  # at 1000 Hz: changes 10, -20, 10 ms
    F = dict(zip(["pnn01", "pnn10", "pnn20"], rr_features(peaks, 1000.0)[0, 23:26], strict=True))
    assert F["pnn01"] == 100
    assert F["pnn10"] == pytest.approx(100 / 3)
    assert F["pnn20"] == 0


def test_intervals_beside_a_rejected_peak_are_left_out():
    peaks = np.array([[100, 300, np.nan, 700, 900, 1110, 1300, np.nan, np.nan]])
    np.testing.assert_allclose(
        rr_features(peaks, 250.0), [rr_values(peaks[0], 250.0)], rtol=1e-12, atol=1e-12
    )


def test_a_beat_of_another_form_is_rejected_and_its_intervals_are_left_out(rng):
    x = synthetic(BEATS)
    x[BEATS[4] - 40 : BEATS[4] + 40] = 0.3 * rng.normal(size=80)
    F = named(ecg88_values(x[None], 250.0, peaks=[np.array(BEATS)]))
    assert F["ch0_rpeak_rejected_fraction"] == 1 / 11
    kept = np.array(BEATS, float)
    kept[4] = np.nan
    assert F["ch0_rri_mean"] == pytest.approx(np.nanmean(np.diff(kept)) / 250)


def test_a_peak_that_is_off_is_moved_to_the_beat():
    x = synthetic(BEATS)
    off = np.array(BEATS) + np.array([0, 0, 0, 9, 0, 0, 0, -7, 0, 0, 0])
    F = named(ecg88_values(x[None], 250.0, peaks=[off]))
    assert F["ch0_rri_max"] == max(np.diff(BEATS)) / 250
    assert F["ch0_rri_min"] == min(np.diff(BEATS)) / 250


@pytest.mark.parametrize(("sfreq", "seconds"), [(512.0, 1), (512.0, 2), (250.0, 1.3), (100.0, 10)])
def test_beats_faster_than_the_detector_has_room_for_are_found_within_its_memory(sfreq, seconds):
    """Its C code does not look where it writes; its Python twin does."""
    t = np.arange(int(sfreq * seconds)) / sfreq
    rng = np.random.default_rng(0)
    signals = [np.sin(2 * np.pi * hertz * t) for hertz in (4.7, 4.8, 4.9, 5.0)]
    signals += [rng.normal(size=len(t)), np.where(t < t[-1], 0.0, 1e10)]
    for x in signals:
        found = find_rpeaks(x, sfreq)
        safe = detect_heartbeats(_with_silence(x, sfreq), sfreq, backend="python")
        np.testing.assert_array_equal(found, safe[safe < len(x)])


def test_a_channel_that_begins_at_its_very_end_has_no_beats():
    x = np.zeros((1, 1, 2500))
    x[..., -9:] = np.arange(9)
    F = named(ecg88(x, 250.0))
    assert np.isnan(F["ch0_rri_mean"]).all()


def test_higuchi_is_one_for_a_line_and_two_for_noise(rng):
    x = np.stack([np.arange(2500.0), rng.normal(size=2500)])
    np.testing.assert_allclose(higuchi_dimension(x), [higuchi(row) for row in x], rtol=1e-12)
    np.testing.assert_allclose(higuchi_dimension(x), [1, 2], atol=0.02)


def test_polarity_and_unit_do_not_matter(rng):
    x = synthetic(BEATS) + 0.01 * rng.normal(size=2500)
    F = ecg88(np.stack([x, -1000 * x])[:, None], 250.0)
    waveform = slice(0, 48)
    np.testing.assert_allclose(F[1, waveform], F[0, waveform], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("beats", [[], [1200], [900, 1700]])
def test_too_few_beats_leave_the_rr_features_missing(beats):
    x = synthetic(beats) + 1e-3 * np.sin(np.arange(2500) / 8)
    F = named(ecg88_values(x[None], 250.0, peaks=[np.array(beats, int)]))
    assert np.isnan([F[f"ch0_{name}"] for name in RR_NAMES if "rri" in name or "pnn" in name]).all()
    assert np.isfinite(F["ch0_full_waveform_std"])
    assert np.isfinite(F["ch0_swt_a_1_energy_entropy"])


def test_flat_channels_are_missing_and_the_others_are_not(noisy):
    whole = ecg88(noisy, 250.0)
    noisy[0, 0], noisy[2, 1] = 0, 0.1
    F = ecg88(noisy, 250.0)
    assert np.isnan(F[0, :88]).all()
    assert np.isnan(F[2, 88:]).all()
    np.testing.assert_array_equal(F[1], whole[1])
    np.testing.assert_array_equal(F[0, 88:], whole[0, 88:])


def test_nan_in_a_channel_spoils_that_channel_only(noisy):
    whole = ecg88(noisy, 250.0)
    noisy[1, 1, 3] = np.nan
    F = ecg88(noisy, 250.0)
    assert np.isnan(F[1, 88:]).all()
    whole[1, 88:] = np.nan
    np.testing.assert_array_equal(F, whole)


def test_clipped_channels_have_their_waveform(noisy):
    F = ecg88(np.clip(noisy, -0.1, 0.2), 250.0)
    assert np.isfinite(F[:, :48]).all()


def test_88_features_for_each_channel_by_its_name():
    names = ecg88.names(["MLII", "V1"])
    assert len(names) == len(set(names)) == 176
    assert names[0] == "MLII_full_waveform_min"
    assert names[88] == "V1_full_waveform_min"
    assert all(len(line) > 10 for line in ecg88.describe(2).values())


def test_a_low_rate_names_the_bands_that_are_missing(caplog):
    x = np.random.default_rng(0).normal(size=(2, 1, 600))
    F, names = extract("ecg88", x, 50.0)
    values = dict(zip(names, F.T, strict=True))
    assert np.isnan(values["ch0_swt_d_1_med_power_ratio"]).sum() == 2 * (50 <= 60)
    assert np.isfinite(values["ch0_swt_d_1_low_power_ratio"]).all()
    assert "med power ratios (10 to 30 Hz) are NaN" in caplog.text
    assert "R peaks need 5 to 30 Hz" in caplog.text


def test_windows_that_are_too_short_say_what_is_wanted():
    with pytest.raises(DataError, match="ecg88 wants at least a second"):
        extract("ecg88", np.zeros((2, 1, 100)), 250.0)


def test_a_recording_lends_its_beats_to_its_windows():
    beats = np.arange(100, 14900, 200)
    windows = ecg_windows(synthetic(beats, t=15000), 250.0, seconds=10, step=5, channels=["II"])
    F = dict(zip(windows.feature_names, windows.F.T, strict=True))
    assert len(windows) == 11
    assert (F["II_rri_mean"] == 0.8).all()
    x = synthetic(beats, t=15000)
    start = 1250
    inside = [b - start for b in beats if start <= b < start + 2500]
    expected = one_channel(x[start : start + 2500], 250.0, peaks=inside)
    np.testing.assert_allclose(windows.F[1], expected, rtol=1e-6, atol=1e-9)


def test_a_gap_in_a_recording_makes_only_its_windows_missing():
    x = synthetic(np.arange(100, 9900, 200), t=10000)
    x[3000] = np.nan
    windows = ecg_windows(x, 250.0)
    assert np.isnan(windows.F).all(axis=1).tolist() == [False, True, False, False]


@pytest.mark.skipif(not DATA, reason="EXPCLR_DATA is not set: no real recordings")
@pytest.mark.parametrize("record", ["100", "203", "222"])
def test_no_window_of_a_real_record_is_dropped(record):
    wfdb = pytest.importorskip("expclr.datasets.wfdb")
    read = wfdb.read_wfdb(Path(DATA) / "mitdb" / record)
    X = read.X[:, : 40 * 3600].reshape(2, 40, 3600).transpose(1, 0, 2).astype(float)
    F, names = extract("ecg88", X, read.sfreq)
    assert F.shape == (40, 176)
    assert np.isfinite(F[:, :48]).all()
    assert np.isfinite(F[:, 88:136]).all()
    assert np.isfinite(F[:, names.index("ch0_rri_mean")]).mean() > 0.9
    np.testing.assert_allclose(F[:2], ecg88_loop(X[:2], read.sfreq), rtol=1e-7, atol=1e-9)
