"""Fixed random convolutions with a learned head: little to train, hard to beat on motion."""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from expclr.encoders.minirocket import MiniRocket
from expclr.errors import ConfigError

__all__ = ["Rocket", "StandardRocket", "head_layers"]

HeadNorm = Literal["batch", "layer", "none"]


class Rocket(nn.Module):
    """MiniRocket's features, standardised, and a small network on top of them.

    Parameters
    ----------
    in_channels, embedding_dim : int
    length : int
        Timepoints of a typical window, at least 9.
    num_features : int
        Of the transform; rounded down to a multiple of 84.
    max_dilations : int
        Of the transform.
    hidden : int
        Width of the head; 0 for a linear one.
    dropout : float
        Share of features that the head does not see in a training step.
    norm : "batch", "layer" or "none"
        Of the head's hidden layer.

    Notes
    -----
    ``prepare`` takes biases, means and deviations from training windows; ``fixed`` gives the
    features, which do not change in training, so that the loop computes them once.

    Examples
    --------
    >>> encoder = Rocket(3, 100, length=128, num_features=840)
    >>> x = torch.randn(4, 3, 128)
    >>> encoder.prepare(x)
    >>> encoder(x).shape, encoder.fixed(x).shape
    (torch.Size([4, 100]), torch.Size([4, 840]))
    """

    suited: ClassVar[dict[str, float]] = {"lr": 1e-3, "max_epochs": 20}
    fixed_dtype = torch.float16  # shares of t timepoints: exact enough, see the tests

    def __init__(
        self,
        in_channels: int,
        embedding_dim: int = 100,
        *,
        length: int | None = None,
        num_features: int = 10_000,
        max_dilations: int = 32,
        hidden: int = 512,
        dropout: float = 0.5,
        norm: HeadNorm = "batch",
    ) -> None:
        super().__init__()
        self.rocket = StandardRocket(in_channels, length, num_features, max_dilations)
        self.head = nn.Sequential(
            *head_layers(self.rocket.num_features, hidden, dropout, norm),
            nn.Linear(hidden or self.rocket.num_features, embedding_dim),
        )

    def prepare(self, x: Tensor, lengths: Tensor | None = None) -> None:
        """Learn biases and scales from training windows, before any training."""
        self.rocket.prepare(x, lengths)

    def fixed(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """The part without weights: (b, c, t) -> (b, k)."""
        return self.rocket.transform(x, lengths)

    def forward(
        self, x: Tensor, lengths: Tensor | None = None, fixed: Tensor | None = None
    ) -> Tensor:
        """(b, c, t) -> (b, e); with ``fixed`` given, x is not looked at."""
        return self.head(self.rocket.scale(self.fixed(x, lengths) if fixed is None else fixed))


class StandardRocket(nn.Module):
    """MiniRocket and the mean and deviation of its features; both are saved with the weights."""

    mean: Tensor
    std: Tensor

    def __init__(
        self, in_channels: int, length: int | None, num_features: int, max_dilations: int
    ) -> None:
        super().__init__()
        if length is None:
            raise ConfigError("length is missing: the transform wants timepoints of a window")
        self.transform = MiniRocket(
            in_channels, length, num_features=num_features, max_dilations=max_dilations
        )
        self.num_features = self.transform.num_features
        self.register_buffer("mean", torch.zeros(self.num_features))
        self.register_buffer("std", torch.ones(self.num_features))

    @torch.no_grad()
    def prepare(self, x: Tensor, lengths: Tensor | None) -> None:
        """Biases, then the scale of each feature; one that is constant is divided by 1."""
        self.transform.fit(x, lengths)
        features = self.transform(x, lengths)
        std, mean = torch.std_mean(features, dim=0, correction=0)
        self.mean.copy_(mean)
        self.std.copy_(torch.where(std > 1e-6, std, 1))

    def scale(self, features: Tensor) -> Tensor:
        """Features of mean 0 and deviation 1 over the training windows."""
        return (features.float() - self.mean) / self.std


def head_layers(inside: int, hidden: int, dropout: float, norm: HeadNorm) -> list[nn.Module]:
    """Dropout, a linear layer, normalisation and ReLU; dropout alone when ``hidden`` is 0."""
    if norm not in ("batch", "layer", "none"):
        raise ConfigError(f"norm is {norm!r}: give 'batch', 'layer' or 'none'")
    if not hidden:
        return [nn.Dropout(dropout)]
    kinds = {"batch": nn.BatchNorm1d, "layer": nn.LayerNorm}
    normalised = [kinds[norm](hidden)] if norm in kinds else []
    return [nn.Dropout(dropout), nn.Linear(inside, hidden), *normalised, nn.ReLU()]
