"""Values as JSON that stays valid and harmless inside an HTML page."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["embedded_json", "pack", "plain"]

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def embedded_json(value: Any) -> str:
    r"""JSON for a ``<script type="application/json">``: no NaN, and nothing that ends the script.

    Examples
    --------
    >>> embedded_json({"name": "</script>", "value": float("nan")})
    '{"name":"\\u003c/script\\u003e","value":null}'
    """
    text = json.dumps(plain(value), allow_nan=False, separators=(",", ":"))
    for sign, escape in _ESCAPES.items():
        text = text.replace(sign, escape)
    return text


def plain(value: Any) -> Any:
    """Lists, dicts, numbers and strings only; NaN and infinity become None.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"a": np.array([1.5, np.nan]), 2: (np.int64(3), None)})
    {'a': [1.5, None], '2': [3, None]}
    """
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def pack(values: ArrayLike, dtype: str = "<f4") -> dict[str, Any]:
    """An array as base64 of its little-endian bytes, a third of what its digits would take.

    Examples
    --------
    >>> pack([1, 2], "<i2")
    {'type': 'i2', 'shape': [2], 'base64': 'AQACAA=='}
    """
    array = np.ascontiguousarray(values, dtype=dtype)
    return {
        "type": dtype.lstrip("<"),
        "shape": list(array.shape),
        "base64": b64encode(array.tobytes()).decode("ascii"),
    }
