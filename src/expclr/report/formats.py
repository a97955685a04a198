"""Numbers as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.errors import DataError

__all__ = ["MISSING", "float_column", "number", "words"]

MISSING = "–"
_THIN = "\u202f"


def number(value: Any, spec: str = ".4g") -> str:
    """A table cell: floats by ``spec``, whole numbers whole, NaN and None as a dash.

    Examples
    --------
    >>> number(0.91234, ".3f"), number(7), number(float("nan")), number("tcn"), number(True)
    ('0.912', '7', '–', 'tcn', 'yes')
    >>> number(-0.5, ".1f"), number(0.25, ".0%")
    ('−0.5', '25%')
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or (isinstance(value, float) and value != value):
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return _signed(f"{value:,}".replace(",", _THIN) if abs(value) >= 10_000 else str(value))
    return _signed(format(value, spec)) if isinstance(value, float) else str(value)


def words(value: Any) -> str:
    """A setting's value on one line.

    Examples
    --------
    >>> words([1, 2.5, None]), words(0.003), words({"lr": 0.1})
    ('1, 2.5, –', '0.003', 'lr 0.1')
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {words(entry)}" for key, entry in value.items()) or MISSING
    if isinstance(value, list | tuple | np.ndarray):
        return ", ".join(words(entry) for entry in value) or MISSING
    # A seed or a count of a setting is to be copied, so its digits stay together.
    return str(value) if type(value) is int else number(value, ".6g")


def float_column(owner: Any, field: str, what: str, size: int | None) -> int:
    """Make a field of a frozen dataclass a float array, and say so if its size is wrong."""
    value = getattr(owner, field)
    if value is None:
        return 0
    array: NDArray[np.float64] = np.asarray(value, dtype=np.float64)
    if array.ndim != 1 or (size is not None and len(array) != size):
        wanted = "one dimension is" if size is None else f"{size} values are"
        raise DataError(f"{field} of {what} has shape {array.shape}: {wanted} wanted")
    object.__setattr__(owner, field, array)
    return len(array)


def _signed(text: str) -> str:
    return "−" + text[1:] if text.startswith("-") else text
