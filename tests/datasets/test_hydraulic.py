"""The hydraulic rig: runs of cycles kept together, conditions as features or label."""

import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.datasets.mutations import fuzz

from expclr.datasets import hydraulic, load_dataset
from expclr.errors import ConfigError, DataError

ROOT = Path(os.environ.get("EXPCLR_DATA", "nowhere"))
needs_data = pytest.mark.skipif(
    not (ROOT / "hydraulic").is_dir(), reason="EXPCLR_DATA has no hydraulic/"
)
SENSORS = ("CE", "TS1")
PROFILE = [[3, 100, 0, 130, 1]] * 3 + [[20, 100, 0, 130, 0]] * 4 + [[100, 90, 1, 90, 0]] * 3


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EXPCLR_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def rig(tmp_path: Path, rng: np.random.Generator) -> Path:
    folder = tmp_path / "raw" / "hydraulic"
    folder.mkdir(parents=True)
    for name in SENSORS:
        np.savetxt(folder / f"{name}.txt", rng.normal(size=(10, 6)), fmt="%.3f", delimiter="\t")
    np.savetxt(folder / "profile.txt", PROFILE, fmt="%d", delimiter="\t")
    return folder


def load(rig: Path, **options: object) -> tuple:
    return load_dataset("hydraulic", root=rig.parent, **{"sensors": SENSORS} | options)


def test_no_run_is_on_both_sides(rig: Path) -> None:
    train, test = load(rig)
    assert len(train) + len(test) == 10
    assert not set(train.group) & set(test.group)
    assert sorted(set(train.group) | set(test.group)) == [0, 1, 2]


def test_the_signals_are_those_of_the_files(rig: Path) -> None:
    train, test = load(rig)
    X = np.concatenate([train.X, test.X])
    wanted = np.stack([np.loadtxt(rig / f"{name}.txt") for name in SENSORS], axis=1)
    order = np.argsort(X[:, 0, 0])
    np.testing.assert_allclose(X[order], wanted[np.argsort(wanted[:, 0, 0])], atol=1e-6)


@pytest.mark.parametrize("label", ["stable", *hydraulic.CONDITIONS])
def test_the_label_is_never_among_the_features(rig: Path, label: str) -> None:
    train, test = load(rig, label=label)
    assert label not in train.feature_names
    assert set(train.feature_names) == set(hydraulic.CONDITIONS) - {label}
    column = ("stable", *hydraulic.CONDITIONS).index(label) - 1
    profile = np.array(PROFILE)
    if label != "stable":
        grades = [f"{v}" for v in sorted(set(profile[:, column]))]
        assert list(train.class_names) == grades
    count = np.bincount(np.concatenate([train.y, test.y])).tolist()
    assert count == np.unique(profile[:, column], return_counts=True)[1].tolist()


def test_statistics_are_those_of_each_sensor(rig: Path) -> None:
    train, _ = load(rig, features="statistics")
    x = train.X[0, 1].astype(float)
    at = train.feature_names.index("TS1_slope")
    assert train.F[0, at] == pytest.approx(np.polyfit(np.arange(6), x, 1)[0])
    assert train.F[0, at - 2] == pytest.approx(x.mean())
    assert train.F[0, at - 1] == pytest.approx(x.std())


def test_a_zip_reads_like_the_folder(rig: Path, tmp_path: Path) -> None:
    (tmp_path / "zip" / "hydraulic").mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "zip" / "hydraulic" / "a.zip", "w") as zipped:
        for file in rig.iterdir():
            zipped.write(file, file.name)
    one, two = load(rig), load(tmp_path / "zip" / "hydraulic")
    np.testing.assert_array_equal(one[1].X, two[1].X)


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("CE.txt", "1 2 3 4 5 6\n" * 9, "CE.txt has 9 cycles"),
        ("TS1.txt", "1 2 3\n" * 10, "of 3 samples"),
        ("profile.txt", "3 100 0 130\n" * 10, "4 columns"),
        ("profile.txt", "3 100 0 130 2\n" * 10, "0 and 1"),
    ],
)
def test_wrong_files_are_refused(rig: Path, file: str, content: str, said: str) -> None:
    (rig / file).write_text(content)
    with pytest.raises(DataError, match=said):
        load(rig)


def test_unknown_names_are_refused_with_the_known_ones(rig: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'cooler'"):
        load(rig, label="coler")
    with pytest.raises(ConfigError, match="statistics"):
        load(rig, features="basic")
    with pytest.raises(DataError, match=r"TS9\.txt.*TS1"):
        load(rig, sensors=("CE", "TS9"))


def test_damaged_files_raise_only_data_errors(rig: Path) -> None:
    def read() -> None:
        hydraulic.read(rig, SENSORS, label="stable", features="conditions")

    assert fuzz([rig / "CE.txt", rig / "profile.txt"], read, times=600) > 150


@needs_data
def test_the_published_cycles_come_out_complete() -> None:
    train, test = load_dataset("hydraulic")
    assert train.X.shape[1:] == (6, 60)
    assert np.bincount(np.concatenate([train.y, test.y])).tolist() == [1449, 756]
    assert not set(train.group) & set(test.group)
