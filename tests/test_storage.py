import os
import signal
import subprocess
import sys
import time

import pytest

from expclr.errors import DataError
from expclr.storage import new_folder, read_json, write_json, write_text


def test_a_failing_block_leaves_nothing_behind(tmp_path):
    with pytest.raises(ZeroDivisionError), new_folder(tmp_path / "a") as folder:
        (folder / "x").write_text(str(1 / 0))
    assert list(tmp_path.iterdir()) == []


def test_a_new_folder_can_lie_in_folders_that_are_not_there_yet(tmp_path):
    with new_folder(tmp_path / "a" / "b") as folder:
        (folder / "x").write_text("1")
    assert (tmp_path / "a" / "b" / "x").read_text() == "1"


def test_relative_names_work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with new_folder("a") as folder:
        write_text(folder / "x", "1")
    write_json("y.json", {"z": 1})
    assert read_json("y.json") == {"z": 1}
    assert (tmp_path / "a" / "x").exists()


WRITER = """
import sys
from expclr.storage import new_folder
number = 0
while True:
    number += 1
    with new_folder(sys.argv[1]) as folder:
        for name in "abc":
            (folder / name).write_text(str(number))
    print(number, flush=True)
"""


def test_kill_9_at_any_moment_leaves_a_whole_folder(tmp_path):
    for wait in (0.03, 0.041, 0.052, 0.063, 0.074):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path / "a")], stdout=subprocess.PIPE
        )
        process.stdout.readline()
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert len({(tmp_path / "a" / name).read_text() for name in "abc"}) == 1


def test_what_a_killed_process_left_is_deleted_but_nothing_that_is_being_written(tmp_path):
    pytest.importorskip("fcntl")
    for name in (".a.expclr-aside-dead", ".a.expclr-aside-old-only", ".ab.expclr-aside-dead"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x").touch()
        os.utime(tmp_path / name, (1, 1))
    with new_folder(tmp_path / "a") as slow:
        os.utime(slow, (1, 1))
        with new_folder(tmp_path / "a") as folder:
            (folder / "x").touch()
        (slow / "x").write_text("last")
    assert (tmp_path / "a" / "x").read_text() == "last"
    left = {".a.expclr-aside-old-only", ".ab.expclr-aside-dead"}
    assert {path.name for path in tmp_path.iterdir()} == {"a", *left}


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "a").write_text("mine")
    with pytest.raises(DataError, match="is a file"), new_folder(tmp_path / "a"):
        pass


@pytest.mark.skipif(os.name == "nt", reason="needs a folder that nobody may write to")
def test_an_unwritable_place_is_named():
    with pytest.raises(DataError, match="cannot write"), new_folder("/proc/here/a"):
        pass
    with pytest.raises(DataError, match="cannot write"):
        write_text("/proc/x", "1")
