"""Small EDF files for tests, written from the format's description."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

WIDTHS = (16, 80, 8, 8, 8, 8, 8, 80, 8, 32)
Notes = Sequence[tuple[float, float | None, str]]


def write_edf(
    path: Path,
    signals: dict[str, NDArray[np.int16]],
    *,
    record_seconds: float = 30,
    notes: Notes | None = None,
    kind: str = "",
) -> Path:
    """Write stored values (records, samples); the physical value is a tenth of it."""
    blocks = [np.asarray(values, "<i2").tobytes("C") for values in signals.values()]
    records = len(next(iter(signals.values()))) if signals else 1
    columns = [
        (label, "", "uV", "-3276.8", "3276.7", "-32768", "32767", "", str(values.shape[1]), "")
        for label, values in signals.items()
    ]
    if notes is not None:
        text = tals(notes)
        text += b"\0" * (len(text) % 2)
        blocks.append(text + b"\0" * len(text) * (records - 1))
        size = str(len(text) // 2)
        columns.append(("EDF Annotations", "", "", "-1", "1", "-32768", "32767", "", size, ""))
        kind = kind or "EDF+C"
    fixed = ("0", "X X X X", "Startdate X X X X", "01.01.01", "00.00.00")
    counts = (str(256 * (1 + len(columns))), kind, str(records), f"{record_seconds:g}")
    header = fields((*fixed, *counts, str(len(columns))), (8, 80, 80, 8, 8, 8, 44, 8, 8, 4))
    for values, width in zip(zip(*columns, strict=True), WIDTHS, strict=True):
        header += fields(values, [width] * len(columns))
    sizes = [len(block) // records for block in blocks]
    data = b"".join(
        block[r * size : (r + 1) * size]
        for r in range(records)
        for block, size in zip(blocks, sizes, strict=True)
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(header + data)
    return path


def fields(values: Sequence[str], widths: Sequence[int]) -> bytes:
    return b"".join(v.encode().ljust(w) for v, w in zip(values, widths, strict=True))


def tals(notes: Notes) -> bytes:
    """Time-stamped lists, the first of them the time of the record itself."""
    parts = [b"+0\x14\x14\0"]
    for onset, duration, text in notes:
        lasting = b"" if duration is None else b"\x15%g" % duration
        parts.append(b"%+.10g" % onset + lasting + b"\x14" + text.encode() + b"\x14\0")
    return b"".join(parts)
