"""TS-TCC: temporal and contextual contrasting of a weak and a strong view."""

from __future__ import annotations

import logging
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from expclr.errors import ConfigError, DataError
from expclr.methods.base import Batch, Encode, Method
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
        self.context = _Context(channels, hidden, layers, heads, dropout)
        self.predictions = nn.ModuleList(nn.Linear(hidden, channels) for _ in range(self.horizon))
        self.projection = nn.Sequential(
            nn.Linear(hidden, channels // 2),
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
        return self(torch.stack([weak, strong]))

    def forward(self, z: Tensor, target: Tensor | None = None) -> Tensor:
        """Feature maps of both views, (2, b, c, t), to the loss."""
        weak, strong = functional.normalize(z, dim=2)
        if weak.shape[2] < 2:
            raise ConfigError("the feature map has a single step: TS-TCC needs longer windows")
        temporal1, context1 = self._temporal(weak, strong)
        temporal2, context2 = self._temporal(strong, weak)
        both = torch.cat([self.projection(context1), self.projection(context2)])
        temporal, contextual = temporal1 + temporal2, self.contrast(both)
        return self.temporal_weight * temporal + self.contextual_weight * contextual

    def _temporal(self, past: Tensor, future: Tensor) -> tuple[Tensor, Tensor]:
        """InfoNCE over the batch of the next steps of ``future``; the context of ``past``."""
        horizon = min(self.horizon, past.shape[2] - 1)
        t = int(torch.randint(past.shape[2] - horizon, ()))
        context = self.context(past[:, :, : t + 1])
        wanted = torch.arange(len(past), device=past.device)
        losses = [
            functional.cross_entropy(predict(context) @ future[:, :, t + 1 + k].T, wanted)
            for k, predict in enumerate(self.predictions[:horizon])
        ]
        return torch.stack(losses).mean(), context

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


class _Context(nn.Module):
    """A transformer's class token over the steps so far: (b, c, t) -> (b, h)."""

    def __init__(self, channels: int, hidden: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__()
        if hidden % heads:
            raise ConfigError(f"hidden={hidden} cannot be shared by {heads} heads: give a multiple")
        self.inside = nn.Linear(channels, hidden)
        self.token = nn.Parameter(torch.randn(1, 1, hidden))
        layer = nn.TransformerEncoderLayer(
            hidden, heads, dim_feedforward=64, dropout=dropout, batch_first=True, norm_first=True
        )
        self.transformer = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, features: Tensor) -> Tensor:
        steps = self.inside(features.transpose(1, 2))
        token = self.token.expand(len(steps), -1, -1)
        return self.transformer(torch.cat([token, steps], dim=1))[:, 0]
