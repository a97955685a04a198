"""Label curves: nested subsets, an untouched estimator, and numbers with error bars."""

from itertools import pairwise

import numpy as np
import pytest

from expclr import ExpCLR
from expclr.errors import ConfigError, DataError
from expclr.evaluation import label_efficiency, linear_probe
from expclr.evaluation.label_curves import LabelCurve, labels_needed
from expclr.windows import Windows


class Recorder:
    """An encoder that returns the windows, and remembers the labels it was given."""

    def __init__(self):
        self.seen = []

    def finetune(self, windows):
        self.seen.append(windows.y)
        return self

    def transform(self, windows):
        return windows.X[:, 0] + 10 * len(self.seen)

    def __deepcopy__(self, memo):
        copy = Recorder()
        copy.seen = list(self.seen)
        self.copies = [*getattr(self, "copies", []), copy]
        return copy


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    X = y[:, None, None] + rng.normal(size=(400, 1, 4))
    return Windows(X[:300], y=y[:300]), Windows(X[300:], y=y[300:])


def curve(*points, seed=0):
    return LabelCurve(
        [
            {"seed": seed, "probe": "linear", "fitted_on": "subset", "fraction": n / 100,
             "labels": n, "accuracy": a}
            for n, a in points
        ]
    )  # fmt: skip


def test_estimator_stays_as_it_is_and_every_share_starts_from_it(data):
    estimator = Recorder()
    label_efficiency(estimator, *data)
    assert estimator.seen == []
    assert [len(copy.seen) for copy in estimator.copies] == [1] * 6


def test_label_subsets_are_nested_stratified_and_the_same_for_all(data):
    train, test = data
    one, two = Recorder(), Recorder()
    label_efficiency(one, train, test, random_state=4)
    label_efficiency(two, train, test, random_state=4)
    subsets = [copy.seen[0] for copy in one.copies]
    for other, same in zip(two.copies, subsets, strict=True):
        np.testing.assert_array_equal(other.seen[0], same)
    for small, large in pairwise(subsets):
        assert ((small < 0) | (small == large)).all()
    for c in range(3):
        assert (subsets[1] == c).sum() == round(0.1 * (train.y == c).sum())


def test_probe_sees_the_labelled_subset_only_and_all_labels_in_the_second_column(data):
    train, test = data
    records = label_efficiency(Recorder(), train, test, fractions=(0.1,)).records
    found = {r["fitted_on"]: r for r in records if r["probe"] == "linear"}
    subset = train.label_fraction(0.1)
    Z, Z_test = train.X[:, 0] + 10, test.X[:, 0] + 10
    assert found["subset"]["n_train"] == (subset.y >= 0).sum() == found["subset"]["labels"]
    assert found["all"]["n_train"] == 300
    expected = linear_probe(Z, subset.y, Z_test, test.y)
    assert found["subset"]["accuracy"] == expected["accuracy"]
    assert found["subset"]["protocol"] == "linear, standardised"


def test_arrays_stay_as_they_are_and_are_probed_like_an_estimator_that_does(data):
    train, test = data
    pair = train.X[:, 0], test.X[:, 0]
    found = label_efficiency(pair, train, test, seed=7).records
    assert found == label_efficiency(Recorder(), train, test, finetune=False, seed=7).records
    assert {r["seed"] for r in found} == {7}
    on_all = [r["accuracy"] for r in found if (r["probe"], r["fitted_on"]) == ("knn1", "all")]
    assert len(on_all) == 6
    assert len(set(on_all)) == 1


def test_groups_on_both_sides_are_refused_and_named(data):
    train, test = data
    train = train.with_(group=np.repeat(["anna", "bert"], 150))
    test = test.with_(group=np.repeat("bert", 100))
    with pytest.raises(DataError, match="bert"):
        label_efficiency(Recorder(), train, test)


def test_labels_on_both_sides_and_different_shares_are_wanted(data):
    train, test = data
    with pytest.raises(DataError, match="train has no labels"):
        label_efficiency(Recorder(), train.with_(y=None), test)
    with pytest.raises(DataError, match="test has no labels"):
        label_efficiency(Recorder(), train, test.with_(y=np.full(100, -1)))
    with pytest.raises(ConfigError, match="fractions"):
        label_efficiency(Recorder(), train, test, fractions=(0.1, 0.1))


def test_curves_of_several_seeds_have_error_bars():
    both = curve((10, 0.6), (100, 0.8)) + curve((10, 0.7), (100, 0.8), seed=1)
    mean = both.mean()
    assert mean[0.1].mean == pytest.approx(0.65)
    assert mean[0.1].error == pytest.approx(0.05)
    assert (mean[0.1].n, mean[1.0].error) == (2, 0)
    assert both.area().n == 2


def test_area_is_the_mean_height_over_log_shares():
    assert curve((1, 0.5), (10, 0.5), (100, 0.5)).area().mean == pytest.approx(0.5)
    # Both decades count the same: (.2 + .4) / 2 and (.4 + .8) / 2.
    assert curve((1, 0.2), (10, 0.4), (100, 0.8)).area().mean == pytest.approx(0.45)
    assert curve((100, 0.8)).area().mean == 0.8


def test_labels_needed_to_match_a_rival_with_all_labels():
    own = curve((1, 0.2), (10, 0.6), (100, 0.8))
    assert labels_needed(own, curve((1, 0.0), (100, 0.6))) == pytest.approx(10)
    assert labels_needed(own, curve((100, 0.7))) == pytest.approx(10**1.5)
    assert labels_needed(own, curve((100, 0.1))) == 1
    assert labels_needed(own, curve((100, 0.9))) is None


def test_asking_for_what_was_not_measured_names_what_was():
    with pytest.raises(ConfigError, match="subset"):
        curve((1, 0.2)).mean(probe="knn1")
    with pytest.raises(ConfigError, match="subset"):
        curve((1, 0.2)).mean("recall")


def test_fitted_learner_runs_through_the_whole_curve(windows):
    train, test = windows.split_by_group([4, 5])
    learner = ExpCLR(
        encoder_params={"width": 4, "blocks": 2, "hidden": 8},
        embedding_dim=4,
        batch_size=16,
        max_epochs=1,
        finetune_epochs=1,
        device="cpu",
    ).fit(train)
    before = learner.transform(test)
    found = label_efficiency(learner, train, test, fractions=(0.5, 1.0))
    np.testing.assert_array_equal(learner.transform(test), before)
    assert len(found.records) == 2 * 2 * 2
    assert 0 < found.area().mean <= 1
