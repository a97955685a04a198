"""Cross-entropy: an ordinary classifier, trained on labels alone."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from expclr.errors import ConfigError
from expclr.methods.base import Method

__all__ = ["CrossEntropy"]


class CrossEntropy(Method):
    """Cross-entropy of a linear classifier on the embedding; unlabelled windows do not count.

    Parameters
    ----------
    classes : int, optional
        How many; default as many as the training labels hold.
    """

    target = "labels"
    finetune = "cross_entropy"

    def __init__(self, classes: int | None = None) -> None:
        super().__init__()
        self.classes = classes
        self.classifier: nn.Module = nn.LazyLinear(classes) if classes else nn.Identity()

    def prepare(self, target: Tensor | None, embedding_dim: int) -> None:
        found = 0 if target is None else int(target.max()) + 1
        if self.classes is not None and found > self.classes:
            raise ConfigError(f"{found} classes for a head of {self.classes}: raise classes")
        self.classifier = nn.Linear(embedding_dim, self.classes or found)

    def forward(self, z: Tensor, target: Tensor) -> Tensor:
        scores = self.classifier(z)
        total = functional.cross_entropy(scores, target, ignore_index=-1, reduction="sum")
        return total / (target >= 0).sum().clamp_min(1)
