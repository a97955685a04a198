"""DomainSSL: SimCLR with neighbours and prototypes from expert features."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from expclr.errors import ConfigError
from expclr.methods.base import Method
from expclr.methods.contrast import (
    cosines,
    cross_entropy,
    informed_distances,
    other_rows,
    positive,
    views_in,
)
from expclr.methods.pairs import feature_distances
from expclr.methods.views import Augmentations, compose

__all__ = ["DomainSSLLoss"]


class DomainSSLLoss(Method):
    """Contrast with the own view and the nearest neighbour's, and with prototypes of clusters.

    In the style of Gu et al. (DomainSSL, Communications Engineering 2025): positives are the
    other view and both views of the batch's nearest neighbour in expert features; besides, each
    window is drawn to the prototype of its k-means cluster of expert features, by cosine over a
    temperature that is high for wide clusters. Ours where the text leaves it open: prototypes
    are learnt directions of the embedding, and their weight is constant instead of growing over
    1000 epochs.

    Parameters
    ----------
    temperature : float
        Also the mean of the clusters' temperatures.
    prototypes : int, optional
        Number of clusters; default 128, or half the training windows if those are fewer.
    prototype_weight : float
    augmentations : names or settings of ``expclr.methods.views.VIEWS``
        Of two views; () takes one view, the windows as they are.

    Notes
    -----
    ``prepare(F, embedding_dim)`` finds the clusters. Alone, call it before the optimiser is
    built; without it the first batch stands for the dataset, as with torch's lazy layers.

    Examples
    --------
    >>> F = torch.randn(40, 5)
    >>> loss = DomainSSLLoss(prototypes=4)
    >>> loss.prepare(F, embedding_dim=3)
    >>> loss(torch.randn(8, 3, requires_grad=True), F[:4]).backward()  # two views of 4 windows
    """

    views = 2
    finetune = "supcon"
    centres: Tensor  # (k, d)
    temperatures: Tensor  # (k,)

    def __init__(
        self,
        temperature: float = 0.07,
        *,
        prototypes: int | None = None,
        prototype_weight: float = 0.1,
        augmentations: Augmentations = ("scaling", "dropout"),
    ) -> None:
        super().__init__()
        self.temperature = positive(temperature, "temperature")
        self.k = prototypes if prototypes is None else int(positive(prototypes, "prototypes"))
        self.prototype_weight = prototype_weight
        self.prototypes: nn.Parameter | None = None
        self.view, self.views = compose(augmentations), 2 if augmentations else 1

    def prepare(self, target: Tensor | None, embedding_dim: int) -> None:
        assert target is not None
        k = min(128, max(1, len(target) // 2)) if self.k is None else self.k
        if k > len(target):
            raise ConfigError(f"{k} prototypes of {len(target)} windows: give fewer")
        centres, spread = _clusters(target, k)
        self.register_buffer("centres", centres)
        self.register_buffer("temperatures", self.temperature * spread / spread.mean())
        drawn = torch.randn(k, embedding_dim, device=target.device)
        self.prototypes = nn.Parameter(functional.normalize(drawn, dim=1))

    def forward(self, z: Tensor, target: Tensor) -> Tensor:
        if self.prototypes is None:
            self.prepare(target, z.shape[1])
        views = views_in(z, target)
        distances, weights = informed_distances(target)
        pairs = self._neighbour_loss(z, distances, weights, views)
        known = weights.diagonal().repeat(views)
        return pairs + self.prototype_weight * self._prototype_loss(z, target, known, views)

    def _neighbour_loss(self, z: Tensor, distances: Tensor, weights: Tensor, views: int) -> Tensor:
        eye = ~other_rows(len(distances), z.device)
        others = torch.where((weights > 0) & ~eye, distances, torch.inf)
        nearest = (others <= others.amin(1, keepdim=True)) & others.isfinite()
        candidates = (weights > 0).repeat(views, views) & other_rows(len(z), z.device)
        positives = (nearest | eye).repeat(views, views) & candidates
        return cross_entropy(cosines(z, self.temperature), candidates, positives)

    def _prototype_loss(self, z: Tensor, target: Tensor, known: Tensor, views: int) -> Tensor:
        assert self.prototypes is not None
        cluster = _nearest_centre(target, self.centres).repeat(views)
        n = len(z)
        cosine = cosines(torch.cat([z, self.prototypes]))[:n, n:]  # (n, k)
        losses = functional.cross_entropy(cosine / self.temperatures, cluster, reduction="none")
        return (losses * known).sum() / known.sum().clamp_min(1)


def _clusters(f: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Centres of k-means and how concentrated each cluster is: sum of distances / n log(n + 10).

    Missing features count as the mean.
    """
    from sklearn.cluster import KMeans

    filled = torch.where(f.isnan(), f.nanmean(0).nan_to_num(nan=0.0), f).cpu().double().numpy()
    distinct = len(np.unique(filled, axis=0))
    seed = int(torch.randint(2**31 - 1, ()))
    means = KMeans(min(k, distinct), n_init=1, max_iter=50, random_state=seed).fit(filled)
    centres = np.resize(means.cluster_centers_, (k, f.shape[1]))
    distance = np.linalg.norm(filled - centres[means.labels_], axis=1)
    count = np.bincount(means.labels_, minlength=k)
    total = np.bincount(means.labels_, weights=distance, minlength=k)
    spread = total / np.maximum(count, 1) / np.log(count + 10)
    spread = np.maximum(spread, 0.1 * spread.mean() or 1.0)  # a cluster of one has no width
    return torch.from_numpy(centres).to(f), torch.from_numpy(spread).to(f)


def _nearest_centre(f: Tensor, centres: Tensor) -> Tensor:
    return feature_distances(f, centres)[0].argmin(1)
