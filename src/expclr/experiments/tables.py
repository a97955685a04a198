"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["text_table"]


def text_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table with names to the left and numbers to the right; None is a dash.

    >>> print(text_table(["system", "accuracy"], [["ours", 0.9512], ["theirs", None]]))
    system  accuracy
    ours       0.951
    theirs         -
    """
    cells = [list(columns), *[[_cell(value) for value in row] for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    return "\n".join(_line(row, widths) for row in cells)


def _line(row: list[str], widths: list[int]) -> str:
    name, *numbers = row
    cells = [n.rjust(w) for n, w in zip(numbers, widths[1:], strict=True)]
    return "  ".join([name.ljust(widths[0]), *cells]).rstrip()


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
