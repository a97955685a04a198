import pytest

from expclr.building import build
from expclr.errors import ConfigError


class _Open:
    def __init__(self, size, **others):
        self.size, self.others = size, others


class _Closed:
    def __init__(self, size, *, colour="blue"):
        self.size, self.colour = size, colour


def test_a_class_that_takes_any_setting_is_given_any():
    assert build(_Open, {"colour": "red"}, 3).others == {"colour": "red"}


def test_a_setting_that_is_given_already_is_not_offered():
    assert build(_Closed, {"colour": "red"}, 3).colour == "red"
    with pytest.raises(ConfigError, match=r"no setting 'size': Known: colour$"):
        build(_Closed, {"size": 1}, 1)
