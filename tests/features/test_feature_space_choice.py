"""The rule that chooses the default feature space from the runs of its benchmark."""

import inspect
import json
import sys
from pathlib import Path

import pytest

from expclr import ExpCLR
from expclr.features.space_named import SPACES, as_feature_space

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from feature_space_table import FEWEST_FOLDS, NEXT, markdown, page, summary

ROOT = Path(__file__).parents[2]


def runs(scores, folds=4):
    """Runs whose three scored measures are all ``scores[candidate][dataset]``, and a bit noisy."""
    return [
        {
            "fold": fold,
            "dataset": dataset,
            "space": space,
            "reference": "batch",
            "r2": 0.5,
            "seconds": 30.0,
            "steps": 100,
            "windows": 2500,
            "folds": folds,
            "encoder": {"width": 8},
            **dict.fromkeys(("linear_f1", "nearest_f1", "agreement"), value + noise * fold / 100),
        }
        for noise, (space, values) in enumerate(scores.items())
        for dataset, value in zip(("a", "b"), values, strict=True)
        for fold in range(folds)
    ]


@pytest.mark.parametrize(
    ("other", "folds", "wanted"),
    [
        ((0.6, 0.6), 4, "robust"),
        ((0.6, 0.6), 2, "standard"),  # too few folds
        ((0.49, 0.49), 4, "standard"),  # within the error
        ((0.9, 0.45), 4, "standard"),  # much better on one, worse on the other
    ],
)
def test_a_default_is_replaced_only_by_what_is_clearly_better_and_nowhere_worse(
    other, folds, wanted
):
    found = summary(runs({"standard": (0.5, 0.5), "robust": other}, folds))
    assert found["choice"] == {"space": wanted, "reference": "batch"}


def test_gains_are_paired_by_fold_and_dataset():
    found = summary(runs({"standard": (0.2, 0.9), "robust": (0.3, 0.8)}))
    (best, *_) = [g for g in found["gains"] if g["space"] == "robust"]
    assert best["by_dataset"] == pytest.approx({"a": 0.115, "b": -0.085})
    assert best["mean"] == pytest.approx(0.015)
    # each fold's gain is 0.01 apart: standard deviation 0.0129, over sqrt(4), two datasets
    assert best["se"] == pytest.approx(0.0129099 / 2 * 2**0.5 / 2, rel=1e-4)


def test_a_candidate_that_is_not_finished_everywhere_is_shown_but_not_compared():
    known = runs({"standard": (0.5, 0.5), "robust": (0.9, 0.9)})
    found = summary([r for r in known if (r["space"], r["dataset"]) != ("robust", "b")])
    assert [g["space"] for g in found["gains"]] == ["standard"]
    assert [(r["dataset"], r["space"]) for r in found["rows"]] == [
        ("a", "standard"),
        ("a", "robust"),
        ("b", "standard"),
    ]


def result_of(found):
    return {"runs": found, "summary": summary(found)}


def test_the_page_shows_every_row():
    text = markdown(result_of(runs({"standard": (0.5, 0.5)})))
    assert text.count("| standard | batch |") == 3
    assert "**Default by this rule: space `standard`, reference `batch`.**" in text
    assert "a small TCN (width 8)" in text


def test_the_page_keeps_what_others_wrote_below():
    result = result_of(runs({"standard": (0.5, 0.5)}))
    before = f"old\n\n{NEXT}\n\nOf others.\n"
    text = page(before, result)
    assert text == f"{markdown(result)}\n{NEXT}\n\nOf others.\n"
    assert page(text, result) == text
    assert page("", result) == markdown(result)


@pytest.fixture(scope="module")
def kept():
    path = ROOT / "benchmarks" / "results" / "feature_space.json"
    return json.loads(path.read_text(encoding="utf-8"))


def test_the_page_on_choices_is_the_result_file(kept):
    text = (ROOT / "docs" / "choices.md").read_text(encoding="utf-8")
    assert kept["summary"] == summary(kept["runs"])
    assert text == page(text, kept)


def test_the_default_is_what_the_rule_chose(kept):
    default = {name: p.default for name, p in inspect.signature(ExpCLR).parameters.items()}
    choice = kept["summary"]["choice"]
    assert default["reference"] == choice["reference"]
    named = {"whitened, 0.5": "whitened"} | {name: name for name in SPACES}
    space = as_feature_space(default["feature_space"] or "standard")
    assert repr(space) == repr(as_feature_space(named[choice["space"]]))


def test_in_each_fold_every_candidate_was_run_on_every_dataset(kept):
    found = {(r["fold"], r["dataset"], r["space"], r["reference"]) for r in kept["runs"]}
    candidates = {(space, reference) for *_, space, reference in found}
    datasets = {dataset for _, dataset, *_ in found}
    assert datasets == {"uci_har", "mitdb", "machine"}
    folds = {fold for fold, *_ in found}
    assert len(folds) >= FEWEST_FOLDS
    assert len(found) == len(kept["runs"]) == len(folds) * 3 * len(candidates)
