"""The rule that chooses the default feature space from the runs of its benchmark."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from feature_space_table import markdown, summary


def runs(scores, folds=4):
    """Runs whose three scored measures are all ``scores[candidate][dataset]``, and a bit noisy."""
    return [
        {
            "fold": fold,
            "dataset": dataset,
            "space": space,
            "reference": "batch",
            "r2": 0.5,
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


def test_the_page_shows_every_row():
    text = markdown({"summary": summary(runs({"standard": (0.5, 0.5)}))}, "About it.")
    assert text.count("| standard | batch |") == 3
    assert "**Default by this rule: space `standard`, reference `batch`.**" in text
