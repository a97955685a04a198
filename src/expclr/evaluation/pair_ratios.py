"""The bilipschitz constants of an embedding, and the ratios of all pairs behind them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tqdm import tqdm

from expclr.errors import DataError
from expclr.evaluation.distances import Rows

__all__ = ["PairRatios", "bilipschitz"]

DOUBLE = 10_000_000  # pairs up to which ratios are kept in double precision
KEPT = 50_000_000  # pairs up to which every ratio is kept: those of 10,000 windows
BLOCK = 1_000_000  # pairs looked at in one go


@dataclass(frozen=True, eq=False)
class PairRatios:
    """What :func:`bilipschitz` found.

    Attributes
    ----------
    l_minus, l_plus : float
        Least and largest ratio of feature distance to embedding distance over all pairs
        (Definition 1); ``l_plus`` is inf when windows with different features share an
        embedding.
    ratios : array
        Of the pairs i < j in the order (0, 1), (0, 2), ...; float64 up to 10 million pairs,
        float32 beyond; beyond 50 million pairs a uniform sample, and ``sampled`` is True.
    pairs : int
        How many pairs have a ratio.
    collapsed : int
        Pairs with different features and zero embedding distance: their ratio is inf.
    undefined : int
        Pairs left out because both distances are zero.
    incomparable : int
        Pairs left out because no expert feature is known for both.
    """

    l_minus: float
    l_plus: float
    ratios: NDArray[np.floating[Any]]
    pairs: int
    collapsed: int = 0
    undefined: int = 0
    incomparable: int = 0
    sampled: bool = False

    @property
    def distortion(self) -> float:
        """l_plus / l_minus: 1 when embedding distances are proportional to feature distances."""
        return self.l_plus / self.l_minus if self.l_minus else np.inf

    def text(self) -> str:
        """The finding in plain words."""
        lines = [
            f"Over {self.pairs:,} pairs the distance of expert features is between "
            f"{self.l_minus:.4g} and {self.l_plus:.4g} times the embedding distance."
        ]
        for count, what in (
            (self.collapsed, "have different features but the same embedding (upper limit: inf)"),
            (self.undefined, "have the same features and the same embedding (left out)"),
            (self.incomparable, "share no known feature (left out)"),
        ):
            if count:
                lines.append(f"{count:,} pairs {what}.")
        return " ".join(lines)


def bilipschitz(Z: ArrayLike, F: ArrayLike, *, random_state: int = 0) -> PairRatios:
    """Compare embedding distances with expert-feature distances over all pairs of windows.

    Parameters
    ----------
    Z : array (n, e)
        Embeddings.
    F : array (n, d)
        Expert features as scaled for training; distances of rows with NaN are over the
        features both rows have, scaled up to all d.
    random_state : int
        Draws the sample of ratios kept beyond 50 million pairs. The limits are always exact.

    Examples
    --------
    >>> import numpy as np
    >>> found = bilipschitz(np.array([[0.0], [1.0], [3.0]]), np.array([[0.0], [2.0], [5.0]]))
    >>> found.ratios.tolist(), found.l_minus, found.l_plus
    ([2.0, 1.6666666666666667, 1.5], 1.5, 2.0)
    """
    embeddings, features = Rows.of(Z, "Z"), Rows.of(F, "F", gaps=True)
    n = len(embeddings)
    if len(features) != n or n < 2:
        raise DataError(
            f"Z has {n} rows and F {len(features)}: the same number, 2 or more, is wanted"
        )
    tally = _Tally(n * (n - 1) // 2, np.random.default_rng(random_state))
    for rows, columns in tqdm(list(_blocks(n)), desc="pairs", disable=None, delay=2):
        above = np.arange(n)[columns] > np.arange(n)[rows, None]
        tally.add(features.block(rows, columns)[above], embeddings.block(rows, columns)[above])
    return tally.result()


def _blocks(n: int) -> Iterator[tuple[slice, slice]]:
    """Blocks of rows, each with the columns from its own first row on."""
    start = 0
    while start < n - 1:
        stop = min(n - 1, start + max(1, BLOCK // (n - start)))
        yield slice(start, stop), slice(start, n)
        start = stop


class _Tally:
    """Ratios seen so far: exact limits, counts, and as many ratios as are kept."""

    def __init__(self, total: int, rng: np.random.Generator) -> None:
        self.share = min(1.0, KEPT / total)
        self.rng = rng
        precision = np.float64 if total <= DOUBLE else np.float32
        self.kept: NDArray[np.floating[Any]] = np.empty(min(total, KEPT), precision)
        self.filled = 0
        self.low, self.high = np.inf, 0.0
        self.pairs = self.collapsed = self.undefined = self.incomparable = 0

    def add(self, features: NDArray[np.float64], embeddings: NDArray[np.float64]) -> None:
        comparable = ~np.isnan(features)
        defined = comparable & ((features > 0) | (embeddings > 0))
        self.incomparable += len(features) - int(comparable.sum())
        self.undefined += int(comparable.sum() - defined.sum())
        if not defined.all():
            features, embeddings = features[defined], embeddings[defined]
        if not len(features):
            return
        self.collapsed += int((embeddings == 0).sum())
        with np.errstate(divide="ignore"):
            ratios = features / embeddings
        self.pairs += len(ratios)
        self.low, self.high = min(self.low, ratios.min()), max(self.high, ratios.max())
        self._keep(ratios)

    def _keep(self, ratios: NDArray[np.float64]) -> None:
        if self.share < 1:
            size = min(round(self.share * len(ratios)), len(self.kept) - self.filled)
            ratios = ratios[self.rng.integers(0, len(ratios), size)]
        self.kept[self.filled : self.filled + len(ratios)] = ratios
        self.filled += len(ratios)

    def result(self) -> PairRatios:
        if not self.pairs:
            raise DataError(
                f"no pair has a ratio: {self.undefined} have the same features and embedding, "
                f"{self.incomparable} share no known feature; give windows that differ"
            )
        return PairRatios(
            float(self.low),
            float(self.high),
            self.kept[: self.filled],
            self.pairs,
            self.collapsed,
            self.undefined,
            self.incomparable,
            sampled=self.share < 1,
        )
