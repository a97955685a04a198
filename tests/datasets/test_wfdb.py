import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from tests.datasets.mutations import fuzz
from tests.datasets.wfdb_files import annotations, write_record

from expclr.datasets import wfdb as wfdb_module
from expclr.datasets.wfdb import (
    read_wfdb,
    read_wfdb_annotations,
    read_wfdb_blocks,
    read_wfdb_header,
)
from expclr.errors import DataError

ROOT = Path(os.environ.get("EXPCLR_DATA", "nowhere"))
GENUINE = sorted([*ROOT.glob("mitdb/*.hea"), *ROOT.glob("wfdb_samples/*.hea")])
needs_data = pytest.mark.skipif(not GENUINE, reason="EXPCLR_DATA has no mitdb/, wfdb_samples/")


@pytest.fixture
def record(tmp_path: Path, rng: np.random.Generator) -> Path:
    """Two leads of 151 samples with beats and two rhythms."""
    digital = rng.integers(-2047, 2048, (2, 151))
    marks = [(3, 28, "(N"), (5, 1, ""), (90, 28, "(AFIB"), (120, 1, "")]
    return write_record(tmp_path, "r1", digital, marks)


def edit(record: Path, old: str, new: str) -> Path:
    header = record.with_suffix(".hea")
    assert old in header.read_text()
    header.write_text(header.read_text().replace(old, new))
    return record


def slow_212(stored: bytes, n: int) -> list[int]:
    """Bit by bit from the format's description."""
    values = []
    for i in range(n):
        triple = stored[i // 2 * 3 : i // 2 * 3 + 3]
        low, high = (triple[0], triple[1] & 15) if i % 2 == 0 else (triple[2], triple[1] >> 4)
        value = high * 256 + low
        values.append(value - 4096 if value >= 2048 else value)
    return values


def test_format_212_is_read_as_described(tmp_path: Path, rng: np.random.Generator) -> None:
    stored = rng.integers(0, 256, 33, np.uint8).tobytes()
    values = np.array(slow_212(stored, 22)).reshape(11, 2).T
    record = write_record(tmp_path, "a", values)
    assert record.with_suffix(".dat").read_bytes() == stored
    np.testing.assert_allclose(read_wfdb(record).X, values / 200, rtol=1e-6)


@pytest.mark.parametrize("format", [16, 212])
@pytest.mark.parametrize("samples", [1, 2, 7])
@pytest.mark.parametrize("leads", [1, 3])
def test_stored_values_come_back_in_millivolts(
    tmp_path: Path, rng: np.random.Generator, format: int, samples: int, leads: int
) -> None:
    digital = rng.integers(-2047, 2048, (leads, samples))
    names = [f"lead {i}" for i in range(leads)]
    record = write_record(tmp_path, "a", digital, leads=names, format=format, sfreq=360)
    recording = read_wfdb(record)
    np.testing.assert_allclose(recording.X, digital / 200, rtol=1e-6)
    assert (recording.sfreq, recording.channel_names) == (360, tuple(names))
    assert recording.X.dtype == np.float32


@pytest.mark.parametrize(("format", "kind"), [("80", "u1"), ("32", "<i4"), ("61", ">i2")])
def test_the_other_plain_formats_are_read(tmp_path: Path, format: str, kind: str) -> None:
    digital = np.array([[3, -4, 5], [-1, 0, 100]])
    record = edit(write_record(tmp_path, "a", digital, format=16), "16 200", f"{format} 200")
    zero = 128 if format == "80" else 0
    record.with_suffix(".dat").write_bytes((digital.T + zero).astype(kind).tobytes())
    np.testing.assert_allclose(read_wfdb(record).X, digital / 200, rtol=1e-6)


def test_gain_and_baseline_of_the_header_are_used(record: Path) -> None:
    plain = read_wfdb(record).X
    changed = read_wfdb(edit(record, "212 200 12 0", "212 100(-50)/uV 12 7")).X
    np.testing.assert_allclose(changed, (plain * 200 + 50) / 100, rtol=1e-5, atol=1e-6)


def test_a_missing_sample_is_nan(tmp_path: Path) -> None:
    digital = np.array([[1, -2048, 3], [4, 5, 6]])
    X = read_wfdb(write_record(tmp_path, "a", digital)).X
    assert np.argwhere(np.isnan(X)).tolist() == [[0, 1]]


def test_signals_in_two_files_are_joined(tmp_path: Path) -> None:
    first, second = np.array([[1, 2, 3, 4]]), np.array([[5, 6, 7, 8]])
    a = write_record(tmp_path, "a", first, leads=["A"])
    write_record(tmp_path, "b", second, leads=["B"], format=16)
    other = (tmp_path / "b.hea").read_text().splitlines()[1]
    a.with_suffix(".hea").write_text(
        a.with_suffix(".hea").read_text().replace("a 1", "a 2").replace("A\n", f"A\n{other}\n")
    )
    recording = read_wfdb(a, channels=["B", "A"])
    np.testing.assert_allclose(recording.X * 200, [second[0], first[0]], rtol=1e-6)


def test_an_unknown_lead_lists_the_ones_there_are(record: Path) -> None:
    with pytest.raises(DataError, match=r"r1\.hea has no channel 'V9'.*ECG1, ECG2"):
        read_wfdb(record, channels="V9")


@pytest.mark.parametrize("format", [16, 212])
@pytest.mark.parametrize("leads", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 7, 40])
def test_stretches_of_a_record_make_up_the_whole(
    tmp_path: Path,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    format: int,
    leads: int,
    size: int,
) -> None:
    digital = rng.integers(-2047, 2048, (leads, 31))
    names = [f"lead {i}" for i in range(leads)]
    record = write_record(tmp_path, "a", digital, leads=names, format=format)
    monkeypatch.setattr(wfdb_module, "_BLOCK", size)
    parts = list(read_wfdb_blocks(record))
    assert len(parts) > 1 or size // leads >= 31
    together = np.concatenate([part.X for part in parts], axis=1)
    np.testing.assert_allclose(together, digital / 200, rtol=1e-6)
    np.testing.assert_array_equal(read_wfdb(record).X, together)


def test_one_changed_bit_is_found_by_the_check_sum(record: Path) -> None:
    data = record.with_suffix(".dat")
    content = bytearray(data.read_bytes())
    content[100] ^= 4
    data.write_bytes(content)
    with pytest.raises(DataError, match=r"r1\.dat.*check sum in r1\.hea.*damaged"):
        read_wfdb(record)


def test_a_truncated_file_is_refused(record: Path) -> None:
    data = record.with_suffix(".dat")
    data.write_bytes(data.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"r1\.dat holds 452 bytes.*asks for 453.*151 samples of 2"):
        read_wfdb(record)


@pytest.mark.parametrize("samples", ["152", "150", "0", "999999999999"])
def test_a_header_that_lies_about_the_length_is_refused(record: Path, samples: str) -> None:
    with pytest.raises(DataError, match=r"r1\.(hea|dat)"):
        read_wfdb(edit(record, "250 151", f"250 {samples}"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("r1 2", "r1 3", "speaks of 3 signals and describes 2"),
        ("r1 2", "r1 99999", "speaks of 99999 signals"),
        ("r1 2", "r1/2 2", "several segments"),
        ("r1 2", "r1 0", "no signals"),
        ("r1 2 250", "r1 2 nan", "sampling frequency"),
        ("r1 2 250", "r1 2 -250", "at -250.0 Hz"),
        ("212 200", "516 200", "format '516'"),
        ("212 200", "212x4 200", "several rates"),
        ("212 200", "212 inf", "gain"),
        ("212 200", "212 1e-30", "gain"),
        ("r1.dat 212", "../r1.dat 212", "names no signal file beside it"),
        ("r1.dat 212", "/etc/passwd 212", "names no signal file beside it"),
        ("r1.dat 212", "r2.dat 212", r"cannot read .*r2\.dat"),
    ],
)
def test_a_damaged_header_is_refused(record: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_wfdb(edit(record, old, new))


def test_annotations_come_back_with_long_and_backward_steps(tmp_path: Path) -> None:
    marks = [
        (0, 22, "odd"),
        (1023, 1, ""),
        (2047, 28, "(AFIB"),
        (9_000_000, 5, ""),
        (8_999_999, 1, ""),
    ]
    (tmp_path / "a.atr").write_bytes(annotations(marks))
    assert [tuple(a) for a in read_wfdb_annotations(tmp_path / "a")] == marks


def test_subtype_channel_and_number_are_no_annotations(tmp_path: Path) -> None:
    extra = b"".join((code << 10 | 7).to_bytes(2, "little") for code in (60, 61, 62))
    content = annotations([(5, 1, "")])
    (tmp_path / "a.atr").write_bytes(content[:2] + extra + content[2:])
    assert [tuple(a) for a in read_wfdb_annotations(tmp_path / "a.hea")] == [(5, 1, "")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (annotations([(5, 1, "")])[:-2], "end mark"),
        (annotations([(5, 28, "(AFIB")])[:-4], "text|end mark"),
        (annotations([])[:0], "end mark"),
        (b"\x00\xec\xff\xff\x00\x00\x00\x00", "before the record"),
        (b"\x04\xfcabcd\x00\x00", "belongs to no annotation"),
    ],
)
def test_damaged_annotations_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.atr").write_bytes(content)
    with pytest.raises(DataError, match=rf"a\.atr.*({message})"):
        read_wfdb_annotations(tmp_path / "a")


def read_all(record: Path) -> None:
    read_wfdb_header(record)
    read_wfdb(record)
    read_wfdb_annotations(record)


def parts(record: Path) -> list[Path]:
    return [record.with_suffix(end) for end in (".hea", ".hea", ".dat", ".atr")]


def test_damaged_files_raise_data_errors_and_nothing_else(record: Path) -> None:
    assert fuzz(parts(record), lambda: read_all(record), times=3000) > 1500


@pytest.mark.slow
def test_many_more_damaged_files_raise_data_errors(record: Path) -> None:
    assert fuzz(parts(record), lambda: read_all(record), times=10_000, seed=1) > 5000


@needs_data
@pytest.mark.parametrize("header", GENUINE, ids=lambda path: path.stem)
def test_the_check_sums_of_genuine_records_hold(header: Path) -> None:
    stated = [signal.checksum for signal in read_wfdb_header(header).signals]
    recording = read_wfdb(header)  # refuses wrong sums; here they are taken once more, by hand
    for row, signal, total in zip(
        recording.X, read_wfdb_header(header).signals, stated, strict=True
    ):
        digital = np.rint(row.astype(np.float64) * signal.gain + signal.baseline).astype(int)
        assert total is not None
        assert (digital.sum() - total) % 65536 == 0


@needs_data
def test_genuine_records_agree_with_the_wfdb_package() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its import uses what pandas has deprecated
        wfdb = pytest.importorskip("wfdb")
        for header in GENUINE[::5]:
            ours, theirs = read_wfdb(header), wfdb.rdrecord(str(header.with_suffix("")))
            np.testing.assert_allclose(ours.X.T, theirs.p_signal, atol=1e-5)
            marks = wfdb.rdann(str(header.with_suffix("")), "atr")
            found = read_wfdb_annotations(header)
            assert [a.sample for a in found] == marks.sample.tolist()
            assert [a.text for a in found] == [text.rstrip("\0") for text in marks.aux_note]
