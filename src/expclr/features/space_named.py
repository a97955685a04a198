"""Feature spaces that go by a name, in settings files and on the command line."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from expclr.errors import ConfigError
from expclr.features.space import FeatureSpace

__all__ = ["SPACES", "as_feature_space"]

SPACES: dict[str, dict[str, Any]] = {
    "standard": {},
    "raw": {"numeric": "none"},  # the paper's
    "robust": {"numeric": "robust"},
    "quantile": {"numeric": "quantile"},
    "whitened": {"decorrelate": True},
}


def as_feature_space(given: str | FeatureSpace) -> FeatureSpace:
    """A new, unfitted space: the one of that name, or one with the settings of the given.

    Examples
    --------
    >>> as_feature_space("raw")
    FeatureSpace(numeric='none')
    >>> as_feature_space("whitend")
    Traceback (most recent call last):
    expclr.errors.ConfigError: feature_space is 'whitend': give 'standard', 'raw', ...
    """
    if isinstance(given, FeatureSpace):
        return clone(given)
    if isinstance(given, str) and given in SPACES:
        return FeatureSpace(**SPACES[given])
    known = ", ".join(map(repr, SPACES))
    raise ConfigError(f"feature_space is {given!r}: give {known} or a FeatureSpace")
