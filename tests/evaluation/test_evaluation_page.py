"""The numbers of docs/evaluation.md are those of the kept result files."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")


@pytest.fixture
def filled(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("downstream_tables").filled


def test_the_page_is_what_the_result_files_make_of_it(filled):
    assert filled(PAGE) == PAGE
    spoilt = re.sub(r"0\.\d{3}", "0.000", PAGE)
    assert spoilt != PAGE
    assert filled(spoilt) == PAGE


def test_no_place_for_a_table_is_empty():
    assert re.findall(r"<!-- (.+?) -->\n<!-- end -->", PAGE) == []
    assert len(re.findall("<!-- end -->", PAGE)) > 10
