"""Writes the numbers of experiments/results into docs/reproduce.md.

    python docs/paper_tables.py

A table stands between two comments, <!-- paper: uci_har cpu --> and <!-- end of paper -->: every
method without labels on that dataset with that budget.
"""

from __future__ import annotations

import re
from pathlib import Path

from expclr.experiments.cells import Cells, cells_of
from expclr.experiments.paper import SYSTEMS, ZOO
from expclr.experiments.paper_tables import ROWS1, Entry, Grid, markdown, table1
from expclr.experiments.store import read_results

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "experiments" / "results"
PAGE = ROOT / "docs" / "reproduce.md"
BLOCK = re.compile(r"(<!-- paper: (\w+) (\w+) -->\n).*?(<!-- end of paper -->)", re.DOTALL)


def filled(page: str) -> str:
    """The page with its tables as the result files have them."""
    records = read_results(RESULTS).records

    def block(match: re.Match[str]) -> str:
        cells = cells_of(records, match[2], budget=match[3])
        return f"{match[1]}{_shown(cells)}\n{match[4]}"

    return BLOCK.sub(block, page)


ALSO = ("nhnm", *ZOO)


def _shown(cells: Cells) -> str:
    grid = table1(cells, also=ALSO)
    code = ", ".join(f"`{name}`" for name in cells.versions)
    far = _far(grid) if cells.seeds > 1 else "With one seed no difference is told from chance."
    return f"\n{markdown([grid])}\n{far}{_missing(cells)} Made by code {code}.\n"


def _missing(cells: Cells) -> str:
    """The rows that have no run yet."""
    asked = (*ROWS1, *((name, "U", None) for name in ALSO))
    names = [SYSTEMS[s].label for s, mode, labels in asked if not cells.of(s, mode, labels)]
    return f" Not run yet: {', '.join(names)}." if names else ""


def _far(grid: Grid) -> str:
    """Who is beyond two joint standard errors from the paper, in a sentence."""
    parts = []
    for at, probe in ((0, "linear"), (3, "1-NN")):
        for side in ("above", "below"):
            names = [n for n, row in grid.rows if _mark(row[at]) == side]
            if names:
                parts.append(f"{side} it ({probe}) {', '.join(names)}")
    if not parts:
        return "Nothing is beyond two joint standard errors from the paper."
    return f"Beyond two joint standard errors from the paper are {'; '.join(parts)}."


def _mark(entry: Entry | str) -> str | None:
    return entry.mark if isinstance(entry, Entry) else None


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
