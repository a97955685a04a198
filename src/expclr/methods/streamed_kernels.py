# mypy: allow-untyped-defs, allow-untyped-calls
"""Kernels for the quadratic losses of all pairs: tiles that never leave a multiprocessor.

Four passes: the rows' sums of embedding distances; the largest feature distance; losses, their sum
and the gradient; what of the gradient goes through the rows' means. A pass leaves partial sums that
are added up in a fixed order: every run gives the same bits. Nothing waits for the device, so a
CUDA graph can hold it.

Squared distances come from products of matrices, a value being the sum of two in half precision:
22 bits, at the speed of half precision. A tile with a pair whose digits cancel (nearer than a
hundredth of its squared lengths) is measured again, difference by difference, in float32.
Needs Triton, which comes with torch for CUDA.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["largest", "pulled", "row_sums", "through_mean"]

DOUBT = tl.constexpr(1e-2)  # of the squared lengths: nearer pairs are measured again
FLOOR = tl.constexpr(4e-3)  # the same where a row is small beside the largest value
LINEAR = tl.constexpr(0)
SQUARED = tl.constexpr(1)
GAUSSIAN = tl.constexpr(2)


@triton.jit
def _differences(columns, row, column, length, values, MISSING: tl.constexpr):
    """Squared distances of rows to columns, value by value; missing ones count nothing."""
    total = tl.zeros((row.shape[0], column.shape[0]), dtype=tl.float32)
    for k in range(values):
        a = tl.load(columns + k * length + row)
        b = tl.load(columns + k * length + column)
        difference = a[:, None] - b[None, :]
        if MISSING:
            difference = tl.where(difference == difference, difference, 0.0)
        total += difference * difference
    return total


@triton.jit
def _products(a, a_low, b, b_low, row, column, WIDTH: tl.constexpr, INNER: tl.constexpr):
    """Products of rows of a and of b, each the sum of two tables."""
    total = tl.zeros((row.shape[0], column.shape[0]), dtype=tl.float32)
    fine = tl.zeros((row.shape[0], column.shape[0]), dtype=tl.float32)
    for start in range(0, WIDTH, INNER):
        k = start + tl.arange(0, INNER)
        left, right = row[:, None] * WIDTH + k[None, :], column[None, :] * WIDTH + k[:, None]
        high, other = tl.load(a + left), tl.load(b + right)
        total = tl.dot(high, other, total)
        fine = tl.dot(high, tl.load(b_low + right), fine)
        fine = tl.dot(tl.load(a_low + left), other, fine)
    return total + fine


@triton.jit
def _known_squares(
    square, square_low, known, row, column, WIDTH: tl.constexpr, INNER: tl.constexpr
):
    """Squared lengths of both over what both have, and how many values that are."""
    lengths = tl.zeros((row.shape[0], column.shape[0]), dtype=tl.float32)
    shared = tl.zeros((row.shape[0], column.shape[0]), dtype=tl.float32)
    for start in range(0, WIDTH, INNER):
        k = start + tl.arange(0, INNER)
        left, right = row[:, None] * WIDTH + k[None, :], column[None, :] * WIDTH + k[:, None]
        own, other = tl.load(known + left), tl.load(known + right)
        lengths = tl.dot(tl.load(square + left), other, lengths)
        lengths = tl.dot(tl.load(square_low + left), other, lengths)
        lengths = tl.dot(own, tl.load(square + right), lengths)
        lengths = tl.dot(own, tl.load(square_low + right), lengths)
        shared = tl.dot(own, other, shared)
    return lengths, shared


@triton.jit
def _squared(
    high, low, lengths, columns, square, square_low, known, row, column, n, length, values,
    WIDTH: tl.constexpr, INNER: tl.constexpr, MISSING: tl.constexpr, DIRECT: tl.constexpr,
):  # fmt: skip
    """Squared distances, rescaled to all values; and which pairs count."""
    counts = (row < n)[:, None] & (column < n)[None, :]
    apart = row[:, None] != column[None, :]
    both = tl.load(lengths + row)[:, None] + tl.load(lengths + column)[None, :]
    if MISSING:
        both, shared = _known_squares(square, square_low, known, row, column, WIDTH, INNER)
        counts = counts & (shared > 0)
    if DIRECT:
        found = _differences(columns, row, column, length, values, MISSING)
    else:
        found = both - 2 * _products(high, low, high, low, row, column, WIDTH, INNER)
        doubt = (found < DOUBT * both + FLOOR * tl.sqrt(both)) & counts & apart
        if tl.max(tl.max(doubt.to(tl.int32), 1), 0) > 0:
            found = _differences(columns, row, column, length, values, MISSING)
    if MISSING:
        found *= values / tl.maximum(shared, 1.0)
    return tl.where(counts & apart, tl.maximum(found, 0.0), 0.0), counts


@triton.jit
def row_sums(
    high, low, lengths, columns, sums, n, length, values, tiles, share,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDTH: tl.constexpr, INNER: tl.constexpr,
    DIRECT: tl.constexpr,
):  # fmt: skip
    """Sums of the distances of each row to a share of all rows."""
    part = tl.program_id(1)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS,), dtype=tl.float32)
    for tile in range(part * share, tl.minimum(part * share + share, tiles)):
        column = tile * COLUMNS + tl.arange(0, COLUMNS)
        squared, _ = _squared(
            high, low, lengths, columns, high, high, high, row, column, n, length, values,
            WIDTH, INNER, False, DIRECT,
        )  # fmt: skip
        total += tl.sum(tl.sqrt(squared), 1)
    tl.store(sums + part * length + row, total)


@triton.jit
def largest(
    high, low, lengths, columns, square, square_low, known, found, n, length, values, tiles, share,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDTH: tl.constexpr, INNER: tl.constexpr,
    MISSING: tl.constexpr, DIRECT: tl.constexpr,
):  # fmt: skip
    """The largest squared distance of a tile of rows to a share of the rows after them."""
    part = tl.program_id(1)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    most = tl.zeros((ROWS,), dtype=tl.float32)
    first = tl.maximum(part * share, tl.program_id(0) * ROWS // COLUMNS)
    for tile in range(first, tl.minimum(part * share + share, tiles)):
        column = tile * COLUMNS + tl.arange(0, COLUMNS)
        squared, _ = _squared(
            high, low, lengths, columns, square, square_low, known, row, column, n, length, values,
            WIDTH, INNER, MISSING, DIRECT,
        )  # fmt: skip
        most = tl.maximum(most, tl.max(squared, 1))
    tl.store(found + part * tl.num_programs(0) + tl.program_id(0), tl.max(most, 0))


@triton.jit
def _drawn(c, weight, total, high, low, column, WIDTH: tl.constexpr):
    """Add the sums of c to weights and c @ values to a total: c, too, in two halves.

    Both see the same rounded c: what it pulls near rows apart by cancels in both alike.
    """
    inside = column[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    most = tl.maximum(tl.max(tl.max(tl.abs(c), 1), 0), 1e-30)
    up = tl.exp2(14.0 - tl.ceil(tl.log2(most)))
    c = c * up
    c_high = c.to(tl.float16)
    c_low = (c - c_high.to(tl.float32)).to(tl.float16)
    weight += tl.sum(c_high.to(tl.float32) + c_low.to(tl.float32), 1) / up
    values, fine = tl.load(high + inside), tl.load(low + inside)
    added = tl.dot(c_low, fine)
    added = tl.dot(c_high, fine, added)
    added = tl.dot(c_low, values, added)
    return weight, total + tl.dot(c_high, values, added) / up


@triton.jit
def _store_gradient(high, low, gradient, row, weight, drawn, part, length, WIDTH: tl.constexpr):
    """What weights pull rows to: the sum of the weights times the row, less what was drawn."""
    inside = row[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    values = tl.load(high + inside).to(tl.float32) + tl.load(low + inside).to(tl.float32)
    tl.store(gradient + part * length * WIDTH + inside, weight[:, None] * values - drawn)


@triton.jit
def _expm1(u):
    """Of numbers from -1 to 0, to the last digit: the series to the eleventh power."""
    u = tl.maximum(u, -1.0)
    series = u * (1 / 39916800) + 1 / 3628800
    series = series * u + 1 / 362880
    series = series * u + 1 / 40320
    series = series * u + 1 / 5040
    series = series * u + 1 / 720
    series = series * u + 1 / 120
    series = series * u + 1 / 24
    series = series * u + 1 / 6
    series = series * u + 1 / 2
    return u * (series * u + 1)


@triton.jit
def pulled(
    z_high, z_low, z_lengths, z_columns,
    high, low, lengths, columns, square, square_low, known, mu, per_scale,
    gradient, moved, sums, n, length, z_values, values, tiles, share, delta, per_tau,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, E: tl.constexpr, WIDTH: tl.constexpr,
    E_INNER: tl.constexpr, INNER: tl.constexpr, MISSING: tl.constexpr,
    E_DIRECT: tl.constexpr, DIRECT: tl.constexpr, KIND: tl.constexpr, SOFT: tl.constexpr,
):  # fmt: skip
    """Losses of rows with a share of all, and the gradient by D of both orders of a pair.

    With ``SOFT`` a pair's gradient is weighted by exp((L - top) / tau), with the top so far.
    """
    part = tl.program_id(1)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    per_mu, per_unit = 1 / tl.load(mu + row)[:, None], tl.load(per_scale)
    drawn = tl.zeros((ROWS, E), dtype=tl.float32)
    weight = tl.zeros((ROWS,), dtype=tl.float32)
    through = tl.zeros((ROWS,), dtype=tl.float32)
    top, exps, expm1s, total, least = 0.0, 0.0, 0.0, 0.0, float("inf")
    for tile in range(part * share, tl.minimum(part * share + share, tiles)):
        column = tile * COLUMNS + tl.arange(0, COLUMNS)
        squared, counts = _squared(
            high, low, lengths, columns, square, square_low, known, row, column, n, length, values,
            WIDTH, INNER, MISSING, DIRECT,
        )  # fmt: skip
        if KIND == LINEAR:
            s = 1 - tl.minimum(tl.sqrt(squared) * per_unit, 1.0)
        elif KIND == SQUARED:
            s = 1 - tl.minimum(tl.sqrt(squared) * per_unit, 1.0)
            s = s * s
        else:
            s = tl.exp(-squared * per_unit * per_unit)
        wanted = (1 - s) * delta
        squared, _ = _squared(
            z_high, z_low, z_lengths, z_columns, z_high, z_high, z_high,
            row, column, n, length, z_values, E, E_INNER, False, E_DIRECT,
        )  # fmt: skip
        D = tl.where(counts, tl.sqrt(squared), -1e-30)  # so the mask takes no registers
        per_other = 1 / tl.load(mu + column)[None, :]
        own, other = D * per_mu - wanted, D * per_other - wanted
        if SOFT:
            most = tl.maximum(tl.abs(own), tl.abs(other))
            most = tl.max(tl.max(tl.where(D >= 0, most, 0.0), 1), 0)
            highest = tl.maximum(top, most * most)
            near = (top - highest) * per_tau
            expm1s = tl.exp(near) * expm1s + total * _expm1(near)
            exps, drawn = exps * tl.exp(near), drawn * tl.exp(near)
            weight, through = weight * tl.exp(near), through * tl.exp(near)
            top = highest
            u = tl.minimum((own * own - top) * per_tau, 0.0)
            expm1s += tl.sum(tl.sum(tl.where(D >= 0, _expm1(u), 0.0), 1), 0)
            pull = tl.where(D >= 0, tl.exp(u), 0.0)
            exps += tl.sum(tl.sum(pull, 1), 0)
            L = tl.where(D >= 0, own * own, float("inf"))
            least = tl.minimum(least, tl.min(tl.min(L, 1), 0))
            c = own * per_mu * pull
            through += tl.sum(c * D, 1)
            u = tl.minimum((other * other - top) * per_tau, 0.0)
            c += other * per_other * tl.where(D >= 0, tl.exp(u), 0.0)
        else:
            exps += tl.sum(tl.sum(tl.where(D >= 0, own * own, 0.0), 1), 0)
            c = tl.where(D >= 0, own * per_mu, 0.0)
            through += tl.sum(c * D, 1)
            c += tl.where(D >= 0, other * per_other, 0.0)
        total += tl.sum(tl.sum(tl.where(D >= 0, 1.0, 0.0), 1), 0)
        c = tl.where(D > 0, c / tl.where(D > 0, D, 1.0), 0.0)
        weight, drawn = _drawn(c, weight, drawn, z_high, z_low, column, E)
    _store_gradient(z_high, z_low, gradient, row, weight, drawn, part, length, E)
    tl.store(moved + part * length + row, through)
    sums += (part * tl.num_programs(0) + tl.program_id(0)) * 5
    tl.store(sums, top)
    tl.store(sums + 1, exps)
    tl.store(sums + 2, expm1s)
    tl.store(sums + 3, total)
    tl.store(sums + 4, least)


@triton.jit
def through_mean(
    high, low, lengths, columns, slopes, gradient, n, length, values, tiles, share,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDTH: tl.constexpr, INNER: tl.constexpr,
    DIRECT: tl.constexpr,
):  # fmt: skip
    """The gradient where each distance of row i has the slope i, and each of row j the slope j."""
    part = tl.program_id(1)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    own = tl.load(slopes + row)[:, None]
    drawn = tl.zeros((ROWS, WIDTH), dtype=tl.float32)
    weight = tl.zeros((ROWS,), dtype=tl.float32)
    for tile in range(part * share, tl.minimum(part * share + share, tiles)):
        column = tile * COLUMNS + tl.arange(0, COLUMNS)
        squared, _ = _squared(
            high, low, lengths, columns, high, high, high, row, column, n, length, values,
            WIDTH, INNER, False, DIRECT,
        )  # fmt: skip
        D = tl.sqrt(squared)
        slope = own + tl.load(slopes + column)[None, :]
        c = tl.where(D > 0, slope / tl.where(D > 0, D, 1.0), 0.0)
        weight, drawn = _drawn(c, weight, drawn, high, low, column, WIDTH)
    _store_gradient(high, low, gradient, row, weight, drawn, part, length, WIDTH)
