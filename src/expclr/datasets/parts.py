"""Train and test parts larger than memory: which groups go where, and writing them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.errors import ConfigError, DataError
from expclr.windows import Windows

__all__ = ["check_choice", "held_out", "save_part", "split_key"]


def check_choice(what: str, got: Any, known: Sequence[Any]) -> None:
    """Refuse a setting that is none of the known ones."""
    if got not in known:
        raise ConfigError(f"{what} is {got!r}: one of {', '.join(map(repr, known))} is wanted")


def split_key(split: str | float | Sequence[Any]) -> str | float | list[str]:
    """A split as a JSON value."""
    return split if isinstance(split, str | float | int) else [str(group) for group in split]


def held_out(
    test: float | Sequence[Any], groups: Sequence[Any], *, random_state: int = 0
) -> NDArray[np.bool_]:
    """Which of the ``groups`` are tested: those in a list, or a fraction drawn at random.

    Examples
    --------
    >>> held_out(["b"], ["a", "b", "c", "b"]).tolist()
    [False, True, False, True]
    """
    rows = Windows(np.zeros((len(groups), 1, 1), np.float32), group=np.asarray(groups))
    held = rows.group_mask(test, random_state=random_state)
    if held.all() or not held.any():
        raise DataError(f"test={test!r} leaves no group in one part: both need one at least")
    return held


def save_part(
    path: Path,
    shape: tuple[int, int, int],
    pieces: Iterable[tuple[NDArray[np.int64] | slice, NDArray[np.float32]]],
    known: dict[str, Any],
) -> None:
    """Save Windows of ``shape``, whose X comes as pieces: rows, and what belongs there."""
    with tempfile.TemporaryDirectory(prefix=".X-", dir=path.parent) as aside:
        file = Path(aside) / "X.npy"
        np.lib.format.open_memmap(file, "w+", np.float32, shape)
        for rows, X in pieces:
            # opened anew for each piece, so that the pages of the one before are let go
            np.load(file, mmap_mode="r+")[rows] = X
        Windows(np.load(file, mmap_mode="r"), **known).check_finite().save(path)
