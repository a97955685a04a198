"""The map of an embedding: a point for each window, and what the window is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from expclr.errors import DataError
from expclr.report.payload import pack
from expclr.report.waveforms import Waveforms

__all__ = ["EmbeddingMap", "Projection"]


@dataclass(frozen=True, eq=False)
class Projection:
    """One way to draw the embedding in two dimensions, and a sentence on how to read it."""

    name: str
    points: NDArray[np.floating[Any]]  # (n, 2)
    note: str = ""


@dataclass(frozen=True, eq=False)
class EmbeddingMap:
    """Points to look at one by one: waveform, features, neighbours.

    Parameters
    ----------
    title : str
        Heading; empty to go on under the one before.
    projections : sequence of Projection
        The first is shown first.
    caption : str
        How to read it.
    classes : array (n,) of int, optional
        Indices into ``class_names``; -1 where the class is not known.
    class_names : sequence of str
    features : array (n, d), optional
        Values to look at and to colour by; NaN where missing.
    feature_names : sequence of str
    waveforms : Waveforms, optional
        Of the n windows.
    neighbours : array (n, k) of int, optional
        Each point's nearest points, the nearest first.
    distances : array (n, k), optional
        To those neighbours.
    typical_distance : float
        Between two points, such as the median; what the distances are compared with.
    group : sequence, optional
        Where each window comes from.
    numbers : array (n,) of int, optional
        By which number each window is known, when these are a part of more.
    """

    title: str
    projections: Sequence[Projection]
    _: KW_ONLY
    caption: str
    classes: NDArray[np.integer[Any]] | None = None
    class_names: Sequence[str] = ()
    features: NDArray[np.floating[Any]] | None = None
    feature_names: Sequence[str] = ()
    waveforms: Waveforms | None = None
    neighbours: NDArray[np.integer[Any]] | None = None
    distances: NDArray[np.floating[Any]] | None = None
    typical_distance: float = float("nan")
    group: Sequence[Any] | NDArray[Any] | None = None
    numbers: NDArray[np.integer[Any]] | None = None
    kind: ClassVar[str] = "map"

    def __post_init__(self) -> None:
        if not self.projections:
            raise DataError(f"the map {self.title!r} has no projections: at least 1 is wanted")
        n = len(self)
        for projection in self.projections:
            if np.shape(projection.points) != (n, 2) or not np.isfinite(projection.points).all():
                raise DataError(
                    f"projection {projection.name!r} has shape {np.shape(projection.points)}: "
                    f"{(n, 2)} finite values are wanted"
                )
        rows = ("classes", "features", "waveforms", "neighbours", "distances", "group", "numbers")
        for field in rows:
            self._check_size(field, n)
        self._check_names()

    def _check_size(self, field: str, n: int) -> None:
        value = getattr(self, field)
        if value is not None and len(value) != n:
            raise DataError(f"{field} has {len(value)} rows for {n} points: one each is wanted")

    def _check_names(self) -> None:
        d = 0 if self.features is None else self.features.shape[1]
        if self.feature_names and len(self.feature_names) != d:
            raise DataError(
                f"{len(self.feature_names)} feature_names for {d} features: as many are wanted"
            )
        highest = -1 if self.classes is None else int(self.classes.max(initial=-1))
        if self.class_names and highest >= len(self.class_names):
            raise DataError(
                f"classes go up to {highest} but there are {len(self.class_names)} class_names: "
                "one for each is wanted"
            )

    def __len__(self) -> int:
        return len(self.projections[0].points)

    def alt(self) -> str:
        """The map in words."""
        names = ", ".join(projection.name for projection in self.projections)
        text = f"Scatter plot of {len(self)} windows in two dimensions ({names})."
        if self.classes is None:
            return text
        names_of = self._names_of_classes()
        counts = np.bincount(self.classes[self.classes >= 0], minlength=len(names_of))
        listed = ", ".join(
            f"{name} ({count})" for name, count in zip(names_of, counts, strict=True)
        )
        return f"{text} Classes: {listed}." if listed else text

    def _names_of_classes(self) -> list[str]:
        highest = -1 if self.classes is None else int(self.classes.max(initial=-1))
        return list(self.class_names) or [f"class {i}" for i in range(highest + 1)]

    def payload(self) -> dict[str, Any]:
        d = 0 if self.features is None else self.features.shape[1]
        return {
            "projections": [
                {"name": p.name, "note": p.note, "points": pack(p.points)} for p in self.projections
            ],
            "classes": self.classes,
            "classNames": self._names_of_classes(),
            "features": None if self.features is None else pack(self.features),
            "featureNames": list(self.feature_names) or [f"feature {i}" for i in range(d)],
            "waveforms": None if self.waveforms is None else self.waveforms.payload(),
            "neighbours": self.neighbours,
            "distances": None if self.distances is None else pack(self.distances),
            "typicalDistance": self.typical_distance,
            "group": None if self.group is None else [str(g) for g in self.group],
            "numbers": np.arange(len(self)) if self.numbers is None else self.numbers,
        }
