"""Prepared stores: built once, keyed by content, whole or not there."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from expclr.datasets.store import fingerprint, load_pair, prepared, raw_folder
from expclr.errors import DataError
from expclr.windows import Windows

PREPARE = """
import sys, time
from pathlib import Path
import numpy as np
from expclr.datasets.store import prepared
from expclr.windows import Windows
raw, root, log, seconds = sys.argv[1:]
def build(folder):
    with open(log, "a") as file:
        file.write("built\\n")
    Windows(np.zeros((2, 1, 4), np.float32)).save(folder / "train")
    time.sleep(float(seconds))
    Windows(np.zeros((2, 1, 4), np.float32)).save(folder / "test")
print(prepared("mine", [raw], {"version": 1}, build, root_cache=root))
"""


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EXPCLR_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    path = tmp_path / "raw.txt"
    path.write_text("1 2 3")
    return path


def save_pair(folder: Path, value: float = 0.0) -> None:
    for part in ("train", "test"):
        Windows(np.full((2, 1, 4), value, np.float32)).save(folder / part)


def start(raw: Path, tmp_path: Path, seconds: float) -> subprocess.Popen[str]:
    words = [str(raw), str(tmp_path / "cache"), str(tmp_path / "log"), str(seconds)]
    command = [sys.executable, "-c", PREPARE, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def wait_for(path: Path) -> None:
    until = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_store_is_built_once_and_found_again(raw: Path) -> None:
    built = []

    def build(folder: Path) -> None:
        built.append(folder)
        save_pair(folder)

    first = prepared("mine", [raw], {"version": 1}, build)
    assert prepared("mine", [raw], {"version": 1}, build) == first
    assert len(built) == 1
    train, _ = load_pair(first)
    assert not train.X.flags.writeable  # it lies on disk


def test_other_options_make_another_store(raw: Path) -> None:
    one = prepared("mine", [raw], {"length": 1}, save_pair)
    assert prepared("mine", [raw], {"length": 2}, save_pair) != one


def test_an_edit_that_keeps_the_size_makes_another_store(raw: Path) -> None:
    before = prepared("mine", [raw], {}, save_pair)
    raw.write_text("1 2 4")
    assert prepared("mine", [raw], {}, save_pair) != before


def test_the_fingerprint_does_not_depend_on_place_or_time(raw: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    copy = tmp_path / "elsewhere" / raw.name
    copy.write_bytes(raw.read_bytes())
    os.utime(copy, (1, 1))
    assert fingerprint([copy]) == fingerprint([raw])
    assert fingerprint([raw]) == fingerprint([raw])


def test_the_fingerprint_knows_which_file_holds_what(tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("one")
    b.write_text("two")
    before = fingerprint([a, b])
    a.write_text("two")
    b.write_text("one")
    assert fingerprint([a, b]) != before


def test_a_missing_raw_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone\.txt"):
        prepared("mine", [tmp_path / "gone.txt"], {}, save_pair)


def test_a_build_that_fails_leaves_nothing(raw: Path, tmp_path: Path) -> None:
    def build(folder: Path) -> None:
        Windows(np.zeros((2, 1, 4), np.float32)).save(folder / "train")
        raise DataError("the second half is broken")

    with pytest.raises(DataError, match="second half"):
        prepared("mine", [raw], {}, build)
    left = [p.name for p in (tmp_path / "cache" / "mine").iterdir()]
    assert [name for name in left if not name.endswith(".lock")] == []


def test_several_processes_build_one_store(raw: Path, tmp_path: Path) -> None:
    running = [start(raw, tmp_path, 0.5) for _ in range(3)]
    found = {process.communicate(timeout=60)[0].strip() for process in running}
    assert len(found) == 1
    assert (tmp_path / "log").read_text() == "built\n"


def test_a_killed_build_leaves_no_store_and_no_lock(raw: Path, tmp_path: Path) -> None:
    process = start(raw, tmp_path, 60)
    wait_for(tmp_path / "log")
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=20)
    folder = tmp_path / "cache" / "mine"
    assert list(folder.glob(".*"))  # the half that it had built
    store = prepared("mine", [raw], {"version": 1}, save_pair)
    assert len(load_pair(store)[1]) == 2
    assert not list(folder.glob(".*"))


def test_raw_data_that_is_not_there_says_where_it_belongs(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"ours.*the zip.*expclr fetch ours"):
        raw_folder("ours", tmp_path, wanted="the zip")


def test_the_data_root_comes_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPCLR_DATA", str(tmp_path))
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "a").touch()
    assert raw_folder("ours") == tmp_path / "ours"


def test_a_damaged_store_says_how_to_have_it_made_again(raw: Path) -> None:
    store = prepared("mine", [raw], {}, save_pair)
    (store / "test" / "X.npy").write_bytes(b"nothing")
    with pytest.raises(DataError, match="delete"):
        load_pair(store)


def test_a_cache_that_cannot_be_written_is_said(raw: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="EXPCLR_CACHE"):
        prepared("mine", [raw], {}, save_pair, root_cache=tmp_path / "file")
