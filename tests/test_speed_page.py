"""docs/speed.md says what the result files say."""

import importlib
import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    return importlib.import_module("speed_tables")


def test_the_page_s_numbers_are_those_of_the_result_files(tables):
    text = tables.PAGE.read_text(encoding="utf-8")
    assert tables.filled(text) == text
    assert tables.filled(re.sub(r"\d", "7", text)) != re.sub(r"\d", "7", text)


def test_every_table_has_a_place_on_the_page(tables):
    begun = re.findall(r"<!-- (?!end of )(.+?) -->", tables.PAGE.read_text(encoding="utf-8"))
    assert sorted(begun) == sorted(tables.BLOCKS)


def test_what_a_gpu_machine_leaves_is_kept_and_shown(tables, tmp_path, monkeypatch):
    left, kept = tmp_path / "left", tmp_path / "kept"
    for folder in (left, kept):
        folder.mkdir()
    found = json.loads((tables.KEPT / "loss_cpu.json").read_text())
    (left / "loss_gpu.json").write_text(json.dumps(found))
    (left / "bench_gpu.json").write_text(tables.REFERENCES.read_text())
    (left / "tests_gpu.log").write_text("34 passed")
    references = tmp_path / "references.json"
    references.write_text("{}")
    monkeypatch.setattr(tables, "KEPT", kept)
    monkeypatch.setattr(tables, "REFERENCES", references)
    assert "loss on a gpu\n| rows |" in tables.shown(left)
    tables.keep(left)
    assert json.loads((kept / "loss_gpu.json").read_text()) == found
    assert (kept / "tests_gpu.log").read_text() == "34 passed"
    assert list(json.loads(references.read_text())) == ["cuda"]


def test_a_way_that_failed_is_named(tables):
    ways = {"naive": {"64": {"failed": "CUDA out of memory"}, "128": {"failed": "oh"}}}
    text = tables.losses({"ways": ways, "gradient_errors": {"n": 64, "naive": 1e-3}})
    assert "| 64 | out of memory |" in text
    assert "| 128 | failed |" in text


def test_no_result_names_a_folder_of_the_machine(tables):
    for path in tables.KEPT.glob("*.json"):
        words = re.findall(r'"command": "(.*?)"', path.read_text(encoding="utf-8"))
        assert not [word for text in words for word in text.split() if word.startswith("/")], path


def test_the_gpu_script_is_sound():
    subprocess.run(["bash", "-n", ROOT / "benchmarks" / "gpu.sh"], check=True)
