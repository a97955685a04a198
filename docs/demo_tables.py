"""Writes the demonstration's numbers into README.md and docs/demo.md.

    make demo && python docs/demo_tables.py expclr-demo/metrics.json

Without a file the numbers kept in docs/results/demo.json are written anew. A table stands between
two comments, <!-- demo --> and <!-- end of demo -->; so do the trials that settings were chosen by.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from expclr.experiments.demo_page import COLUMNS, rows

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "docs" / "results" / "demo.json"
CHOICES = ROOT / "benchmarks" / "results" / "demo_choices.json"
PAGES = ("README.md", "docs/demo.md")


def main(words: list[str]) -> None:
    if words:
        shutil.copyfile(words[0], KEPT)
    for page in PAGES:
        path = ROOT / page
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")


def filled(page: str) -> str:
    """The page with its numbers as the result files have them."""
    demo = json.loads(KEPT.read_text(encoding="utf-8"))
    choices = json.loads(CHOICES.read_text(encoding="utf-8"))
    blocks = {"demo": comparison(demo), "machine": machine(demo), "choices": trials(choices)}
    for name, text in blocks.items():
        between = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
        page = between.sub(lambda match, text=text: f"{match[1]}{text}\n{match[2]}", page)
    return page


def comparison(demo: dict[str, Any]) -> str:
    """The systems with 5 % and with all labels; the best of the sensors' systems in bold."""
    found = rows(demo["records"])
    sensors = [row for row in found if row[1] == "sensors"]
    best = [max(row[i] for row in sensors) for i in range(2, len(COLUMNS))]
    lines = [
        [name, needs, *(_bold(v, v == b) for v, b in zip(values, best, strict=True))]
        for name, needs, *values in found
    ]
    return _table(COLUMNS, lines)


def _bold(value: float, stands_out: bool) -> str:
    return f"**{value:.1%}**" if stands_out else f"{value:.1%}"


def machine(demo: dict[str, Any]) -> str:
    """What the numbers were made with."""
    made = demo["environment"]
    return (
        f"expclr {made['expclr']}, Python {made['python']}, torch {made['torch']}, "
        f"{made['threads']} threads, {demo['seconds']:.0f} seconds in all."
    )


def trials(choices: list[dict[str, Any]]) -> str:
    """Every setting that was tried, in the order in which it was."""
    columns = [name for name in choices[0] if name != "seconds"]
    return _table(
        columns,
        [[f"{r[c]:.1%}" if isinstance(r[c], float) else r[c] for c in columns] for r in choices],
    )


def _table(columns: list[str], lines: list[list[str]]) -> str:
    rule = ["---" if name in ("system", "settings", COLUMNS[1]) else "---:" for name in columns]
    return "\n".join(f"| {' | '.join(line)} |" for line in [columns, rule, *lines])


if __name__ == "__main__":
    main(sys.argv[1:])
