"""How far pair distances differ from feature distances, as a histogram."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expclr.errors import DataError
from expclr.report.charts import Histogram, Mark

__all__ = ["pair_ratios"]


def pair_ratios(
    ratios: ArrayLike,
    l_minus: float,
    l_plus: float,
    *,
    title: str = "How well distances are kept",
    bins: int = 60,
) -> Histogram:
    """The pair ratios ``||f_i - f_j|| / ||z_i - z_j||`` with l- and l+ marked.

    The axis is logarithmic when the ratios span more than a factor of ten; ratios that are
    zero (then) or not finite are left out and counted in the caption.

    Examples
    --------
    >>> chart = pair_ratios([0.5, 0.9, 1.0, 1.1, 2.0], 0.5, 2.0, bins=3)
    >>> chart.counts.tolist(), chart.log_x
    ([2.0, 2.0, 1.0], False)
    """
    values = np.asarray(ratios, dtype=np.float64).ravel()
    known = values[np.isfinite(values)]
    positive = known[known > 0]
    log_x = bool(len(positive)) and bool(positive.max() > 10 * positive.min())
    shown = positive if log_x else known
    if not len(shown):
        raise DataError(f"none of {len(values)} ratios is finite: do all embeddings coincide?")
    edges = _edges(shown, bins, log_x=log_x)
    return Histogram(
        title,
        edges,
        np.histogram(shown, edges)[0],
        x_label="feature distance / embedding distance",
        y_label="pairs",
        marks=(Mark(l_minus, "l−"), Mark(l_plus, "l+")),
        log_x=log_x,
        caption=_caption(len(values) - len(shown)),
    )


def _edges(shown: NDArray[np.float64], bins: int, *, log_x: bool) -> NDArray[np.float64]:
    low, high = float(shown.min()), float(shown.max())
    if high - low <= 1e-9 * high:  # equal up to rounding, as in a perfect embedding
        unit = np.linspace(-0.5, 0.5, bins + 1) + 0.25 / bins  # no edge at the value itself
        return high + (high or 1.0) * unit
    edges = np.geomspace(low, high, bins + 1) if log_x else np.linspace(low, high, bins + 1)
    edges[0], edges[-1] = low, high  # what rounding may have moved
    return edges


def _caption(left_out: int) -> str:
    text = (
        "Each pair of windows gives one ratio of feature distance to embedding distance. The "
        "narrower the histogram, the better the embedding keeps the experts' distances; l− "
        "and l+ are their bounds, which would be equal in a perfect embedding."
    )
    note = f" {left_out} pairs of equal windows have no finite ratio above 0 and are left out."
    return text + note if left_out else text
