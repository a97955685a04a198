"""Train and test parts larger than memory: which groups go where, and writing them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.datasets.npy import npy_header
from expclr.datasets.own.blocks import save_around
from expclr.errors import ConfigError, DataError
from expclr.features import FEATURES, features_of
from expclr.windows import Windows

__all__ = ["check_choice", "features_key", "held_out", "save_part", "split_key"]

Signal = NDArray[np.float32]


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
    pieces: Iterable[tuple[NDArray[np.int64] | slice, Signal]],
    known: dict[str, Any],
    *,
    features: str | None = None,
    changes: Iterable[tuple[slice, Callable[[Signal], Signal]]] = (),
) -> None:
    """Save Windows of ``shape``, whose X comes as pieces: rows, and what belongs there.

    F is what the extractor ``features`` makes of them; ``changes`` to rows of X come after that.
    """
    path.mkdir()
    file = path / "X.npy"
    _write_rows(file, shape, pieces)
    if features is not None:
        found = features_of(Windows(np.load(file, mmap_mode="r"), **known), features, n_jobs=-1)
        known = known | {"F": found.F, "feature_names": found.feature_names}
    for rows, change in changes:
        X = np.load(file, mmap_mode="r+")  # anew each time, so that its pages are let go
        X[rows] = change(X[rows])
    save_around(path, str(path), **known)


def features_key(name: str | None) -> str | None:
    """Name and version of an extractor: what was kept is made anew when its values change.

    Examples
    --------
    >>> features_key("basic")
    'basic 1'
    """
    return None if name is None else f"{name} {FEATURES[name].version}"


def _write_rows(
    file: Path,
    shape: tuple[int, int, int],
    pieces: Iterable[tuple[NDArray[np.int64] | slice, Signal]],
) -> None:
    """Plain writes: through a memory map, rows that lie far apart would hold all of it."""
    np.lib.format.open_memmap(file, "w+", np.float32, shape)
    with file.open("r+b") as stream:
        npy_header(stream, str(file))
        start = stream.tell()
        for rows, X in pieces:
            whole = Windows(X).check_finite().X
            for row, x in zip(np.arange(shape[0])[rows].tolist(), whole, strict=True):
                stream.seek(start + row * x.nbytes)
                stream.write(np.ascontiguousarray(x).data)
