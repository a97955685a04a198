"""HAPT: from raw recordings to the published windows."""

import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.datasets.mutations import fuzz

from expclr.datasets import hapt, load_dataset
from expclr.errors import ConfigError, DataError
from expclr.features.har_signals import har_channels, har_signals

ROOT = Path(os.environ.get("EXPCLR_DATA", "nowhere"))
needs_data = pytest.mark.skipif(
    not (ROOT / "hapt").is_dir() or not (ROOT / "uci_har").is_dir(),
    reason="EXPCLR_DATA has no hapt/ and uci_har/",
)
LABELS = "1 5 4 11 300\n1 5 7 301 400\n2 9 1 1 256\n"
INDEX = (
    "split,row,subject,y,hapt_experiment,start_sample0\n"
    "train,1,5,4,1,74\ntest,0,9,1,2,3\ntrain,0,5,4,1,10\n"
)


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EXPCLR_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def signals(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Two experiments: user 5 trains, user 9 is one of the published test people."""
    return {
        f"{sensor}_exp{experiment:02d}_user{user:02d}.txt": rng.normal(size=(samples, 3)).round(6)
        for experiment, user, samples in ((1, 5, 420), (2, 9, 256))
        for sensor in ("acc", "gyro")
    }


@pytest.fixture
def raw(tmp_path: Path, signals: dict[str, np.ndarray]) -> Path:
    folder = tmp_path / "raw" / "hapt" / "RawData"
    folder.mkdir(parents=True)
    (folder / "labels.txt").write_text(LABELS)
    for name, values in signals.items():
        np.savetxt(folder / name, values, fmt="%.6f")
    return folder


def test_windows_are_cut_inside_the_labelled_segments(
    raw: Path, signals: dict[str, np.ndarray]
) -> None:
    train, test = load_dataset("hapt", root=raw.parent.parent, features=None)
    assert train.y.tolist() == [3, 3, 3]  # 290 samples; the transition of 100 is too short
    assert test.y.tolist() == [0, 0, 0]
    assert (train.group.tolist(), test.group.tolist()) == ([5] * 3, [9] * 3)
    for windows, name, starts in (
        (train, "exp01_user05", (10, 74, 138)),
        (test, "exp02_user09", (0, 64, 128)),
    ):
        raw_of = [signals[f"{sensor}_{name}.txt"] for sensor in ("acc", "gyro")]
        whole = har_channels(har_signals(*raw_of))
        wanted = np.stack([whole[:, start : start + 128] for start in starts])
        np.testing.assert_array_equal(windows.X, wanted.astype(np.float32))


def test_a_zip_reads_like_the_folder(raw: Path, tmp_path: Path) -> None:
    (tmp_path / "zip" / "hapt").mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "zip" / "hapt" / "any name.zip", "w") as zipped:
        for file in raw.iterdir():
            zipped.write(file, f"HAPT Data Set/RawData/{file.name}")
    for root in (tmp_path / "raw", tmp_path / "zip"):
        train, _ = load_dataset("hapt", root=root, features=None)
        assert len(train) == 3


def test_the_published_windows_come_in_their_order(raw: Path, tmp_path: Path) -> None:
    (raw.parent / hapt.INDEX).write_text(INDEX)
    six, _ = load_dataset("hapt", root=tmp_path / "raw", classes="har6", features=None)
    twelve, _ = load_dataset("hapt", root=tmp_path / "raw", features=None)
    np.testing.assert_array_equal(six.X, twelve.X[:2])
    assert len(six.class_names) == 6


def test_features_use_the_sample_after_the_window(raw: Path, tmp_path: Path) -> None:
    from expclr.features.har561 import har561_values

    train, test = load_dataset("hapt", root=tmp_path / "raw")
    alone = har561_values(train.X[:1].astype(np.float64))
    jerk = [i for i, name in enumerate(train.feature_names) if name == "tBodyAccJerk-mean()-X"]
    assert train.F.shape == (3, 561)
    assert not np.allclose(train.F[0, jerk], alone[0, jerk], atol=1e-6)
    at_the_end = np.concatenate([test.X[-1:], test.X[-1:, :, -1:]], axis=2).astype(np.float64)
    still = har561_values(at_the_end, next_sample=True)  # no jerk where the recording ends
    np.testing.assert_allclose(test.F[-1:], still, atol=1e-3)


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("labels.txt", "1 5 4 11\n", "4 columns"),
        ("labels.txt", "1 5 13 11 300\n", "activity 1 to 12"),
        ("labels.txt", "1 5 4 300 11\n", "first and last"),
        ("labels.txt", "1 5 4 11 300\n1 5 5 290 420\n", "overlap"),
        ("labels.txt", "1 5 4 11 421\n1 5 4 999 1300\n", "420 samples"),
        ("labels.txt", "1 5 4 11 99999999999\n", "cannot have"),
        ("labels.txt", "3 5 4 11 300\n", "acc_exp03"),
        ("labels.txt", "1 5 4 11 100\n", "no labelled segment"),
        ("acc_exp01_user05.txt", "1.5 2.5\n" * 420, "2 columns"),
        ("gyro_exp01_user05.txt", "1 2 3\n", r"and gyro_exp01_user05\.txt 1"),
    ],
)
def test_wrong_files_are_refused(
    raw: Path, tmp_path: Path, file: str, content: str, said: str
) -> None:
    (raw / file).write_text(content)
    with pytest.raises(DataError, match=said):
        load_dataset("hapt", root=tmp_path / "raw", features=None)


def test_har6_needs_the_index_and_a_sound_one(raw: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="har_window_index"):
        load_dataset("hapt", root=tmp_path / "raw", classes="har6")
    (raw.parent / hapt.INDEX).write_text(INDEX.replace("row", "line"))
    with pytest.raises(DataError, match="start_sample0"):
        load_dataset("hapt", root=tmp_path / "raw", classes="har6")
    (raw.parent / hapt.INDEX).write_text(INDEX.replace("74", "740"))
    with pytest.raises(DataError, match="420 samples"):
        load_dataset("hapt", root=tmp_path / "raw", classes="har6", features=None)


def test_unknown_choices_are_refused(raw: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="hapt12"):
        load_dataset("hapt", root=tmp_path / "raw", classes="har12")
    with pytest.raises(ConfigError, match="har561"):
        load_dataset("hapt", root=tmp_path / "raw", features="basic")


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "hapt" / "RawData").mkdir(parents=True)
    with pytest.raises(DataError, match=r"labels\.txt is missing"):
        load_dataset("hapt", root=tmp_path)


def test_damaged_files_raise_only_data_errors(raw: Path) -> None:
    files = [raw / "labels.txt", raw / "acc_exp02_user09.txt"]

    def read() -> None:
        hapt.read(raw.parent)

    assert fuzz(files, read, times=150) > 30


@needs_data
@pytest.mark.slow
class TestPublished:
    """All 61 recordings."""

    @pytest.fixture(autouse=True)
    def shared(self, monkeypatch: pytest.MonkeyPatch, session_cache: Path, cache: None) -> None:
        monkeypatch.setenv("EXPCLR_CACHE", str(session_cache))

    def test_windows_at_the_published_starts_are_those_of_uci_har(self) -> None:
        cut = load_dataset("hapt", classes="har6")
        published = load_dataset("uci_har")
        for a, b in zip(cut, published, strict=True):
            np.testing.assert_allclose(a.X, b.X, rtol=0, atol=1e-5)
            np.testing.assert_array_equal(a.y, b.y)
            np.testing.assert_array_equal(a.group, b.group)
            assert a.class_names == b.class_names
            assert a.feature_names == b.feature_names
        F = np.concatenate([part.F for part in cut])
        low, high = F.min(axis=0), F.max(axis=0)
        scaled = 2 * (F - low) / (high - low) - 1
        np.testing.assert_allclose(
            scaled, np.concatenate([part.F for part in published]), rtol=0, atol=1e-8
        )

    def test_all_twelve_activities_are_those_published(self) -> None:
        train, test = load_dataset("hapt", features=None)
        for part, windows in (("train", train), ("test", test)):
            with zipfile.ZipFile(ROOT / "hapt" / "hapt_raw.zip") as zipped:
                y = np.loadtxt(zipped.open(f"y_{part}.txt"))
                subject = np.loadtxt(zipped.open(f"subject_id_{part}.txt"))
            np.testing.assert_array_equal(windows.y + 1, y)
            np.testing.assert_array_equal(windows.group, subject)
