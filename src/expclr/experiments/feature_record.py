"""What a report says of expert features, as plain numbers: what they weigh, which got in."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.estimators import RepresentationLearner
from expclr.features.report import feature_report
from expclr.features.space import FeatureSpace
from expclr.windows import Windows

__all__ = ["SHOWN", "distance_percent", "families", "feature_record"]

SHOWN = 20  # shares, and bars of a chart
FEWEST = 20  # windows below which nothing is read


def feature_record(
    learner: RepresentationLearner, windows: Windows, Z: NDArray[np.float32]
) -> dict[str, Any]:
    """What each feature weighs in the distance, and how well it is read from Z (n, e).

    ``distance_percent`` is by feature, or by family of features where they are many; ``read``
    has a row for each feature, the best read first. Empty where there are no features.
    """
    if windows.F is None or np.isnan(windows.F).all() or not hasattr(learner, "feature_space_"):
        return {}
    record: dict[str, Any] = {
        "distance_percent": distance_percent(learner.feature_space_, windows.F)
    }
    if len(windows) < FEWEST:
        return record
    if windows.group is not None and len(np.unique(windows.group)) < 2:
        windows = windows.with_(group=None)  # one group alone: random halves
    embedded: Any = SimpleNamespace(transform=lambda X: Z)
    return record | {"read": feature_report(embedded, windows).rows()}


def distance_percent(space: FeatureSpace, F: Any) -> dict[str, float]:
    """Percent of the squared feature distance that each group, or column, makes up."""
    found = space.distance_shares(F)
    family = families(list(found)) if len(found) > SHOWN else {}
    summed: dict[str, float] = {}
    for name, share in found.items():
        owner = family.get(name, name)
        summed[owner] = summed.get(owner, 0.0) + 100 * share
    shares = sorted(summed.items(), key=lambda item: -item[1])
    shown = shares if len(shares) <= SHOWN else shares[: SHOWN - 1]
    rest = shares[len(shown) :]
    if rest:
        shown = [*shown, (f"{len(rest)} others together", sum(share for _, share in rest))]
    return dict(shown)


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
