"""Tables of numbers in text files."""

from __future__ import annotations

from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from expclr.errors import DataError

__all__ = ["number_table", "whole_column"]

LARGEST = 1e30  # no measurement is beyond, and squares stay within double precision


def number_table(
    file: IO[bytes], where: str, *, columns: int | None = None, dtype: type = np.float64
) -> NDArray[Any]:
    """Numbers between white space, the same count in each line, as (rows, columns).

    Examples
    --------
    >>> import io
    >>> number_table(io.BytesIO(b" 1 2e-001\\r\\n 3 4\\n"), "a.txt").tolist()
    [[1.0, 0.2], [3.0, 4.0]]
    """
    try:
        table: NDArray[Any] = np.loadtxt(
            _not_empty(file, where), dtype=dtype, ndmin=2, comments=None
        )
    except UnicodeDecodeError as error:
        raise DataError(f"{where} is not text ({error}): is it the right file?") from error
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"{where}: {error}; lines of numbers are wanted") from error
    if columns is not None and table.shape[1] != columns:
        raise DataError(f"{where} has {table.shape[1]} columns: {columns} are wanted")
    sound = np.abs(table) < LARGEST
    if not sound.all():
        row, column = np.argwhere(~sound)[0]
        raise DataError(
            f"{where} holds {table[row, column]:g} in line {row + 1}, column {column + 1}: "
            "a finite number is wanted"
        )
    return table


def whole_column(file: IO[bytes], where: str, *, lowest: int, highest: int) -> NDArray[np.int64]:
    """One whole number in each line, within bounds."""
    values = number_table(file, where, columns=1)[:, 0]
    bad = (values != np.floor(values)) | (values < lowest) | (values > highest)
    if bad.any():
        line = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"{where} line {line + 1} holds {values[line]:g}: "
            f"a whole number from {lowest} to {highest} is wanted"
        )
    return values.astype(np.int64)


def _not_empty(file: IO[bytes], where: str) -> IO[bytes]:
    """numpy only warns about a file without numbers; look ahead past blank lines."""
    while line := file.readline():
        if line.strip():
            file.seek(-len(line), 1)
            return file
    raise DataError(f"{where} is empty: lines of numbers are wanted")
