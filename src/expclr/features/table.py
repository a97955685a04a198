"""Expert features that somebody else computed: a table with a row for each window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.errors import ConfigError, DataError

__all__ = ["features_from_table", "is_table"]

KINDS = (".csv", ".tsv", ".parquet")


def features_from_table(
    table: Any, n: int, *, key: str = "window"
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Features (n, d) and their names, from a table of numbers.

    Parameters
    ----------
    table : DataFrame, or path of a .csv, .tsv or .parquet file
        With a column ``key``, a row belongs to the window of that number, counted from 0, and
        windows without a row have missing values. Without it there must be n rows, in the
        order of the windows.
    n : int
        Number of windows.
    key : str

    Examples
    --------
    >>> import pandas as pd
    >>> features_from_table(pd.DataFrame({"window": [2, 0], "load": [7.0, 5.0]}), 3)
    (array([[ 5.],
           [nan],
           [ 7.]]), ('load',))
    """
    frame = _read(table) if isinstance(table, str | Path) else table
    if not hasattr(frame, "columns"):
        raise DataError(f"a table is {type(table).__name__}: a DataFrame or a file is wanted")
    keyed = key in frame.columns
    at = _windows(frame[key].to_numpy(), n) if keyed else np.arange(len(frame))
    if not keyed and len(frame) != n:
        raise DataError(
            f"the table has {len(frame)} rows for {n} windows: give as many, or a column {key!r} "
            "with the number of each row's window"
        )
    columns = [column for column in frame.columns if column != key]
    if not columns:
        raise DataError(f"the table has no column besides {key!r}: features are wanted")
    F = np.full((n, len(columns)), np.nan)
    for j, column in enumerate(columns):
        F[at, j] = _numbers(frame[column], column)
    return F, tuple(map(str, columns))


def is_table(given: Any) -> bool:
    """Whether this is a DataFrame or the name of a file that holds one."""
    if isinstance(given, str | Path):
        return Path(given).suffix.lower() in KINDS
    return hasattr(given, "columns")


def _windows(values: NDArray[Any], n: int) -> NDArray[np.int64]:
    try:
        at = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"the table's windows are not numbers ({error})") from error
    wrong = ~((at >= 0) & (at < n) & (at == np.floor(at)))
    if wrong.any():
        raise DataError(
            f"the table has a row for window {at[wrong][0]:g}: whole numbers from 0 to {n - 1} are "
            "wanted"
        )
    windows, counts = np.unique(at, return_counts=True)
    if (counts > 1).any():
        raise DataError(
            f"the table has {counts.max()} rows for window {windows[counts.argmax()]:g}: one each "
            "is wanted"
        )
    return at.astype(np.int64)


def _numbers(column: Any, name: object) -> NDArray[np.float64]:
    try:
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"column {name!r} of the table is not of numbers ({error}): give the estimator a "
            "DataFrame instead, which takes categories too"
        ) from error
    if np.isinf(values).any():
        raise DataError(f"column {name!r} of the table holds infinite values: leave them empty")
    return np.asarray(values, dtype=np.float64)


def _read(path: str | Path) -> Any:
    try:
        import pandas as pd
    except ImportError as error:
        raise ConfigError('reading tables needs pandas: pip install "expclr[tables]"') from error
    kind = Path(path).suffix.lower()
    if kind not in KINDS:
        raise ConfigError(f"{path} is of kind {kind!r}: .csv, .tsv or .parquet is wanted")
    try:
        if kind == ".parquet":
            return pd.read_parquet(path)
        return pd.read_csv(path, sep="\t" if kind == ".tsv" else ",")
    except ImportError as error:
        raise ConfigError('reading .parquet needs pyarrow: pip install "expclr[tables]"') from error
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {error}") from error
