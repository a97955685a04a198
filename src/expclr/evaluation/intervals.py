"""Intervals of pair ratios with a bound on the share of new pairs outside."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from expclr.errors import DataError
from expclr.evaluation import bounds

__all__ = [
    "Interval",
    "Side",
    "given_interval",
    "need",
    "pairs_needed",
    "range_interval",
    "shortest_interval",
]

logger = logging.getLogger(__name__)

Side = Literal["both", "upper", "lower"]

MOST_PAIRS = 100_000_000  # a bound that wants more than this wants something else


@dataclass(frozen=True)
class Interval:
    """Limits, the bound on the share outside, and the name of the bound in words."""

    lower: float
    upper: float
    miss_probability: float
    bound: str

    def misses(self, ratios: NDArray[np.float64]) -> int:
        """How many of the ratios lie outside."""
        return int(((ratios < self.lower) | (ratios > self.upper)).sum())


def range_interval(
    ratios: NDArray[np.float64], delta: float, *, exact: bool, side: Side
) -> Interval:
    """From the least to the largest ratio: Appendix D.1, and the exact form of it."""

    def order_statistics(N: int) -> float:
        gaps = 2 if side == "both" else 1
        return float(bounds.order_statistics_bound(N, delta, gaps=gaps))

    def paper(N: int) -> float:
        both = bounds.paper_validation_bound if side == "both" else bounds.paper_one_sided_bound
        return float(both(N, delta))

    bound = order_statistics if exact else paper
    name = "exact, order statistics" if exact else "the paper's bound for validation pairs"
    miss = bound(len(ratios))
    if miss >= 1:
        logger.warning(
            "%d pairs are too few for this bound to say anything: at least %d are needed",
            len(ratios),
            pairs_needed(bound, float(np.nextafter(1.0, 0.0))),
        )
    lower, upper = _sided(float(ratios.min()), float(ratios.max()), side)
    return Interval(lower, upper, miss, name)


def given_interval(
    ratios: NDArray[np.float64],
    interval: tuple[float, float],
    delta: float,
    *,
    exact: bool,
    side: Side,
) -> Interval:
    """An interval from elsewhere, judged by the pairs it misses: Appendix D.2, exact form."""
    lower, upper = _sided(float(interval[0]), float(interval[1]), side)
    bound = bounds.clopper_pearson_bound if exact else bounds.paper_training_bound
    name = (
        "exact, Clopper-Pearson for a given interval"
        if exact
        else "the paper's bound for a training interval"
    )
    misses = Interval(lower, upper, 1.0, name).misses(ratios)
    return Interval(lower, upper, float(bound(misses, len(ratios), delta)), name)


def shortest_interval(
    ratios: NDArray[np.float64], holds: float, delta: float, *, side: Side
) -> Interval:
    """The shortest interval between two order statistics that is right for ``holds`` of pairs.

    Which candidate is shortest depends on the data, so each of the g - 1 positions of an
    interval that leaves g gaps outside gets its share of delta.
    """

    N, least = len(ratios), 2 if side == "both" else 1
    # More gaps than this share of N + 1 are outside by more than 1 - holds on average already.
    gaps = np.arange(least, max(least, int((N + 1) * (1 - holds))) + 1)
    miss = _miss_of_best(N, gaps, delta, side)
    valid = np.flatnonzero(miss <= 1 - holds)
    if not len(valid):
        wanted = pairs_needed(lambda n: float(_miss_of_best(n, least, delta, side)), 1 - holds)
        need(N, wanted, f"holds={holds}")
    most = valid[-1]
    lower, upper = _candidate(np.sort(ratios), int(gaps[most]), side)
    return Interval(lower, upper, float(miss[most]), "exact, order statistics, shortest interval")


def _miss_of_best(N: int, gaps: Any, delta: float, side: Side) -> Any:
    """The bound for whichever of the positions is chosen afterwards."""
    positions = gaps - 1 if side == "both" else 1
    return bounds.order_statistics_bound(N, delta / positions, gaps=gaps)


def pairs_needed(bound: Callable[[int], float], level: float) -> int:
    """The least N with bound(N) <= level, for a bound that falls with N.

    Examples
    --------
    >>> pairs_needed(lambda N: float(bounds.order_statistics_bound(N, 0.05)), 0.01)
    473
    """
    low, high = 0, 1
    while bound(high) > level:
        low, high = high, 2 * high
        if high > MOST_PAIRS:
            raise DataError(f"no number of pairs up to {MOST_PAIRS:,} brings the bound to {level}")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if bound(middle) > level else (low, middle)
    return high


def need(got: int, wanted: int, what: str) -> None:
    """Refuse fewer pairs than a bound needs, and say how many it needs."""
    if got < wanted:
        raise DataError(
            f"{what} needs {wanted} independent pairs, there are {got}: give at least "
            f"{2 * wanted} held-out windows, or ask for less"
        )


def _candidate(ordered: NDArray[np.float64], gaps: int, side: Side) -> tuple[float, float]:
    """The shortest interval that leaves so many of the N + 1 gaps outside."""
    N = len(ordered)
    if side == "upper":
        return 0.0, float(ordered[N - gaps])
    if side == "lower":
        return float(ordered[gaps - 1]), np.inf
    lower, upper = ordered[: gaps - 1], ordered[N + 1 - gaps :]
    width = np.full(len(lower), np.inf)
    np.subtract(upper, lower, out=width, where=np.isfinite(upper))
    best = int(width.argmin())
    return float(lower[best]), float(upper[best])


def _sided(lower: float, upper: float, side: Side) -> tuple[float, float]:
    return (0.0 if side == "upper" else lower), (np.inf if side == "lower" else upper)
