"""Waveforms in the page: near enough, nothing lost, nothing made up."""

import numpy as np

from expclr.report import Waveforms, gallery
from expclr.windows import Windows


def restored(waves):
    values = waves.values.astype(np.float64)
    values[waves.values == -32768] = np.nan
    return values * waves.scale[..., None] + waves.offset[..., None]


def test_quantised_values_are_off_by_half_a_level_at_most():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5, 3, 64)) * rng.lognormal(0, 5, (5, 3, 1))
    waves = Waveforms.of(Windows(X))
    size = np.ptp(X, axis=2, keepdims=True)
    assert (np.abs(restored(waves) - X) <= 0.51 * size / 65534 + 1e-6 * np.abs(X)).all()


def test_padding_and_missing_values_stay_empty():
    X = np.ones((2, 1, 8))
    X[0, 0, 2], X[0, 0, 3] = np.nan, np.inf
    waves = Waveforms.of(Windows(X, lengths=[8, 5]))
    empty = np.isnan(restored(waves))
    assert np.flatnonzero(empty[0, 0]).tolist() == [2, 3]
    assert np.flatnonzero(empty[1, 0]).tolist() == [5, 6, 7]


def test_a_channel_with_nothing_in_it_is_empty():
    waves = Waveforms.of(Windows(np.full((1, 1, 4), np.nan)))
    assert np.isnan(restored(waves)).all()
    assert waves.range.tolist() == [[0, 0]]


def test_long_windows_keep_every_stretch_s_extremes_in_order():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2, 2, 700_001)).astype(np.float32)
    X[1, 0, 123_456] = 50
    waves = Waveforms.of(Windows(X, sfreq=100.0))
    shown = restored(waves)
    stretch = round(waves.step * 100 * 2)
    assert shown.size <= 1_250_000 * 1.01
    for part in range(0, shown.shape[2] // 2, 997):
        piece = X[1, 0, part * stretch : (part + 1) * stretch]
        ends = [piece.min(), piece.max()]
        order = ends if piece.argmin() < piece.argmax() else ends[::-1]
        np.testing.assert_allclose(shown[1, 0, 2 * part : 2 * part + 2], order, atol=1e-3)
    assert abs(np.nanmax(shown[1, 0]) - 50) < 1e-3
    assert abs(shown.shape[2] * waves.step - 700_001 / 100) < 2 * stretch / 100


def test_a_gallery_shows_each_class_by_its_own_windows(made):
    windows, _ = made
    shown = gallery(windows, per_class=3, random_state=4)
    assert list(shown.rows) == list(windows.class_names)
    for code, positions in enumerate(shown.rows.values()):
        numbers = [int(shown.labels[i].split(",")[0].removeprefix("Window ")) for i in positions]
        assert windows.y[numbers].tolist() == [code] * 3
        np.testing.assert_allclose(
            restored(shown.waveforms)[list(positions)], windows.X[numbers], atol=1e-3
        )


def test_a_gallery_without_labels_shows_windows_all_the_same():
    assert list(gallery(Windows(np.zeros((3, 1, 4)))).rows) == ["all windows"]
    assert list(gallery(Windows(np.zeros((3, 1, 4)), y=[-1, -1, -1])).rows) == ["all windows"]
