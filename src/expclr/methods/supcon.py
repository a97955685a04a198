"""Supervised contrastive loss: windows of one class are nearer than those of others."""

from __future__ import annotations

import torch
from torch import Tensor

from expclr.methods.base import Method
from expclr.methods.contrast import (
    cosines,
    cross_entropy,
    other_rows,
    positive,
    views_in,
)
from expclr.methods.views import Augmentations, compose

__all__ = ["SupConLoss", "class_contrast"]


class SupConLoss(Method):
    """Mean log-probability of an anchor's own class among all rows, by cosine ("out" form).

    -(tau / tau_base) mean over anchors of 1/|P_i| sum_{p in P_i} log exp(s_ip / tau) /
    sum_{a != i} exp(s_ia / tau) (Khosla et al., "Supervised contrastive learning", NeurIPS 2020).
    Anchors alone in their class are left out of the mean, unlabelled windows (-1) out of
    everything; a batch of one class teaches nothing and costs nothing.

    Parameters
    ----------
    temperature : float
    base_temperature : float, optional
        tau_base; default the temperature itself.
    augmentations : names or settings of ``expclr.methods.views.VIEWS``
        Of two views, as in the original; () takes one view, the windows as they are.

    Examples
    --------
    >>> labels = torch.tensor([0, 0, 1, 1])
    >>> z = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> SupConLoss(temperature=0.1)(z, labels).item() < 1e-3
    True
    """

    target = "labels"
    views = 2
    finetune = "supcon"

    def __init__(
        self,
        temperature: float = 0.1,
        *,
        base_temperature: float | None = None,
        augmentations: Augmentations = ("scaling", "dropout"),
    ) -> None:
        super().__init__()
        self.temperature = positive(temperature, "temperature")
        base = temperature if base_temperature is None else base_temperature
        self.base_temperature = positive(base, "base_temperature")
        self.view, self.views = compose(augmentations), 2 if augmentations else 1

    def forward(self, z: Tensor, target: Tensor) -> Tensor:
        labels = target.repeat(views_in(z, target))
        factor = self.temperature / self.base_temperature
        return factor * class_contrast(z, labels, self.temperature)


def class_contrast(z: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """SupCon of rows (..., n, e) with labels (..., n) of any number of labellings, (...)."""
    known = labels >= 0
    candidates = known[..., :, None] & known[..., None, :] & other_rows(z.shape[-2], z.device)
    same = labels[..., :, None] == labels[..., None, :]
    informed = (candidates & ~same).flatten(-2).any(-1)  # a single class has nothing to say
    losses = cross_entropy(cosines(z, temperature), candidates, same & candidates)
    return torch.where(informed, losses, losses * 0)
