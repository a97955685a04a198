"""Certificates: what embedding distances say about expert features of new windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expclr.errors import ConfigError, DataError
from expclr.evaluation.disjoint_pairs import DrawnRatios, Unit, draw_ratios
from expclr.evaluation.inputs import check_disjoint
from expclr.evaluation.intervals import (
    Side,
    given_interval,
    need,
    range_interval,
    shortest_interval,
)

__all__ = ["Certificate", "Method", "certify", "certify_ratios"]

Method = Literal["exact", "paper-validation", "paper-training"]

_KINDS: dict[str, type] = {
    "lower": float,
    "upper": float,
    "miss_probability": float,
    "confidence": float,
    "n_pairs": int,
    "misses": int,
    "left_out": int,
    "collapsed": int,
}


@dataclass(frozen=True, eq=False)
class Certificate:
    """For two new windows: lower <= feature distance / embedding distance <= upper.

    Attributes
    ----------
    lower, upper : float
        Limits of the ratio; 0 or inf on a side that is left open.
    miss_probability : float
        At most this share of new pairs lies outside ...
    confidence : float
        ... in at least this share of repetitions of the whole procedure.
    n_pairs : int
        Independent pairs used.
    misses : int
        How many of them lie outside the interval.
    method, bound : str
        The method asked for, and the bound it came to, in words.
    subject : str
        What the statement is about, in words.
    left_out, collapsed : int
        Pairs that were not used for want of a ratio, and pairs with an infinite one: different
        features, the same embedding.
    ratios : array (n_pairs,)
        The pairs' ratios, for plots.
    """

    lower: float
    upper: float
    miss_probability: float
    confidence: float
    n_pairs: int
    misses: int
    method: str
    bound: str
    subject: str = "two new windows"
    left_out: int = 0
    collapsed: int = 0
    ratios: NDArray[np.float64] = field(default_factory=lambda: np.empty(0), repr=False)

    def feature_distance(self, embedding_distance: ArrayLike) -> tuple[Any, Any]:
        """Limits of the feature distance of windows so far apart in the embedding.

        Examples
        --------
        >>> sure = certify_ratios(np.array([1.0, 2.0, 3.0] * 100))
        >>> [float(limit) for limit in sure.feature_distance(0.5)]
        [0.5, 1.5]
        """
        D = np.asarray(embedding_distance)
        return self.lower * D, np.multiply(self.upper, D, where=D > 0, out=np.zeros(D.shape))[()]

    def text(self) -> str:
        """The certificate as a sentence, with how it was come by."""
        return (
            f"For {self.subject}, the distance of expert features is {self._limits()} the "
            f"embedding distance, wrong in at most {_at_most(self.miss_probability)} of cases, "
            f"confidence {_percent(self.confidence)} ({self.bound}; {self.n_pairs:,} independent "
            f"pairs, {self.misses:,} of them outside){self._remark()}"
        )

    def model_card(self) -> str:
        """A model card section in Markdown."""
        lower, upper = _outwards(self.lower, -1), _outwards(self.upper, 1)
        return (
            "## How well distances are kept\n\n"
            f"{self.text()}\n\n"
            "| | |\n| --- | --- |\n"
            f"| interval of the ratio | {lower} to {upper} |\n"
            f"| wrong in at most | {_at_most(self.miss_probability)} of new pairs |\n"
            f"| confidence | {_percent(self.confidence)} |\n"
            f"| independent pairs | {self.n_pairs:,} |\n"
            f"| bound | {self.bound} |\n"
        )

    def record(self) -> dict[str, Any]:
        """The numbers and the sentence as JSON would have them; an infinite limit is None."""
        values = asdict(self)
        del values["ratios"]
        for limit in ("lower", "upper"):
            values[limit] = values[limit] if np.isfinite(values[limit]) else None
        return values | {"text": self.text()}

    @classmethod
    def of_record(cls, values: Mapping[str, Any]) -> Self:
        """The certificate that ``record`` wrote, without its pairs.

        Examples
        --------
        >>> sure = certify_ratios(np.array([1.0, 2.0, 3.0] * 100))
        >>> Certificate.of_record(sure.record()).text() == sure.text()
        True
        """
        try:
            known = {f.name: values[f.name] for f in fields(cls) if f.name != "ratios"}
            for name, kind in _KINDS.items():
                known[name] = np.inf if known[name] is None else kind(known[name])
            return cls(**known)
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"not a certificate ({type(error).__name__}: {error}): give what "
                "Certificate.record or expclr certify wrote"
            ) from error

    def _limits(self) -> str:
        lower, upper = _outwards(self.lower, -1), _outwards(self.upper, 1)
        if np.isinf(self.upper):
            return f"at least {lower} times"
        if self.lower == 0:
            return f"at most {upper} times"
        return f"between {lower} and {upper} times"

    def _remark(self) -> str:
        remark = "."
        if self.collapsed and np.isinf(self.upper):
            remark += (
                f" There is no upper limit: {self.collapsed:,} pairs have different features but "
                "the same embedding."
            )
        if self.left_out:
            remark += (
                f" {self.left_out:,} pairs were left out: no known feature in common, or no "
                "distance in either."
            )
        if self.miss_probability >= 1:
            remark += " So few pairs certify nothing."
        return remark


def certify(
    Z: ArrayLike,
    F: ArrayLike,
    *,
    confidence: float = 0.95,
    method: Method = "exact",
    interval: tuple[float, float] | None = None,
    holds: float | None = None,
    side: Side = "both",
    group: ArrayLike | None = None,
    group_train: ArrayLike | None = None,
    unit: Unit = "window",
    random_state: int = 0,
) -> Certificate:
    """Bound the ratio of feature to embedding distance for pairs of new windows.

    The windows given must be held out: the encoder has not trained on them. They are joined
    into disjoint pairs, because the bounds are about independent pairs; n windows give n // 2.

    Parameters
    ----------
    Z : array (n, e)
        Embeddings of held-out windows.
    F : array (n, d)
        Their expert features as scaled for training; NaN where missing.
    confidence : float
    method : "exact", "paper-validation" or "paper-training"
        "exact": order statistics of the pairs' own range, or Clopper-Pearson when ``interval``
        is given. The others are the paper's bounds of Appendix D.1 and D.2, far looser.
    interval : (float, float), optional
        An interval chosen without looking at these windows, for example l_minus and l_plus of
        the training windows. "paper-training" without it sets half of the pairs aside and
        takes their range.
    holds : float, optional
        With "exact": the shortest interval that is right for this share of new pairs, for
        example .99, instead of the whole range.
    side : "both", "upper" or "lower"
        Which limit is wanted; the other is left open.
    group, group_train : arrays, optional
        Subject or machine of each window given here and of each training window; a group that
        is in both is refused.
    unit : "window" or "group"
        "window": new windows of the same groups. "group": new windows of new groups; then no
        group is in two pairs, and G groups give G // 2 pairs.
    random_state : int
        Draws the pairs.

    Examples
    --------
    >>> import numpy as np
    >>> F = np.random.default_rng(0).normal(size=(2000, 5))
    >>> found = certify(2 * F, F)
    >>> found.n_pairs, round(found.lower, 3), round(found.upper, 3)
    (1000, 0.5, 0.5)
    >>> round(found.miss_probability, 4)
    0.0047
    """
    if group is not None and group_train is not None:
        check_disjoint(group_train, group)
    drawn = draw_ratios(Z, F, group=group, unit=unit, random_state=random_state)
    return certify_ratios(
        drawn.ratios,
        confidence=confidence,
        method=method,
        interval=interval,
        holds=holds,
        side=side,
        subject=_subject(drawn),
        left_out=drawn.undefined + drawn.incomparable,
    )


def certify_ratios(
    ratios: ArrayLike,
    *,
    confidence: float = 0.95,
    method: Method = "exact",
    interval: tuple[float, float] | None = None,
    holds: float | None = None,
    side: Side = "both",
    subject: str = "two new windows",
    left_out: int = 0,
) -> Certificate:
    """The certificate of independent ratios, which :func:`certify` draws.

    Examples
    --------
    >>> import numpy as np
    >>> ratios = np.random.default_rng(0).lognormal(size=1000)
    >>> certify_ratios(ratios, holds=0.99).misses
    2
    """
    _check_settings(confidence, method, interval, holds, side)
    ratios, delta = np.asarray(ratios, dtype=np.float64), 1 - confidence
    need(len(ratios), 2, "any certificate")
    if method == "paper-training" and interval is None:
        half = len(ratios) // 2
        interval, ratios = (ratios[:half].min(), ratios[:half].max()), ratios[half:]
    if interval is not None:
        found = given_interval(ratios, interval, delta, exact=method == "exact", side=side)
    elif holds is not None:
        found = shortest_interval(ratios, holds, delta, side=side)
    else:
        found = range_interval(ratios, delta, exact=method == "exact", side=side)
    return Certificate(
        found.lower,
        found.upper,
        min(1.0, found.miss_probability),
        confidence,
        len(ratios),
        found.misses(ratios),
        method,
        found.bound,
        subject,
        left_out,
        int(np.isinf(ratios).sum()),
        ratios,
    )


def _subject(drawn: DrawnRatios) -> str:
    if drawn.groups is None:
        return "two new windows"
    if drawn.unit == "group":
        return "two new windows of two new groups"
    return f"two new windows of these {drawn.groups} groups"


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"


def _at_most(share: float) -> str:
    """Three digits rounded up: a bound must not be stated as less than it is."""
    return _percent(min(1.0, _rounded(share, 3, 1))) if share > 0 else "0 %"


def _outwards(limit: float, direction: Literal[-1, 1]) -> str:
    """Four digits rounded down or up: an interval must not be stated as narrower than it is."""
    return f"{_rounded(limit, 4, direction):.4g}" if 0 < limit < np.inf else f"{limit:g}"


def _rounded(value: float, digits: int, direction: Literal[-1, 1]) -> float:
    unit = 10.0 ** (np.floor(np.log10(value)) - digits + 1)
    # What is a whole number of units but for rounding errors stays as it is.
    return float(direction * np.ceil(direction * value / unit - 1e-9) * unit)


def _check_settings(
    confidence: float,
    method: str,
    interval: tuple[float, float] | None,
    holds: float | None,
    side: str,
) -> None:
    if not 0 < confidence < 1:
        raise ConfigError(f"confidence is {confidence}: a number between 0 and 1 is wanted")
    if method not in ("exact", "paper-validation", "paper-training"):
        raise ConfigError(
            f"method is {method!r}: 'exact', 'paper-validation' or 'paper-training' is wanted"
        )
    if side not in ("both", "upper", "lower"):
        raise ConfigError(f"side is {side!r}: 'both', 'upper' or 'lower' is wanted")
    if interval is not None and not (0 <= interval[0] <= interval[1]):
        raise ConfigError(f"interval is {interval}: two numbers from 0, the lower first")
    if interval is not None and method == "paper-validation":
        raise ConfigError("'paper-validation' takes the interval from the pairs: leave it out")
    if holds is not None and (method != "exact" or interval is not None or not 0 < holds < 1):
        raise ConfigError(
            f"holds is {holds}: a share between 0 and 1, with method='exact' and no interval"
        )
