import os
import random
import time
from pathlib import Path

import numpy as np
import pytest
from tests.datasets.edf_files import fields, tals, write_edf
from tests.datasets.mutations import fuzz

from expclr.datasets import edf as edf_module
from expclr.datasets.edf import read_edf, read_edf_blocks, read_edf_header, read_edf_notes
from expclr.errors import DataError

GENUINE = Path(os.environ.get("EXPCLR_DATA", "nowhere")) / "sleep_edf"
PSG, HYPNOGRAM = GENUINE / "short_psg.edf", GENUINE / "SC4001EC-Hypnogram.edf"
needs_data = pytest.mark.skipif(not PSG.is_file(), reason="EXPCLR_DATA has no sleep_edf/")


@pytest.fixture
def edf(tmp_path: Path, rng: np.random.Generator) -> Path:
    """Two signals of 4 samples and one of 2 in each of 5 records of 2 s, and two notes."""
    signals = {
        "EEG Fpz-Cz": rng.integers(-32768, 32767, (5, 4)),
        "EEG Pz-Oz": rng.integers(-100, 100, (5, 4)),
        "Temp rectal": np.arange(10).reshape(5, 2),
    }
    notes = [(0, 4, "Sleep stage W"), (4, 6, "Sleep stage 2")]
    return write_edf(tmp_path / "night.edf", signals, record_seconds=2, notes=notes)


def patch(path: Path, at: int, value: str, width: int = 8) -> Path:
    content = path.read_bytes()
    path.write_bytes(content[:at] + fields([value], [width]) + content[at + width :])
    return path


def test_stored_values_come_back_in_physical_units(tmp_path: Path) -> None:
    stored = np.array([[-32768, 0, 10], [32767, 5, -10]])
    path = write_edf(tmp_path / "a.edf", {"A": stored}, record_seconds=0.5)
    recording = read_edf(path)
    np.testing.assert_allclose(recording.X, [stored.ravel() / 10], atol=3e-4)
    assert (recording.sfreq, recording.channel_names) == (6, ("A",))
    assert recording.X.dtype == np.float32


def test_channels_come_by_name_in_the_order_asked_for(edf: Path) -> None:
    both = read_edf(edf, channels=["EEG Pz-Oz", "fpz-cz"])
    assert both.channel_names == ("EEG Pz-Oz", "EEG Fpz-Cz")
    np.testing.assert_array_equal(both.X[0], read_edf(edf, channels="EEG Pz-Oz").X[0])


def test_a_slow_channel_is_held_to_the_rate_of_the_fast_one(edf: Path) -> None:
    alone = read_edf(edf, channels="Temp rectal")
    beside = read_edf(edf, channels=["EEG Fpz-Cz", "Temp rectal"])
    assert (alone.sfreq, beside.sfreq) == (1, 2)
    np.testing.assert_array_equal(beside.X[1], np.repeat(alone.X[0], 2))


@pytest.mark.parametrize("size", [1, 25, 10**6])
def test_stretches_of_a_recording_make_up_the_whole(
    edf: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    whole = read_edf(edf)
    monkeypatch.setattr(edf_module, "_BLOCK", size)
    parts = list(read_edf_blocks(edf))
    np.testing.assert_array_equal(np.concatenate([part.X for part in parts], axis=1), whole.X)
    np.testing.assert_array_equal(read_edf(edf).X, whole.X)
    assert len(parts) == {1: 5, 25: 5, 10**6: 1}[size]
    assert {(part.sfreq, part.channel_names) for part in parts} == {
        (whole.sfreq, whole.channel_names)
    }


def test_rates_without_a_whole_ratio_are_refused(tmp_path: Path) -> None:
    path = write_edf(tmp_path / "a.edf", {"A": np.zeros((2, 3)), "B": np.zeros((2, 2))})
    with pytest.raises(DataError, match=r"a\.edf.*no whole multiple"):
        read_edf(path)


def test_an_unknown_channel_lists_the_ones_there_are(edf: Path) -> None:
    with pytest.raises(DataError, match=r"night\.edf.*'EEG Fpz-Oz'.*EEG Fpz-Cz.*EEG Pz-Oz.*Temp"):
        read_edf(edf, channels="EEG Fpz-Oz")


@pytest.mark.parametrize("change", ["cut", "grown", "records", "samples", "unknown"])
def test_a_header_that_lies_about_the_length_is_refused(edf: Path, change: str) -> None:
    content = edf.read_bytes()
    if change == "cut":
        edf.write_bytes(content[:-1])
    elif change == "grown":
        edf.write_bytes(content + b"\0\0")
    elif change == "samples":
        patch(edf, 256 + 4 * 216, "5")
    else:
        patch(edf, 236, "6" if change == "records" else "-1")
    with pytest.raises(DataError, match=r"night\.edf has \d+ bytes but its header"):
        read_edf(edf)


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (0, "\x7fBIOSEMI", "is not EDF"),
        (184, "512", "calls itself 512"),
        (192, "EDF+D", "gaps"),
        (244, "nan", "finite"),
        (244, "1e308", "5 data records of 1e.308 s"),
        (244, "-2", "5 data records of -2.0 s"),
        (252, "0", "0 signals"),
        (256 + 4 * 104, "3276.7", "physical range 3276.7 to 3276.7"),
        (256 + 4 * 112, "1e30", "physical range .* to 1e.30"),
        (256 + 4 * 120, "x", "whole number"),
    ],
)
def test_a_damaged_header_is_refused(edf: Path, at: int, value: str, message: str) -> None:
    with pytest.raises(DataError, match=rf"night\.edf.*{message}"):
        read_edf(patch(edf, at, value, 4 if at == 252 else 8))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no\.edf"):
        read_edf(tmp_path / "no.edf")


def test_notes_come_in_order_and_count_from_the_first_sample(tmp_path: Path) -> None:
    path = write_edf(tmp_path / "a.edf", {}, notes=[(9.5, None, "late"), (3, 2, "early")])
    content = path.read_bytes().replace(b"+0\x14\x14", b"+1\x14\x14")
    path.write_bytes(content.replace(b"early\x14", b"ear\x14y\x14"))
    assert read_edf_notes(path) == [(2, 2, "ear"), (2, 2, "y"), (8.5, None, "late")]


@pytest.mark.parametrize("damage", [b"+1\x15\x14a\x14", b"1\x14a\x14", b"+1\x14a", b"+1a", b"\xff"])
def test_a_damaged_note_is_refused(tmp_path: Path, damage: bytes) -> None:
    path = write_edf(tmp_path / "a.edf", {}, notes=[(0, 1, "a" * 20)])
    content = path.read_bytes()
    at = content.index(b"+0\x151") if b"+0\x151" in content else 0
    path.write_bytes(content[:at] + damage.ljust(len(content) - at, b"\0"))
    with pytest.raises(DataError, match=r"a\.edf.*note.*damaged"):
        read_edf_notes(path)


def test_signals_and_notes_are_not_taken_for_each_other(edf: Path, tmp_path: Path) -> None:
    notes = write_edf(tmp_path / "notes.edf", {}, notes=[(0, 1, "a")])
    with pytest.raises(DataError, match="no signals"):
        read_edf(notes)
    with pytest.raises(DataError, match=r"no EDF\+ notes"):
        read_edf_notes(write_edf(tmp_path / "signals.edf", {"A": np.zeros((2, 3))}))


@pytest.mark.parametrize("pattern", [b"+1\x14a", b"1", b"+1\x15", b"+1\x14\x14\0", b"\x14"])
def test_hostile_notes_are_read_in_linear_time(tmp_path: Path, pattern: bytes) -> None:
    path = write_edf(tmp_path / "a.edf", {}, notes=[(0, 1, "a" * 120_000)])
    content = path.read_bytes()
    path.write_bytes(content[:512] + (b"+" + pattern * 120_000)[: len(content) - 512])
    started = time.perf_counter()
    with pytest.raises(DataError, match=r"a\.edf"):
        read_edf_notes(path)
    assert time.perf_counter() - started < 1


def read_all(path: Path) -> None:
    read_edf(path)
    read_edf_notes(path)


def test_damaged_files_raise_data_errors_and_nothing_else(edf: Path) -> None:
    assert fuzz([edf], lambda: read_all(edf), times=2000) > 500


@pytest.mark.slow
def test_many_more_damaged_files_raise_data_errors(edf: Path) -> None:
    assert fuzz([edf], lambda: read_all(edf), times=10_000, seed=1) > 2500


def test_damaged_note_records_raise_data_errors(tmp_path: Path) -> None:
    rng = random.Random(0)
    stages = [(30 * i, 30, f"Sleep stage {rng.choice('W1234R')}") for i in range(60)]
    path = write_edf(tmp_path / "a.edf", {}, notes=stages)
    assert len(tals(stages)) > 1000
    assert fuzz([path], lambda: read_edf_notes(path), times=3000) > 900


@needs_data
def test_the_genuine_recording_agrees_with_pyedflib() -> None:
    pyedflib = pytest.importorskip("pyedflib")
    with pyedflib.EdfReader(str(PSG)) as other:
        assert [s.label for s in read_edf_header(PSG).signals] == other.getSignalLabels()
        for i, label in enumerate(other.getSignalLabels()):
            ours = read_edf(PSG, channels=label)
            assert ours.sfreq == other.getSampleFrequency(i)
            np.testing.assert_allclose(ours.X[0], other.readSignal(i), rtol=1e-6, atol=1e-4)
    with pyedflib.EdfReader(str(HYPNOGRAM)) as other:
        onsets, durations, texts = other.readAnnotations()
    ours = read_edf_notes(HYPNOGRAM)
    assert [n.onset for n in ours] == onsets.tolist()
    assert [n.duration for n in ours] == durations.tolist()
    assert [n.text for n in ours] == texts.tolist()


@needs_data
def test_the_genuine_files_agree_with_edfio() -> None:
    edfio = pytest.importorskip("edfio")
    for signal in edfio.read_edf(PSG).signals:
        ours = read_edf(PSG, channels=signal.label)
        np.testing.assert_allclose(ours.X[0], signal.data, rtol=1e-6, atol=1e-4)
    theirs = [tuple(note) for note in edfio.read_edf(HYPNOGRAM).annotations]
    assert [tuple(note) for note in read_edf_notes(HYPNOGRAM)] == theirs


@needs_data
def test_the_genuine_recording_has_its_published_channels_and_range() -> None:
    recording = read_edf(PSG, channels=["EEG Fpz-Cz", "EMG submental"])
    assert recording.X.shape == (2, 30_000)
    assert recording.sfreq == 100
    assert 1 < recording.X[0].std() < 200  # microvolts
