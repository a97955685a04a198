"""CSV and Parquet files as blocks of columns."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from expclr.datasets.archive import blame
from expclr.errors import DataError, suggest

__all__ = ["column_names", "is_table", "read_table", "table_blocks"]

ROWS = 100_000  # rows of a block of few columns
CELLS = 1_000_000  # values of a block at most
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
Columns = dict[str, NDArray[Any]]


def is_table(path: str | Path) -> bool:
    """Whether the name is that of a table file."""
    return Path(path).suffix.lower() in (".csv", ".tsv", ".txt", ".parquet")


def column_names(path: str | Path) -> tuple[str, ...]:
    """The names of a table's columns."""
    if _is_parquet(path):
        with blame(path):
            return tuple(_parquet(path).schema_arrow.names)
    with _text(path) as file:
        return _header(file, path)[0]


def read_table(path: str | Path, numeric: Sequence[str], words: Sequence[str] = ()) -> Columns:
    """Columns of a whole table; for the small ones."""
    blocks = list(table_blocks(path, numeric, words))
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def table_blocks(
    path: str | Path, numeric: Sequence[str], words: Sequence[str] = ()
) -> Iterator[Columns]:
    """Read columns by blocks of rows: ``numeric`` as float64, missing as NaN; ``words`` as str.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("time,x,state\\n0,1.5,on\\n1,,off\\n")
    >>> block = next(table_blocks(path, ["x"], ["state"]))
    >>> block["x"].tolist(), block["state"].tolist()
    ([1.5, nan], ['on', 'off'])
    """
    known = column_names(path)
    for name in dict.fromkeys((*numeric, *words)).keys() - set(known):
        raise DataError(f"{path} has no column {name!r}: {suggest(name, list(known))}")
    step = max(1, min(ROWS, CELLS // max(1, len(known))))
    read = _parquet_blocks if _is_parquet(path) else _csv_blocks
    empty = True
    for block in read(path, tuple(numeric), tuple(words), step):
        empty = False
        yield block
    if empty:
        raise DataError(f"{path} has a header but no rows")


def _is_parquet(path: str | Path) -> bool:
    return Path(path).suffix.lower() == ".parquet"


def _text(path: str | Path) -> IO[str]:
    with blame(path):
        return Path(path).open(encoding="utf-8-sig", newline="")


def _header(file: IO[str], path: str | Path) -> tuple[tuple[str, ...], str]:
    """Names and delimiter: the most frequent of tab, semicolon and comma in the first line."""
    with blame(path):
        line = file.readline(1 << 24)
    delimiter = max("\t;,", key=line.count)
    try:
        names = tuple(name.strip() for name in next(csv.reader([line], delimiter=delimiter), []))
    except csv.Error as error:
        raise DataError(f"{path}, first line: {error}") from error
    if not names or "" in names or len(set(names)) != len(names):
        raise DataError(
            f"{path}: the first line must name each column once, it is {line[:80].strip()!r} "
            "(of pandas: index=False)"
        )
    if _is_data(names):
        raise DataError(
            f"{path}: the first line must name the columns, it holds numbers: {line[:80].strip()!r}"
        )
    return names, delimiter


def _is_data(names: Sequence[str]) -> bool:
    """Whether a first line is one of values, rather than of names or of counted columns."""
    try:
        values = [float(name) for name in names]
    except ValueError:
        return False
    return values != [values[0] + i for i in range(len(values))]


def _csv_blocks(
    path: str | Path, numeric: tuple[str, ...], words: tuple[str, ...], step: int
) -> Iterator[Columns]:
    with _text(path) as file:
        names, delimiter = _header(file, path)
        first = 2
        with blame(path):
            while lines := list(islice(file, step)):
                yield _parse(lines, names, delimiter, numeric, words, f"{path}", first)
                first += len(lines)


def _parse(
    lines: list[str],
    names: tuple[str, ...],
    delimiter: str,
    numeric: tuple[str, ...],
    words: tuple[str, ...],
    where: str,
    first: int,
) -> Columns:
    """Parse all-number blocks at once, others cell by cell."""
    separators = len(names) - 1
    if all(line.count(delimiter) == separators and '"' not in line for line in lines):
        position = {name: i for i, name in enumerate(names)}
        try:
            found = _parse_numbers(lines, [position[name] for name in numeric], delimiter)
        except ValueError:
            pass  # a missing value or a broken one: the slow way knows which
        else:
            columns: Columns = dict(zip(numeric, found, strict=True))
            return columns | {n: _cells(lines, position[n], delimiter) for n in words}
    return _parse_slowly(lines, names, delimiter, numeric, words, where, first)


def _parse_numbers(lines: list[str], at: list[int], delimiter: str) -> NDArray[np.float64]:
    if not at:
        return np.empty((0, len(lines)))
    table = np.loadtxt(lines, delimiter=delimiter, usecols=at, comments=None, ndmin=2)
    if len(table) != len(lines):
        raise ValueError("empty lines")
    return table.T


def _cells(lines: list[str], at: int, delimiter: str) -> NDArray[np.str_]:
    return np.array([line.split(delimiter, at + 1)[at].strip() for line in lines], dtype=str)


def _parse_slowly(
    lines: list[str],
    names: tuple[str, ...],
    delimiter: str,
    numeric: tuple[str, ...],
    words: tuple[str, ...],
    where: str,
    first: int,
) -> Columns:
    try:
        rows = list(csv.reader(lines, delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise DataError(f"{where}, about line {first}: {error}") from error
    at = [first + i for i, row in enumerate(rows) if row]
    rows = [row for row in rows if row]
    for line, row in zip(at, rows, strict=True):
        if len(row) != len(names):
            raise DataError(
                f"{where} line {line} has {len(row)} fields: {len(names)} as in the first line "
                "are wanted"
            )
    columns = dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else {}
    found: Columns = {n: _numbers(columns.get(n, ()), n, where, at) for n in numeric}
    return found | {n: np.array([w.strip() for w in columns.get(n, ())], dtype=str) for n in words}


def _numbers(cells: Sequence[str], name: str, where: str, at: Sequence[int]) -> NDArray[np.float64]:
    values = np.empty(len(cells))
    for i, cell in enumerate(cells):
        try:
            values[i] = float(cell)
        except ValueError:
            if cell.strip().lower() not in MISSING:
                raise DataError(
                    f"{where} line {at[i]}, column {name}: {cell!r} is no number; " + _advice(cell)
                ) from None
            values[i] = np.nan
    return values


def _advice(cell: str) -> str:
    if cell.count(",") == 1 and cell.replace(",", "").strip().lstrip("+-").isdigit():
        return "write decimals with a point"
    return "a column of text must have a part (labels, group), or name the channels"


def _parquet(path: str | Path) -> Any:
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise DataError(f'reading {path} needs pyarrow: pip install "expclr[tables]"') from error
    return ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)  # else it holds whole files


def _parquet_blocks(
    path: str | Path, numeric: tuple[str, ...], words: tuple[str, ...], step: int
) -> Iterator[Columns]:
    with blame(path):
        file, columns = _parquet(path), [*numeric, *words]
        for batch in file.iter_batches(step, columns=columns, use_threads=False):
            found: Columns = {}
            for name in numeric:
                values = batch.column(name).to_numpy(zero_copy_only=False)
                found[name] = _as_numbers(values, name, path)
            for name in words:
                cells = batch.column(name).to_pylist()
                found[name] = np.array(["" if c is None else str(c) for c in cells], dtype=str)
            yield found


def _as_numbers(values: NDArray[Any], name: str, path: str | Path) -> NDArray[np.float64]:
    """Numbers as float64; times as seconds."""
    if values.dtype.kind in "mM":
        unit = "datetime64[ns]" if values.dtype.kind == "M" else "timedelta64[ns]"
        return values.astype(unit).astype(np.int64) / 1e9
    try:
        return values.astype(np.float64)
    except (ValueError, TypeError) as error:
        raise DataError(f"{path}, column {name}: {error}; numbers are wanted") from error
