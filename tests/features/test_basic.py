"""basic: known signals, a loop of the formulas, and what odd input becomes."""

import numpy as np
import pytest
from scipy import stats

from expclr.errors import DataError
from expclr.features import extract
from expclr.features.basic import basic


def named(F):
    return dict(zip(basic.names(1), F.T, strict=True))


def one_row(x, sfreq):
    centred = x - x.mean()
    power = np.abs(np.fft.rfft(centred)[1:]) ** 2
    hertz = np.fft.rfftfreq(len(x), 1 / sfreq)[1:]
    p = power / power.sum()
    correlation = np.correlate(centred, centred, "full")[len(x) - 1 :] / (centred @ centred)
    after = np.flatnonzero(correlation < 1 / np.e)[0]
    high, low = correlation[after - 1], correlation[after]
    above = centred >= 0
    return [
        *(x.mean(), x.std(), x.min(), x.max()),
        *np.quantile(x, [0.05, 0.25, 0.5, 0.75, 0.95]),
        stats.linregress(np.arange(len(x)) / sfreq, x).slope,
        np.mean(above[1:] != above[:-1]) * sfreq,
        hertz[power.argmax()],
        p @ hertz,
        -np.sum(p * np.log(p)) / np.log(len(p)),
        (after - 1 + (high - 1 / np.e) / (high - low)) / sfreq,
    ]


def test_each_value_is_that_of_the_loop_over_channels(rng):
    X = rng.normal(size=(5, 3, 200)).cumsum(axis=2)
    expected = [np.concatenate([one_row(x, 40.0) for x in window]) for window in X]
    np.testing.assert_allclose(basic(X, 40.0), expected, rtol=1e-9)


def test_a_sine_on_a_slope_shows_in_the_names():
    t = np.arange(1000) / 100
    F = named(basic((np.sin(2 * np.pi * 5 * t) + 0.2 * t)[None, None], 100.0))
    assert F["ch0_dominant_frequency"] == pytest.approx(5)
    assert F["ch0_slope"] == pytest.approx(0.2, abs=0.02)


def test_a_flat_channel_has_no_frequency():
    F = named(basic(np.full((2, 1, 50), 0.1), 100.0))
    assert (F["ch0_std"] == 0).all()
    assert (F["ch0_quantile_95"] == 0.1).all()
    for name in ("dominant_frequency", "spectral_centroid", "spectral_entropy"):
        assert np.isnan(F[f"ch0_{name}"]).all()
    assert np.isnan(F["ch0_autocorrelation_time"]).all()


def test_every_length_from_three_on_works(rng):
    for t in range(3, 20):
        assert not np.isinf(basic(rng.normal(size=(4, 1, t)), 1.0)).any()
    with pytest.raises(DataError, match="at least 3 timepoints, got 2"):
        extract("basic", rng.normal(size=(4, 1, 2)), 1.0)
