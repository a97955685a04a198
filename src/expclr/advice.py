"""What a trained encoder should make its user think of: unread features, groups, fusing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from expclr.errors import DataError
from expclr.evaluation import linear_probe
from expclr.features.report import FeatureReport, readability
from expclr.fuse import fuse
from expclr.windows import Windows

__all__ = ["Advice", "advise", "same_group_share"]

UNREAD = 0.2  # R2 below which a feature has not got into the embedding
GAIN = 0.02  # macro-F1 that fused features have to bring to be worth their measurement
Embeddings = tuple[NDArray[Any], NDArray[Any]]  # of train and of held-out windows
NAMED = 5  # features that are named; of the others the count is said


@dataclass(frozen=True)
class Advice:
    """One finding in plain words, with the numbers it rests on."""

    about: str  # "features", "fusing" or "groups"
    text: str
    values: dict[str, Any]

    def record(self) -> dict[str, Any]:
        """For metrics.json."""
        return asdict(self)


def advise(
    Z: Embeddings, train: Windows, held: Windows, *, F: Embeddings | None, names: Sequence[str] = ()
) -> list[Advice]:
    """Look at embeddings of windows of groups that the encoder was not trained on.

    Parameters
    ----------
    Z, F : pairs of arrays
        Embeddings (n, e), and expert features (n, d) in their space, of train and held.
    train, held : Windows
        Their classes and groups are used where both have them.
    names : sequence of str
        Of the features.

    Returns
    -------
    list of Advice
        Empty when there is nothing to say.
    """
    findings = [_dominance(Z[0], train)]
    if F is not None:
        findings += [_unread(readability(Z[0], F[0], Z[1], F[1], names))]
        if train.y is not None and held.y is not None:
            findings += [_fusing((Z[0], F[0], train.y), (Z[1], F[1], held.y))]
    return [finding for finding in findings if finding is not None]


def _unread(report: FeatureReport) -> Advice | None:
    lost = [row for row in report.rows() if row["r2"] is not None and row["r2"] < UNREAD]
    if not lost:
        return None
    worst = lost[::-1][:NAMED]
    named = ", ".join(f"{row['feature']} R2 {row['r2']:.2f}" for row in worst)
    more = f" and {len(lost) - len(worst)} more" if len(lost) > len(worst) else ""
    text = (
        f"{len(lost)} of {len(report.names)} features cannot be read from the embedding of new "
        f"groups ({named}{more}): this encoder, or so few groups, cannot carry them. Try another "
        "encoder, more groups, or leave these features out (FeatureSpace weights)."
    )
    return Advice("features", text, {"unread": {row["feature"]: row["r2"] for row in lost}})


Part = tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]  # Z, F, y


def _fusing(train: Part, held: Part) -> Advice | None:
    known, asked = train[2] >= 0, held[2] >= 0
    y, y_held = train[2][known], held[2][asked]
    if len(np.unique(y)) < 2 or not len(y_held):
        return None
    alone = linear_probe(train[0][known], y, held[0][asked], y_held)["macro_f1"]
    both = fuse(*train[:2])
    fused = linear_probe(both(*train[:2])[known], y, both(*held[:2])[asked], y_held)["macro_f1"]
    values = {"macro_f1": alone, "macro_f1_with_features": fused}
    if fused - alone < GAIN:
        return None
    return Advice(
        "fusing",
        f"With the features beside the embedding classes are read better on new groups (macro-F1 "
        f"{fused:.3f} instead of {alone:.3f}): where they can be had when the model is used, set "
        "include_features=True.",
        values,
    )


def _dominance(Z: NDArray[np.float32], windows: Windows) -> Advice | None:
    if windows.group is None or len(np.unique(windows.group)) < 2:
        return None
    share, expected = same_group_share(Z, windows.group)
    values = {"same_group": share, "by_chance": expected}
    if share < 0.5 or share < 3 * expected:
        return None
    return Advice(
        "groups",
        f"{share:.0%} of the windows have their nearest neighbour in their own group (by chance "
        f"{expected:.0%}): the embedding tells groups apart, not only what the experts measure. "
        "More groups, or views that change what differs between them, may help.",
        values,
    )


def same_group_share(
    Z: NDArray[Any], group: NDArray[Any], *, most: int = 5000
) -> tuple[float, float]:
    """Share of windows whose nearest neighbour is of their group, and what chance gives.

    >>> Z = np.array([[0.0], [0.1], [5.0], [5.1]])
    >>> same_group_share(Z, np.array(["a", "a", "b", "b"]))
    (1.0, 0.3333333333333333)
    """
    if len(Z) < 2:
        raise DataError(f"{len(Z)} window has no neighbour: give at least 2")
    rows = np.linspace(0, len(Z) - 1, min(most, len(Z))).astype(int)
    index = NearestNeighbors(n_neighbors=2, algorithm="brute").fit(Z)
    found = index.kneighbors(Z[rows], return_distance=False)
    other = np.where(found[:, 0] == rows, found[:, 1], found[:, 0])
    sizes = np.unique(group, return_counts=True)[1] / len(group)
    chance = float((sizes * (sizes * len(group) - 1) / (len(group) - 1)).sum())
    return float((group[other] == group[rows]).mean()), chance
