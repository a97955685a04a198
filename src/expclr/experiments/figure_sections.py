"""The paper's figures as charts of a page."""

from __future__ import annotations

import numpy as np

from expclr.experiments.figures import Curve, Figure, Panel
from expclr.report import Bars, Lines, Section, Series

__all__ = ["sections"]


def sections(figure: Figure) -> list[Section]:
    """The figure's panels as charts, the paper's curves in one of their own."""
    charts: list[tuple[Panel, list[Curve], str]] = []
    for panel in figure.panels:
        ours, theirs = ([c for c in panel.curves if c.dashed is paper] for paper in (False, True))
        charts += [(panel, curves, words) for curves, words in _told(figure, panel, ours, theirs)]
    last = len(charts) - 1
    return [
        _chart(
            panel, curves, "" if at else figure.title, _caption(panel, words, figure, at == last)
        )
        for at, (panel, curves, words) in enumerate(charts)
    ]


def _told(
    figure: Figure, panel: Panel, ours: list[Curve], theirs: list[Curve]
) -> list[tuple[list[Curve], str]]:
    """The charts of a panel, each with what tells it from the others."""
    if theirs:
        return [(ours, "Our numbers."), (theirs, "The paper's numbers.")]
    told = len({p.title for p in figure.panels}) > 1 and panel.title != panel.x_label
    return [(ours, f"{panel.title}." if told else "")]


def _caption(panel: Panel, words: str, figure: Figure, last: bool) -> str:
    level = f"{panel.level[0].capitalize()}: {panel.level[1]:.2f}." if panel.level else ""
    return " ".join(part for part in (words, level, figure.caption if last else "") if part)


def _chart(panel: Panel, curves: list[Curve], title: str, caption: str) -> Section:
    shown = [curve for curve in curves if len(curve.x)]
    if panel.named:
        return _bars(panel, shown, title, caption)
    return Lines(
        title,
        [_series(curve) for curve in shown],
        x_label=panel.x_label,
        y_label=panel.y_label,
        log_x=panel.log_x,
        log_y=panel.log_y,
        caption=caption,
    )


def _bars(panel: Panel, curves: list[Curve], title: str, caption: str) -> Bars:
    values = np.array([curve.y[0] for curve in curves])
    errors = np.array([np.nan if c.error is None else c.error[0] for c in curves])
    return Bars(
        title,
        [curve.name for curve in curves],
        values,
        x_label=panel.y_label,
        caption=caption,
        low=values - errors,
        high=values + errors,
    )


def _series(curve: Curve) -> Series:
    name = curve.name.removesuffix(", paper")
    if curve.error is None:
        return Series(name, curve.x, curve.y)
    y, error = np.asarray(curve.y), np.asarray(curve.error)
    return Series(name, curve.x, curve.y, low=y - error, high=y + error)
