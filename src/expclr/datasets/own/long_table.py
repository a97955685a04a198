"""Tables with a row for each sample of a case, or for each of its channels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.datasets.own.chunks import MOST_GAPS, Chunk, seconds
from expclr.datasets.own.tables import Columns, column_names, table_blocks
from expclr.errors import DataError, suggest

__all__ = ["LongTable", "long_chunks", "long_table"]

LONGEST_CASE = 200_000_000  # bytes; a case whose channels are rows is sorted in memory


@dataclass(frozen=True)
class LongTable:
    """Which column is what; see ``long_chunks``."""

    path: Path
    case: str | None
    time: str | None
    channels: tuple[str, ...]
    label: str | None = None
    group: str | None = None
    features: tuple[str, ...] = ()
    value: str | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """Columns that are read as text."""
        chosen = (self.case, self.time, self.label, self.group, self.value and "channel")
        return tuple(dict.fromkeys(name for name in chosen if name))


def long_table(
    path: str | Path,
    *,
    case: str | None,
    time: str | None,
    channels: Sequence[str] = (),
    label: str | None = None,
    group: str | None = None,
    features: Sequence[str] = (),
) -> LongTable:
    """Settle the columns: those that have no other part to play are the channels.

    A table with the columns ``channel`` and ``value`` has a row for each channel.
    """
    known = column_names(path)
    for name in filter(None, (case, time, label, group, *features)):
        if name not in known:
            raise DataError(f"{path} has no column {name!r}: {suggest(name, list(known))}")
    if not channels and {"channel", "value"} <= set(known):
        names = _channel_values(path)
        return LongTable(
            Path(path), case, time, names, label, group, tuple(features), value="value"
        )
    taken = {case, time, label, group, *features}
    chosen = tuple(channels) or tuple(name for name in known if name not in taken)
    if not chosen:
        raise DataError(f"{path} has no column left for the signal: name some with channels=")
    return LongTable(Path(path), case, time, chosen, label, group, tuple(features))


def _channel_values(path: str | Path) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for block in table_blocks(path, (), ("channel",)):
        names |= dict.fromkeys(block["channel"].tolist())
        if len(names) > 10_000:
            raise DataError(f"{path}: the column channel has over 10000 different values")
    return tuple(names)


def long_chunks(table: LongTable) -> Iterator[Chunk]:
    """The cases of a table, in its order; the rows of a case must be together.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("id,t,x,y\\na,0,1,2\\na,1,3,4\\nb,0,5,6\\n")
    >>> [(c.case, c.X.tolist()) for c in long_chunks(long_table(path, case="id", time="t"))]
    [('a', [[1.0, 2.0], [3.0, 4.0]]), ('b', [[5.0, 6.0]])]
    """
    signal = (table.value,) if table.value else table.channels
    blocks = table_blocks(table.path, tuple(dict.fromkeys((*signal, *table.features))), table.words)
    pieces = _by_case(blocks, table)
    seen: set[str] = set()
    current = None
    for case, piece in _whole(pieces, table) if table.value else pieces:
        if case != current and case in seen:
            raise DataError(f"{table.path}: the rows of case {case} are not together: sort by case")
        seen.add(case)
        current = case
        yield _chunk(case, piece, table)


def _by_case(blocks: Iterator[Columns], table: LongTable) -> Iterator[tuple[str, Columns]]:
    """Cut blocks of rows where the case changes."""
    for block in blocks:
        rows = len(next(iter(block.values())))
        if table.case is None:
            yield table.path.stem, block
            continue
        case = block[table.case]
        edges = [0, *(np.flatnonzero(case[1:] != case[:-1]) + 1).tolist(), rows]
        for start, stop in pairwise(edges):
            if stop > start:
                yield str(case[start]), {name: v[start:stop] for name, v in block.items()}


def _whole(
    pieces: Iterator[tuple[str, Columns]], table: LongTable
) -> Iterator[tuple[str, Columns]]:
    """Join the pieces of each case: the rows of its channels may be far apart."""
    case: str | None = None
    parts: list[Columns] = []
    size = 0
    for name, piece in pieces:
        if name != case and parts:
            yield str(case), _concatenated(parts)
            parts, size = [], 0
        case = name
        parts.append(_compact(piece, table))
        size += sum(column.nbytes for column in parts[-1].values())
        if size > LONGEST_CASE:
            raise DataError(
                f"{table.path}: case {name} is too long for a row for each channel: give the "
                "table a column for each"
            )
    if parts:
        yield str(case), _concatenated(parts)


def _compact(piece: Columns, table: LongTable) -> Columns:
    """Only what is needed, with numbers in the place of the words for channel and time."""
    if table.time is None:
        raise DataError(f"{table.path} has a row for each channel: name its column of times")
    needed = {table.value, table.label, table.group, *table.features}
    kept = {name: column for name, column in piece.items() if name in needed}
    position = {name: i for i, name in enumerate(table.channels)}
    kept["channel"] = np.array([position[name] for name in piece["channel"].tolist()], np.int16)
    return kept | {table.time: seconds(piece[table.time], str(table.path))}


def _concatenated(parts: list[Columns]) -> Columns:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _chunk(case: str, piece: Columns, table: LongTable) -> Chunk:
    where = str(table.path)
    time = None if table.time is None else seconds(piece[table.time], where)
    label = piece[table.label] if table.label else None
    F = np.stack([piece[name] for name in table.features], axis=1) if table.features else None
    if table.value and time is not None:
        X, first = _pivot(case, piece, time, table)
        time = time[first]
        label = None if label is None else label[first]
        F = None if F is None else F[first]
    else:
        X = np.stack([piece[name] for name in table.channels], axis=1)
    return Chunk(
        case,
        X,
        time=time,
        label=label,
        group=_constant(piece[table.group], case, table) if table.group else None,
        F=F,
    )


def _pivot(
    case: str, piece: Columns, time: NDArray[np.float64], table: LongTable
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Rows (time, channel, value) as (t, c), NaN where there is none; and a row of each time."""
    c = len(table.channels)
    moments, first, row = np.unique(time, return_index=True, return_inverse=True)
    if len(moments) * c > MOST_GAPS * len(row) + 1000:
        raise DataError(f"{table.path}: the channels of case {case} hardly share any time")
    column = piece["channel"]
    known = np.zeros((len(moments), c), bool)
    known[row, column] = True
    if known.sum() < len(row):
        raise DataError(f"{table.path}: case {case} has two values of a channel at one time")
    X = np.full((len(moments), c), np.nan)
    X[row, column] = piece[str(table.value)]
    return X, first


def _constant(values: NDArray[Any], case: str, table: LongTable) -> str:
    if (values != values[0]).any():
        raise DataError(
            f"{table.path}: case {case} has more than one {table.group}: a group holds whole cases"
        )
    return str(values[0])
