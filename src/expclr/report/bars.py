"""Horizontal bars, drawn as a table so that the names may be long and the page narrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expclr.report.formats import float_column, number

__all__ = ["BarRow", "Bars"]


class BarRow(NamedTuple):
    """One bar as it is shown; places and sizes are in percent of the width."""

    name: str
    value: str
    interval: str
    start: float
    size: float
    low: float | None
    high: float | None


@dataclass(frozen=True, eq=False)
class Bars:
    """Horizontal bars from zero, one for each name, with an interval if known.

    Examples
    --------
    >>> bars = Bars("Read", ["mean", "slope"], [0.8, 0.4], x_label="R²", caption="Higher: better.")
    >>> bars.alt()
    'Bar chart of R² for 2 names: highest mean (0.8), lowest slope (0.4).'
    >>> bars.shown()[1]
    BarRow(name='slope', value='0.4', interval='', start=0.0, size=50.0, low=None, high=None)
    """

    title: str
    names: Sequence[str]
    values: ArrayLike
    _: KW_ONLY
    x_label: str
    caption: str
    low: ArrayLike | None = None
    high: ArrayLike | None = None
    kind: ClassVar[str] = "bars"

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", [str(name) for name in self.names])
        for field in ("values", "low", "high"):
            float_column(self, field, f"bars {self.title!r}", len(self.names))

    def alt(self) -> str:
        """The chart in words."""
        values = np.asarray(self.values)
        text = f"Bar chart of {self.x_label} for {len(values)} names"
        known = np.flatnonzero(np.isfinite(values))
        if not len(known):
            return f"{text}: no values."
        high, low = known[values[known].argmax()], known[values[known].argmin()]
        return (
            f"{text}: highest {self.names[high]} ({number(values[high])}), "
            f"lowest {self.names[low]} ({number(values[low])})."
        )

    def zero(self) -> float:
        """Where the bars start, in percent of the width."""
        return float(self._percent(np.zeros(1))[0])

    def shown(self) -> list[BarRow]:
        """The bars as they are shown."""
        return [self._row(i) for i in range(len(self.names))]

    def _row(self, i: int) -> BarRow:
        value, low, high = (column[i] for column in self._columns())
        ends = [self.zero(), float(self._percent(value))] if np.isfinite(value) else [self.zero()]
        has_interval = bool(np.isfinite(low) and np.isfinite(high))
        return BarRow(
            self.names[i],
            number(value, ".3g"),
            f"{number(low, '.3g')} to {number(high, '.3g')}" if has_interval else "",
            round(min(ends), 3),
            round(max(ends) - min(ends), 3),
            round(float(self._percent(low)), 3) if has_interval else None,
            round(float(self._percent(high)), 3) if has_interval else None,
        )

    def _columns(self) -> list[NDArray[np.float64]]:
        unknown = np.full(len(self.names), np.nan)
        return [
            unknown if column is None else np.asarray(column, dtype=np.float64)
            for column in (self.values, self.low, self.high)
        ]

    def _percent(self, value: NDArray[np.float64]) -> NDArray[np.float64]:
        every = np.concatenate([np.zeros(1), *self._columns()])
        every = every[np.isfinite(every)]
        low, high = every.min(), every.max()
        return 100 * (value - low) / ((high - low) or 1.0)

    def payload(self) -> dict[str, Any]:
        rows = zip(self.names, *self._columns(), strict=True)
        return {"columns": ["name", self.x_label, "low", "high"], "rows": [list(r) for r in rows]}
