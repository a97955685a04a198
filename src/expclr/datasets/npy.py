"""Arrays on disk, written and read by rows, without ever being whole in memory."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from expclr.datasets.archive import blame
from expclr.errors import DataError

__all__ = ["BLOCK", "NpyWriter", "npy_blocks", "npy_columns", "npy_header"]

BLOCK = 1 << 24  # bytes in memory at a time


class NpyWriter:
    """A .npy file that grows by rows; its length is put into its header at the end.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "X.npy"
    >>> with NpyWriter(path, (2, 3)) as writer:
    ...     for _ in range(4):
    ...         writer.append(np.ones((5, 2, 3)))
    >>> np.load(path).shape
    (20, 2, 3)
    """

    def __init__(
        self, path: str | Path, row: tuple[int, ...], dtype: DTypeLike = np.float32
    ) -> None:
        self.path = Path(path)
        self.rows = 0
        self._row = tuple(row)
        self._dtype = np.dtype(dtype)
        self._file: IO[bytes] = self.path.open("wb")
        self._write_header()

    def _write_header(self) -> None:
        """numpy leaves room for a longer first axis, so that the header keeps its size."""
        description = np.lib.format.dtype_to_descr(self._dtype)
        header = {"descr": description, "fortran_order": False, "shape": (self.rows, *self._row)}
        np.lib.format.write_array_header_1_0(self._file, header)

    def append(self, rows: NDArray[Any]) -> None:
        """Write more rows (k, ...) at the end."""
        if rows.shape[1:] != self._row:
            raise DataError(f"rows of shape {rows.shape[1:]} do not fit {self.path} of {self._row}")
        self._file.write(np.ascontiguousarray(rows, self._dtype).data)
        self.rows += len(rows)

    def close(self) -> None:
        """Write the length; only now is the file an array of all rows."""
        self._file.seek(0)
        self._write_header()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()


def npy_header(file: IO[bytes], where: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of an array of numbers stored by rows; leaves the file at its first value."""
    with blame(where):
        version = np.lib.format.read_magic(file)
        width = 2 if version == (1, 0) else 4
        size = int.from_bytes(file.read(width), "little")
        if size > 10_000:
            raise DataError(f"{where}: its header says that it is {size} bytes long: it is damaged")
        shape, by_columns, dtype = _described(file.read(size), where)
    if dtype.kind not in "biufUS":
        raise DataError(f"{where} holds {dtype}: an array of numbers or text is wanted")
    if by_columns and len(shape) > 1:
        raise DataError(
            f"{where} is stored by columns (Fortran order): save np.ascontiguousarray of it"
        )
    return shape, dtype


def _described(header: bytes, where: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    try:
        entry = ast.literal_eval(header.decode("latin-1"))
        shape, by_columns = entry["shape"], bool(entry["fortran_order"])
        dtype = np.dtype(entry["descr"])
    except Exception as error:  # literal_eval and dtype raise nearly everything
        raise DataError(f"{where} is no .npy array: its header cannot be read") from error
    if not isinstance(shape, tuple) or not all(type(s) is int and s >= 0 for s in shape):
        raise DataError(f"{where} says that its shape is {shape}: it is damaged")
    return shape, by_columns, dtype


def npy_blocks(file: IO[bytes], where: str, *, size: int) -> Iterator[NDArray[Any]]:
    """Read an array of ``size`` bytes (header and all) by blocks of rows.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> np.save(file, np.arange(6.0).reshape(3, 2))
    >>> length = file.tell()
    >>> _ = file.seek(0)
    >>> [block.tolist() for block in npy_blocks(file, "a.npy", size=length)]
    [[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]]
    """
    shape, dtype = _whole_header(file, where, size)
    bytes_in_row = math.prod(shape[1:]) * dtype.itemsize
    step = max(1, BLOCK // bytes_in_row)
    for start in range(0, shape[0], step):
        rows = min(step, shape[0] - start)
        with blame(where):
            content = file.read(rows * bytes_in_row)
        if len(content) != rows * bytes_in_row:
            raise DataError(f"{where} ends too early: it is truncated")
        yield np.frombuffer(content, dtype).reshape(rows, *shape[1:])


def npy_columns(path: Path) -> Iterator[NDArray[Any]]:
    """Read a recording (c, t) or (t,) by blocks of columns.

    Examples
    --------
    >>> import tempfile
    >>> np.save(path := Path(tempfile.mkdtemp()) / "a.npy", np.arange(6.0).reshape(2, 3))
    >>> [block.tolist() for block in npy_columns(path)]
    [[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]]
    """
    with blame(path), path.open("rb") as file:
        shape, dtype = _whole_header(file, str(path), path.stat().st_size)
        start = file.tell()
    if len(shape) > 2 or dtype.kind not in "biuf":
        raise DataError(f"{path} has shape {shape} of {dtype}: numbers (c, t) are wanted")
    c, t = (1, *shape)[-2:]
    step = max(1, BLOCK // (c * dtype.itemsize))
    for first in range(0, t, step):
        with blame(path):
            whole = np.memmap(path, dtype, "r", start, (c, t))
        yield np.array(whole[:, first : first + step])


def _whole_header(file: IO[bytes], where: str, size: int) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of an array of ``size`` bytes, which must be as many as it says."""
    shape, dtype = npy_header(file, where)
    stated = math.prod(shape) * dtype.itemsize
    if not shape or not stated:
        raise DataError(f"{where} holds {shape} of {dtype}, no values: rows of values are wanted")
    if stated != size - file.tell():
        raise DataError(
            f"{where} says that it holds {shape} of {dtype}, {stated} bytes, but has "
            f"{size - file.tell()}: it is truncated or damaged"
        )
    return shape, dtype
