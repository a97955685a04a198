"""What makes a test part unfair: windows or groups that are in the train part too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.datasets.npy import npy_blocks
from expclr.errors import ConfigError, DataError
from expclr.windows import Windows

__all__ = ["ALLOWED", "check_split", "duplicated_windows", "shared_groups"]

ALLOWED = ("duplicates", "shared-groups")
Source = Windows | Path


def check_split(
    train: Windows,
    test: Windows,
    *,
    allow: Sequence[str] = (),
    files: tuple[Path, Path] | None = None,
) -> None:
    """Refuse a split with a window or a group on both sides.

    Parameters
    ----------
    train, test : Windows
    allow : sequence of {"duplicates", "shared-groups"}
        What is meant to be so.
    files : pair of paths, optional
        Where their X lies as .npy, to read it by blocks instead of through a memory map.

    Examples
    --------
    >>> from expclr import Windows
    >>> train, test = Windows([[1.0, 2.0]], group=["ann"]), Windows([[3.0, 4.0]], group=["ann"])
    >>> check_split(train, test)
    Traceback (most recent call last):
    ...
    expclr.errors.DataError: 1 of 1 groups of the test part are in the train part too, first ...
    """
    for name in allow:
        if name not in ALLOWED:
            raise ConfigError(f"allow has {name!r}: wanted are {', '.join(ALLOWED)}")
    shared = [] if "shared-groups" in allow else shared_groups(train, test)
    if shared:
        raise DataError(
            f"{len(shared)} of {len(np.unique(test.group))} groups of the test part are in the "  # type: ignore[arg-type]
            f"train part too, first {shared[0]}: split by group, or say allow=['shared-groups']"
        )
    if "duplicates" in allow:
        return
    twice = duplicated_windows(*(files or (train, test)))
    if len(twice):
        raise DataError(
            f"{len(twice)} windows of the test part are in the train part too, first test window "
            f"{twice[0, 1]} = train window {twice[0, 0]}: drop them, or say allow=['duplicates']"
        )


def shared_groups(train: Windows, test: Windows) -> list[str]:
    """Groups that are on both sides."""
    if train.group is None or test.group is None:
        return []
    return np.intersect1d(train.group.astype(str), test.group.astype(str)).tolist()


def duplicated_windows(train: Source, test: Source) -> NDArray[np.int64]:
    """Pairs (train row, test row) of windows that are the same to the bit, one for a test row.

    Windows of constant channels are no duplicates: a sensor that is off looks the same
    everywhere.
    """
    known, rows = np.unique(_hashes(train), return_index=True)
    asked = _hashes(test)
    at = np.minimum(np.searchsorted(known, asked), len(known) - 1)
    twice = np.flatnonzero((known[at] == asked) & (asked != 0))
    return np.stack([rows[at[twice]], twice], axis=1)


def _hashes(source: Source) -> NDArray[np.uint64]:
    """64 bits for each window, 0 for a constant one: eight bytes a window fit in memory."""
    parts = []
    for block in _blocks(source):
        varies = (block != block[:, :, :1]).any(axis=(1, 2)).tolist()
        rows = np.ascontiguousarray(block)
        digests = [_hash(row) if v else 0 for row, v in zip(rows, varies, strict=True)]
        parts.append(np.array(digests, np.uint64))
    return np.concatenate(parts)


def _hash(row: NDArray[Any]) -> int:
    return int.from_bytes(blake2b(row.data, digest_size=8).digest(), "little")


def _blocks(source: Source) -> Iterable[NDArray[Any]]:
    if isinstance(source, Windows):
        return (source.X[i : i + 1024] for i in range(0, len(source), 1024))
    return _from_file(source)


def _from_file(path: Path) -> Iterator[NDArray[Any]]:
    with path.open("rb") as file:
        yield from npy_blocks(file, str(path), size=path.stat().st_size)
