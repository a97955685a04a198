"""SleepPriorCL: positives are the nearest windows of the batch by expert features."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from expclr.errors import ConfigError
from expclr.methods.base import Method
from expclr.methods.contrast import (
    cosines,
    cross_entropy,
    denominators,
    informed_distances,
    mean_over_anchors,
    other_rows,
    positive,
    row_means,
    views_in,
)
from expclr.methods.views import Augmentations, compose

__all__ = ["SleepPriorLoss"]


class SleepPriorLoss(Method):
    """SupCon whose positives are the views of the K windows nearest in expert features.

    Anchors are the rows of view 1; the K nearest count the anchor itself, so that its own second
    view is always a positive; ties for the last place are all taken (Zhang et al.,
    "SleepPriorCL", 2021; K and the form as in the same authors' SleepECL, IJCNN 2022).

    Parameters
    ----------
    neighbours : float or int
        K, as a part of the batch (below 1) or as a number of windows.
    temperature : float or (float, float)
        One for all pairs, or t_min and t_max: then linear in the rank of a pair's distance from
        the anchor, so that near windows are held tightest. How the original adapts its
        temperatures is not known; this is ours.
    separate_positives : bool
        Put the negatives and only the one positive in question into a denominator.
    augmentations : names or settings of ``expclr.methods.views.VIEWS``

    Examples
    --------
    >>> z, F = torch.randn(8, 3, requires_grad=True), torch.randn(4, 5)  # two views of 4 windows
    >>> SleepPriorLoss(neighbours=2)(z, F).backward()
    """

    views = 2
    finetune = "supcon"

    def __init__(
        self,
        neighbours: float | int = 0.4,
        temperature: float | Sequence[float] = 0.07,
        *,
        separate_positives: bool = False,
        augmentations: Augmentations = ("sleepprior",),
    ) -> None:
        super().__init__()
        if neighbours >= 1 and neighbours != int(neighbours):
            raise ConfigError(f"neighbours is {neighbours}: give a part below 1 or a whole number")
        self.neighbours = positive(neighbours, "neighbours")
        pair = temperature if isinstance(temperature, Sequence) else (temperature, temperature)
        self.lowest, self.highest = (positive(t, "temperature") for t in pair)
        self.separate_positives = separate_positives
        self.view, self.views = compose(augmentations), 2 if augmentations else 1

    def forward(self, z: Tensor, target: Tensor) -> Tensor:
        b, views = len(target), views_in(z, target)
        distances, weights = informed_distances(target)
        distances = torch.where(weights > 0, distances, torch.inf)
        ordered = distances.sort(dim=1).values
        near = distances <= ordered[:, self._k(b) - 1 : self._k(b)]
        temperature = self._temperatures(distances, ordered)
        candidates = (weights > 0).repeat(1, views) & other_rows(len(z), z.device)[:b]
        scores = cosines(z)[:b] / temperature.repeat(1, views)
        positives = near.repeat(1, views) & candidates
        if self.separate_positives:
            return _separate_cross_entropy(scores, candidates, positives)
        return cross_entropy(scores, candidates, positives)

    def _k(self, b: int) -> int:
        k = max(1, int(self.neighbours * b)) if self.neighbours < 1 else int(self.neighbours)
        if k > b:
            raise ConfigError(f"{k} neighbours in a batch of {b}: give fewer, or larger batches")
        return k

    def _temperatures(self, distances: Tensor, ordered: Tensor) -> Tensor:
        """From the lowest, for what is nearest, to the highest, for what is farthest."""
        rank = torch.searchsorted(ordered, distances.contiguous())
        part = rank / ordered.isfinite().sum(1, keepdim=True).sub(1).clamp_min(1)
        return self.lowest + (self.highest - self.lowest) * part.clamp_max(1)


def _separate_cross_entropy(scores: Tensor, candidates: Tensor, positives: Tensor) -> Tensor:
    """Each denominator holds the negatives and the one positive in question."""
    negatives = denominators(scores, candidates & ~positives)
    losses = row_means(torch.logaddexp(scores, negatives) - scores, positives)
    return mean_over_anchors(losses, positives)
