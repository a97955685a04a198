"""The results store: whole files, foreign ones named, merged by copying."""

import json

import pytest

from expclr.errors import DataError
from expclr.experiments.store import SOURCES, WANTED, Store, code_version, read_results


def record(key, **others):
    return dict.fromkeys(WANTED, "x") | {"id": key} | others


def test_a_record_is_on_disk_once_it_is_added(tmp_path):
    Store(tmp_path).add(record("a"))
    assert "a" in Store(tmp_path)
    assert read_results(tmp_path).records[0]["id"] == "a"


def test_a_record_that_is_there_is_never_changed(tmp_path):
    store = Store(tmp_path)
    store.add(record("a", seconds=1))
    store.add(record("a", seconds=2))
    assert [r["seconds"] for r in Store(tmp_path).results().records] == [1]


def test_half_written_and_foreign_files_are_passed_over_by_name(tmp_path, caplog):
    store = Store(tmp_path)
    store.add(record("good"))
    (tmp_path / "runs" / "half.json").write_text('{"id": "half", "run": {')
    (tmp_path / "runs" / "notes.json").write_text('{"title": "mine"}')
    (tmp_path / "runs" / "list.json").write_text("[1, 2]")
    (tmp_path / "runs" / "later.json").write_text(json.dumps(record("later", format=99)))
    (tmp_path / "more.jsonl").write_text(json.dumps(record("packed")) + "\n{oops\n")
    found = read_results(tmp_path)
    assert {r["id"] for r in found.records} == {"good", "packed"}
    assert set(found.skipped) == {
        *("half.json", "notes.json", "list.json", "later.json", "more.jsonl:2"),
    }
    assert "half.json" in caplog.text


def test_stores_of_several_machines_merge_and_pack(tmp_path):
    one, two = Store(tmp_path / "one"), Store(tmp_path / "two")
    one.add(record("a"))
    two.add(record("a"))
    two.add(record("b"))
    packed = two.pack(tmp_path / "two.jsonl")
    assert one.merge([packed]) == 1
    assert one.merge([tmp_path / "two"]) == 0
    assert {r["id"] for r in one.results().records} == {"a", "b"}


def test_a_folder_that_is_not_there_is_a_clear_error(tmp_path):
    with pytest.raises(DataError, match="no results"):
        read_results(tmp_path / "nowhere")


def test_the_code_version_is_of_files_that_exist():
    from pathlib import Path

    import expclr

    root = Path(expclr.__file__).parent
    assert {"methods", "encoders", "train.py"} <= {n for n in SOURCES if (root / n).exists()}
    assert code_version() == code_version()
