"""Independent pairs of windows: no window, or no group, is in two of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expclr import arrays
from expclr.errors import ConfigError, DataError
from expclr.evaluation.distances import Rows

__all__ = ["DrawnRatios", "Unit", "draw_ratios"]

Unit = Literal["window", "group"]


@dataclass(frozen=True, eq=False)
class DrawnRatios:
    """Ratios of feature to embedding distance of independent pairs.

    Pairs with both distances zero are left out: they satisfy every interval. Pairs without a
    shared feature are left out too, so that statements are about comparable pairs.
    """

    ratios: NDArray[np.float64]
    windows: int
    groups: int | None
    unit: Unit
    undefined: int = 0
    incomparable: int = 0


def draw_ratios(
    Z: ArrayLike,
    F: ArrayLike,
    *,
    group: ArrayLike | None = None,
    unit: Unit = "window",
    random_state: int = 0,
) -> DrawnRatios:
    """Draw disjoint pairs of rows and take the ratio of each.

    Parameters
    ----------
    unit : "window" or "group"
        What is never in two pairs. With "group" a pair joins one window of a group with one
        of another, so that it says something about new groups.
    """
    embeddings, features = Rows.of(Z, "Z"), Rows.of(F, "F", gaps=True)
    n = len(embeddings)
    if len(features) != n:
        raise DataError(f"Z has {n} rows and F {len(features)}: one row a window each is wanted")
    known = None if group is None else arrays.groups(group, n)
    i, j = _partners(n, known, unit, np.random.default_rng(random_state))
    f, z = features.pairs(i, j), embeddings.pairs(i, j)
    incomparable, undefined = np.isnan(f), (f == 0) & (z == 0)
    kept = ~incomparable & ~undefined
    with np.errstate(divide="ignore"):
        ratios = f[kept] / z[kept]
    groups = None if known is None else len(np.unique(known))
    return DrawnRatios(ratios, n, groups, unit, int(undefined.sum()), int(incomparable.sum()))


def _partners(
    n: int, group: NDArray[np.generic] | None, unit: Unit, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if unit not in ("window", "group"):
        raise ConfigError(f"unit is {unit!r}: 'window' or 'group' is wanted")
    order = rng.permutation(n)
    if unit == "group":
        if group is None:
            raise ConfigError("unit='group' wants group=: the group of each window")
        # The first window of each group in a random order of windows; then groups in random order.
        _, first = np.unique(group[order], return_index=True)
        order = rng.permutation(order[first])
    half = len(order) // 2
    return order[:half], order[half : 2 * half]
