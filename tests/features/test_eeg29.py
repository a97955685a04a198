"""eeg29: the formulas, known signals, and what odd input becomes."""

import os
from pathlib import Path

import numpy as np
import pytest
from eeg29_oracle import eeg29_loop
from scipy import signal

from expclr.errors import DataError
from expclr.features import extract
from expclr.features.eeg29 import eeg29
from expclr.features.spectra import welch

DATA = os.environ.get("EXPCLR_DATA")


def named(F, channels=1):
    return dict(zip(eeg29.names(channels), F.T, strict=True))


@pytest.mark.parametrize(("t", "sfreq"), [(3000, 100.0), (1501, 64.0), (3840, 128.0)])
def test_each_value_is_that_of_the_loop_over_epochs(rng, t, sfreq):
    X = 20 * rng.normal(size=(6, 2, t)).cumsum(axis=2)
    np.testing.assert_allclose(eeg29(X, sfreq), eeg29_loop(X, sfreq), rtol=1e-8)


@pytest.mark.parametrize(("t", "segment"), [(100, 40), (101, 41), (50, 256), (7, 7), (1000, 3)])
def test_welch_is_that_of_scipy(rng, t, segment):
    x = rng.normal(size=(2, 3, t)) + 5
    hertz, power = signal.welch(x, 50.0, nperseg=min(segment, t))
    np.testing.assert_allclose(welch(x, 50.0, segment=segment)[0], hertz)
    np.testing.assert_allclose(welch(x, 50.0, segment=segment)[1], power, atol=1e-12)


def test_a_sine_of_10_hz_is_alpha():
    t = np.arange(3000) / 100
    F = named(eeg29((3 * np.sin(2 * np.pi * 10 * t))[None, None], 100.0))
    assert F["ch0_relative_power_alpha"] > 0.999
    assert F["ch0_peak_frequency"] == 10
    assert F["ch0_spectral_edge_95"] == pytest.approx(10, abs=0.3)
    assert F["ch0_log_power_alpha"] == pytest.approx(np.log10(9 / 2), abs=1e-3)
    assert F["ch0_rms"] == pytest.approx(3 / np.sqrt(2))
    assert F["ch0_zero_crossing_rate"] == pytest.approx(20, abs=0.1)
    assert F["ch0_hjorth_mobility"] == pytest.approx(2 * 100 * np.sin(np.pi / 10), rel=1e-3)
    assert F["ch0_hjorth_complexity"] == pytest.approx(1, abs=1e-3)


def test_white_noise_has_a_flat_spectrum(rng):
    F = named(eeg29(rng.normal(size=(50, 1, 3000)), 100.0))
    assert F["ch0_spectral_entropy"].mean() > 0.97
    assert F["ch0_relative_power_beta"].mean() == pytest.approx(17 / 29.5, rel=0.02)


def test_29_features_for_each_channel_by_its_name(rng):
    names = eeg29.names(["Fpz-Cz", "Pz-Oz"])
    assert len(names) == len(set(names)) == 58
    assert names[0] == "Fpz-Cz_mean"
    assert names[29] == "Pz-Oz_mean"
    x = rng.normal(size=(2, 2, 3000))
    np.testing.assert_array_equal(eeg29(x, 100.0)[:, 29:], eeg29(x[:, 1:], 100.0))


def test_a_flat_channel_has_no_spectrum_and_no_shape():
    x = np.zeros((3, 1, 3000))
    x[1] = 0.1
    x[2] = 1e8 / 3
    F = named(eeg29(x, 100.0))
    assert F["ch0_mean"][1] == 0.1
    for name in ("std", "peak_to_peak", "mean_abs_difference", "zero_crossing_rate"):
        assert (F[f"ch0_{name}"] == 0).all()
    for name in ("skewness", "hjorth_mobility", "log_power_delta", "spectral_edge_95"):
        assert np.isnan(F[f"ch0_{name}"]).all()


def test_a_clipped_channel_has_finite_values(rng):
    assert np.isfinite(eeg29(np.clip(rng.normal(size=(4, 1, 3000)), -0.1, 0.1), 100.0)).all()


def test_nan_in_a_channel_spoils_that_channel_only(rng):
    x = rng.normal(size=(3, 2, 3000))
    whole = eeg29(x, 100.0)
    x[1, 0, 17] = np.inf
    F = eeg29(x, 100.0)
    assert np.isnan(F[1, :29]).all()
    whole[1, :29] = np.nan
    np.testing.assert_array_equal(F, whole)


def test_a_low_rate_names_the_bands_that_are_missing(rng, caplog):
    F, names = extract("eeg29", rng.normal(size=(2, 1, 1500)), 50.0)
    missing = {name for name, column in zip(names, F.T, strict=True) if np.isnan(column).all()}
    assert missing == {
        "ch0_log_power_beta",
        "ch0_relative_power_beta",
        "ch0_ratio_alpha_beta",
        "ch0_ratio_slow_fast",
    }
    assert "beta (13 to 30 Hz) cannot be measured" in caplog.text


@pytest.mark.parametrize(("t", "sfreq"), [(40, 100.0), (100, 6.0)])
def test_epochs_without_any_band_say_what_is_wanted(t, sfreq):
    with pytest.raises(DataError, match="eeg29 wants"):
        extract("eeg29", np.zeros((2, 1, t)), sfreq)


@pytest.mark.skipif(not DATA, reason="EXPCLR_DATA is not set: no real recordings")
def test_a_real_night_gives_plausible_values():
    edf = pytest.importorskip("expclr.datasets.edf")
    record = edf.read_edf(Path(DATA) / "sleep_edf" / "short_psg.edf", channels=["EEG Fpz-Cz"])
    epochs = record.X[:, : record.X.shape[1] // 3000 * 3000].reshape(-1, 1, 3000)
    F, names = extract("eeg29", epochs, record.sfreq)
    assert F.shape == (10, 29)
    assert np.isfinite(F).all()
    np.testing.assert_allclose(F, eeg29_loop(epochs.astype(float), record.sfreq), rtol=1e-6)
    values = dict(zip(names, F.T, strict=True))
    assert (values["ch0_rms"] > 5).all()  # microvolts
    assert (values["ch0_rms"] < 200).all()
