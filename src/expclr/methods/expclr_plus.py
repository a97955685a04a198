"""ExpCLR and more in one stage: pairs, decoding, views and labels, each where it is known."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional

from expclr.errors import ConfigError
from expclr.methods.base import Batch, Encode, Method
from expclr.methods.contrast import positive
from expclr.methods.cross_entropy import CrossEntropy
from expclr.methods.decoding import FeatureDecoding
from expclr.methods.expclr import soft_maximum
from expclr.methods.pairs import EPSILON, FeatureSimilarity, pairwise_distances
from expclr.methods.views import Augmentations, compose

__all__ = ["ExpCLRPlus"]

PairsTarget = Literal["matched", "scaled", "paper"]


class ExpCLRPlus(Method):
    """Distances that follow the expert features, features that can be read, and any labels.

    A weighted sum of up to five terms, each over the windows that have what it needs: windows
    without features, without labels or with both train together.

    - pairs: ExpCLR's loss. Embedding distances are divided by their row's mean, so that this
      mean is 1; the paper's wanted distances have a mean below 1, and its loss cannot reach 0
      (``pairs_target="paper"``). "matched" divides the wanted distances by their row's mean as
      well; "scaled" leaves them, and multiplies the embedding distances by the one number that
      brings all pairs of the batch nearest to them in least squares.
    - decoding: the mean squared error of a linear layer that reads the standardised features.
    - reconstruction: the same for what the network computes of a window without any weight, as
      the random convolutions of encoder "rocket": what the expert did not name is not lost.
      Nothing for networks without such a part, or with views. Off by default: it helped on
      uci_har and hurt on machines.
    - consistency: squared distance of two views of a window, in units of the mean distance.
    - labels: cross-entropy of a linear classifier on those windows that have a label. Off by
      default: labels that come along with the windows do not train the encoder unasked.

    Parameters
    ----------
    pairs, decoding, reconstruction, consistency, labels : float
        Weights of the terms; 0 leaves one out.
    pairs_target : "matched", "scaled" or "paper"
    tau, similarity, reference, sigma
        Of the pairs: see :class:`expclr.methods.expclr.ExpCLRLoss`.
    augmentations : names or settings of ``expclr.methods.views.VIEWS``
        What is done to windows in training. With any, two views of each window are drawn, and
        both have the features of the window.

    Examples
    --------
    >>> z, F = torch.randn(8, 3, requires_grad=True), torch.randn(8, 5)
    >>> method = ExpCLRPlus(decoding=0.5)
    >>> method.prepare(F, embedding_dim=3)
    >>> method(z, F).backward()
    """

    finetune = "expclr"
    finetune_params: ClassVar[dict[str, Any]] = {"labels": 1.0}
    alone = True

    def __init__(
        self,
        pairs: float = 1.0,
        decoding: float = 1.0,
        *,
        reconstruction: float = 0.0,
        consistency: float = 0.0,
        labels: float = 0.0,
        pairs_target: PairsTarget = "matched",
        tau: float = 1.0,
        similarity: str = "squared",
        reference: str | float = "q0.99",
        sigma: float | Literal["median"] = 1.0,
        augmentations: Augmentations = (),
    ) -> None:
        super().__init__()
        self.weights = _checked(
            pairs=pairs,
            decoding=decoding,
            reconstruction=reconstruction,
            consistency=consistency,
            labels=labels,
        )
        if pairs_target not in ("matched", "scaled", "paper"):
            raise ConfigError(
                f"pairs_target is {pairs_target!r}: give 'matched', 'scaled' or 'paper'"
            )
        self.pairs_target, self.tau = pairs_target, positive(tau, "tau")
        self.similarity = FeatureSimilarity(similarity, reference=reference, sigma=sigma)
        self.reader = FeatureDecoding()
        self.rebuilder = FeatureDecoding()
        self.classifier = CrossEntropy()
        self.takes_labels, self.takes_fixed = labels > 0, reconstruction > 0
        if augmentations:
            self.views, self.view = 2, compose(augmentations)
        elif consistency:
            raise ConfigError("consistency compares two views of a window: give augmentations")

    def prepare(self, target: Tensor | None, embedding_dim: int) -> None:
        if target is not None:
            self.similarity.prepare(target)
            self.reader.prepare(target, embedding_dim)

    def prepare_labels(self, labels: Tensor, embedding_dim: int) -> None:
        self.classifier.prepare(labels, embedding_dim)

    def prepare_fixed(self, fixed: Tensor, embedding_dim: int) -> None:
        self.rebuilder.prepare(fixed.float(), embedding_dim)

    def step(self, encode: Encode, batch: Batch) -> Tensor:
        x, lengths = batch.x, batch.lengths
        z = torch.cat([encode(self.view(x, lengths), lengths) for _ in range(self.views)])
        assert batch.features is not None
        loss = self(z, batch.features)
        if batch.fixed is not None and self.takes_fixed:
            loss = loss + self.weights["reconstruction"] * self.rebuilder(z, batch.fixed.float())
        if self.takes_labels and batch.labels is not None:
            loss = loss + self.weights["labels"] * self.classifier(z, self._of_views(batch.labels))
        return loss

    def forward(self, z: Tensor, target: Tensor) -> Tensor:
        features, loss = self._of_views(target), z.sum() * 0
        if self.weights["pairs"]:
            loss = loss + self.weights["pairs"] * self._pairs(z, features)
        if self.weights["decoding"]:
            loss = loss + self.weights["decoding"] * self.reader(z, features)
        if self.weights["consistency"]:
            loss = loss + self.weights["consistency"] * _consistency(z)
        return loss

    def _of_views(self, target: Tensor) -> Tensor:
        return target.repeat(self.views, *[1] * (target.ndim - 1))

    def _pairs(self, z: Tensor, features: Tensor) -> Tensor:
        s, counts = self.similarity(features)
        D, T = pairwise_distances(z), 1 - s
        if self.pairs_target == "scaled":
            D = _nearest_scale(D, T, counts) * D
        else:
            D = _over_row_mean(D, counts)
        if self.pairs_target == "matched":
            T = _over_row_mean(T, counts)
        return soft_maximum((T - D).square(), counts, self.tau)


def _checked(**given: float) -> dict[str, float]:
    for name, weight in given.items():
        if weight < 0:
            raise ConfigError(f"the weight of {name} is {weight}: give a number of at least 0")
    if not any(given.values()):
        raise ConfigError("all weights are 0: there is nothing to learn from")
    return given


def _over_row_mean(values: Tensor, counts: Tensor) -> Tensor:
    """Divide each row by its mean over the pairs that count; leave a row without any as it is."""
    mean = (values * counts).sum(1, keepdim=True) / counts.sum(1, keepdim=True).clamp_min(1)
    return values / torch.where(mean > EPSILON, mean, 1)


def _nearest_scale(D: Tensor, T: Tensor, counts: Tensor) -> Tensor:
    """The a that minimises the sum of (T - a D)^2 over the pairs that count; 1 if all D are 0."""
    squares = (counts * D.square()).sum()
    return torch.where(squares > EPSILON, (counts * D * T).sum(), 1) / torch.where(
        squares > EPSILON, squares, 1
    )


def _consistency(z: Tensor) -> Tensor:
    """Squared distance of the two views of a window over the mean squared distance of windows."""
    first, second = z.chunk(2)
    spread = (z - z.mean(0)).square().sum(1).mean()
    return (
        functional.mse_loss(first, second, reduction="sum") / len(first) / spread.clamp_min(EPSILON)
    )
