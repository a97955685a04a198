"""A table whose numbers are set for reading and whose best values stand out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from expclr.errors import DataError, suggest
from expclr.report.formats import number

__all__ = ["Cell", "Table"]


class Cell(NamedTuple):
    """A table cell as it is shown."""

    text: str
    numeric: bool
    best: bool
    mark: str = ""


@dataclass(frozen=True)
class Table:
    """Rows and columns.

    Parameters
    ----------
    title : str
        Heading; empty to go on under the one before.
    columns : sequence of str
        Their names.
    rows : sequence of sequences
        Numbers, strings or None; NaN and None are shown as a dash.
    formats : str or mapping from column to str
        Python format of the floats, such as ``".3f"`` or ``".1%"``.
    best : mapping from column to "high" or "low"
        Columns whose best value is to stand out.
    errors : mapping from column to column
        Where the uncertainty of a column stands; it is shown as ± behind the value.
    marks : mapping from (row, column) to "above" or "below"
        Cells to colour, by their numbers from 0, as shown: such as those far from a reference.
    caption : str
        How to read it.

    Examples
    --------
    >>> rows = [("expclr", 0.91, 0.01), ("simclr", 0.85, 0.02)]
    >>> table = Table("Results", ("method", "accuracy", "se"), rows, formats=".2f",
    ...               best={"accuracy": "high"}, errors={"accuracy": "se"})
    >>> table.shown_columns()
    ['method', 'accuracy']
    >>> table.cells()[0][1]
    Cell(text='0.91 ± 0.01', numeric=True, best=True, mark='')
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    _: KW_ONLY
    formats: str | Mapping[str, str] = ".3f"
    best: Mapping[str, Literal["high", "low"]] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    marks: Mapping[tuple[int, int], Literal["above", "below"]] = field(default_factory=dict)
    caption: str = ""
    kind: ClassVar[str] = "table"

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", [str(column) for column in self.columns])
        named = [*self.best, *self.errors, *self.errors.values()]
        for column in named + ([] if isinstance(self.formats, str) else list(self.formats)):
            if column not in self.columns:
                known = suggest(column, list(self.columns))
                raise DataError(f"the table {self.title!r} has no column {column!r}: {known}")
        for i, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise DataError(
                    f"row {i} of the table {self.title!r} has {len(row)} cells: "
                    f"{len(self.columns)} are wanted, one for each column"
                )

    def shown_columns(self) -> list[str]:
        """The columns without those that are shown as ± behind another."""
        return [c for c in self.columns if c not in self.errors.values()]

    def numeric_columns(self) -> list[str]:
        """The columns with a number in them, which are set to the right."""
        return [c for c in self.columns if any(map(_is_number, self._values(c)))]

    def cells(self) -> list[list[Cell]]:
        """The rows as they are shown."""
        columns = [self._column(column) for column in self.shown_columns()]
        rows = [list(row) for row in zip(*columns, strict=True)] if columns else []
        for (i, j), mark in self.marks.items():
            rows[i][j] = rows[i][j]._replace(mark=mark)
        return rows

    def _column(self, column: str) -> list[Cell]:
        spec = self.formats if isinstance(self.formats, str) else self.formats.get(column, ".3f")
        values = self._values(column)
        texts = [number(value, spec) for value in values]
        best = _best(values, texts, self.best.get(column))
        if column in self.errors:
            errors = self._values(self.errors[column])
            texts = [
                f"{text} ± {number(error, spec)}" if _is_number(error) else text
                for text, error in zip(texts, errors, strict=True)
            ]
        return [
            Cell(text, _is_number(value), is_best)
            for text, value, is_best in zip(texts, values, best, strict=True)
        ]

    def _values(self, column: str) -> list[Any]:
        at = list(self.columns).index(column)
        return [row[at] for row in self.rows]

    def payload(self) -> dict[str, Any]:
        return {"columns": list(self.columns), "rows": [list(row) for row in self.rows]}


def _best(values: list[Any], texts: list[str], direction: str | None) -> list[bool]:
    """Which rows are shown with the best value; none when all of them are."""
    known = [(float(v), text) for v, text in zip(values, texts, strict=True) if _is_number(v)]
    if direction is None or not known:
        return [False] * len(values)
    # As shown: two values that read the same must not differ in rank.
    text = (max if direction == "high" else min)(known)[1]
    best = [shown == text for shown in texts]
    return best if not all(best) else [False] * len(values)


def _is_number(value: Any) -> bool:
    numeric = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return bool(numeric and value == value)
