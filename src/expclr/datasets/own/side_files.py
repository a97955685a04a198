"""Features, labels or groups in a file of their own, beside the source of the windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.datasets.archive import blame
from expclr.datasets.own.array_files import read_rows
from expclr.datasets.own.blocks import Gathered
from expclr.datasets.own.tables import column_names, is_table, read_table
from expclr.errors import DataError

__all__ = ["SideFile", "is_file_name", "read_side"]


@dataclass(frozen=True, eq=False)
class SideFile:
    """Rows of values; ``case`` names the case of each row, or rows go by their order."""

    path: Path
    values: NDArray[Any]
    names: tuple[str, ...]
    case: NDArray[Any] | None

    def rows(self, gathered: Gathered) -> NDArray[Any]:
        """The values of the windows that were kept."""
        if self.case is not None and gathered.case is not None:
            return self._by_case(gathered.case)
        if len(self.values) != gathered.total:
            raise DataError(
                f"{self.path} has {len(self.values)} rows for {gathered.total} windows: one row "
                "for each, in their order, or a column 'case' or 'recording' is wanted"
            )
        return self.values[gathered.rows]

    def _by_case(self, wanted: NDArray[Any]) -> NDArray[Any]:
        names = [] if self.case is None else self.case.tolist()
        row = {name: i for i, name in enumerate(names)}
        if len(row) < len(names):
            raise DataError(f"{self.path} names a case twice: one row for each is wanted")
        without = sorted({name for name in wanted.tolist() if name not in row})
        if without:
            raise DataError(
                f"{self.path} has no row for {len(without)} cases, first {without[0]!r}: "
                "add one for each"
            )
        return self.values[[row[name] for name in wanted.tolist()]]


def is_file_name(value: str) -> bool:
    """Whether an option names a file rather than a column."""
    return is_table(value) or value.lower().endswith(".npy")


def read_side(path: str | Path, *, numeric: bool, key: str | None = None) -> SideFile:
    """Read a .npy, or a table with a header and perhaps a column that names the case.

    Parameters
    ----------
    path : path
    numeric : bool
        Numbers are wanted (features), or one column of any kind (labels, groups).
    key : str, optional
        Name of the column that names the case; ``case`` and ``recording`` are known.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "ages.csv"
    >>> _ = path.write_text("case,age,bmi\\nann,31,\\nbob,45,24.5\\n")
    >>> side = read_side(path, numeric=True)
    >>> side.names, side.case.tolist(), side.values.tolist()
    (('age', 'bmi'), ['ann', 'bob'], [[31.0, nan], [45.0, 24.5]])
    """
    path = Path(path)
    if not is_table(path):
        with blame(path):
            rows = read_rows(path.read_bytes(), str(path))
        if rows.ndim > (2 if numeric else 1):
            raise DataError(f"{path} has shape {rows.shape}: one value for each row is wanted")
        return SideFile(path, rows, (), None)
    known = column_names(path)
    keys = [name for name in (key, "case", "recording") if name in known][:1]
    names = tuple(name for name in known if name not in keys)
    if not numeric and len(names) != 1:
        raise DataError(f"{path} has the columns {', '.join(names)}: one is wanted (and a case)")
    table = read_table(path, names if numeric else (), keys if numeric else [*keys, *names])
    columns: Sequence[NDArray[Any]] = [table[name] for name in names]
    values = np.stack(columns, axis=1) if numeric else columns[0]
    return SideFile(path, values, names, table[keys[0]] if keys else None)
