"""Which windows meet in a batch: by chance, labelled ones again, or near or far in features."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

if TYPE_CHECKING:
    from expclr.examples import Examples
    from expclr.train import Schedule

__all__ = ["BATCHES", "order_of", "pairs_together"]

BATCHES = ("random", "near", "far", "both", "labelled")
POOL = 1024  # windows among which a partner is looked for


def order_of(examples: Examples, schedule: Schedule, epoch: int) -> Tensor:
    """The batches of an epoch, (steps, b): each window at most once, all batches of one size.

    Without expert features windows meet by chance. "labelled" adds the labelled windows again
    and again, until they are drawn as often as all windows together.
    """
    if schedule.batches == "labelled" and examples.labels is not None:
        rows = _labels_again(examples.labels)
        return rows[schedule.order(len(rows), epoch)]
    random = schedule.order(len(examples), epoch)
    if schedule.batches in ("random", "labelled") or examples.features is None:
        return random
    order = pairs_together(random.flatten().numpy(), examples.features, schedule.batches)
    return torch.from_numpy(_shuffled(order, schedule.random_state, epoch)).view_as(random)


def _labels_again(labels: Tensor) -> Tensor:
    """All rows, then as many of labelled ones: each of these equally often, but for one."""
    n, known = len(labels), (labels.cpu() >= 0).nonzero()[:, 0]
    again = known.repeat(-(-n // max(1, len(known))))[:n]
    return torch.cat([torch.arange(n), again])


def pairs_together(order: NDArray[np.int64], features: Tensor, kind: str) -> NDArray[np.int64]:
    """The same windows in another order: every two are near, or far, or in turn ("both").

    Examples
    --------
    >>> features = torch.tensor([[0.0], [9.0], [0.1], [9.2]])
    >>> pairs_together(np.arange(4), features, "near").tolist()
    [0, 2, 1, 3]
    >>> pairs_together(np.arange(4), features, "far").tolist()
    [0, 3, 1, 2]
    """
    pools = np.array_split(order, math.ceil(len(order) / POOL))
    return np.concatenate([pool[_partners(_squared(features[pool]), kind)] for pool in pools])


def _squared(features: Tensor) -> NDArray[np.float32]:
    """Squared distances, (m, m), roughly: what is missing is taken for the pool's mean."""
    centred = (features - features.nanmean(0)).nan_to_num(0.0).float()
    squares = centred.square().sum(1)
    distances: NDArray[np.float32] = torch.addmm(
        squares + squares[:, None], centred, centred.T, alpha=-2
    ).numpy()
    return distances


def _partners(squared: NDArray[np.float32], kind: str) -> list[int]:
    """Each row in turn with the best partner left for it."""
    free, found = np.ones(len(squared), dtype=bool), list[int]()
    for row in range(len(squared)):
        if not free[row]:
            continue
        free[row] = False
        found.append(row)
        near = kind == "near" or (kind == "both" and len(found) % 4 == 1)
        if free.any():
            found.append(_best(squared[row], free, near=near))
            free[found[-1]] = False
    return found


def _best(distances: NDArray[np.float32], free: NDArray[np.bool_], *, near: bool) -> int:
    signed = distances if near else -distances
    return int(np.where(free, signed, np.inf).argmin())


def _shuffled(order: NDArray[np.int64], *seeds: int) -> NDArray[np.int64]:
    """The pairs in another order; a window left over stays last."""
    whole = len(order) // 2 * 2
    pairs = np.random.default_rng([*seeds, 1]).permutation(order[:whole].reshape(-1, 2))
    return np.concatenate([pairs.ravel(), order[whole:]])
