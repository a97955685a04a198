"""TS-TCC's context: a small transformer sums up the first steps of a feature map."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from expclr.errors import ConfigError

__all__ = ["Context"]

INSIDE = 64  # width between a layer's two linear maps, as in the original


class Context(nn.Module):
    """A transformer's class token over the steps so far: (n, t, c) -> (n, h).

    Written out, where torch has a transformer, for two reasons: the last layer computes the class
    token alone, and no shape depends on how many steps are seen, so that a step of training can
    be recorded as a CUDA graph.

    Examples
    --------
    >>> context, steps = Context(8, 12, layers=2, heads=4, dropout=0.0), torch.randn(5, 7, 8)
    >>> seen = context(steps, torch.full((5,), 3))  # the first three of seven
    >>> torch.allclose(seen, context(steps[:, :3], torch.full((5,), 3)), atol=1e-6)
    True
    """

    def __init__(
        self, channels: int, hidden: int, *, layers: int, heads: int, dropout: float
    ) -> None:
        super().__init__()
        if hidden % heads:
            raise ConfigError(f"hidden={hidden} cannot be shared by {heads} heads: give a multiple")
        self.inside = nn.Linear(channels, hidden)
        self.token = nn.Parameter(torch.randn(1, 1, hidden))
        self.layers = nn.ModuleList(_Layer(hidden, heads, dropout) for _ in range(layers))

    def forward(self, steps: Tensor, count: Tensor) -> Tensor:
        """What the first ``count`` (n,) of the steps come to."""
        if steps.device.type == "cpu":  # where nothing waits for a number
            steps = steps[:, : int(count.max())]
        n, t, _ = steps.shape
        x = torch.cat([self.token.expand(n, -1, -1), self.inside(steps)], dim=1)  # (n, 1 + t, h)
        unseen = torch.arange(t + 1, device=steps.device) > count[:, None]
        for number, layer in enumerate(self.layers, start=1):
            x = layer(x, unseen[:, None, None], alone=number == len(self.layers))
        return x[:, 0]


class _Layer(nn.Module):
    """Attention, then two linear maps: each is of normalised steps and is added to them."""

    def __init__(self, size: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.query_key_value, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        nn.init.xavier_uniform_(self.query_key_value.weight)  # as torch's attention starts
        nn.init.zeros_(self.query_key_value.bias)
        nn.init.zeros_(self.out.bias)
        self.linear1, self.linear2 = nn.Linear(size, INSIDE), nn.Linear(INSIDE, size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, unseen: Tensor, *, alone: bool) -> Tensor:
        """Each step, or the first one alone, from all that are seen: (n, s, h) -> (n, s, h)."""
        y = self.dropout(self._attention(self.norm1(x), unseen, alone=alone))
        x = (x[:, :1] if alone else x) + y
        y = self.dropout(torch.relu(self.linear1(self.norm2(x))))
        return x + self.dropout(self.linear2(y))

    def _attention(self, x: Tensor, unseen: Tensor, *, alone: bool) -> Tensor:
        by_head = self.query_key_value(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        query, key, value = by_head.unbind()  # each (n, heads, s, h / heads)
        query = query[:, :, :1] if alone else query
        scores = query @ key.transpose(2, 3) / math.sqrt(query.shape[3])
        weights = functional.softmax(scores.masked_fill(unseen, -torch.inf), dim=3)
        return self.out((self.dropout(weights) @ value).transpose(1, 2).flatten(2))
