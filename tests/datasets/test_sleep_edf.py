import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.datasets.edf_files import write_edf
from tests.datasets.mutations import fuzz

from expclr.datasets import sleep_edf
from expclr.datasets.edf import read_edf, read_edf_header, read_edf_notes
from expclr.datasets.recording import Note
from expclr.datasets.sleep_edf import score_epochs
from expclr.errors import ConfigError, DataError
from expclr.features import extract
from expclr.windows import Windows

GENUINE = Path(os.environ.get("EXPCLR_DATA", "nowhere")).resolve() / "sleep_edf"
needs_data = pytest.mark.skipif(not GENUINE.is_dir(), reason="EXPCLR_DATA has no sleep_edf/")

# Epochs of each night after trimming, in the order of subjects; the known counts.
COUNTS = (
    *((841, 1127), (1103, 1186), (1025, 1009), (952, 911), (1235, 1200)),
    *((672, 1246), (843, 1016), (976, 1273), (1134, 1054), (1132, 1105)),
    *((1104, 1092), (928, 802), (1052, 977), (1028,), (1004, 952)),
    *((952, 1762), (1144, 1003), (1002, 1773), (964, 920), (1535, 1274)),
)
CODE = {"W": 0, "1": 1, "2": 2, "3": 3, "4": 3, "R": 4}
BEFORE, AFTER = 150, 140  # epochs of wake around sleep, more than is kept


def stages_of(subject: int, night: int) -> str:
    """A night, an epoch a letter; M is movement. Some of both wakes are M and ?."""
    rng = np.random.default_rng([subject, night])
    asleep = COUNTS[subject][night - 1] - 120
    middle = "".join(rng.choice(list("W1234R"), asleep - 2))
    middle = middle[:50] + "M?" + middle[50:]
    return "W" * (BEFORE - 10) + "M" + "W" * 10 + f"1{middle}2" + "W" * AFTER + "??"


def notes_of(stages: str) -> list[tuple[float, float, str]]:
    """One note for each run of a stage."""
    edges = [i for i in range(len(stages)) if i == 0 or stages[i] != stages[i - 1]]
    notes = []
    for start, stop in zip(edges, [*edges[1:], len(stages)], strict=True):
        name = "Movement time" if stages[start] == "M" else f"Sleep stage {stages[start]}"
        notes.append((30.0 * start, 30.0 * (stop - start), name))
    return notes


def signals(subject: int, epochs: int) -> dict[str, NDArray[np.integer]]:
    """30 samples an epoch that tell subject, epoch and time; a slower EMG."""
    epoch, time = np.arange(epochs)[:, None], np.arange(30)
    return {
        "EEG Fpz-Cz": epoch * 10 + time % 10 + subject,
        "EEG Pz-Oz": -epoch * 10 + time % 3,
        "EMG submental": np.broadcast_to(epoch, (epochs, 1)),
    }


def write_night(folder: Path, subject: int, night: int) -> None:
    stages = stages_of(subject, night)
    stem = f"SC4{subject:02d}{night}"
    write_edf(folder / f"{stem}E0-PSG.edf", signals(subject, len(stages)))
    write_edf(folder / f"{stem}EC-Hypnogram.edf", {}, notes=notes_of(stages))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """39 nights of 20 people, in the folder of the published zip."""
    root = tmp_path_factory.mktemp("raw")
    for subject, counts in enumerate(COUNTS):
        for night in range(1, len(counts) + 1):
            write_night(root / "sleep_edf/sleep-cassette", subject, night)
    return root


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("EXPCLR_CACHE", str(tmp_path / "cache"))
    return


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Two people, a night each."""
    for subject in (5, 13):
        write_night(tmp_path / "sleep_edf", subject, 1)
    return tmp_path


def load(root: Path, **options: object) -> tuple[Windows, Windows]:
    return sleep_edf.load(root, **options)  # type: ignore[arg-type]


def test_the_papers_counts_come_out(tree: Path) -> None:
    train, test = load(tree)
    assert (len(train), len(test)) == (35503, 6805)
    assert sorted(set(test.group.tolist())) == [2, 6, 13, 18]
    assert len(set(train.group.tolist())) == 16
    for part in (train, test):
        for subject in set(part.group.tolist()):
            assert (part.group == subject).sum() == sum(COUNTS[subject])
    assert train.channel_names == ("EEG Fpz-Cz",)
    assert train.class_names == ("W", "N1", "N2", "N3", "REM")
    assert (train.X.shape[1:], train.X.dtype, train.sfreq) == ((1, 30), np.float32, 1)


def test_tstccs_counts_come_out(tree: Path) -> None:
    train, test = load(tree, split="tstcc")
    _, validation = load(tree, split="tstcc-validation")
    assert (len(train), len(validation), len(test)) == (27425, 8078, 6805)
    assert set(train.group.tolist()) == {14, 5, 4, 17, 8, 7, 19, 12, 0, 15, 16, 9}
    assert set(validation.group.tolist()) == {11, 10, 3, 1}


def test_every_epoch_has_its_own_signal_and_stage(two: Path) -> None:
    _, test = load(two, split=[13])
    stages = stages_of(13, 1)
    kept = [i for i, letter in enumerate(stages) if letter in CODE]
    asleep = [i for i in kept if stages[i] != "W"]
    kept = kept[kept.index(asleep[0]) - 60 : kept.index(asleep[-1]) + 61]
    assert len(test) == len(kept) == 1028
    for row, epoch in enumerate(kept):
        expected = (epoch * 10 + np.arange(30) % 10 + 13) / 10
        np.testing.assert_allclose(test.X[row, 0], expected, atol=1e-3)
        assert test.y is not None
        assert test.y[row] == CODE[stages[epoch]]


def test_channels_are_chosen_by_name_and_slow_ones_held(two: Path) -> None:
    train, _ = load(two, split=[13], channels=["emg submental", "Pz-Oz"])
    assert train.channel_names == ("EMG submental", "EEG Pz-Oz")
    assert (train.X[:, 0] == train.X[:, 0, :1]).all()
    with pytest.raises(DataError, match=r"SC4051E0-PSG\.edf has no channel 'Cz'.*EEG Fpz-Cz"):
        load(two, split=[13], channels="Cz")


def test_the_features_are_those_of_the_microvolts(tmp_path: Path, rng: np.random.Generator) -> None:
    stages = "WW?12MR4WW"
    for subject in (3, 4):
        stem, values = f"SC4{subject:02d}1", rng.integers(-500, 500, (len(stages), 3000))
        write_edf(tmp_path / "sleep_edf" / f"{stem}E0-PSG.edf", {"EEG Fpz-Cz": values * subject})
        write_edf(tmp_path / "sleep_edf" / f"{stem}EC-Hypnogram.edf", {}, notes=notes_of(stages))
    plain, _ = load(tmp_path, split=[4])
    scaled, test = load(tmp_path, split=[4], scale="zscore-night")
    F, names = extract("eeg29", plain)
    assert (len(names), plain.feature_names) == (29, names)
    np.testing.assert_allclose(plain.F, F, rtol=1e-6)
    np.testing.assert_array_equal(scaled.F, plain.F)
    assert abs(scaled.X.std(dtype=np.float64) - 1) < 1e-5 < abs(plain.X.std() - 1)
    assert abs(test.X.std(dtype=np.float64) - 1) < 1e-5
    bare, _ = load(tmp_path, split=[4], features=None)
    assert bare.F is None


def test_channels_too_slow_for_an_eeg_have_no_features(two: Path) -> None:
    train, _ = load(two, split=[13])
    assert (train.F, train.sfreq) == (None, 1)
    with pytest.raises(DataError, match="eeg29 wants more than 8 Hz"):
        load(two, split=[13], features="eeg29")


def test_each_night_can_be_scaled_by_itself(two: Path) -> None:
    for part in load(two, split=[13], scale="zscore-night"):
        assert abs(part.X.mean(dtype=np.float64)) < 1e-5
        assert abs(part.X.std(dtype=np.float64) - 1) < 1e-5


def test_any_grouped_split_keeps_people_apart(tree: Path) -> None:
    train, test = load(tree, split=0.3, random_state=1)
    assert not set(train.group.tolist()) & set(test.group.tolist())
    assert len(set(test.group.tolist())) == 6


def test_all_people_can_be_asked_for(two: Path) -> None:
    write_night(two / "sleep_edf", 5, 2)
    for kind in ("PSG", "Hypnogram"):
        for file in (two / "sleep_edf").glob(f"SC4052*-{kind}.edf"):
            file.rename(file.with_name(file.name.replace("SC4052", "SC4822")))
    _, test = load(two, split=[82], subjects="all")
    assert len(test) == 1246
    with pytest.raises(DataError, match="no group 82"):
        load(two, split=[82])
    with pytest.raises(ConfigError, match="split 'paper' is of the 20 people"):
        load(two, subjects="all")


def test_the_papers_split_needs_all_nights(two: Path) -> None:
    with pytest.raises(DataError, match="holds 2 of the 39 nights"):
        load(two)


def test_a_night_without_its_hypnogram_is_named(two: Path) -> None:
    (two / "sleep_edf/SC4131EC-Hypnogram.edf").unlink()
    with pytest.raises(DataError, match=r"SC4131E0-PSG\.edf has 0 files SC4131"):
        load(two, split=[13])


def test_a_truncated_night_is_named(two: Path) -> None:
    psg = two / "sleep_edf/SC4131E0-PSG.edf"
    psg.write_bytes(psg.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"SC4131E0-PSG\.edf has \d+ bytes"):
        load(two, split=[13])


def test_nights_of_other_rates_are_refused(two: Path) -> None:
    psg = two / "sleep_edf/SC4131E0-PSG.edf"
    epochs = len(stages_of(13, 1))
    write_edf(psg, {"EEG Fpz-Cz": np.zeros((epochs, 60), int)})
    with pytest.raises(DataError, match=r"SC4131E0-PSG\.edf.*2\.0 Hz.*1\.0 Hz"):
        load(two, split=[13])


@pytest.mark.parametrize(
    "options",
    [
        {"split": "random"},
        {"scale": "volt"},
        {"subjects": "most"},
        {"wake_minutes": -1},
        {"features": "ecg88"},
    ],
)
def test_unknown_options_are_refused(two: Path, options: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        load(two, **options)


def stage(onset: float, duration: float | None, name: str) -> Note:
    return Note(onset, duration, f"Sleep stage {name}")


def test_the_end_of_sleep_is_onset_plus_duration() -> None:
    notes = [stage(0, 3000, "W"), stage(3000, 600, "2"), stage(3600, 6000, "W")]
    index, y = score_epochs(notes, 320)
    assert (index[0], index[-1]) == (100 - 60, 120 + 60 - 1)
    assert y.tolist() == [0] * 60 + [2] * 20 + [0] * 60
    index, _ = score_epochs(notes, 320, wake_minutes=0)
    assert index.tolist() == list(range(100, 120))


def test_wake_beyond_the_recording_is_cut_and_sleep_is_refused() -> None:
    notes = [stage(0, 60, "1"), stage(60, 3e9, "W")]
    assert score_epochs(notes, 5)[1].tolist() == [1, 1, 0, 0, 0]
    with pytest.raises(DataError, match=r"h\.edf.*ends at 60 s, but the recording lasts 30 s"):
        score_epochs(notes, 1, path="h.edf")


@pytest.mark.parametrize(
    "notes",
    [
        [stage(0, 60, "W")],
        [],
        [stage(0, 45, "1")],
        [stage(15, 30, "1")],
        [stage(-30, 60, "1")],
        [stage(0, None, "1")],
        [stage(0, 30, "9")],
        [stage(0, 60, "1"), stage(30, 30, "2")],
    ],
)
def test_hypnograms_that_make_no_sense_are_refused(notes: list[Note]) -> None:
    with pytest.raises(DataError, match=r"h\.edf"):
        score_epochs(notes, 10, path="h.edf")


def test_damaged_nights_raise_data_errors_and_nothing_else(tmp_path: Path) -> None:
    psg = write_edf(tmp_path / "p.edf", {"EEG Fpz-Cz": np.zeros((10, 3), int)})
    scores = write_edf(tmp_path / "h.edf", {}, notes=notes_of("WW?12MR4WW"))

    def read() -> None:
        epochs = int(read_edf_header(psg).seconds // 30)
        score_epochs(read_edf_notes(scores), epochs, path=scores)

    assert fuzz([psg, scores], read, times=1000) > 300


@needs_data
def test_the_genuine_hypnogram_gives_the_known_number_of_epochs() -> None:
    index, y = score_epochs(read_edf_notes(GENUINE / "SC4001EC-Hypnogram.edf"), 2650)
    assert len(index) == 841
    assert index[0] == 30630 // 30 - 60
    assert index[-1] == 52260 // 30 + 60 - 1
    assert np.bincount(y).tolist() == [188, 58, 250, 220, 125]


@needs_data
def test_the_genuine_hypnogram_does_not_fit_five_minutes(tmp_path: Path) -> None:
    folder = tmp_path / "sleep_edf"
    write_night(folder, 5, 1)
    (folder / "SC4001E0-PSG.edf").symlink_to(GENUINE / "short_psg.edf")
    (folder / "SC4001EC-Hypnogram.edf").symlink_to(GENUINE / "SC4001EC-Hypnogram.edf")
    with pytest.raises(DataError, match=r"SC4001EC-Hypnogram\.edf.*the recording lasts 300 s"):
        load(tmp_path, split=[0])


@needs_data
def test_the_genuine_signal_is_cut_into_epochs_in_microvolts(tmp_path: Path) -> None:
    folder = tmp_path / "sleep_edf"
    for subject in (0, 1):
        (folder).mkdir(exist_ok=True)
        (folder / f"SC4{subject:02d}1E0-PSG.edf").symlink_to(GENUINE / "short_psg.edf")
        write_edf(folder / f"SC4{subject:02d}1EC-Hypnogram.edf", {}, notes=notes_of("WW?12MR4WW"))
    _, test = load(tmp_path, split=[0], channels=["EEG Fpz-Cz", "EMG submental"])
    genuine = read_edf(GENUINE / "short_psg.edf", channels=["EEG Fpz-Cz", "EMG submental"])
    epochs = [0, 1, 3, 4, 6, 7, 8, 9]
    expected = genuine.X.reshape(2, 10, 3000).transpose(1, 0, 2)[epochs]
    np.testing.assert_array_equal(test.X, expected)
    assert np.asarray(test.y).tolist() == [0, 0, 1, 2, 4, 3, 0, 0]
    assert test.sfreq == 100
