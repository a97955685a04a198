"""WaveForm DataBase records: signals (.hea, .dat) and annotations (.atr) as PhysioNet has them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from expclr.datasets.archive import blame
from expclr.datasets.recording import Recording, pick_channels
from expclr.errors import DataError

__all__ = [
    "Annotation",
    "WfdbHeader",
    "WfdbSignal",
    "read_wfdb",
    "read_wfdb_annotations",
    "read_wfdb_blocks",
    "read_wfdb_header",
]

_PLAIN = {16: "<i2", 32: "<i4", 61: ">i2", 80: "u1", 160: "<u2"}  # format: numpy's name for it
_ZERO = {80: 128, 160: 1 << 15}  # what these formats store for 0
_MISSING = {16: -(1 << 15), 32: -(1 << 31), 61: -(1 << 15), 80: -128, 212: -(1 << 11)}
_MOST_SIGNALS = 1024
_BLOCK = 1 << 20  # samples in memory at a time
_FORMAT = re.compile(r"(\d{1,4})(?:x(\d{1,6}))?(?::(\d{1,9}))?(?:\+(\d{1,12}))?")
_GAIN = re.compile(r"([^\s(/]+)(?:\(([+-]?\d{1,12})\))?(?:/\S+)?")
_SKIP, _NUM, _SUB, _CHN, _AUX = 59, 60, 61, 62, 63  # annotation codes that are no annotation


@dataclass(frozen=True)
class WfdbSignal:
    """One signal of a record: its file, how it is stored, and its scale."""

    file: str
    format: int
    offset: int
    gain: float
    baseline: int
    checksum: int | None
    name: str


@dataclass(frozen=True)
class WfdbHeader:
    """What a .hea file says."""

    path: Path
    sfreq: float
    samples: int
    signals: tuple[WfdbSignal, ...]


class Annotation(NamedTuple):
    """One annotation: its sample, its type (1 is a normal beat, 28 a rhythm), its text."""

    sample: int
    code: int
    text: str


def read_wfdb(record: str | Path, *, channels: str | Sequence[str] | None = None) -> Recording:
    """Read the signals of a record in their physical units (mV for an ECG).

    The check sums in the header are verified.

    Parameters
    ----------
    record : path
        Of the record, with or without ``.hea``.
    channels : str or list of str, optional
        Names, in the order wanted; default all.

    Returns
    -------
    Recording

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "r1.hea").write_text("r1 1 250 3\\nr1.dat 16 200 16 0 1 6 0 MLII")
    >>> _ = (folder / "r1.dat").write_bytes(bytes([1, 0, 2, 0, 3, 0]))
    >>> read_wfdb(folder / "r1").X
    array([[0.005, 0.01 , 0.015]], dtype=float32)
    """
    header = read_wfdb_header(record)
    chosen = _choose(header, channels)
    X = np.empty((len(chosen), header.samples), np.float32)
    at = 0
    for block in _blocks(header, chosen):
        X[:, at : at + block.shape[1]] = block
        at += block.shape[1]
    return _recording(X, header, chosen)


def read_wfdb_blocks(
    record: str | Path, *, channels: str | Sequence[str] | None = None
) -> Iterator[Recording]:
    """Read a record of any size as stretches that follow each other; see :func:`read_wfdb`.

    The check sums are verified after the last one.
    """
    header = read_wfdb_header(record)
    chosen = _choose(header, channels)
    for block in _blocks(header, chosen):
        yield _recording(block, header, chosen)


def _choose(header: WfdbHeader, channels: str | Sequence[str] | None) -> list[int]:
    if not header.signals:
        raise DataError(f"{header.path}: this record has no signals")
    return pick_channels(channels, [s.name for s in header.signals], path=header.path)


def _recording(X: NDArray[np.float32], header: WfdbHeader, chosen: Sequence[int]) -> Recording:
    return Recording(X, header.sfreq, tuple(header.signals[i].name for i in chosen))


def _blocks(header: WfdbHeader, chosen: Sequence[int]) -> Iterator[NDArray[np.float32]]:
    """Some samples of the chosen signals at a time, (c, t), NaN where one is missing."""
    step = 2 * max(1, _BLOCK // (2 * len(header.signals)))  # even: two share bytes in format 212
    totals = [0] * len(header.signals)
    for first in range(0, header.samples, step):
        digital = _digital(header, first, min(step, header.samples - first))
        totals = [n + int(d.sum(dtype=np.int64)) for n, d in zip(totals, digital, strict=True)]
        X = np.empty((len(chosen), len(digital[0])), np.float32)
        for row, i in zip(X, chosen, strict=True):
            signal = header.signals[i]
            row[:] = (digital[i] - float(signal.baseline)) / signal.gain
            row[digital[i] == _MISSING.get(signal.format)] = np.nan
        yield X
    for signal, total in zip(header.signals, totals, strict=True):
        _check_sum(signal, total, header.path)


def _digital(header: WfdbHeader, first: int, count: int) -> list[NDArray[np.integer]]:
    """``count`` samples of each signal, as stored."""
    groups = _by_file(header)
    return [column for group in groups for column in _read_file(header, group, first, count)]


def _by_file(header: WfdbHeader) -> list[list[WfdbSignal]]:
    """The signals of each file, which lie interleaved in it."""
    groups: list[list[WfdbSignal]] = []
    for signal in header.signals:
        if groups and groups[-1][0].file == signal.file:
            groups[-1].append(signal)
        else:
            groups.append([signal])
    return groups


def _read_file(
    header: WfdbHeader, signals: list[WfdbSignal], first: int, count: int
) -> list[NDArray[np.integer]]:
    path = header.path.parent / signals[0].file
    with blame(path), path.open("rb") as file:
        file.seek(signals[0].offset + _bytes(first, signals))
        stored = file.read(_bytes(count, signals))
    values = _decode(stored, signals[0].format)[: count * len(signals)]
    return list(values.reshape(-1, len(signals)).T)


def _bytes(samples: int, signals: list[WfdbSignal]) -> int:
    """What so many samples of signals in one file take."""
    width = 1.5 if signals[0].format == 212 else np.dtype(_PLAIN[signals[0].format]).itemsize
    return math.ceil(samples * len(signals) * width)


def _check_size(header: WfdbHeader, signals: list[WfdbSignal]) -> None:
    """Refuse a file that is too short, or longer where no check sum vouches for the length."""
    path = header.path.parent / signals[0].file
    if len({(signal.format, signal.offset) for signal in signals}) > 1:
        raise DataError(f"{header.path}: signals of {path.name} differ in format: it is damaged")
    with blame(f"{path}, the signal file of {header.path.name}"):
        size = path.stat().st_size - signals[0].offset
    wanted = _bytes(header.samples, signals)
    summed = all(signal.checksum is not None for signal in signals)
    if size < wanted or (size > wanted + 2 and not summed):
        raise DataError(
            f"{path} holds {size} bytes of samples, but {header.path.name} asks for {wanted} "
            f"({header.samples} samples of {len(signals)} signals): truncated or damaged"
        )


def _decode(stored: bytes, format: int) -> NDArray[np.integer]:
    if format == 212:
        return _decode_212(np.frombuffer(stored, np.uint8))
    values: NDArray[np.integer] = np.frombuffer(stored, _PLAIN[format])
    return values if format not in _ZERO else values.astype(np.int32) - _ZERO[format]


def _decode_212(stored: NDArray[np.uint8]) -> NDArray[np.int16]:
    """Two samples of 12 bits in three bytes; the middle byte has the high bits of both."""
    triple = np.zeros((-(-len(stored) // 3), 3), np.int16)
    triple.reshape(-1)[: len(stored)] = stored
    low, middle, high = triple.T
    pair = np.empty((len(triple), 2), np.int16)
    pair[:, 0] = low | (middle & 0x0F) << 8
    pair[:, 1] = high | (middle >> 4) << 8
    return ((pair ^ 0x800) - 0x800).reshape(-1)  # the sign is bit 11


def _check_sum(signal: WfdbSignal, total: int, path: Path) -> None:
    if signal.checksum is not None and (total - signal.checksum) & 0xFFFF:
        raise DataError(
            f"{path.parent / signal.file}: the samples of {signal.name!r} sum to "
            f"{total & 0xFFFF}, the check sum in {path.name} is {signal.checksum & 0xFFFF}: "
            "damaged, get it again"
        )


def read_wfdb_header(record: str | Path) -> WfdbHeader:
    """Read and check the header of a record, with the sizes of its signal files."""
    path = _with_suffix(record, ".hea")
    with blame(path):
        lines = path.read_text("latin-1").splitlines()
    lines = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        raise DataError(f"{path} is empty: a WFDB header is wanted")
    name, count, sfreq, samples = _record_line(lines[0], path)
    if "/" in name:
        raise DataError(f"{path} is a record of several segments: read the segments one by one")
    if len(lines) <= count or count > _MOST_SIGNALS:
        raise DataError(f"{path} speaks of {count} signals and describes {len(lines) - 1}: damaged")
    signals = tuple(_signal_line(line, path) for line in lines[1 : count + 1])
    header = WfdbHeader(path, sfreq, samples, signals)
    for group in _by_file(header):
        _check_size(header, group)
    return header


def _with_suffix(record: str | Path, suffix: str) -> Path:
    path = Path(record)
    return path.with_name(path.name.removesuffix(".hea") + suffix)


def _record_line(line: str, path: Path) -> tuple[str, int, float, int]:
    """Name, number of signals, sampling frequency (250 Hz unless given), number of samples."""
    name, *fields = line.split()
    fields += ["0", "250", "0"][len(fields) :]
    count = _whole(fields[0], "number of signals", path)
    sfreq = _real(fields[1].partition("/")[0], "sampling frequency", path)
    samples = _whole(fields[2], "number of samples", path)
    if sfreq <= 0 or count < 0 or samples < 0 or (count and not samples):
        raise DataError(
            f"{path} speaks of {count} signals of {samples} samples at {sfreq} Hz: positive "
            "numbers are wanted"
        )
    return name, count, sfreq, samples


def _signal_line(line: str, path: Path) -> WfdbSignal:
    """File, format, gain, ADC bits, ADC zero, first value, check sum, block size, name."""
    fields = line.split(None, 8)
    if len(fields) < 2 or Path(fields[0]).name != fields[0] or fields[0] in ("..", "-"):
        raise DataError(f"{path}: {line[:60]!r} names no signal file beside it and its format")
    stored = _FORMAT.fullmatch(fields[1])
    if stored is None or int(stored[1]) not in (*_PLAIN, 212):
        raise DataError(
            f"{path}: signals of format {fields[1]!r} cannot be read: convert them to 16 or 212 "
            "(xform)"
        )
    if int(stored[2] or 1) != 1 or int(stored[3] or 0):
        raise DataError(f"{path}: {fields[1]!r}: signals of several rates or with skew: resample")
    zero = _whole(fields[4], "ADC zero", path) if len(fields) > 4 else 0
    gain, baseline = _gain(fields[2] if len(fields) > 2 else "0", zero, path)
    return WfdbSignal(
        file=fields[0],
        format=int(stored[1]),
        offset=int(stored[4] or 0),
        gain=gain,
        baseline=baseline,
        checksum=_whole(fields[6], "check sum", path) if len(fields) > 6 else None,
        name=fields[8].strip() if len(fields) > 8 else "",
    )


def _gain(field: str, zero: int, path: Path) -> tuple[float, int]:
    """Units of the analogue-to-digital converter per physical unit; 200 where it is not known."""
    found = _GAIN.fullmatch(field)
    if found is None:
        raise DataError(f"{path}: the gain is {field!r}: a number(baseline)/unit is wanted")
    gain = _real(found[1], "gain", path) or 200.0
    if not 1e-20 < abs(gain) < 1e20:
        raise DataError(f"{path}: the gain is {field!r}: the header is damaged")
    return gain, int(found[2]) if found[2] else zero


def _whole(field: str, what: str, path: Path) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,12}", field):
        raise DataError(f"{path}: the {what} in the header is {field[:40]!r}, no whole number")
    return int(field)


def _real(field: str, what: str, path: Path) -> float:
    try:
        value = float(field)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(f"{path}: the {what} in the header is {field[:40]!r}, no number")
    return value


def read_wfdb_annotations(record: str | Path, *, extension: str = "atr") -> list[Annotation]:
    """Read the annotations of a record (MIT format), in their order.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "r1.atr").write_bytes(bytes([18, 28 << 2, 2, 63 << 2, *b"(N", 0, 0]))
    >>> read_wfdb_annotations(folder / "r1")
    [Annotation(sample=18, code=28, text='(N')]
    """
    path = _with_suffix(record, f".{extension}")
    with blame(path):
        stored = path.read_bytes()
    found: list[Annotation] = []
    sample, at = 0, 0
    while at + 2 <= len(stored):
        word = int.from_bytes(stored[at : at + 2], "little")
        code, value = word >> 10, word & 0x3FF
        at += 2
        if not word:
            return found
        if code == _SKIP:
            sample += _long(stored[at : at + 4])
            at += 4
        elif code == _AUX:
            found = _with_text(found, stored[at : at + value], value, path)
            at += value + value % 2
        elif code not in (_NUM, _SUB, _CHN):
            sample += value
            found.append(Annotation(sample, code, ""))
        if sample < 0:
            raise DataError(f"{path}: an annotation lies before the record: the file is damaged")
    raise DataError(f"{path} ends without its end mark: it is truncated, get it again")


def _long(stored: bytes) -> int:
    """The 32 bits of a long step, the high half first, each half low byte first."""
    return int.from_bytes(stored[2:4] + stored[:2], "little", signed=True)


def _with_text(found: list[Annotation], text: bytes, size: int, path: Path) -> list[Annotation]:
    if not found or len(text) < size:
        raise DataError(f"{path}: a text belongs to no annotation: the file is damaged")
    found[-1] = found[-1]._replace(text=text.decode("utf-8", "replace").rstrip("\x00 \n"))
    return found
