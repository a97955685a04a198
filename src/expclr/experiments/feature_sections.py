"""Sections of a report about expert features: what they weigh, and which of them got in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from expclr.experiments.feature_record import SHOWN
from expclr.report import Bars, Section, Table

__all__ = ["feature_sections", "readability_sections", "share_section"]

ROWS = 60  # of a table


def feature_sections(record: dict[str, Any]) -> list[Section]:
    """Charts and a table of what ``feature_record`` found."""
    if not record:
        return []
    return [share_section(record["distance_percent"]), *readability_sections(record.get("read"))]


def share_section(shares: dict[str, float]) -> Bars:
    """The percentage of the squared feature distance that each group, or column, makes up."""
    return Bars(
        "What the expert features weigh",
        list(shares),
        list(shares.values()),
        x_label="% of the squared distance",
        caption="The encoder follows distances between expert features. A feature, or a group "
        "of them, with a large share decides most of what counts as similar; weights, groups and "
        "decorrelation of the feature space change it."
        + (" A * stands for all features whose names begin so." if _cut_off(shares) else ""),
    )


def readability_sections(rows: list[dict[str, Any]] | None) -> list[Section]:
    """A bar chart of the best and the worst read features, and a table."""
    rows = rows or []
    known = [row for row in rows if row["r2"] is not None]
    if not known:
        return []
    ends = _ends(known, SHOWN)
    chart = Bars(
        "Which expert features got into the embedding",
        [row["feature"] for row in ends],
        [max(row["r2"], 0.0) for row in ends],
        x_label="R²",
        caption="How much of each feature's variation a linear regression reads from the "
        "embedding, on groups it was not fitted on: 1 is all of it, 0 nothing. What is low here "
        f"the encoder has not learnt, or the signal does not show.{_which(ends, known)}",
    )
    listed = _ends(rows, ROWS)
    table = Table(
        "",
        ["feature", "R²", "neighbours agree", "windows that have it"],
        [[row["feature"], row["r2"], row["agreement"], row["present"]] for row in listed],
        formats={"R²": ".3f", "neighbours agree": ".3f", "windows that have it": ".0%"},
        caption="Neighbours agree: 1 when the nearest windows in the embedding have the same "
        f"value, 0 when they differ as much as any two.{_which(listed, rows)}",
    )
    return [chart, table]


def _ends(rows: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """All rows, or the first and the last when there are too many."""
    half = most // 2
    return rows if len(rows) <= most else [*rows[:half], *rows[-half:]]


def _which(shown: list[Any], every: list[Any]) -> str:
    if len(shown) == len(every):
        return ""
    half = len(shown) // 2
    return f" Shown are the {half} best and the {half} worst of {len(every)}."


def _cut_off(names: Iterable[str]) -> bool:
    return any(name.endswith("*") for name in names)
