"""TS-TCC: temporal and contextual contrasting of a weak and a strong view."""

from __future__ import annotations

import logging
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from expclr.errors import ConfigError, DataError
from expclr.methods.base import Batch, Encode, Method
from expclr.methods.contexts import Context
from expclr.methods.contrast import positive
from expclr.methods.simclr import NTXentLoss
from expclr.methods.views import Augmentations, compose

__all__ = ["TSTCC"]

log = logging.getLogger(__name__)


class TSTCC(Method):
    """Predict one view's future from the other view's past, and tell windows apart by contexts.

    Each view's feature map up to a random step is summed up by a transformer into a context, from
    which linear maps predict the next steps of the other view; the right window is to be found in
    the batch by its step (temporal). The contexts of both views are projected and compared as in
    SimCLR (contextual). After Eldele et al., "Time-series representation learning via temporal
    and contextual contrasting" (IJCAI 2021).

    Needs an encoder with a feature map over time, that is ``encoder="tstcc"``, and windows of
    equal length.

    Parameters
    ----------
    horizon : int
        Steps that are predicted, at most those there are after the first (the original: 6 for
        HAR, 50 for SleepEDF).
    hidden : int
        Size of a context (100 and 64).
    temporal_weight, contextual_weight : float
    temperature : float
        Of the contextual contrast.
    weak, strong : names or settings of ``expclr.methods.views.VIEWS``
        ``strong={"tstcc_strong": {"max_segments": 12, "sigma": 2.0}}`` and a sigma of 1.5 in the
        weak view are the original's choice for SleepEDF, in microvolts. The original makes its
        views once before training and permutes the first channel into all others (option
        ``first_channel_into_all``); here they are drawn anew at every step from all channels.
    channels : int
        Of the feature map.
    layers, heads, dropout
        Of the transformer.

    Examples
    --------
    Alone, give ``step`` an encoder that has ``features(x, lengths)``:

    >>> from expclr.encoders import ENCODERS
    >>> encoder = ENCODERS["tstcc"](9, 2304, length=128)
    >>> TSTCC().step(encoder, Batch(torch.randn(4, 9, 128))).backward()
    """

    target = "none"
    views = 2
    finetune = "cross_entropy"

    def __init__(
        self,
        horizon: int = 6,
        hidden: int = 100,
        *,
        temporal_weight: float = 1.0,
        contextual_weight: float = 0.7,
        temperature: float = 0.2,
        weak: Augmentations = ("tstcc_weak",),
        strong: Augmentations = ("tstcc_strong",),
        channels: int = 128,
        layers: int = 4,
        heads: int = 4,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.horizon = int(positive(horizon, "horizon"))
        self.temporal_weight, self.contextual_weight = temporal_weight, contextual_weight
        self.weak, self.strong = compose(weak), compose(strong)
        self.context = Context(channels, hidden, layers=layers, heads=heads, dropout=dropout)
        self.predictions = nn.Linear(hidden, self.horizon * channels)
        self.projection = nn.Sequential(
            nn.Linear(hidden, channels // 2, bias=False),  # normalising takes one off again
            nn.BatchNorm1d(channels // 2),
            nn.ReLU(),
            nn.Linear(channels // 2, channels // 4),
        )
        self.contrast = NTXentLoss(temperature)
        self.embedding_dim: int | None = None

    def prepare(self, target: Tensor | None, embedding_dim: int) -> None:
        self.embedding_dim = embedding_dim

    def step(self, encode: Encode, batch: Batch) -> Tensor:
        features = self._features(encode)
        if batch.lengths is not None:
            raise DataError("TS-TCC compares equal timepoints: give windows of equal length")
        weak = features(self.weak(batch.x, None), None)
        strong = features(self.strong(batch.x, None), None)
        self._tell_of_an_untrained_layer(weak)
        # Channels last in memory: they are what is normalised and multiplied.
        return self(torch.stack([weak.mT, strong.mT]).mT)

    def forward(self, z: Tensor, target: Tensor | None = None) -> Tensor:
        """Feature maps of both views, (2, b, c, t), to the loss."""
        if z.ndim != 4:
            raise DataError(
                f"TS-TCC has embeddings of shape {tuple(z.shape)}: it compares feature maps over "
                "time, (2, b, c, t) of two views; give step an encoder with features(x, lengths)"
            )
        steps = functional.normalize(z, dim=2).transpose(2, 3)  # (2, b, t, c)
        if steps.shape[2] < 2:
            raise ConfigError("the feature map has a single step: TS-TCC needs longer windows")
        horizon = min(self.horizon, steps.shape[2] - 1)
        past = steps[:, :, : steps.shape[2] - horizon]  # what may be seen
        # Drawn on the device for each direction, and no shape follows from it: nothing waits.
        seen = 1 + torch.randint(past.shape[2], (2,), device=z.device)
        context = self.context(past.flatten(0, 1), seen[:, None].expand(past.shape[:2]).flatten())
        context = context.unflatten(0, past.shape[:2])  # (2, b, h)
        future = _stretch(steps, seen.flip(0), horizon).flip(0)  # of the other view, (2, b, k, c)
        both = torch.cat([self.projection(one) for one in context])  # normalised view by view
        temporal, contextual = self._temporal(context, future), self.contrast(both)
        return self.temporal_weight * temporal + self.contextual_weight * contextual

    def _temporal(self, context: Tensor, future: Tensor) -> Tensor:
        """InfoNCE over the batch, the mean over next steps and the sum over directions."""
        predicted = self.predictions(context).unflatten(2, (self.horizon, -1))
        predicted = predicted[:, :, : future.shape[2]].transpose(1, 2)  # (2, k, b, c)
        scores = predicted @ future.permute(0, 2, 3, 1)  # (2, k, b, b)
        right = scores.diagonal(dim1=2, dim2=3)
        return (scores.logsumexp(3) - right).mean((1, 2)).sum()

    def _features(self, encode: Encode) -> Callable[[Tensor, Tensor | None], Tensor]:
        features = getattr(encode, "features", None)
        if features is None:
            raise ConfigError("TS-TCC needs a feature map over time: use encoder='tstcc'")
        return features

    def _tell_of_an_untrained_layer(self, features: Tensor) -> None:
        flat = features.shape[1] * features.shape[2]
        if self.embedding_dim not in (None, flat):
            log.warning(
                "TS-TCC trains the feature map, of %d values; embedding_dim=%d is a random "
                "projection of it: embedding_dim=%d gives the map itself, as in the original",
                *(flat, self.embedding_dim, flat),
            )
        self.embedding_dim = None  # once


def _stretch(steps: Tensor, start: Tensor, count: int) -> Tensor:
    """``count`` steps of each view from its ``start`` (2,) on, (2, b, t, c) -> (2, b, k, c)."""
    index = start[:, None] + torch.arange(count, device=steps.device)
    return steps.gather(2, index[:, None, :, None].expand(*steps.shape[:2], -1, steps.shape[3]))
