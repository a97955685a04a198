"""The quadratic losses of all pairs on a GPU, by the kernels of ``streamed_kernels``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import triton
from torch import Tensor

from expclr.methods import streamed_kernels as kernels
from expclr.methods.pairs import EPSILON, gaussian, linear, squared
from expclr.methods.streamed_sums import Mean, SoftMaximum

if TYPE_CHECKING:
    from expclr.methods.streamed import Formula

__all__ = ["Table", "loss_and_gradient"]

ROWS = 128  # of a tile of pairs
COLUMNS = 64
INNER = 32  # values of a product at a time
PROGRAMS = 1024  # of a pass: several for each multiprocessor, each with a sum of its own
WARPS = 8
STAGES, STAGES_OF_MISSING = 4, 3
FEW = 16  # values up to which differences are quicker than products
WIDE = 128  # values of an embedding from which a tile has half the rows: registers are few
KINDS = {
    linear: kernels.LINEAR.value,
    squared: kernels.SQUARED.value,
    gaussian: kernels.GAUSSIAN.value,
}


def loss_and_gradient(
    z: Tensor, features: Tensor, formula: Formula, *, missing: bool
) -> tuple[Tensor, Tensor]:
    """The loss, and its gradient by z (n, e); ``missing`` if a feature may be NaN."""
    n = len(z)
    embedded = Table.of(z, max(16, triton.next_power_of_2(z.shape[1])))
    measured = Table.of(features, 64 * triton.cdiv(features.shape[1], 64), missing=missing)
    largest = _largest(measured) / measured.unit
    scale = formula.similarity.scale_of(largest).clamp_min(EPSILON) * measured.unit
    mu = _means(embedded) if formula.normalize else embedded.unit.expand(embedded.length)
    gradient, moved, sums = _pulled(embedded, measured, mu.contiguous(), scale, formula)
    factor = 2 * sums.factor() * (largest > 0)  # no weight if all features are equal
    gradient = gradient * factor
    if formula.normalize is True:
        slopes = torch.where(mu > EPSILON, moved * factor / mu / n, 0)
        gradient = gradient - _through_mean(embedded, slopes.float())
    gradient = gradient[:n, : z.shape[1]] * embedded.unit
    unknown = ~(embedded.unit.isfinite() & measured.unit.isfinite())
    loss = torch.where(unknown, torch.nan, sums.value() * (largest > 0))
    return loss, torch.where(unknown, torch.nan, gradient)


def _means(table: Table) -> Tensor:
    """The mean distance of each row to all; 1 for the rows that fill up."""
    tiles = _Tiles.of(table)
    sums = tiles.zeros(table.length)
    kernels.row_sums[tiles.grid](
        *table.pointers, sums, *table.sizes, *tiles.sizes, **tiles.settings, **table.settings
    )
    mu = (sums.sum(0) / table.rows).clamp_min(EPSILON)
    mu[table.rows :] = 1
    return mu


def _largest(table: Table) -> Tensor:
    """The largest distance, in the table's unit."""
    tiles = _Tiles.of(table, missing=table.known is not None)
    found = tiles.zeros(tiles.grid[0])
    kernels.largest[tiles.grid](
        *table.pointers,
        *table.of_missing,
        found,
        *table.sizes,
        *tiles.sizes,
        MISSING=table.known is not None,
        **tiles.settings,
        **table.settings,
    )
    return found.amax().sqrt()


def _pulled(
    z: Table, features: Table, mu: Tensor, scale: Tensor, formula: Formula
) -> tuple[Tensor, Tensor, Mean | SoftMaximum]:
    """Half the gradient without what goes through the means, half of that, the loss's sums."""
    width = z.high.shape[1]
    tiles = _Tiles.of(z, width, missing=features.known is not None)
    gradient, moved = tiles.zeros(z.length, width), tiles.zeros(z.length)
    found = tiles.zeros(tiles.grid[0], 5)
    tau = formula.tau
    kernels.pulled[tiles.grid](
        *(*z.pointers, *features.pointers, *features.of_missing, mu, 1 / scale),
        *(gradient, moved, found, z.rows, z.length, z.values, features.values, *tiles.sizes),
        *(float(formula.delta or 0), 1.0 if tau is None else 1 / tau),
        E=width,
        E_INNER=min(INNER, width),
        E_DIRECT=z.values <= FEW,
        MISSING=features.known is not None,
        SOFT=tau is not None,
        KIND=KINDS[formula.similarity.function],
        **tiles.settings,
        **features.settings,
    )
    top, exps, expm1s, total, least = found.unbind(2)
    if tau is None:
        return gradient.sum(0), moved.sum(0), Mean.merged(exps, total)
    sums = SoftMaximum.merged(tau, top, exps, expm1s, total, least)
    weight = ((top - sums.top) / tau).exp().float()[:, :, None]
    moved.unflatten(1, (-1, tiles.rows)).mul_(weight)
    gradient.unflatten(1, (-1, tiles.rows)).mul_(weight[..., None])
    return gradient.sum(0), moved.sum(0), sums


def _through_mean(table: Table, slopes: Tensor) -> Tensor:
    tiles = _Tiles.of(table, table.high.shape[1])
    gradient = tiles.zeros(*table.high.shape)
    kernels.through_mean[tiles.grid](
        *(*table.pointers, slopes, gradient, *table.sizes, *tiles.sizes),
        **tiles.settings,
        **table.settings,
    )
    return gradient.sum(0)


@dataclass(frozen=True)
class _Tiles:
    """How a pass is parted: each program takes some rows, and a share of all rows."""

    grid: tuple[int, int]
    rows: int
    tiles: int
    share: int
    stages: int
    device: torch.device

    @classmethod
    def of(cls, table: Table, width: int = 0, *, missing: bool = False) -> _Tiles:
        """``width`` is that of a gradient which each program sums up."""
        rows = ROWS if width <= WIDE else ROWS // 2
        down, tiles = table.length // rows, table.length // COLUMNS
        share = triton.cdiv(tiles, max(1, PROGRAMS // down))
        stages = STAGES_OF_MISSING if missing else STAGES
        device = table.high.device
        return cls((down, triton.cdiv(tiles, share)), rows, tiles, share, stages, device)

    def zeros(self, *shape: int) -> Tensor:
        """Room for what each share of the rows leaves."""
        return torch.zeros(self.grid[1], *shape, device=self.device)

    @property
    def sizes(self) -> tuple[int, int]:
        """The last sizes that every kernel asks for."""
        return self.tiles, self.share

    @property
    def settings(self) -> dict[str, int]:
        """Of the compiler."""
        return {
            "ROWS": self.rows,
            "COLUMNS": COLUMNS,
            "num_warps": WARPS,
            "num_stages": self.stages,
        }


@dataclass(frozen=True)
class Table:
    """Centred rows in the form that the kernels read, padded to whole tiles.

    ``unit`` is the power of two that values were multiplied with, for half precision's sake.
    """

    rows: int
    values: int
    high: Tensor  # (n', d') half precision
    low: Tensor  # what that left over
    lengths: Tensor  # (n',) squared
    columns: Tensor  # (d, n') float32, NaN where missing
    unit: Tensor
    known: tuple[Tensor, Tensor, Tensor] | None  # squares, what they left over, 1 where known

    @classmethod
    def of(cls, x: Tensor, width: int, *, missing: bool = False) -> Table:
        """Of x (n, d), NaN where missing, in ``width`` columns."""
        x = x if x.dtype == torch.float64 else x.float()
        mean = x.nanmean(0).nan_to_num(nan=0.0) if missing else x.mean(0)
        x = (x - mean).float()
        most = x.nan_to_num(nan=0.0).abs().amax() if missing else x.abs().amax()
        unit = 64 * most.clamp_min(EPSILON).log2().floor().neg().exp2()
        n, d = x.shape
        whole = x.new_zeros(triton.cdiv(n, ROWS) * ROWS, width)
        torch.mul(x, unit, out=whole[:n, :d])
        columns = whole[:, :d].T.contiguous()
        known = None
        if missing:
            there = ~whole.isnan()
            there[:, d:] = False
            whole = whole.nan_to_num_(nan=0.0)
            known = (*_halves(whole.square()), there.half())
        return cls(n, d, *_halves(whole), whole.square().sum(1), columns, unit, known)

    @property
    def length(self) -> int:
        """Rows with those that fill up the last tile."""
        return len(self.high)

    @property
    def pointers(self) -> tuple[Tensor, ...]:
        """What every kernel reads."""
        return self.high, self.low, self.lengths, self.columns

    @property
    def of_missing(self) -> tuple[Tensor, Tensor, Tensor]:
        """What kernels read where values are missing; any tensors where none is."""
        return self.known or (self.high, self.high, self.high)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The first sizes that every kernel asks for."""
        return self.rows, self.length, self.values

    @property
    def settings(self) -> dict[str, Any]:
        """How every kernel is to read it."""
        width = self.high.shape[1]
        return {"WIDTH": width, "INNER": min(INNER, width), "DIRECT": self.values <= FEW}


def _halves(values: Tensor) -> tuple[Tensor, Tensor]:
    high = values.half()
    return high, (values - high).half()
