import numpy as np
import pytest

from expclr import ExpCLR, RepresentationLearner
from expclr.errors import ConfigError, DataError
from expclr.many import fit_many

SMALL = {
    "encoder_params": {"width": 8, "blocks": 2, "hidden": 16},
    "embedding_dim": 6,
    "batch_size": 16,
    "max_epochs": 2,
    "finetune_epochs": 2,
    "device": "cpu",
}


def _alone(windows, **settings):
    return ExpCLR(**SMALL, **settings).fit(windows).transform(windows)


def test_learners_fitted_together_equal_those_fitted_alone(windows):
    learners = [ExpCLR(**SMALL, random_state=seed) for seed in (0, 1)]
    together = dict(fit_many(learners, windows))
    for seed in (0, 1):
        assert together[seed] is learners[seed]
        np.testing.assert_array_equal(
            together[seed].transform(windows), _alone(windows, random_state=seed)
        )


def test_a_feature_space_is_fitted_once_for_the_same_features(windows):
    spaces = [{}, {}, {"feature_space": "whitened"}, {}]
    learners = [ExpCLR(**SMALL, **words) for words in spaces]
    others = windows.with_(F=windows.F * 2)
    dict(fit_many(learners, [windows, windows, windows, others]))
    first, same, other_space, other_data = (learner.feature_space_ for learner in learners)
    assert first is same
    assert first is not other_space
    assert first is not other_data


def test_each_learner_may_have_data_of_its_own(windows):
    half = windows.subset(slice(0, 32))
    learners = [ExpCLR(**SMALL), ExpCLR(**SMALL)]
    dict(fit_many(learners, [windows, half]))
    np.testing.assert_array_equal(learners[1].transform(windows), _fit_half(windows, half))


def _fit_half(windows, half):
    return ExpCLR(**SMALL).fit(half).transform(windows)


def test_learners_are_fine_tuned_together(windows):
    learners = [ExpCLR(**SMALL, random_state=seed).fit(windows) for seed in (0, 1)]
    alone = ExpCLR(**SMALL, random_state=1).fit(windows).finetune(windows)
    together = dict(fit_many(learners, windows, finetune=True))
    np.testing.assert_array_equal(together[1].predict(windows), alone.predict(windows))


def test_a_run_that_fails_does_not_stop_the_others(windows):
    learners = [
        RepresentationLearner("no_such_method", **SMALL),
        ExpCLR(**SMALL | {"max_epochs": -1}),
        ExpCLR(**SMALL),
    ]
    results = dict(fit_many(learners, windows))
    assert isinstance(results[0], ConfigError)
    assert isinstance(results[1], ConfigError)
    assert results[2] is learners[2]


def test_data_must_be_one_or_one_each(windows):
    with pytest.raises(DataError, match="1 data for 2"):
        fit_many([ExpCLR(), ExpCLR()], [windows])
    learner = ExpCLR()
    with pytest.raises(DataError, match="twice"):
        fit_many([learner, learner], windows)
