"""Pairs: their distances, the normalisation of distances, the similarity of expert features."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from expclr.errors import ConfigError
from expclr.registry import Registry

__all__ = [
    "SIMILARITIES",
    "FeatureSimilarity",
    "feature_distances",
    "normalise",
    "pairwise_distances",
    "weighted_mean",
]

SIMILARITIES = Registry(
    "similarity",
    {
        "linear": "expclr.methods.pairs:linear",
        "squared": "expclr.methods.pairs:squared",
        "gaussian": "expclr.methods.pairs:gaussian",
    },
)
EPSILON = 1e-30  # divides nothing: keeps 0 / 0 and its gradient finite in float32
MOST_ROWS = 4096  # rows between which a dataset's largest distance is looked for
RANDOM_ROWS = 1024  # the same of a quantile: half a million pairs


def pairwise_distances(z: Tensor, other: Tensor | None = None) -> Tensor:
    """Euclidean distances of all pairs: exact, also at 0, where the gradient is 0.

    Parameters
    ----------
    z : Tensor (b, e)
    other : Tensor (m, e), optional
        Rows to measure to; default ``z`` itself.

    Returns
    -------
    Tensor (b, m)
        Float32 at least, whatever autocast is on.

    Examples
    --------
    >>> pairwise_distances(torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
    tensor([[0., 5.],
            [5., 0.]])
    """
    with torch.autocast(z.device.type, enabled=False):
        z = _at_least_float32(z)
        other = None if other is None else _at_least_float32(other)
        # Squares of very large or small values would leave float32: measure in their own unit.
        unit = _unit(z, other)
        return _cdist(z / unit, None if other is None else other / unit) * unit


def _cdist(z: Tensor, other: Tensor | None) -> Tensor:
    # The default mode of cdist goes through a matrix product: wrong near 0.
    mode = "donot_use_mm_for_euclid_dist"
    return torch.cdist(z, z if other is None else other, compute_mode=mode)


def _at_least_float32(values: Tensor) -> Tensor:
    return values if values.dtype == torch.float64 else values.float()


def _unit(a: Tensor, b: Tensor | None) -> Tensor:
    """The power of two next to the largest value: to divide by it rounds nothing."""
    largest = torch.linalg.vector_norm(a.detach(), torch.inf)
    if b is not None:
        largest = torch.maximum(largest, torch.linalg.vector_norm(b.detach(), torch.inf))
    return largest.clamp_min(EPSILON).log2().floor().exp2()


def feature_distances(f: Tensor, other: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Distances of expert features over what both windows have, and what each pair counts.

    A squared distance over the shared features is rescaled by d / shared. A pair that shares
    nothing has distance 0 and weight 0.

    Parameters
    ----------
    f : Tensor (b, d)
        NaN where missing.
    other : Tensor (m, d), optional

    Returns
    -------
    distances, weights : Tensors (b, m)

    Examples
    --------
    >>> nan = float("nan")
    >>> distances, weights = feature_distances(torch.tensor([[0.0, 3.0], [nan, 5.0], [1.0, nan]]))
    >>> round(distances[0, 1].item() ** 2, 4), weights[1, 2].item()  # 2 * (5 - 3)**2
    (8.0, 0.0)
    """
    with torch.autocast(f.device.type, enabled=False):
        a, known = _split_missing(f)
        b, shown = (None, known) if other is None else _split_missing(other)
        unit = _unit(a, b)
        values, others = a / unit, None if b is None else b / unit
        # A value whose partner is missing was compared with 0: take its square out again.
        squares = values.square()
        more = squares if others is None else others.square()
        alone = squares @ (1 - shown).T + (1 - known) @ more.T
        shared = known @ shown.T
        squared = (_cdist(values, others).square() - alone).clamp_min(0)
        weights = (shared > 0).float()
        distances = (squared * (f.shape[1] / shared.clamp_min(1))).sqrt() * unit
        return distances.float() * weights, weights


def _split_missing(f: Tensor) -> tuple[Tensor, Tensor]:
    """Values with 0 where missing, and a mask of what is there, both in high precision."""
    wide = f.float() if f.device.type == "mps" else f.double()
    return wide.nan_to_num(nan=0.0), (~wide.isnan()).to(wide.dtype)


def normalise(distances: Tensor, mode: bool | Literal["detach"]) -> Tensor:
    """Divide each row by its mean mu_i over all N, itself included (sec. 3.5)."""
    if mode is False:
        return distances
    mu = distances.mean(dim=1, keepdim=True)
    mu = mu.detach() if mode == "detach" else mu
    return distances / mu.clamp_min(EPSILON)


def weighted_mean(values: Tensor, weights: Tensor) -> Tensor:
    """The mean over pairs that count; 0 when none does."""
    return (values * weights).sum() / weights.sum().clamp_min(1)


def linear(r: Tensor) -> Tensor:
    """Eq. 4, with r the distance over its maximum."""
    return 1 - r


def squared(r: Tensor) -> Tensor:
    """Eq. 8."""
    return (1 - r).square()


def gaussian(r: Tensor) -> Tensor:
    """Sec. 3.5, with r the distance over the square root of sigma."""
    return (-r.square()).exp()


class FeatureSimilarity(nn.Module):
    """The similarity s_ij of expert features, and what each pair counts.

    Parameters
    ----------
    similarity : "linear", "squared" or "gaussian"
    reference : "batch", "dataset", "q0.99" or a number
        The distance at which similarity ends: the largest in the batch or in the dataset, a
        quantile over the dataset, or a distance given. Not used by "gaussian".
    sigma : float or "median"
        Of "gaussian": exp(-d**2 / sigma); "median" is the batch's median squared distance.
    """

    scale: Tensor

    def __init__(
        self,
        similarity: str = "squared",
        *,
        reference: str | float = "batch",
        sigma: float | Literal["median"] = 1.0,
    ) -> None:
        super().__init__()
        self.function = SIMILARITIES[similarity]
        self.scaling = _sigma(sigma) if similarity == "gaussian" else _reference(reference)
        fixed = float(self.scaling) if isinstance(self.scaling, float) else math.nan
        self.register_buffer("scale", torch.tensor(fixed))
        self._known = False  # set by prepare: to ask the scale itself waits for the device
        self.whole = False  # likewise: no feature of the dataset is missing

    def prepare(self, features: Tensor) -> None:
        """Measure the dataset where the reference asks for it, and whether it is whole."""
        self.whole = not bool(features.isnan().any())
        if self.scaling == "dataset":
            self.scale.copy_(_distances_of_dataset(features).amax())
        elif isinstance(self.scaling, str) and self.scaling.startswith("q"):
            distances = _distances_of_dataset(features, random=True)
            self.scale.copy_(_quantile(distances, float(self.scaling[1:])))
        self._known = self._is_measured()

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """(b, d) -> similarities (b, b) and weights (b, b); no weight if all are equal."""
        distances, weights = feature_distances(features)
        largest = distances.amax()
        if self.scaling == "median":
            scale = _median_of_pairs(distances, weights)
        else:
            scale = self.scale_of(largest)
        return self.of_ratio(distances / scale.clamp_min(EPSILON)), weights * (largest > 0)

    def of_ratio(self, ratio: Tensor) -> Tensor:
        """The similarity of distances in units of the scale."""
        return self.function(ratio if self.function is gaussian else ratio.clamp_max(1))

    def scale_of(self, largest: Tensor) -> Tensor:
        """The distance at which similarity ends, in a batch with this largest distance."""
        if self.scaling == "batch":
            return largest
        if not (self._known or isinstance(self.scaling, float) or self._is_measured()):
            raise ConfigError(
                f"reference={self.scaling!r} is measured over the dataset: "
                "call prepare(F, embedding_dim) with all features once, before the first batch"
            )
        return self.scale

    def _is_measured(self) -> bool:
        return not bool(self.scale.isnan())


def _median_of_pairs(distances: Tensor, weights: Tensor) -> Tensor:
    counts = weights.bool() & ~torch.eye(len(weights), dtype=torch.bool, device=weights.device)
    return torch.where(counts, distances, math.nan).nanmedian().nan_to_num(0.0)


def _distances_of_dataset(features: Tensor, *, random: bool = False) -> Tensor:
    """Distances between some rows: a random sample of them, or the outermost ones."""
    if len(features) > RANDOM_ROWS and random:
        order = torch.randperm(len(features), generator=torch.Generator().manual_seed(0))
        features = features[order[:RANDOM_ROWS].to(features.device)]
    elif not random and len(features) > MOST_ROWS:
        offset = (features - features.nanmean(dim=0)).square().nanmean(dim=1).nan_to_num(0.0)
        features = features[offset.topk(MOST_ROWS).indices]
    distances, weights = feature_distances(features)
    row, column = torch.triu_indices(len(distances), len(distances), offset=1)
    pairs = distances[row, column]
    return pairs[weights[row, column] > 0]


def _quantile(values: Tensor, q: float) -> Tensor:
    return values.sort().values[min(len(values) - 1, round(q * (len(values) - 1)))]


def _reference(reference: str | float) -> str | float:
    if isinstance(reference, str):
        if reference in ("batch", "dataset"):
            return reference
        if reference.startswith("q") and _is_fraction(reference[1:]):
            return reference
    elif reference > 0 and math.isfinite(reference):
        return float(reference)
    raise ConfigError(
        f"reference is {reference!r}: give 'batch', 'dataset', a quantile such as 'q0.99', "
        "or a positive distance"
    )


def _is_fraction(text: str) -> bool:
    try:
        return 0 < float(text) <= 1
    except ValueError:
        return False


def _sigma(sigma: float | str) -> str | float:
    if sigma == "median":
        return "median"
    if not isinstance(sigma, str) and sigma > 0 and math.isfinite(sigma):
        return math.sqrt(sigma)
    raise ConfigError(f"sigma is {sigma!r}: give a positive number or 'median'")
