"""A source of any size is prepared within a bounded memory."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.datasets.edf_files import write_edf
from tests.datasets.wfdb_files import write_record

from expclr.datasets.npy import NpyWriter
from expclr.datasets.store import load_pair
from expclr.windows import Windows

# What the process holds at most, beyond what it held after its imports.
MEASURE = """
import sys
from pathlib import Path
from expclr.datasets.own import prepare
import numpy.random

def kilobytes(what):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what))

options = eval(sys.argv[3])
before = kilobytes("VmRSS")
prepare(sys.argv[2], sys.argv[1], **options)
print((kilobytes("VmHWM") - before) * 1024)
"""
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="no /proc to read the memory from"
)


def peak_memory(source: Path, out: Path, **options: object) -> int:
    command = [sys.executable, "-c", MEASURE, str(source), str(out), repr(options)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@needs_proc
def test_arrays_larger_than_the_memory_used(tmp_path: Path, rng: np.random.Generator) -> None:
    source = tmp_path / "source"
    source.mkdir()
    block = rng.normal(size=(1000, 2, 1000)).astype(np.float32)
    with NpyWriter(source / "X.npy", (2, 1000)) as writer:
        for i in range(40):
            writer.append(block + i)
    np.save(source / "group.npy", np.repeat(np.arange(40), 1000))
    size = (source / "X.npy").stat().st_size
    assert peak_memory(source, tmp_path / "out", test=0.25) < size / 3
    train, test = load_pair(tmp_path / "out")
    assert (len(train), len(test)) == (30_000, 10_000)


@needs_proc
def test_tables_and_windows_larger_than_the_memory_used(tmp_path: Path) -> None:
    lines = "".join(f"{i / 100:.2f},{i % 977},{i % 89}\n" for i in range(400_000))
    (tmp_path / "a.csv").write_text("time,x,y\n" + lines)
    options = {"time": "time", "length": 1000, "step": 20, "test": None}
    peak = peak_memory(tmp_path / "a.csv", tmp_path / "out", **options)
    size = (tmp_path / "out" / "X.npy").stat().st_size
    assert size > 150 * 2**20
    assert peak < size


@needs_proc
@pytest.mark.parametrize("form", ["edf", "wfdb", "npy"])
def test_recordings_larger_than_the_memory_used(tmp_path: Path, form: str) -> None:
    values = (np.arange(60_000_000) % 1999).astype(np.int16)
    if form == "edf":
        source = write_edf(tmp_path / "one.edf", {"A": values.reshape(-1, 1000)}, record_seconds=1)
    elif form == "wfdb":
        source = write_record(tmp_path, "one", values[None], leads=["A"], format=16)
        source = source.with_suffix(".hea")
    else:
        np.save(tmp_path / "npy.npy", values.reshape(1, -1))
        source = tmp_path / "folder"
        source.mkdir()
        (tmp_path / "npy.npy").rename(source / "one.npy")
    peak = peak_memory(source, tmp_path / "out", length=1000, test=None)
    X = Windows.load(tmp_path / "out").X
    assert X.shape == (60_000, 1, 1000)
    scale = {"edf": 10, "wfdb": 200, "npy": 1}[form]
    for row in (0, 7, 59_999):
        expected = np.arange(1000 * row, 1000 * (row + 1)) % 1999 / scale
        np.testing.assert_allclose(X[row, 0], expected, atol=1e-3)
    assert peak < X.nbytes * 0.75


@needs_proc
def test_parquet_larger_than_the_memory_used(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    values = np.random.default_rng(0).normal(size=12_000_000).astype(np.float32)
    table = pyarrow.table({f"x{i}": np.roll(values, i) for i in range(4)})
    parquet.write_table(table, tmp_path / "a.parquet")
    peak = peak_memory(tmp_path / "a.parquet", tmp_path / "out", length=1000, test=None)
    X = Windows.load(tmp_path / "out").X
    np.testing.assert_array_equal(X[7, 2], np.roll(values, 2)[7000:8000])
    assert peak < X.nbytes


@needs_proc
@pytest.mark.slow
def test_a_store_of_over_a_gigabyte_needs_a_quarter_of_one(tmp_path: Path) -> None:
    with NpyWriter(tmp_path / "X.npy", (4, 1000)) as writer:
        block = np.random.default_rng(0).normal(size=(2000, 4, 1000)).astype(np.float32)
        for i in range(34):
            writer.append(block + i)
    np.save(tmp_path / "y.npy", np.arange(68_000) % 3)
    assert (tmp_path / "X.npy").stat().st_size > 10**9
    assert peak_memory(tmp_path, tmp_path / "out", test=0.2) < 250 * 10**6
