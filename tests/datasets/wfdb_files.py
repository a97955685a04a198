"""Small WFDB records for tests, written from the format's description."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Marks = Sequence[tuple[int, int, str]]


def write_record(
    folder: Path,
    name: str,
    digital: NDArray[np.integer],
    marks: Marks = (),
    *,
    sfreq: float = 250,
    leads: Sequence[str] = ("ECG1", "ECG2"),
    format: int = 212,
) -> Path:
    """Write stored values (c, t) at 200 a millivolt and annotations (sample, type, text)."""
    folder.mkdir(parents=True, exist_ok=True)
    sums = [(int(row.sum()) + 32768) % 65536 - 32768 for row in digital]
    lines = [f"{name} {len(digital)} {sfreq:g} {digital.shape[1]}"]
    lines += [
        f"{name}.dat {format} 200 12 0 {row[0]} {total} 0 {lead}"
        for row, total, lead in zip(digital, sums, leads, strict=True)
    ]
    (folder / f"{name}.hea").write_text("\r\n".join(lines) + "\r\n# a comment\r\n")
    frames = digital.T.reshape(-1)
    stored = pack_212(frames) if format == 212 else frames.astype("<i2").tobytes()
    (folder / f"{name}.dat").write_bytes(stored)
    (folder / f"{name}.atr").write_bytes(annotations(marks))
    return folder / name


def pack_212(values: NDArray[np.integer]) -> bytes:
    bits = np.append(values, [0] * (len(values) % 2)).astype(np.int64) & 0xFFF
    first, second = bits[::2], bits[1::2]
    packed = np.stack([first & 0xFF, first >> 8 | second >> 8 << 4, second & 0xFF], axis=1)
    return packed.astype(np.uint8).tobytes()


def annotations(marks: Marks) -> bytes:
    out, before = b"", 0
    for sample, code, text in marks:
        step = sample - before
        if not 0 <= step < 1024:
            long = step & 0xFFFFFFFF
            out += word(59, 0) + (long >> 16).to_bytes(2, "little")
            out += (long & 0xFFFF).to_bytes(2, "little")
            step = 0
        out += word(code, step)
        if text:
            out += word(63, len(text)) + text.encode() + b"\0" * (len(text) % 2)
        before = sample
    return out + b"\0\0"


def word(code: int, value: int) -> bytes:
    return (code << 10 | value).to_bytes(2, "little")
