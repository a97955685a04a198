"""extract: every kind of extractor and of windows, in pieces, in parallel, with clear errors."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest

from expclr.errors import ConfigError, DataError
from expclr.features import FEATURES, extract, extraction, features_of
from expclr.features.extractor import Extractor
from expclr.windows import Windows


def peak_to_peak(x, sfreq):
    """(n, c) of x (n, c, t)."""
    return np.ptp(x, axis=2)


@pytest.fixture
def X(rng):
    return rng.normal(size=(50, 2, 400))


@pytest.fixture(params=["har561", "eeg29", "ecg88", "basic"])
def known(request):
    if request.param == "ecg88":
        pytest.importorskip("sleepecg")
        pytest.importorskip("pywt")
    return FEATURES[request.param], 9 if request.param == "har561" else 2


def test_every_extractor_gives_as_many_values_as_names_units_and_lines(known, rng):
    extractor, c = known
    F = extractor(rng.normal(size=(3, c, 400)), 100.0)
    names = extractor.names(c)
    assert F.shape == (3, len(names))
    assert F.dtype == np.float64
    assert len(extractor.units(c)) == len(extractor.describe(c)) == len(set(names)) == len(names)
    assert extractor.version


def test_every_extractor_looks_at_each_window_by_itself(known, rng):
    extractor, c = known
    X = rng.normal(size=(6, c, 400))
    whole = extractor(X, 100.0)
    alone = np.concatenate([extractor(x[None], 100.0) for x in X])
    np.testing.assert_allclose(alone, whole, rtol=1e-9, atol=1e-12)


def test_no_extractor_changes_its_input_or_makes_infinite_values(known, rng):
    extractor, c = known
    X = rng.normal(size=(8, c, 400))
    X[0], X[1, 0], X[2, :, 200:], X[3, 0, 7], X[4, 0, 8] = 0, 3, 0, np.nan, np.inf
    X[5], X[6] = np.clip(X[5], -0.1, 0.1), 1e-200
    X[7] *= 1e20
    before = X.copy()
    assert not np.isinf(extractor(X, 100.0)).any()
    np.testing.assert_array_equal(X, before)


def test_every_extractor_can_be_sent_to_another_process(known):
    extractor, c = known
    assert pickle.loads(pickle.dumps(extractor)).names(c) == extractor.names(c)


def test_pieces_and_jobs_do_not_matter(X, monkeypatch):
    expected, names = extract("basic", X, 100.0)
    monkeypatch.setattr(extraction, "VALUES", 3 * 2 * 400)
    for n_jobs in (1, 2):
        F, same = extract("basic", X, 100.0, n_jobs=n_jobs)
        np.testing.assert_allclose(F, expected, rtol=1e-12)
        assert same == names


@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing"])
def test_the_backend_is_the_users_choice(X, backend, monkeypatch):
    monkeypatch.setattr(extraction, "VALUES", 10 * 2 * 400)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        F, _ = extract(peak_to_peak, X, 100.0, n_jobs=None)
        np.testing.assert_allclose(
            extract("basic", X, 100.0, n_jobs=None)[0][:, 0], X[:, 0].mean(1)
        )
    np.testing.assert_array_equal(F, peak_to_peak(X, 100.0))


def test_a_memory_mapped_file_is_read_piece_by_piece(X, tmp_path, monkeypatch):
    np.save(tmp_path / "X.npy", X)
    monkeypatch.setattr(extraction, "VALUES", 10 * 2 * 400)
    seen = []

    def largest(x, sfreq):
        seen.append((len(x), isinstance(x, np.memmap), x.flags.writeable))
        return x.max(axis=2)

    F, _ = extract(largest, np.load(tmp_path / "X.npy", mmap_mode="r"), 100.0)
    np.testing.assert_array_equal(F, X.max(axis=2))
    assert seen == [(10, False, True)] * 5


def test_double_precision_is_kept():
    X = np.full((1, 1, 8), 1 + 1e-12)
    assert extract(lambda x, sfreq: x[:, :, 0] - 1, X, 1.0)[0][0, 0] == pytest.approx(1e-12)


def test_padding_is_not_looked_at(rng):
    series = [rng.normal(size=(2, length)) for length in (90, 40, 90, 60)]
    F, _ = extract("basic", series, 10.0)
    expected = [extract("basic", s[None].astype(np.float32), 10.0)[0][0] for s in series]
    np.testing.assert_allclose(F, expected, rtol=1e-12)


def test_windows_bring_their_rate_and_channel_names(X):
    windows = Windows(X, sfreq=100.0, channel_names=("pressure", "flow"), y=np.zeros(50, int))
    described = features_of(windows, "basic")
    assert described.feature_names[15] == "flow_mean"
    np.testing.assert_allclose(described.F[:, 15], X[:, 1].mean(axis=1), atol=1e-6)
    np.testing.assert_array_equal(described.X, windows.X)
    np.testing.assert_array_equal(described.y, windows.y)


def test_names_of_a_users_function():
    X = np.zeros((3, 2, 5))
    assert extract(peak_to_peak, X, 1.0)[1] == ("peak_to_peak_0", "peak_to_peak_1")
    table = extract(lambda x, sfreq: pd.DataFrame({"load": x[:, 0, 0]}), X, 1.0)
    assert table[1] == ("load",)
    by_string = extract("test_extract:peak_to_peak", X, 1.0)
    assert by_string[1] == ("peak_to_peak_0", "peak_to_peak_1")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x, sfreq: x.mean(axis=(1, 2)), r"shape \(50,\) of windows 0 to 49: \(50, d\)"),
        (lambda x, sfreq: x[:10, :, 0], r"shape \(10, 2\) of windows 0 to 49"),
        (lambda x, sfreq: x[:, :0, 0], r"shape \(50, 0\)"),
        (lambda x, sfreq: np.full((len(x), 3), np.nan), "made NaN only, in windows 0 to 49"),
        (lambda x, sfreq: np.full((len(x), 3), "a"), "windows 0 to 49: its result is of type"),
        (lambda x, sfreq: np.where(x[:, :, 0] == x[7, :, 0], np.inf, 0), "column 0 of window 7"),
    ],
)
def test_a_wrong_result_names_the_extractor_and_the_windows(X, function, message):
    function.__name__ = "mine"
    with pytest.raises(DataError, match=rf"feature extractor 'mine'.*{message}"):
        extract(function, X, 100.0)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_function_that_raises_is_named_with_its_first_window(X, n_jobs, monkeypatch):
    monkeypatch.setattr(extraction, "VALUES", 10 * 2 * 400)
    X[33, 0, 0] = 1e6

    def fussy(x, sfreq):
        if x.max() > 1e5:
            raise RuntimeError("off the scale")
        return x.max(axis=2)

    message = "feature extractor 'fussy' failed on window 33: RuntimeError: off the scale"
    with pytest.raises(DataError, match=message):
        extract(fussy, X, 100.0, n_jobs=n_jobs)


def test_columns_must_stay_the_same(X, monkeypatch):
    monkeypatch.setattr(extraction, "VALUES", 10 * 2 * 400)
    sizes = iter(range(1, 9))
    with pytest.raises(DataError, match="2 columns of window 10 and 1 of the first"):
        extract(lambda x, sfreq: np.zeros((len(x), next(sizes))), X, 100.0)


def test_some_missing_values_are_reported_not_dropped(X, caplog):
    X[3, 1] = np.nan
    F, _ = extract("basic", X, 100.0)
    assert np.isnan(F[3]).sum() == 15
    assert "1 of 50 windows lack some of the 30 features (NaN), most of all ch1_mean (1)" in (
        caplog.text
    )


def test_a_table_is_taken_as_it_is(tmp_path):
    table = pd.DataFrame({"window": [1], "wear": [0.5]})
    table.to_csv(tmp_path / "wear.csv", index=False)
    for given in (table, tmp_path / "wear.csv", str(tmp_path / "wear.csv")):
        F, names = extract(given, np.zeros((2, 1, 8)))
        assert names == ("wear",)
        np.testing.assert_array_equal(F, [[np.nan], [0.5]])


def test_wrong_questions_say_what_is_wanted(X):
    with pytest.raises(ConfigError, match="did you mean 'basic'"):
        extract("basics", X, 100.0)
    with pytest.raises(ConfigError, match="a function is wanted"):
        extract(3, X, 100.0)
    with pytest.raises(DataError, match="give sfreq="):
        extract("basic", X)
    with pytest.raises(DataError, match="positive number"):
        extract("basic", X, 0.0)
    with pytest.raises(ConfigError, match="n_jobs is 0"):
        extract("basic", X, 100.0, n_jobs=0)
    with pytest.raises(DataError, match=r"X has shape \(50,\)"):
        extract("basic", X[:, 0, 0], 100.0)
    with pytest.raises(DataError, match="each channel its own name"):
        extract("basic", Windows(X, sfreq=1.0, channel_names=("a", "a")))


def test_an_extractor_of_ones_own_brings_names_and_checks(X, caplog):
    from expclr.features import Feature

    mine = Extractor(
        "mine",
        "3",
        lambda channels: [Feature(f"{channel}_top", "bar", "Top") for channel in channels],
        lambda x, sfreq: x.max(axis=2),
        lambda c, t, sfreq: ["too slow"] if sfreq < 200 else [],
    )
    F, names = extract(mine, X, 100.0)
    assert names == ("ch0_top", "ch1_top")
    assert "mine: too slow" in caplog.text
    np.testing.assert_array_equal(F, X.max(axis=2))
