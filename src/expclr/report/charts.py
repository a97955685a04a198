"""Lines and histograms: the numbers, how they are named, and what they show in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from expclr.errors import DataError
from expclr.report.formats import float_column, number

__all__ = ["Histogram", "Lines", "Mark", "Series"]


@dataclass(frozen=True, eq=False)
class Series:
    """One named line: y against x, with an interval from ``low`` to ``high`` if known.

    Examples
    --------
    >>> Series("expclr", [5, 10], [0.8, 0.9], low=[0.78, 0.89], high=[0.82, 0.91]).words()
    'expclr: 2 points, from 0.8 at 5 to 0.9 at 10'
    """

    name: str
    x: ArrayLike
    y: ArrayLike
    _: KW_ONLY
    low: ArrayLike | None = None
    high: ArrayLike | None = None

    def __post_init__(self) -> None:
        size = float_column(self, "x", f"series {self.name!r}", None)
        for field in ("y", "low", "high"):
            float_column(self, field, f"series {self.name!r}", size)

    def words(self) -> str:
        """The line's first and last point."""
        x, y = np.asarray(self.x), np.asarray(self.y)
        known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
        if not len(known):
            return f"{self.name}: no values"
        (a, b) = known[[0, -1]]
        ends = f"from {number(y[a])} at {number(x[a])} to {number(y[b])} at {number(x[b])}"
        return f"{self.name}: {len(known)} points, {ends}"


@dataclass(frozen=True)
class Lines:
    """One or several lines, such as a loss curve; intervals become whiskers, or a band."""

    title: str
    series: Sequence[Series]
    _: KW_ONLY
    x_label: str
    y_label: str
    caption: str
    log_x: bool = False
    log_y: bool = False
    kind: ClassVar[str] = "lines"

    def alt(self) -> str:
        """The chart in words."""
        lines = "; ".join(series.words() for series in self.series)
        return f"Line chart of {self.y_label} against {self.x_label}. {lines}."

    def payload(self) -> dict[str, Any]:
        series = [
            {"name": s.name, "x": s.x, "y": s.y, "low": s.low, "high": s.high} for s in self.series
        ]
        labels = {"xLabel": self.x_label, "yLabel": self.y_label}
        return {"series": series, "logX": self.log_x, "logY": self.log_y, **labels}


@dataclass(frozen=True)
class Mark:
    """A named vertical line in a histogram."""

    value: float
    label: str


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts between bin edges, with named vertical lines.

    Examples
    --------
    >>> Histogram("Ages", [0, 10, 20], [3, 1], x_label="age", y_label="people",
    ...           caption="Most are young.").alt()
    'Histogram of age: 4 people from 0 to 20, most from 0 to 10.'
    """

    title: str
    edges: ArrayLike
    counts: ArrayLike
    _: KW_ONLY
    x_label: str
    y_label: str
    caption: str
    marks: Sequence[Mark] = ()
    log_x: bool = False
    kind: ClassVar[str] = "histogram"

    def __post_init__(self) -> None:
        size = float_column(self, "counts", f"histogram {self.title!r}", None)
        float_column(self, "edges", f"histogram {self.title!r}", size + 1)
        edges = np.asarray(self.edges)
        if size == 0 or not (np.diff(edges) > 0).all() or (self.log_x and edges[0] <= 0):
            raise DataError(
                f"the histogram {self.title!r} has the edges {edges}: at least 2 that grow are "
                "wanted, above 0 on a log axis"
            )

    def alt(self) -> str:
        """The chart in words."""
        edges, counts = np.asarray(self.edges), np.asarray(self.counts)
        top = int(counts.argmax())
        text = (
            f"Histogram of {self.x_label}: {number(int(counts.sum()))} {self.y_label} "
            f"from {number(edges[0])} to {number(edges[-1])}, "
            f"most from {number(edges[top])} to {number(edges[top + 1])}."
        )
        marks = ", ".join(f"{mark.label} at {number(mark.value)}" for mark in self.marks)
        return f"{text} Marked: {marks}." if marks else text

    def payload(self) -> dict[str, Any]:
        labels = {"xLabel": self.x_label, "yLabel": self.y_label}
        marks = [{"value": float(mark.value), "label": mark.label} for mark in self.marks]
        return {
            "edges": self.edges,
            "counts": self.counts,
            "logX": self.log_x,
            "marks": marks,
            **labels,
        }
