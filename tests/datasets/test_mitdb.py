import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from tests.datasets.wfdb_files import write_record

from expclr.datasets import mitdb
from expclr.datasets.rhythms import Rhythms, cut_record, five_folds
from expclr.errors import ConfigError, DataError
from expclr.features import extract
from expclr.windows import Windows

ROOT = os.environ.get("EXPCLR_DATA", "nowhere")
needs_data = pytest.mark.skipif(
    not (Path(ROOT) / "mitdb").is_dir(), reason="EXPCLR_DATA has no mitdb/"
)
SAMPLES = 7200  # 20 s
NAMES = ("100", "114", "124", "201", "202", "203", "222", "231")


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("EXPCLR_CACHE", str(tmp_path / "cache"))
    return


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Eight records of 20 s: 5 Hz in lead MLII, 9 Hz in the other, four rhythms of 5 s each."""
    time = np.arange(SAMPLES) / 360
    waves = np.stack([np.sin(2 * np.pi * f * time) * 400 for f in (5, 9)]).round().astype(int)
    for name in NAMES:
        swapped = name == "114"
        marks = [(0, 28, "(AFIB"), (1800, 28, "(AFL"), (3600, 28, "(NOD"), (5400, 28, "(N")]
        if name == "231":
            marks = [(0, 28, "(AFIB"), (1800, 28, "(BII"), (5400, 28, "(N")]
        leads = ("V5", "MLII") if swapped else ("MLII", "V1")
        signal = waves[::-1] if swapped else waves
        write_record(tmp_path / "raw/mitdb", name, signal, marks, sfreq=360, leads=leads)
    return tmp_path / "raw"


def load(root: Path | str, **options: object) -> tuple[Windows, Windows]:
    return mitdb.load(root, **options)  # type: ignore[arg-type]


def test_resampling_keeps_the_wave_and_lead_mlii_comes_first(tree: Path) -> None:
    train, test = load(tree, scale="millivolt", length=1250)
    assert (train.sfreq, train.channel_names) == (250, ("MLII", "V"))
    time = np.arange(5000) / 250
    for windows, name in ((train, "100"), (test, "114")):
        X = windows.X[windows.group == name].transpose(1, 0, 2).reshape(2, -1)
        for row, f in zip(X, (5, 9), strict=True):
            inside = slice(50, -50)
            expected = 2 * np.sin(2 * np.pi * f * time)
            np.testing.assert_allclose(row[inside], expected[inside], atol=0.02)


def test_labels_follow_the_marks_at_the_new_rate(tree: Path) -> None:
    train, _ = load(tree, length=625)
    y = np.asarray(train.y)[train.group == "100"]
    assert y.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert train.class_names == ("AFIB", "AFL", "J", "N")


def test_the_features_are_those_of_the_millivolts(tmp_path: Path, rng: np.random.Generator) -> None:
    for name in ("100", "103"):
        beat = (np.arange(SAMPLES) + int(name)) % 300
        spike = 300 * np.exp(-((beat - 150) ** 2) / 20) + rng.normal(0, 3, (2, SAMPLES))
        marks = [(0, 28, "(N")]
        leads = ("MLII", "V1")
        write_record(
            tmp_path / "mitdb", name, spike.round().astype(int), marks, sfreq=360, leads=leads
        )
    scaled = load(tmp_path, features="ecg88")[0]
    plain = load(tmp_path, features="ecg88", scale="millivolt")[0]
    assert scaled.F.shape == (2, 2 * 88)
    assert scaled.feature_names[88].startswith("V_")
    assert np.isfinite(scaled.F).mean() > 0.8
    np.testing.assert_array_equal(scaled.F, plain.F)
    np.testing.assert_array_equal(plain.F, extract("ecg88", plain)[0].astype(plain.F.dtype))
    np.testing.assert_array_equal(load(tmp_path)[0].X, scaled.X)


def test_other_rhythms_are_dropped_or_kept_as_a_class(tree: Path) -> None:
    _, dropped = load(tree, length=625, split=["231"])
    assert np.asarray(dropped.y).tolist() == [0, 0, 3, 3]
    _, kept = load(tree, length=625, split=["231"], other="keep")
    assert np.asarray(kept.y).tolist() == [0, 0, 4, 4, 4, 4, 3, 3]
    assert kept.class_names[4] == "other"


def test_records_201_and_202_are_one_person(tree: Path) -> None:
    train, _ = load(tree)
    assert {"201-202"} == set(train.group) - {"100", "222"}


def test_the_fixed_split_is_the_listed_one(tree: Path) -> None:
    _, test = load(tree)
    assert sorted(set(test.group)) == sorted(set(NAMES) & set(mitdb.TESTED))


def test_a_truncated_record_is_named(tree: Path) -> None:
    data = tree / "mitdb/124.dat"
    data.write_bytes(data.read_bytes()[:-3])
    with pytest.raises(DataError, match=r"124\.dat holds 21597 bytes"):
        load(tree)


def test_a_missing_part_of_a_record_is_named(tree: Path) -> None:
    (tree / "mitdb/124.atr").unlink()
    with pytest.raises(DataError, match=r"lacks 124\.atr"):
        load(tree)


@pytest.mark.parametrize(
    "options", [{"split": "paper"}, {"fold": -1}, {"other": "no"}, {"features": "no"}]
)
def test_unknown_options_are_refused(tree: Path, options: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        load(tree, **options)


@needs_data
def test_windows_per_class_of_the_genuine_records() -> None:
    table = mitdb.windows_per_class(ROOT)
    assert "| 203 | test | 147 | 32 | 0 | 0 | 1 | 180 |" in table
    assert "| 222 | train | 8 | 41 | 21 | 100 | 10 | 180 |" in table
    assert table.endswith(
        "| sum | train | 510 | 45 | 22 | 2776 | 427 | 3780 |\n"
        "| sum | test | 289 | 32 | 3 | 1217 | 79 | 1620 |"
    )


@needs_data
def test_every_class_is_on_both_sides_of_the_fixed_split_of_genuine_records() -> None:
    train, test = load(ROOT)
    assert (len(train), len(test)) == (3353, 1541)
    assert train.classes.tolist() == test.classes.tolist() == [0, 1, 2, 3]
    assert not set(train.group) & set(test.group)
    np.testing.assert_allclose(train.X.mean((0, 2), np.float64), 0, atol=1e-5)
    np.testing.assert_allclose(train.X.std((0, 2), np.float64), 1, atol=1e-5)


@needs_data
def test_the_folds_of_genuine_records_spread_the_rare_rhythms() -> None:
    rhythms = Rhythms("mitdb", ("MLII", "V"), ratio=Fraction(25, 36), subjects=mitdb.ONE_SUBJECT)
    headers = sorted((Path(ROOT) / "mitdb").glob("*.hea"))
    cuts = [cut_record(header.with_suffix(""), rhythms) for header in headers]
    folds = five_folds(cuts)
    assert sorted(group for fold in folds for group in fold) == sorted({cut.group for cut in cuts})
    for fold in folds:
        tested = np.concatenate([cut.y for cut in cuts if cut.group in fold])
        trained = np.concatenate([cut.y for cut in cuts if cut.group not in fold])
        assert (tested == 0).sum() > 100  # AFIB
        assert set(trained.tolist()) == {-1, 0, 1, 2, 3}


def test_folds_keep_people_apart_and_records_of_one_person_together(tree: Path) -> None:
    for fold in range(5):
        train, test = load(tree, split="stratified-5fold", fold=fold, length=250)
        assert not set(train.group) & set(test.group)
        assert not {"201", "202"} & {*train.group, *test.group}
