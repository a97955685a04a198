"""What every feature extractor of this package is: a list of features and a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from expclr.errors import DataError

__all__ = ["Extractor", "Feature", "channel_names"]


class Feature(NamedTuple):
    """One column of F: its name, its unit ("" for a pure number), one line in plain words."""

    name: str
    unit: str
    description: str


def _nothing_missing(c: int, t: int, sfreq: float) -> list[str]:
    return []


@dataclass(frozen=True)
class Extractor:
    """A feature extractor: call it with windows (n, c, t) and sfreq, get (n, d) float64.

    Parameters
    ----------
    name : str
        Its key in ``FEATURES``.
    version : str
        Changed whenever a value changes, so that stored features are computed again.
    features : callable
        From the channel names to the list of :class:`Feature`, in the order of the columns.
    compute : callable
        From X (n, c, t) and sfreq to F (n, d); each window by itself, NaN where a value is
        not defined.
    check : callable, optional
        Called once with c, t and sfreq before any work: raises a DataError where nothing can
        be computed, and returns one line for each thing that will be missing.
    uses : str
        Whose work decides the values besides this package's; kept with the features.

    Examples
    --------
    >>> energy = Extractor(
    ...     "energy", "1",
    ...     lambda channels: [Feature(f"{c}_energy", "", f"Mean square of {c}") for c in channels],
    ...     lambda X, sfreq: (X**2).mean(axis=2),
    ... )
    >>> energy(np.ones((5, 2, 100)), 50.0).shape
    (5, 2)
    >>> energy.names(["x", "y"])
    ('x_energy', 'y_energy')
    >>> energy.describe()
    {'ch0_energy': 'Mean square of ch0'}
    """

    name: str
    version: str
    features: Callable[[tuple[str, ...]], list[Feature]]
    compute: Callable[[NDArray[Any], float], NDArray[np.float64]]
    check: Callable[[int, int, float], list[str]] = _nothing_missing
    uses: str = ""

    def __call__(self, X: NDArray[Any], sfreq: float) -> NDArray[np.float64]:
        self.check(X.shape[1], X.shape[2], sfreq)
        return self.compute(X, sfreq)

    def names(self, channels: int | Sequence[str] = 1) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(f.name for f in self.features(channel_names(channels)))

    def units(self, channels: int | Sequence[str] = 1) -> tuple[str, ...]:
        """The units of the columns, "" where a value has none."""
        return tuple(f.unit for f in self.features(channel_names(channels)))

    def describe(self, channels: int | Sequence[str] = 1) -> dict[str, str]:
        """One line in plain words for each column."""
        return {f.name: f.description for f in self.features(channel_names(channels))}


def channel_names(channels: int | Sequence[str]) -> tuple[str, ...]:
    """Names as given, or ch0, ch1, ... for a number of channels."""
    if isinstance(channels, int):
        return tuple(f"ch{i}" for i in range(channels))
    if len(set(channels)) != len(channels):
        raise DataError(f"channel names {list(channels)} repeat: give each channel its own name")
    return tuple(channels)
