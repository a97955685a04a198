"""Feature spaces by name: settings as words."""

import numpy as np
import pytest

from expclr.errors import ConfigError
from expclr.features import FeatureSpace
from expclr.features.space_named import SPACES, as_feature_space


@pytest.mark.parametrize("name", SPACES)
def test_every_name_is_a_space_of_its_own(name, rng):
    F = rng.lognormal(size=(60, 4))
    others = [as_feature_space(other).fit_transform(F) for other in SPACES if other != name]
    mine = as_feature_space(name).fit_transform(F)
    assert not any(np.allclose(mine, other) for other in others)


def test_raw_is_the_distance_as_it_is(rng):
    F = rng.normal(size=(20, 3)).astype(np.float32)
    np.testing.assert_array_equal(as_feature_space("raw").fit_transform(F), F)


def test_a_given_space_is_taken_unfitted():
    given = FeatureSpace(weights={0: 2}).fit(np.eye(3))
    taken = as_feature_space(given)
    assert taken is not given
    assert taken.get_params() == given.get_params()
    assert not hasattr(taken, "columns_")


@pytest.mark.parametrize("wrong", ["standrd", "", None, 3])
def test_other_names_are_refused(wrong):
    with pytest.raises(ConfigError, match=r"give 'standard', 'raw', .* or a FeatureSpace"):
        as_feature_space(wrong)
