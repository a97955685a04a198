from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.datasets.mutations import fuzz
from tests.datasets.wfdb_files import write_record

from expclr.datasets import afdb
from expclr.datasets.rhythms import Rhythms, cut_record, five_folds
from expclr.errors import ConfigError, DataError
from expclr.windows import Windows

LENGTH = 4  # samples of a window here, in place of 2500
SHORTEST = 3329  # windows of the shortest record, as in the original
FIRST = 17  # sample of the first rhythm mark
RHYTHMS = ("(AFIB", "(AFL", "(J", "(N")


def digital(record: int, samples: int) -> NDArray[np.integer]:
    """Both leads of a record; the values tell record, time and lead."""
    time = np.arange(samples)
    return np.stack([time % 1000 + record * 40, time % 7 - 1000 + record])


def marks(record: int, samples: int) -> list[tuple[int, int, str]]:
    rng = np.random.default_rng(record)
    at = [FIRST, *sorted(rng.choice(np.arange(FIRST + 1, samples), 40, replace=False))]
    found = [(int(s), 28, RHYTHMS[rng.integers(4)]) for s in at]
    return sorted([*found, *((int(s) + 1, 1, "") for s in at[1:-1])])


def sizes() -> list[int]:
    """Samples of each record; the 8th is the shortest."""
    extra = [5, 9, 1, 40, 8, 8, 4, 0, 300, 2, 12, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4]
    return [FIRST + LENGTH * SHORTEST + more for more in extra]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All 25 records: two of them have annotations but no signals."""
    root = tmp_path_factory.mktemp("raw")
    for i, (name, samples) in enumerate(zip(afdb.RECORDS, sizes(), strict=True)):
        write_record(root / "afdb", name, digital(i, samples), marks(i, samples))
    for name in ("00735", "03665"):
        (root / "afdb" / f"{name}.hea").write_text(f"{name} 0 250 9205760\n")
        (root / "afdb" / f"{name}.atr").write_bytes(b"\0\0")
    return root


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("EXPCLR_CACHE", str(tmp_path / "cache"))
    return


def load(tree: Path, **options: object) -> tuple[Windows, Windows]:
    return afdb.load(tree, length=LENGTH, **options)  # type: ignore[arg-type]


def majority(record: int, window: int) -> int:
    """The rhythm of most samples of a window, sample by sample; the first in a tie."""
    found = [m for m in marks(record, sizes()[record]) if m[1] == 28]
    votes = [0, 0, 0, 0]
    for i in range(LENGTH):
        sample = FIRST + window * LENGTH + i
        rhythm = [text for at, _, text in found if at <= sample][-1]
        votes[RHYTHMS.index(rhythm)] += 1
    return votes.index(max(votes))


def test_the_papers_counts_come_out(tree: Path) -> None:
    train, test = load(tree)
    assert (len(train), len(test)) == (59922, 16645)
    assert sorted(set(train.group)) == sorted(afdb.RECORDS[:18])
    assert sorted(set(test.group)) == ["08219", "08378", "08405", "08434", "08455"]
    assert train.class_names == ("AFIB", "AFL", "J", "N")
    assert (train.sfreq, train.X.dtype, test.X.shape[1:]) == (250, np.float32, (2, LENGTH))


def test_windows_are_window_major_and_hold_the_signal_from_the_first_mark(tree: Path) -> None:
    train, _ = load(tree, scale="millivolt")
    for row in (0, 1, 17, 18, 40_000, 59_921):
        window, record = divmod(row, 18)
        assert train.group[row] == afdb.RECORDS[record]
        start = FIRST + window * LENGTH
        expected = digital(record, sizes()[record])[:, start : start + LENGTH] / 200
        np.testing.assert_allclose(train.X[row], expected, rtol=1e-6)


def test_labels_are_the_rhythm_of_most_samples(tree: Path) -> None:
    train, test = load(tree)
    for row in [*range(0, 59_922, 997), 59_921]:
        window, record = divmod(row, 18)
        assert train.y is not None
        assert train.y[row] == majority(record, window), row
    assert test.y is not None
    assert set(test.y.tolist()) == {0, 1, 2, 3}


def test_channels_are_scaled_by_train_statistics(tree: Path) -> None:
    raw, raw_test = load(tree, scale="millivolt")
    train, test = load(tree)
    mean, std = raw.X.mean((0, 2), np.float64), raw.X.std((0, 2), np.float64)
    for scaled, plain in ((train, raw), (test, raw_test)):
        expected = (plain.X - mean[:, None]) / std[:, None]
        np.testing.assert_allclose(scaled.X, expected, atol=1e-5)


def test_five_folds_test_every_person_once(tree: Path) -> None:
    rhythms = Rhythms("afdb", ("ECG1", "ECG2"), length=LENGTH)
    folds = five_folds([cut_record(tree / "afdb" / name, rhythms) for name in afdb.RECORDS])
    assert sorted(name for fold in folds for name in fold) == sorted(afdb.RECORDS)
    _, test = load(tree, split="grouped-5fold", fold=3, keep="all")
    assert sorted(set(test.group)) == folds[3]


def test_a_drawn_split_follows_its_random_state(tree: Path) -> None:
    drawn = [set(load(tree, split=0.3, random_state=s)[1].group) for s in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(drawn[0]) == 7


def test_records_are_found_in_folders_below(tmp_path: Path) -> None:
    for i, name in enumerate(afdb.RECORDS[:2]):
        write_record(tmp_path / "afdb/files/1.0.0", name, digital(i, 60), [(0, 28, "(N")])
    train, test = load(tmp_path, split=["04015"])
    assert (len(train), len(test)) == (15, 15)


def test_every_window_can_be_kept(tree: Path) -> None:
    train, test = load(tree, keep="all")
    assert len(train) + len(test) == sum((size - FIRST) // LENGTH for size in sizes())


def test_the_second_load_reads_no_raw_file(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = load(tree)
    monkeypatch.setattr("expclr.datasets.rhythms.read_wfdb", None)
    again, _ = load(tree)
    np.testing.assert_array_equal(first.X, again.X)


def test_a_mark_beyond_the_record_is_refused(tmp_path: Path) -> None:
    for i, name in enumerate(afdb.RECORDS[:2]):
        write_record(tmp_path / "afdb", name, digital(i, 60), [(0, 28, "(N"), (60 + i, 28, "(N")])
    with pytest.raises(DataError, match=r"04015\.atr has its last rhythm mark at 60.* 60 samples"):
        load(tmp_path, split=["04015"])


def test_a_record_without_rhythms_is_refused(tmp_path: Path) -> None:
    for i, name in enumerate(afdb.RECORDS[:2]):
        write_record(tmp_path / "afdb", name, digital(i, 60), [(3, 1, "")])
    with pytest.raises(DataError, match=r"04015\.atr has no rhythm mark"):
        load(tmp_path, split=["04015"])


def test_a_record_at_another_rate_is_refused(tmp_path: Path) -> None:
    for i, name in enumerate(afdb.RECORDS[:2]):
        write_record(tmp_path / "afdb", name, digital(i, 60), [(0, 28, "(N")], sfreq=360)
    with pytest.raises(DataError, match=r"04015\.hea gives a sampling frequency of 360\.0 Hz"):
        load(tmp_path, split=["04015"])


def test_missing_samples_are_refused_with_their_record(tmp_path: Path) -> None:
    for i, name in enumerate(afdb.RECORDS[:2]):
        signal = digital(i, 60)
        signal[1, 30:33] = -2048
        write_record(tmp_path / "afdb", name, signal, [(0, 28, "(N")])
    with pytest.raises(DataError, match=r"afdb/040\d\d\.dat has 3 missing samples"):
        load(tmp_path, split=["04015"])


def test_the_papers_split_needs_all_records(tmp_path: Path) -> None:
    write_record(tmp_path / "afdb", "04015", digital(0, 60), [(0, 28, "(N")])
    with pytest.raises(DataError, match=r"lacks the records 04043, 04048"):
        load(tmp_path)


@pytest.mark.parametrize(
    "options", [{"split": "random"}, {"fold": 5}, {"keep": "long"}, {"scale": "z"}, {"length": 0}]
)
def test_unknown_options_are_refused(tree: Path, options: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        afdb.load(tree, **options)  # type: ignore[arg-type]


def test_an_unknown_record_to_test_is_refused(tree: Path) -> None:
    with pytest.raises(DataError, match=r"no group 99999: known are 04015"):
        load(tree, split=["99999"])


def test_damaged_marks_raise_data_errors_and_nothing_else(tmp_path: Path) -> None:
    record = write_record(tmp_path, "r1", digital(0, 400), marks(0, 400))
    files = [record.with_suffix(end) for end in (".hea", ".atr", ".atr")]
    rhythms = Rhythms("afdb", ("ECG1", "ECG2"), length=LENGTH)
    assert fuzz(files, lambda: cut_record(record, rhythms), times=600) > 200
