"""Sections of a report about expert features: what they weigh, and which of them got in."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.estimators import RepresentationLearner
from expclr.features.report import FeatureReport, feature_report
from expclr.features.space import FeatureSpace
from expclr.report import Bars, Section, Table
from expclr.windows import Windows

__all__ = ["feature_sections", "readability_sections", "share_section"]

SHOWN = 20  # bars of a chart
ROWS = 60  # of a table
FEWEST = 20  # windows below which nothing is read


def feature_sections(
    learner: RepresentationLearner, windows: Windows, Z: NDArray[np.float32]
) -> list[Section]:
    """What each expert feature weighs in the distance, and how well it is read from Z (n, e)."""
    if windows.F is None or not hasattr(learner, "feature_space_"):
        return []
    sections: list[Section] = [share_section(learner.feature_space_, windows.F)]
    if len(windows) < FEWEST:
        return sections
    if windows.group is not None and len(np.unique(windows.group)) < 2:
        windows = windows.with_(group=None)  # one group alone: random halves
    embedded: Any = SimpleNamespace(transform=lambda X: Z)
    return sections + readability_sections(feature_report(embedded, windows))


def share_section(space: FeatureSpace, F: Any) -> Bars:
    """The share of the squared feature distance that each group, or column, makes up."""
    found = space.distance_shares(F)
    family = families(list(found)) if len(found) > SHOWN else {}
    summed: dict[str, float] = {}
    for name, share in found.items():
        owner = family.get(name, name)
        summed[owner] = summed.get(owner, 0.0) + share
    shares = sorted(summed.items(), key=lambda item: -item[1])
    shown = shares if len(shares) <= SHOWN else shares[: SHOWN - 1]
    rest = shares[len(shown) :]
    if rest:
        shown = [*shown, (f"{len(rest)} others together", sum(share for _, share in rest))]
    return Bars(
        "What the expert features weigh",
        [name for name, _ in shown],
        [100 * share for _, share in shown],
        x_label="% of the squared distance",
        caption="The encoder follows distances between expert features. A feature, or a group "
        "of them, with a large share decides most of what counts as similar; weights, groups and "
        "decorrelation of the feature space change it."
        + (" A * stands for all features whose names begin so." if _cut_off(shown) else ""),
    )


def families(names: Sequence[str], most: int = SHOWN) -> dict[str, str]:
    """The family of each name: names that begin with the same words, as many words as fit.

    >>> names = [f"ch{i}_{kind}{j}" for i in (0, 1) for kind in ("pnn", "rms") for j in range(9)]
    >>> sorted(set(families(names).values()))
    ['ch0_pnn*', 'ch0_rms*', 'ch1_pnn*', 'ch1_rms*']
    """
    words = {name: re.findall(r"[-_(,]*[^-_(,]+", name) for name in names}
    family = {name: name for name in names}
    for depth in range(1, 1 + max(map(len, words.values()), default=0)):
        stems = {name: "".join(parts[:depth]) for name, parts in words.items()}
        if depth > 1:  # a number behind a word counts its members: pnn10, pnn20
            stems = {name: stem.rstrip("0123456789") for name, stem in stems.items()}
        sizes = Counter(stems.values())
        if len(sizes) > most:
            break
        family = {name: f"{s}*" if sizes[s] > 1 else name for name, s in stems.items()}
    return family


def readability_sections(report: FeatureReport) -> list[Section]:
    """A bar chart of the best and the worst read features, and a table."""
    rows = report.rows()
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
        formats={"R²": ".2f", "neighbours agree": ".2f", "windows that have it": ".0%"},
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


def _cut_off(shares: list[tuple[str, float]]) -> bool:
    return any(name.endswith("*") for name, _ in shares)
