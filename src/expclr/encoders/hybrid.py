"""Random convolutions beside a learned network: shapes by the one, rhythm by the other."""

from __future__ import annotations

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from expclr.encoders.rocket import HeadNorm, StandardRocket, head_layers
from expclr.encoders.tcn import TCN

__all__ = ["Hybrid"]

POOLINGS = ("mean", "max", "std")


class Hybrid(nn.Module):
    """MiniRocket's features and a dilated TCN side by side under one head, trained together.

    Parameters
    ----------
    in_channels, embedding_dim : int
    length : int
        Timepoints of a typical window, at least 9.
    num_features, max_dilations : int
        Of the transform, as for encoder "rocket".
    width, kernel, blocks : int
        Of the TCN: channels, kernel size (odd), residual blocks.
    finest : int
        Windows longer than this are halved by strides until they are not.
    hidden : int
        Width of the hidden layer that each side has of its own, so that many random features do
        not drown few learned ones.
    dropout : float
        Share of random features that the head does not see in a training step.
    norm : "batch", "layer" or "none"
        Of the hidden layers.

    Notes
    -----
    ``prepare`` and ``fixed`` are those of encoder "rocket": the loop computes the random features
    once, and the TCN sees the windows in every step.

    Examples
    --------
    >>> encoder = Hybrid(3, 100, length=128, num_features=840)
    >>> x = torch.randn(4, 3, 128)
    >>> encoder.prepare(x)
    >>> encoder(x).shape
    torch.Size([4, 100])
    """

    suited: ClassVar[dict[str, float]] = {"lr": 1e-3, "max_epochs": 40}
    fixed_dtype = torch.float16

    def __init__(
        self,
        in_channels: int,
        embedding_dim: int = 100,
        *,
        length: int | None = None,
        num_features: int = 10_000,
        max_dilations: int = 32,
        width: int = 64,
        kernel: int = 7,
        blocks: int = 8,
        finest: int = 320,
        hidden: int = 512,
        dropout: float = 0.5,
        norm: HeadNorm = "batch",
    ) -> None:
        super().__init__()
        self.rocket = StandardRocket(in_channels, length, num_features, max_dilations)
        assert length is not None
        strides, dilations = _schedule(length, blocks, kernel, finest)
        self.tcn = TCN(
            in_channels,
            width=width,
            kernel=kernel,
            blocks=blocks,
            strides=strides,
            dilations=dilations,
            pooling=POOLINGS,
        )
        self.tcn.head = nn.Identity()  # type: ignore[assignment]
        random, learned = self.rocket.num_features, len(POOLINGS) * width
        self.random_side = nn.Sequential(*head_layers(random, hidden, dropout, norm))
        self.learned_side = nn.Sequential(*head_layers(learned, hidden, 0.0, norm))
        self.head = nn.Linear(2 * hidden if hidden else random + learned, embedding_dim)

    def prepare(self, x: Tensor, lengths: Tensor | None = None) -> None:
        """Learn biases and scales from training windows, before any training."""
        self.rocket.prepare(x, lengths)

    def fixed(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """The part without weights: (b, c, t) -> (b, k)."""
        return self.rocket.transform(x, lengths)

    def forward(
        self, x: Tensor, lengths: Tensor | None = None, fixed: Tensor | None = None
    ) -> Tensor:
        """(b, c, t) -> (b, e)."""
        features = self.fixed(x, lengths) if fixed is None else fixed
        sides = (
            self.random_side(self.rocket.scale(features)),
            self.learned_side(self.tcn(x, lengths)),
        )
        return self.head(torch.cat(sides, dim=1))


def _schedule(
    length: int, blocks: int, kernel: int, finest: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Strides until a window has ``finest`` steps, then dilations that double while they fit it.

    >>> _schedule(2500, 8, 7, 320)
    ((2, 2, 2, 1, 1, 1, 1, 1), (1, 1, 1, 1, 2, 4, 8, 16))
    >>> _schedule(128, 8, 7, 320)
    ((1, 1, 1, 1, 1, 1, 1, 1), (1, 2, 4, 8, 16, 1, 2, 4))
    """
    halvings = min(blocks, max(0, math.ceil(math.log2(length / finest))))
    steps = length / 2**halvings
    rounds = 1 + max(0, math.floor(math.log2(steps / max(1, kernel - 1))))
    doubling = tuple(2 ** (i % rounds) for i in range(blocks - halvings))
    return (2,) * halvings + (1,) * (blocks - halvings), (1,) * halvings + doubling
