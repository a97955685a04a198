"""The page's numbers are those of the committed result files."""

import importlib
from pathlib import Path

import pytest

from expclr.experiments.cells import Cells
from expclr.experiments.choices import read_choices
from expclr.experiments.store import read_results

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reproduce.md"


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    return importlib.import_module("paper_tables")


def test_the_page_shows_what_the_result_files_hold(tables):
    text = PAGE.read_text(encoding="utf-8")
    assert "| ExpCLR (U) |" in text
    assert tables.filled(text) == text
    assert tables.filled(text.replace("| ExpCLR (U) |", "| made up |")) == text


def test_rows_without_a_run_are_named(tables):
    none = Cells("uci_har", "cpu", {})
    assert "Not run yet: Cross-Entropy, Expert Features, Random Init, ExpCLR," in tables._missing(
        none
    )


def test_no_result_was_chosen_by_test_windows():
    trials = read_results(ROOT / "experiments" / "results" / "tuning.jsonl").records
    results = read_results(ROOT / "experiments" / "results" / "results.jsonl").records
    assert {r["run"]["part"] for r in trials} == {"validation"}
    assert {r["run"]["part"] for r in results} == {"test"}
    for budget in ("cpu", "gpu"):
        read, chosen = (
            {r["data"] for r in records if r["budget"] == budget} for records in (results, trials)
        )
        assert read == chosen
        assert len(read) == 1


@pytest.mark.parametrize("budget", ["cpu", "gpu"])
def test_the_choices_are_those_of_the_trials(budget):
    trials = read_results(ROOT / "experiments" / "results" / "tuning.jsonl").records
    choices = read_choices("uci_har", budget)
    for name, stages in choices.systems.items():
        for lr, epochs, score in stages.get("U", {}).get("grid", []):
            (trial,) = [
                r
                for r in trials
                if (r["run"]["system"], r["run"]["mode"], r["budget"]) == (name, "U", budget)
                and list(r["run"]["variant"]) == ["lr", "max_epochs"]
                and (r["config"]["lr"], r["config"]["max_epochs"]) == (lr, epochs)
            ]
            assert trial["metrics"]["subset"]["linear"]["accuracy"] == pytest.approx(
                score, abs=1e-4
            )
