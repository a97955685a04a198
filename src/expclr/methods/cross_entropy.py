"""Cross-entropy: an ordinary classifier, trained on labels alone."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from expclr.errors import ConfigError, DataError
from expclr.methods.base import Method

__all__ = ["CrossEntropy"]


class CrossEntropy(Method):
    """Cross-entropy of a linear classifier on the embedding; unlabelled windows do not count.

    Parameters
    ----------
    classes : int, optional
        How many; default as many as the training labels hold.

    Notes
    -----
    Alone, give ``classes``, or call ``prepare(y, embedding_dim)`` before the optimiser is built.

    Examples
    --------
    >>> import torch
    >>> loss = CrossEntropy(classes=3)
    >>> loss(torch.randn(4, 8, requires_grad=True), torch.tensor([0, 2, 1, -1])).backward()
    """

    target = "labels"
    finetune = "cross_entropy"

    def __init__(self, classes: int | None = None) -> None:
        super().__init__()
        self.classes = classes
        self.classifier: nn.Module | None = nn.LazyLinear(classes) if classes else None

    def prepare(self, target: Tensor | None, embedding_dim: int) -> None:
        found = 0 if target is None else int(target.max()) + 1
        if self.classes is not None and found > self.classes:
            raise ConfigError(f"{found} classes for a head of {self.classes}: raise classes")
        self.classifier = nn.Linear(embedding_dim, self.classes or found)

    def forward(self, z: Tensor, target: Tensor) -> Tensor:
        if self.classifier is None:
            raise ConfigError("how many classes is not known: give classes, or call prepare first")
        scores = self.classifier(z)
        try:
            total = functional.cross_entropy(scores, target, ignore_index=-1, reduction="sum")
        except IndexError as error:
            raise DataError(
                f"{error}: the head is for classes 0 to {scores.shape[1] - 1}; unlabelled is -1"
            ) from error
        return total / (target >= 0).sum().clamp_min(1)
