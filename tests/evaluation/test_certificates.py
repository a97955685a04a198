"""Certificates: each bound against direct computation, and the stated confidence in simulation."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import comb
from scipy.stats import lognorm

from expclr.errors import ConfigError, DataError
from expclr.evaluation import bilipschitz, bounds, certify
from expclr.evaluation.certificates import certify_ratios
from expclr.evaluation.disjoint_pairs import draw_ratios
from expclr.evaluation.intervals import pairs_needed


def miss_share(found):
    """The true share of log-normal ratios outside the interval."""
    return lognorm.cdf(found.lower, 1) + lognorm.sf(found.upper, 1)


def test_example_of_a_thousand_pairs():
    ratios = np.random.default_rng(0).lognormal(size=1000)
    paper = certify_ratios(ratios, method="paper-validation")
    exact = certify_ratios(ratios)
    assert round(paper.miss_probability, 3) == 0.396
    assert round(exact.miss_probability, 4) == 0.0047
    assert (paper.lower, paper.upper) == (exact.lower, exact.upper) == (ratios.min(), ratios.max())


@pytest.mark.parametrize("N", [20, 200, 5000])
@pytest.mark.parametrize("delta", [0.01, 0.05, 0.3])
def test_paper_bounds_are_their_formulas(N, delta):
    D1 = np.sqrt(8 * np.log(2 * N * (2 * N - 1) * 4 / delta) / N)
    one_sided = np.sqrt(8 * np.log(8 * N / delta) / N)
    D2 = 3 / N + np.sqrt(np.log(2 / delta) / N)
    assert bounds.paper_validation_bound(N, delta) == pytest.approx(D1)
    assert bounds.paper_one_sided_bound(N, delta) == pytest.approx(one_sided)
    assert bounds.paper_training_bound(3, N, delta) == pytest.approx(D2)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 300), st.integers(1, 6), st.floats(0.001, 0.5))
def test_order_statistics_bound_is_the_quantile_of_the_share_outside(N, gaps, delta):
    if gaps > N:
        assert bounds.order_statistics_bound(N, delta, gaps=gaps) == 1
        return
    p = bounds.order_statistics_bound(N, delta, gaps=gaps)
    # More than p lies outside exactly if fewer than `gaps` of N uniforms fall below p.
    exceeds = sum(comb(N, k) * p**k * (1 - p) ** (N - k) for k in range(gaps))
    assert exceeds == pytest.approx(delta, rel=1e-6)


def test_order_statistics_bound_integrates_the_joint_density_of_extremes():
    N, delta = 12, 0.1
    p = bounds.order_statistics_bound(N, delta)
    # The range w of N uniforms has density N (N-1) w^(N-2) (1-w).
    inside, _ = quad(lambda w: N * (N - 1) * w ** (N - 2) * (1 - w), 0, 1 - p)
    assert inside == pytest.approx(delta)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 300), st.integers(0, 300), st.floats(0.001, 0.5))
def test_clopper_pearson_inverts_the_binomial_tail(N, misses, delta):
    misses = min(misses, N)
    p = bounds.clopper_pearson_bound(misses, N, delta)
    if misses == N:
        assert p == 1
        return
    tail = sum(comb(N, k) * p**k * (1 - p) ** (N - k) for k in range(misses + 1))
    assert tail == pytest.approx(delta, rel=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 5000), st.floats(0.001, 0.3))
def test_exact_bounds_are_never_looser_than_the_papers(N, delta):
    assert bounds.order_statistics_bound(N, delta) < bounds.paper_validation_bound(N, delta)
    for misses in (0, N // 20, N // 2):
        exact = bounds.clopper_pearson_bound(misses, N, delta)
        hoeffding = bounds.hoeffding_bound(misses, N, delta)
        assert exact <= hoeffding + 1e-12
        assert hoeffding < bounds.paper_training_bound(misses, N, delta)


SIMULATED = [
    # settings, least and largest share of repeats in which the bound may hold
    ({}, 0.95, 0.95),
    ({"side": "upper"}, 0.95, 0.95),
    ({"side": "lower"}, 0.95, 0.95),
    ({"holds": 0.9}, 0.95, 1.0),
    ({"holds": 0.9, "side": "upper"}, 0.95, 0.95),
    ({"interval": (0.2, 5.0)}, 0.95, 0.98),
    ({"method": "paper-validation"}, 1.0, 1.0),
    ({"method": "paper-training", "interval": (0.2, 5.0)}, 0.99, 1.0),
]


@pytest.mark.parametrize(("how", "least", "largest"), SIMULATED)
def test_stated_confidence_holds_in_simulation_and_is_not_vacuous(how, least, largest):
    rng, repeats, spread = np.random.default_rng(3), 2000, 3 * np.sqrt(0.05 * 0.95 / 2000)
    holds = []
    for _ in range(repeats):
        found = certify_ratios(rng.lognormal(size=150), **how)
        holds.append(miss_share(found) <= found.miss_probability)
    assert least - spread <= np.mean(holds) <= largest + spread


def test_choosing_the_shortest_of_many_intervals_costs_no_confidence():
    """Uniform ratios: every position is as likely as the others to be the shortest."""
    rng, misses, holds = np.random.default_rng(0), [], 0.8
    for _ in range(2000):
        found = certify_ratios(1 + rng.random(150), holds=holds, confidence=0.8)
        misses.append(1 - (found.upper - found.lower))
    valid = np.mean(np.array(misses) <= 1 - holds)
    assert 0.8 - 3 * np.sqrt(0.8 * 0.2 / 2000) <= valid


def test_whole_procedure_on_windows_keeps_its_confidence():
    """Disjoint pairs of windows: the certificate holds for fresh pairs of the same source."""
    rng, encoder = np.random.default_rng(0), np.random.default_rng(1).normal(size=(4, 3))

    def draw(n):
        F = rng.normal(size=(n, 4))
        return np.tanh(F @ encoder), F

    fresh = draw_ratios(*draw(40_000)).ratios
    holds = []
    for repeat in range(300):
        found = certify(*draw(200), random_state=repeat)
        outside = ((fresh < found.lower) | (fresh > found.upper)).mean()
        holds.append(outside <= found.miss_probability)
    assert 0.91 <= np.mean(holds) <= 0.99


def test_shortest_interval_is_shorter_than_the_range_and_holds_what_it_says():
    ratios = np.random.default_rng(0).lognormal(size=5000)
    whole, short = certify_ratios(ratios), certify_ratios(ratios, holds=0.99)
    assert short.upper - short.lower < (whole.upper - whole.lower) / 2
    assert short.miss_probability <= 0.01
    assert miss_share(short) <= 0.01
    assert short.misses > 20


def test_shortest_interval_is_the_best_of_all_with_as_many_pairs_inside():
    ratios = 10 + np.random.default_rng(5).normal(size=800)
    found = certify_ratios(ratios, holds=0.97)
    ordered, inside = np.sort(ratios), len(ratios) - found.misses
    widths = [ordered[r + inside - 1] - ordered[r] for r in range(found.misses + 1)]
    assert found.upper - found.lower == pytest.approx(min(widths))


def test_pairs_are_disjoint_and_between_held_out_groups():
    rng = np.random.default_rng(0)
    Z, F, group = rng.normal(size=(101, 3)), rng.normal(size=(101, 3)), np.arange(101) % 10
    assert certify(Z, F).n_pairs == 50
    found = certify(Z, F, group=group, unit="group")
    assert found.n_pairs == 5
    assert "new groups" in found.text()
    assert "these 10 groups" in certify(Z, F, group=group).text()


def test_every_pair_of_a_draw_uses_new_windows():
    Z = 2.0 ** np.arange(40)[:, None]  # every difference of two of these is unique
    drawn = draw_ratios(Z[:, [0]], Z[:, [0]] ** 1.5)
    lookup = {
        abs(Z[i, 0] ** 1.5 - Z[j, 0] ** 1.5) / abs(Z[i, 0] - Z[j, 0]): (i, j)
        for i in range(40)
        for j in range(i)
    }
    keys = np.array(list(lookup))
    pairs = [list(lookup.values())[np.abs(keys - r).argmin()] for r in drawn.ratios]
    used = [window for pair in pairs for window in pair]
    assert len(set(used)) == len(used) == 40


def test_groups_that_trained_are_refused_and_named():
    Z = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(DataError, match=r"1 groups are in train and in test \(7\)"):
        certify(Z, Z, group=np.repeat([7, 8], 10), group_train=[5, 6, 7])


def test_ratios_of_missing_and_coinciding_pairs_are_left_out_and_said():
    rng = np.random.default_rng(0)
    Z, F = rng.normal(size=(400, 3)), rng.normal(size=(400, 2))
    F[:200] = np.nan
    found = certify(Z, F)
    assert found.n_pairs + found.left_out == 200
    assert f"{found.left_out} pairs were left out" in found.text()


def test_collapsed_embedding_leaves_no_upper_limit_and_says_so():
    F = np.random.default_rng(0).normal(size=(200, 3))
    found = certify(np.zeros((200, 2)), F)
    assert found.upper == np.inf
    assert "There is no upper limit" in found.text()
    assert json.loads(json.dumps(found.record(), allow_nan=False))["upper"] is None


def test_text_and_model_card_speak_plainly():
    found = certify_ratios(np.linspace(1, 2, 1000))
    assert found.text() == (
        "For two new windows, the distance of expert features is between 1 and 2 times the "
        "embedding distance, wrong in at most 0.474 % of cases, confidence 95 % (exact, order "
        "statistics; 1,000 independent pairs, 0 of them outside)."
    )
    assert found.text() in found.model_card()
    assert found.model_card().startswith("## ")
    assert "at most 2 times" in certify_ratios(np.linspace(1, 2, 10), side="upper").text()


def test_limits_are_stated_rounded_outwards():
    sure = certify_ratios(np.linspace(1.23456, 9.87654, 500))
    assert "between 1.234 and 9.877 times" in sure.text()
    assert "| 1.234 to 9.877 |" in sure.model_card()
    assert "between 0.5 and 2 times" in certify_ratios(np.linspace(0.5, 2, 500)).text()
    assert "at most 9.877 times" in certify_ratios(sure.ratios, side="upper").text()
    assert "at least 1.234 times" in certify_ratios(sure.ratios, side="lower").text()


def test_training_interval_is_judged_by_the_pairs_it_misses():
    rng = np.random.default_rng(0)
    F = rng.normal(size=(1000, 4))
    Z = F + 0.1 * rng.normal(size=F.shape)
    train = bilipschitz(Z[:200], F[:200])
    limits = (train.l_minus, train.l_plus)
    paper = certify(Z[200:], F[200:], method="paper-training", interval=limits)
    exact = certify(Z[200:], F[200:], interval=limits)
    assert (paper.lower, paper.upper) == limits
    assert paper.n_pairs == exact.n_pairs == 400
    assert exact.miss_probability < paper.miss_probability


def test_training_bound_without_interval_sets_half_of_the_pairs_aside():
    ratios = np.random.default_rng(0).lognormal(size=400)
    found = certify_ratios(ratios, method="paper-training")
    assert found.n_pairs == 200
    assert (found.lower, found.upper) == (ratios[:200].min(), ratios[:200].max())


def test_too_few_pairs_say_how_many_are_needed(caplog):
    ratios = np.random.default_rng(0).lognormal(size=100)
    with pytest.raises(DataError, match="needs 473 independent pairs, there are 100"):
        certify_ratios(ratios, holds=0.99)
    with pytest.raises(DataError, match="needs 2 independent pairs, there are 1"):
        certify(np.eye(3), np.eye(3))
    found = certify_ratios(ratios, method="paper-validation")
    wanted = pairs_needed(lambda n: float(bounds.paper_validation_bound(n, 0.05)), 1 - 1e-12)
    assert found.miss_probability == 1
    assert f"at least {wanted}" in caplog.text
    assert "certify nothing" in found.text()


def test_pairs_needed_is_the_least_number():
    def bound(n):
        return float(bounds.order_statistics_bound(n, 0.05))

    wanted = pairs_needed(bound, 0.02)
    assert bound(wanted) <= 0.02 < bound(wanted - 1)


def test_bound_comparison_shows_the_papers_crossing_with_the_exact_ones_below():
    table = {name: np.array(values) for name, values in bounds.bound_comparison().items()}
    second_better = table["paper_training"] < table["paper_validation"]
    assert second_better[0]
    assert not second_better[-1]
    assert (table["exact_validation"] < table["paper_validation"]).all()
    assert (table["exact_training"] < table["paper_training"])[table["n_pairs"] >= 20].all()
    assert all(a >= b for a, b in pairwise(table["exact_validation"]))


def test_feature_distance_scales_with_the_embedding_distance():
    found = certify_ratios(np.linspace(1, 2, 50))
    low, high = found.feature_distance([0.0, 3.0])
    assert low.tolist() == [0, 3]
    assert high.tolist() == [0, 6]


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"confidence": 1.0}, "confidence"),
        ({"method": "hoeffding"}, "method"),
        ({"side": "left"}, "side"),
        ({"interval": (2, 1)}, "interval"),
        ({"holds": 0.9, "method": "paper-validation"}, "holds"),
        ({"interval": (1, 2), "method": "paper-validation"}, "leave it out"),
        ({"unit": "group"}, "group="),
        ({"unit": "subject"}, "unit"),
    ],
)
def test_settings_out_of_range_are_refused(how, says):
    Z = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ConfigError, match=says):
        certify(Z, Z, **how)
