"""Suggested labels cover what there is first, then go where the classifier is unsure."""

import numpy as np
import pytest

from expclr.errors import ConfigError, DataError
from expclr.evaluation import fit_linear_head, suggest_labels, suggestions
from expclr.evaluation.label_loops import label_loop


def clumps(rng, sizes, e=2, spread=0.3):
    """Clumps of windows far apart, and the number of its clump for each."""
    centres = 10 * np.random.default_rng(7).normal(size=(len(sizes), e))
    member = np.repeat(np.arange(len(sizes)), sizes)
    return centres[member] + spread * rng.normal(size=(len(member), e)), member


def shortfalls(Z, known, weight, found):
    """By how much each suggestion adds less than the best one would, every gain computed anew."""
    N, reach = len(Z), max(1, len(Z) // (len(found) + len(known)))
    d = np.array([[np.linalg.norm(a - b) for b in Z] for a in Z])
    r = np.array([sorted(row)[min(reach, N - 1)] for row in d])
    K = np.exp(-(d**2) / (2 * r[:, None] * r))
    chosen, short = list(known), []
    for row in found:
        covered = K[chosen].max(axis=0) if chosen else np.zeros(N)
        gains = (weight * np.maximum(K - covered, 0)).sum(axis=1)
        short.append(gains[[j for j in range(N) if j not in chosen]].max() - gains[row])
        chosen.append(row)
    return np.array(short)


@pytest.mark.parametrize("known", [[], [3, 17, 30]])
@pytest.mark.parametrize("n", [1, 6, 12])
def test_each_suggestion_is_the_best_by_a_loop_over_all_gains(rng, known, n):
    Z, _ = clumps(rng, [30, 20, 10], spread=2.0)
    found = suggest_labels(Z, n, labelled=known)
    assert shortfalls(Z, known, np.ones(60), found).max() < 1e-4


def test_windows_count_by_the_margin_of_the_two_best_classes(rng):
    Z, member = clumps(rng, [40, 30, 20], spread=4.0)
    known = [1, 2, 45, 50, 75, 80]
    y = np.full(90, -1)
    y[known] = member[known]
    p = np.sort(fit_linear_head(Z[known], member[known]).predict_proba(Z), axis=1)
    margin = 1 - p[:, -1] + p[:, -2]
    assert shortfalls(Z, known, margin, suggest_labels(Z, 8, y=y)).max() < 1e-4
    assert shortfalls(Z, known, margin, suggest_labels(Z, 8, labelled=known)).max() > 1e-2


def test_first_suggestions_visit_every_region_the_largest_first(rng):
    Z, member = clumps(rng, [100, 60, 30, 15])
    chosen = member[suggest_labels(Z, 4)]
    assert chosen[0] == 0
    assert set(chosen) == {0, 1, 2, 3}


def test_first_suggestions_are_typical_of_their_region(rng):
    Z, member = clumps(rng, [100, 100])
    for row in suggest_labels(Z, 3)[:2]:
        centre = Z[member == member[row]].mean(axis=0)
        assert np.linalg.norm(Z[row] - centre) < 0.3


def test_dense_and_wide_regions_of_equal_size_get_as_many_suggestions(rng):
    Z = np.vstack([rng.normal(size=(200, 3)), 20 + 0.01 * rng.normal(size=(200, 3))])
    dense = suggest_labels(Z, 20) >= 200
    assert 8 <= dense.sum() <= 12


def test_regions_with_labels_wait(rng):
    Z, member = clumps(rng, [100, 60, 30])
    chosen = suggest_labels(Z, 1, labelled=[0, 1, 2, 100])
    assert member[chosen].tolist() == [2]


def test_with_two_classes_suggestions_lie_where_they_meet(rng):
    Z = rng.uniform(-1, 1, size=(500, 1))
    y = np.full(500, -1)
    low, high = np.flatnonzero(Z[:, 0] < -0.8)[:5], np.flatnonzero(Z[:, 0] > 0.8)[:5]
    y[low], y[high] = 0, 1
    chosen = np.abs(Z[suggest_labels(Z, 5, y=y), 0])
    assert chosen[0] < 0.1
    assert chosen.max() < 0.6


def test_uncertain_but_lonely_windows_are_left_alone(rng):
    Z = np.vstack([rng.normal(size=(300, 2)), [[0.0, 60.0]]])
    y = np.full(301, -1)
    y[np.argsort(Z[:300, 0])[:5]], y[np.argsort(-Z[:300, 0])[:5]] = 0, 1
    assert 300 not in suggest_labels(Z, 20, y=y)


@pytest.mark.parametrize("taught", [0, 1, 10])
@pytest.mark.parametrize("n", [1, 7, 40])
def test_suggestions_are_distinct_windows_without_label(rng, taught, n):
    Z, member = clumps(rng, [30, 20])
    y = np.full(50, -1)
    rows = rng.permutation(50)[:taught]
    y[rows] = member[rows]
    chosen = suggest_labels(Z, n, y=y)
    assert len(set(chosen.tolist())) == len(chosen) == n
    assert not set(chosen.tolist()) & set(rows.tolist())


def test_labelled_may_be_rows_or_a_mask(rng):
    Z, _ = clumps(rng, [30, 20])
    mask = np.zeros(50, dtype=bool)
    mask[[3, 40]] = True
    np.testing.assert_array_equal(
        suggest_labels(Z, 5, labelled=[3, 40]), suggest_labels(Z, 5, labelled=mask)
    )
    assert len(suggest_labels(Z, 5, labelled=[])) == 5


@pytest.mark.parametrize("taught", [[], [0, 130], list(range(0, 190, 2))])
def test_more_windows_than_are_compared_with_each_other_are_sampled(rng, monkeypatch, taught):
    monkeypatch.setattr(suggestions, "SAMPLE", 50)
    Z, member = clumps(rng, [100, 60, 40])
    y = np.full(200, -1)
    y[taught] = member[taught]
    one, two = (suggest_labels(Z, 9, y=y, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    many = suggest_labels(Z, 90, y=y)
    assert len(set(many.tolist()) - set(taught)) == 90


def test_identical_windows_can_still_be_suggested():
    Z = np.zeros((20, 3))
    assert len(suggest_labels(Z, 5)) == 5
    y = np.full(20, -1)
    y[:2] = 0, 1
    assert len(suggest_labels(Z, 5, y=y)) == 5


def test_label_loop_finds_rare_classes_before_chance_does(rng):
    """Two clumps of 12 and 8 windows beside two of 300 and 200, on the corners of a square."""
    corners = 8.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    member, truth = np.repeat(np.arange(4), [300, 200, 12, 8]), np.repeat(np.arange(4), 50)
    Z, asked = (corners[m] + rng.normal(size=(len(m), 2)) for m in (member, truth))
    loops = {
        chooser: [
            label_loop(Z, member, asked, truth, chooser=chooser, budgets=(8, 20), random_state=seed)
            for seed in range(5)
        ]
        for chooser in ("suggested", "random")
    }
    assert [r["labels"] for r in loops["suggested"][0]] == [8, 20]
    for step in (0, 1):
        suggested, chance = (
            np.mean([loop[step]["accuracy"] for loop in loops[c]]) for c in ("suggested", "random")
        )
        assert suggested > chance + 0.1
    assert loops["suggested"][0][1]["classes"] == 4


def test_label_loop_chooses_among_labelled_windows_only(rng):
    Z, member = clumps(rng, [30, 30])
    y = np.where(np.arange(60) % 2, member, -1)
    assert label_loop(Z, y, Z, member, budgets=(1, 30))[1]["labels"] == 30
    with pytest.raises(DataError, match="budgets"):
        label_loop(Z, y, Z, member, budgets=(31,))


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"n": 0}, "n is 0"),
        ({"n": 51}, "1 to 50"),
        ({"n": 1, "labelled": [50]}, "rows from 0 to 49"),
        ({"n": 1, "labelled": [0.5]}, "rows from 0 to 49"),
        ({"n": 1, "y": np.zeros(3)}, "shape"),
    ],
)
def test_unusable_input_is_refused_with_its_reason(rng, how, says):
    Z, _ = clumps(rng, [30, 20])
    with pytest.raises(DataError, match=says):
        suggest_labels(Z, **how)


def test_unknown_chooser_is_refused(rng):
    Z, member = clumps(rng, [30, 20])
    with pytest.raises(ConfigError, match="suggested"):
        label_loop(Z, member, Z, member, chooser="best", budgets=(5,))
