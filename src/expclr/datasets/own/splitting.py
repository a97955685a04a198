"""Dealing windows out to a train and a test part, on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.datasets.npy import NpyWriter, npy_blocks
from expclr.errors import DataError
from expclr.windows import Windows

__all__ = ["deal_out", "held_out"]


def held_out(
    group: NDArray[Any] | None,
    y: NDArray[np.int64] | None,
    test: float | Sequence[Any],
    *,
    random_state: int = 0,
) -> NDArray[np.bool_]:
    """True for the windows of the test part.

    Parameters
    ----------
    group : array (n,) or None
        With groups, ``test`` is the fraction of them, or their names.
    y : array (n,) of int or None
        Without groups, the fraction is taken of the windows of each class.
    test : float or sequence
    random_state : int

    Examples
    --------
    >>> held_out(np.array(["ann", "bob", "ann"]), None, ["bob"]).tolist()
    [False, True, False]
    """
    if group is not None:
        _check_groups(group, test)
        rows = Windows(np.zeros((len(group), 1, 1), np.float32), group=group)
        held = rows.group_mask(test, random_state=random_state)
    elif isinstance(test, float | int) and y is not None:
        held = _stratified(y, float(test), random_state)
    else:
        raise DataError(
            f"test={test!r} needs groups or labels to split by: give group=, or test=None"
        )
    if held.all() or not held.any():
        raise DataError(f"test={test!r} leaves one part empty: both need a window at least")
    return held


def _check_groups(group: NDArray[Any], test: float | Sequence[Any]) -> None:
    known = np.unique(group)
    if isinstance(test, float | int) and len(known) == 1:
        raise DataError(
            f"all windows are of one group, {known[0]}: nothing can be held out; give test=None, "
            "another source to test, or group= if there are more"
        )


def _stratified(y: NDArray[np.int64], fraction: float, random_state: int) -> NDArray[np.bool_]:
    if not 0 < fraction < 1:
        raise DataError(f"test is {fraction}: a fraction between 0 and 1 is wanted")
    held = np.zeros(len(y), dtype=bool)
    rng = np.random.default_rng(random_state)
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        held[rows[: round(fraction * len(rows))]] = True
    return held


def deal_out(folder: Path, known: dict[str, Any], held: NDArray[np.bool_]) -> list[dict[str, Any]]:
    """Move the windows in ``all/X.npy`` to ``train`` and ``test``; give what is known of each."""
    whole = folder / "all" / "X.npy"
    parts = []
    for part, mask in (("train", ~held), ("test", held)):
        (folder / part).mkdir()
        _copy_rows(whole, folder / part / "X.npy", mask)
        kept = {k: v[mask] for k in _ROWS if (v := known.get(k)) is not None}
        parts.append(known | kept)
    whole.unlink()
    whole.parent.rmdir()
    return parts


_ROWS = ("F", "y", "group", "lengths")


def _copy_rows(source: Path, to: Path, mask: NDArray[np.bool_]) -> None:
    writer: NpyWriter | None = None
    start = 0
    with source.open("rb") as file:
        for block in npy_blocks(file, str(source), size=source.stat().st_size):
            writer = writer or NpyWriter(to, block.shape[1:])
            writer.append(block[mask[start : start + len(block)]])
            start += len(block)
    if writer is not None:
        writer.close()
