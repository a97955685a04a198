"""The pages' code runs: python blocks in order, titled ones as files, bash blocks as commands."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
LINK = re.compile(r"\]\(([^)#:]+)\)")
BLOCK = re.compile(r"^```(python|bash)(?: title=\"(.+?)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _run_command(text):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-ec", text], env=os.environ | {"PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "page", ["../README.md", "add-your-own.md", "datasets.md", "evaluation.md"]
)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("EXPCLR_CACHE", str(tmp_path / "cache"))
    names = {}
    blocks = BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    assert blocks
    for language, title, text in blocks:
        if title:
            Path(title).write_text(text, encoding="utf-8")
        elif language == "python":
            exec(compile(text, f"{page}:{text.splitlines()[0]}", "exec"), names)
        else:
            _run_command(text)


@pytest.mark.parametrize("page", [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))], ids=str)
def test_links_lead_somewhere(page):
    links = LINK.findall(page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", ["README.md", "docs/demo.md"])
def test_the_demonstration_s_numbers_are_those_of_its_result_file(page, monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    filled = importlib.import_module("demo_tables").filled
    text = (DOCS.parent / page).read_text(encoding="utf-8")
    assert "| ExpCLR (SS) |" in text
    assert filled(text) == text
    assert filled(text.replace("| ExpCLR (SS) |", "| made up |")) == text
