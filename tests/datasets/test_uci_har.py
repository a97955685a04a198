"""UCI HAR: read from every published layout; the real one comes out as published."""

import os
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.datasets.mutations import fuzz

from expclr.datasets import load_dataset
from expclr.datasets.uci_har import feature_names, read
from expclr.errors import DataError
from expclr.features.har_signals import HAR_CHANNELS
from expclr.windows import Windows

REAL = Path(os.environ.get("EXPCLR_DATA", "nowhere")) / "uci_har" / "UCI HAR Dataset.zip"
needs_data = pytest.mark.skipif(not REAL.is_file(), reason="EXPCLR_DATA has no uci_har/")
ROWS = {"train": 5, "test": 3}
NAMES = ("mean", "bands", "std", "bands", "bands")


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EXPCLR_CACHE", str(tmp_path / "cache"))


def table(values: np.ndarray) -> str:
    """Numbers as published: 16 characters each, exponents of three digits."""
    lines = []
    for row in values:
        words = [f"{v:.7e}".replace("e-0", "e-00").replace("e+0", "e+00") for v in row]
        lines.append("".join(f"{word:>16}" for word in words))
    return "\n".join(lines) + "\n"


@pytest.fixture
def unpacked(tmp_path: Path, rng: np.random.Generator) -> Path:
    """A small dataset in the published layout, below ``raw/uci_har``."""
    folder = tmp_path / "raw" / "uci_har" / "UCI HAR Dataset"
    folder.mkdir(parents=True)
    listing = "".join(f"{i} {name}\r\n" for i, name in enumerate(NAMES, 1))
    (folder / "features.txt").write_text(listing)
    (folder / "activity_labels.txt").write_text("2 REST\n1 WALK\n")
    for part, n in ROWS.items():
        (folder / part / "Inertial Signals").mkdir(parents=True)
        (folder / part / f"X_{part}.txt").write_text(table(rng.normal(size=(n, len(NAMES)))))
        (folder / part / f"y_{part}.txt").write_text("1\n2\n1\n1\n2\n"[: 2 * n])
        (folder / part / f"subject_{part}.txt").write_text("7\n" * n)
        for i, channel in enumerate(HAR_CHANNELS):
            signal = i + rng.uniform(0, 0.5, (n, 128))
            (folder / part / "Inertial Signals" / f"{channel}_{part}.txt").write_text(table(signal))
    return folder


def pack(folder: Path, to: Path) -> Path:
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as zipped:
        for file in sorted(folder.rglob("*")):
            zipped.write(file, Path(folder.name) / file.relative_to(folder))
    return to


def assert_same(a: Windows, b: Windows) -> None:
    for field in ("X", "F", "y", "group"):
        np.testing.assert_array_equal(getattr(a, field), getattr(b, field))
    assert (a.feature_names, a.class_names) == (b.feature_names, b.class_names)


def test_folder_inner_zip_and_outer_zip_read_alike(unpacked: Path, tmp_path: Path) -> None:
    whole = load_dataset("uci_har", root=tmp_path / "raw")
    for root in ("inner", "outer"):
        (tmp_path / root / "uci_har").mkdir(parents=True)
    inner = pack(unpacked, tmp_path / "inner" / "uci_har" / "UCI HAR Dataset.zip")
    outer = "human+activity+recognition+using+smartphones.zip"
    with zipfile.ZipFile(tmp_path / "outer" / "uci_har" / outer, "w") as zipped:
        zipped.write(inner, inner.name)
        zipped.writestr("UCI HAR Dataset.names", "a description")
    for root in ("inner", "outer"):
        for a, b in zip(whole, load_dataset("uci_har", root=tmp_path / root), strict=True):
            assert_same(a, b)


def test_values_are_those_of_the_text(unpacked: Path, tmp_path: Path) -> None:
    train, test = load_dataset("uci_har", root=tmp_path / "raw")
    assert (len(train), len(test)) == (5, 3)
    assert test.y.tolist() == [0, 1, 0]
    assert train.class_names == ("WALK", "REST")
    assert train.feature_names == ("mean", "bands-X", "std", "bands-Y", "bands-Z")
    for i, channel in enumerate(HAR_CHANNELS):
        lines = (unpacked / "test" / "Inertial Signals" / f"{channel}_test.txt").read_text()
        wanted = [[float(word) for word in line.split()] for line in lines.splitlines()]
        np.testing.assert_array_equal(test.X[:, i], np.array(wanted, np.float32))
    lines = (unpacked / "train" / "X_train.txt").read_text().splitlines()
    assert train.F.tolist() == [[float(word) for word in line.split()] for line in lines]


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("test/y_test.txt", "1\n2\n", "2 rows"),
        ("test/y_test.txt", "1\n2\n3\n", "line 3"),
        ("test/y_test.txt", "1\n2\n1.5\n", "line 3"),
        ("test/subject_test.txt", "", "is empty"),
        ("test/X_test.txt", "1 2 3 4 5\n" * 2, "2 rows"),
        ("test/X_test.txt", "1 2 3 4 5\n1 2 3 4\n1 2 3 4 5\n", "X_test"),
        ("test/X_test.txt", "1 2 3 4\n" * 3, "4 columns"),
        ("test/X_test.txt", "1 2 3 4 5\n1 2 3 4 nan\n1 2 3 4 5\n", "line 2, column 5"),
        ("test/X_test.txt", "1 2 3 4 5\n1 2 3 4 five\n1 2 3 4 5\n", "five"),
        ("features.txt", "1 mean\n3 std\n", "gaps"),
        ("features.txt", "mean\n", "1 name"),
    ],
)
def test_wrong_files_are_named(
    unpacked: Path, tmp_path: Path, file: str, content: str, said: str
) -> None:
    (unpacked / file).write_text(content)
    with pytest.raises(DataError, match=said) as caught:
        load_dataset("uci_har", root=tmp_path / "raw")
    assert Path(file).name in str(caught.value)


def test_a_missing_file_is_named(unpacked: Path, tmp_path: Path) -> None:
    (unpacked / "train" / "y_train.txt").unlink()
    with pytest.raises(DataError, match=r"y_train\.txt"):
        load_dataset("uci_har", root=tmp_path / "raw")


def test_damaged_text_raises_only_data_errors(unpacked: Path) -> None:
    names = ("features", "activity_labels", "test/y_test", "test/subject_test", "test/X_test")
    files = [unpacked / f"{name}.txt" for name in names]
    assert fuzz(files, lambda: read(unpacked), times=60) > 20


def test_names_that_repeat_otherwise_are_numbered() -> None:
    assert feature_names(("a", "b", "a")) == ("a-1", "b", "a-2")


@needs_data
class TestPublished:
    """The complete dataset."""

    @pytest.fixture(autouse=True)
    def shared(self, monkeypatch: pytest.MonkeyPatch, session_cache: Path, cache: None) -> None:
        monkeypatch.setenv("EXPCLR_CACHE", str(session_cache))

    def test_counts_are_the_published_ones(self) -> None:
        train, test = load_dataset("uci_har")
        assert np.bincount(train.y).tolist() == [1226, 1073, 986, 1286, 1374, 1407]
        assert np.bincount(test.y).tolist() == [496, 471, 420, 491, 532, 537]
        assert train.X.shape == (7352, 9, 128)
        assert test.F.shape == (2947, 561)
        assert len(set(train.feature_names)) == 561
        assert np.unique(test.group).tolist() == [2, 4, 9, 10, 12, 13, 18, 20, 24]
        assert len(np.unique(train.group)) == 21
        assert train.class_names[3] == "SITTING"

    @pytest.mark.parametrize("row", [0, 1234, 2946])
    def test_values_are_those_of_the_published_text(self, row: int) -> None:
        _, test = load_dataset("uci_har")
        with zipfile.ZipFile(REAL) as zipped:
            base = "UCI HAR Dataset/test"
            features = zipped.read(f"{base}/X_test.txt").splitlines()[row].split()
            assert test.F[row].tolist() == [float(word) for word in features]
            for i in (0, 4, 8):
                name = f"{base}/Inertial Signals/{HAR_CHANNELS[i]}_test.txt"
                signal = zipped.read(name).splitlines()[row].split()
                np.testing.assert_array_equal(test.X[row, i], np.array(signal, np.float32))

    def test_the_second_load_is_fast(self) -> None:
        load_dataset("uci_har")
        seconds = []
        for _ in range(3):
            started = time.perf_counter()
            load_dataset("uci_har")
            seconds.append(time.perf_counter() - started)
        assert min(seconds) < 0.3

    @pytest.mark.slow
    def test_the_published_features_give_the_published_accuracies(self) -> None:
        """As published, scaled to [-1, 1]: 96.01 % linear and 87.90 % nearest neighbour."""
        from expclr.evaluation import knn_probe, linear_probe

        train, test = load_dataset("uci_har")
        data = (train.F, train.y, test.F, test.y)
        linear, nearest = linear_probe(*data, scaling="raw"), knn_probe(*data, k=1, scaling="raw")
        assert linear["accuracy"] == pytest.approx(0.9601, abs=0.002)
        assert nearest["accuracy"] == pytest.approx(0.8790, abs=0.002)
