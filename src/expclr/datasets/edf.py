"""European Data Format: signals and notes of .edf files (EDF and EDF+C)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from expclr.datasets.archive import blame
from expclr.datasets.recording import Note, Recording, pick_channels
from expclr.errors import DataError

__all__ = [
    "EdfHeader",
    "EdfSignal",
    "read_edf",
    "read_edf_blocks",
    "read_edf_header",
    "read_edf_notes",
]

_WIDTHS = {
    "label": 16,
    "transducer": 80,
    "unit": 8,
    "physical_min": 8,
    "physical_max": 8,
    "digital_min": 8,
    "digital_max": 8,
    "filter": 80,
    "samples": 8,
    "reserved": 32,
}
_VAST = 1e20  # beyond any unit, and 16 bits of it within float32 whatever the digital range
_LONGEST = 1e8  # seconds, three years
_MOST_HOLDING = 100  # times the samples of a file that all channels at one rate may come to
_BLOCK = 1 << 20  # samples in memory at a time
_ONSET = re.compile(rb"([+-]\d+(?:\.\d*)?)(?:\x15(\d+(?:\.\d*)?))?")


@dataclass(frozen=True)
class EdfSignal:
    """One signal of a file: where its samples lie in each data record, and their scale."""

    label: str
    samples: int
    start: int
    gain: float
    offset: float

    @property
    def is_notes(self) -> bool:
        """Whether these bytes are text, not samples."""
        return self.label == "EDF Annotations"


@dataclass(frozen=True)
class EdfHeader:
    """What the first bytes of a file say, checked against its size."""

    path: Path
    records: int
    record_seconds: float
    continuous: bool
    signals: tuple[EdfSignal, ...]

    @property
    def seconds(self) -> float:
        """Length of the recording."""
        return self.records * self.record_seconds

    @property
    def size(self) -> int:
        """Samples in a data record, all signals together."""
        return sum(signal.samples for signal in self.signals)


def read_edf(path: str | Path, *, channels: str | Sequence[str] | None = None) -> Recording:
    """Read signals of an EDF or EDF+C file in their physical units.

    Parameters
    ----------
    path : path
    channels : str or list of str, optional
        Names, in the order wanted; default all. A slower channel is held between its samples
        to the rate of the fastest one chosen.

    Returns
    -------
    Recording

    Examples
    --------
    >>> import tempfile
    >>> fixed = [("0", 8), ("", 160), ("", 16), ("512", 8), ("", 44), ("1", 8), ("1", 8), ("1", 4)]
    >>> cz = [("EEG Cz", 16), ("", 88), ("-1", 8), ("1", 8), ("-2", 8), ("2", 8), ("", 80)]
    >>> header = "".join(v.ljust(width) for v, width in [*fixed, *cz, ("3", 8), ("", 32)])
    >>> path = Path(tempfile.mkdtemp()) / "night.edf"
    >>> _ = path.write_bytes(header.encode() + bytes([1, 0, 2, 0, 0, 0]))
    >>> read_edf(path, channels="Cz").X
    array([[0.5, 1. , 0. ]], dtype=float32)
    """
    header = read_edf_header(path)
    chosen, samples = _choose(header, channels)
    X = np.empty((len(chosen), header.records * samples), np.float32)
    at = 0
    for block in _blocks(header, chosen, samples):
        X[:, at : at + block.shape[1]] = block
        at += block.shape[1]
    return _recording(X, header, chosen, samples)


def read_edf_blocks(
    path: str | Path, *, channels: str | Sequence[str] | None = None
) -> Iterator[Recording]:
    """Read a file of any size as stretches that follow each other; see :func:`read_edf`."""
    header = read_edf_header(path)
    chosen, samples = _choose(header, channels)
    for block in _blocks(header, chosen, samples):
        yield _recording(block, header, chosen, samples)


def _choose(header: EdfHeader, channels: str | Sequence[str] | None) -> tuple[list[EdfSignal], int]:
    """The wanted signals, and the samples of the fastest in a data record."""
    ordinary = [signal for signal in header.signals if not signal.is_notes]
    at = pick_channels(channels, [signal.label for signal in ordinary], path=header.path)
    chosen = [ordinary[i] for i in at]
    if not chosen or not header.record_seconds:
        raise DataError(f"{header.path} holds no signals: is it a file of notes only?")
    if not header.continuous:
        raise DataError(
            f"{header.path} has gaps (EDF+D): convert it to EDF+C or split it at the gaps"
        )
    samples = max(signal.samples for signal in chosen)
    if samples * len(chosen) > _MOST_HOLDING * header.size:
        raise DataError(
            f"{header.path}: the channels differ too much in rate: name the ones wanted"
        )
    return chosen, samples


def _recording(
    X: NDArray[np.float32], header: EdfHeader, chosen: Sequence[EdfSignal], samples: int
) -> Recording:
    names = tuple(signal.label for signal in chosen)
    return Recording(X, samples / header.record_seconds, names)


def _blocks(
    header: EdfHeader, chosen: Sequence[EdfSignal], samples: int
) -> Iterator[NDArray[np.float32]]:
    """Some data records at a time, (c, t)."""
    step = max(1, _BLOCK // max(header.size, samples * len(chosen)))
    for first in range(0, header.records, step):
        digital = _data(header, first, min(step, header.records - first))
        rows = [_physical(digital, signal, samples, header) for signal in chosen]
        yield np.stack(rows).astype(np.float32)


def _data(header: EdfHeader, first: int, count: int) -> NDArray[np.int16]:
    """Samples as stored, (count, samples of a record), left on disk."""
    offset = 256 * (1 + len(header.signals)) + 2 * first * header.size
    with blame(header.path):
        return np.memmap(header.path, "<i2", "r", offset, (count, header.size))


def _physical(
    digital: NDArray[np.int16], signal: EdfSignal, samples: int, header: EdfHeader
) -> NDArray[np.float64]:
    if samples % signal.samples:
        raise DataError(
            f"{header.path}: channel {signal.label!r} has {signal.samples} samples where another "
            f"has {samples}, no whole multiple: choose channels of one rate"
        )
    stored = digital[:, signal.start : signal.start + signal.samples].ravel()
    return np.repeat(stored * signal.gain + signal.offset, samples // signal.samples)


def read_edf_header(path: str | Path) -> EdfHeader:
    """Read and check the header of an EDF file, with its size."""
    with blame(path), Path(path).open("rb") as file:
        fixed = file.read(256)
        _check_kind(fixed, path)
        count = _whole(fixed[252:256], "number of signals", path)
        if not 1 <= count <= 9999:
            raise DataError(f"{path}: the header speaks of {count} signals: it is damaged")
        described = file.read(256 * count)
        size = Path(path).stat().st_size
    seconds = _real(fixed[244:252], "length of a data record", path)
    records = _whole(fixed[236:244], "number of data records", path)
    if not 0 <= seconds * max(records, 1) <= _LONGEST:
        raise DataError(f"{path}: {records} data records of {seconds} s: the header is damaged")
    header = EdfHeader(
        Path(path),
        records=records,
        record_seconds=seconds,
        continuous=not fixed[192:236].startswith(b"EDF+D"),
        signals=_signals(described, count, path),
    )
    _check_size(header, size, _whole(fixed[184:192], "bytes in the header", path))
    return header


def _check_kind(fixed: bytes, path: str | Path) -> None:
    if fixed[:8].rstrip() != b"0":
        raise DataError(f"{path} is not EDF: it starts with {fixed[:8]!r} instead of the version 0")
    if len(fixed) < 256:
        raise DataError(f"{path} ends inside its header after {len(fixed)} bytes: it is truncated")


def _check_size(header: EdfHeader, size: int, stated: int) -> None:
    start = 256 * (1 + len(header.signals))
    if stated != start:
        raise DataError(
            f"{header.path}: the header of {len(header.signals)} signals has {start} bytes but "
            f"calls itself {stated} bytes long: it is damaged"
        )
    wanted = start + 2 * header.records * header.size
    if header.records < 1 or size != wanted:
        raise DataError(
            f"{header.path} has {size} bytes but its header, with {header.records} data records, "
            f"asks for {wanted}: it is truncated or damaged, get it again"
        )


def _signals(described: bytes, count: int, path: str | Path) -> tuple[EdfSignal, ...]:
    if len(described) < 256 * count:
        raise DataError(f"{path} ends inside its header: it is truncated")
    fields: dict[str, list[bytes]] = {}
    at = 0
    for name, width in _WIDTHS.items():
        fields[name] = [described[at + i * width : at + (i + 1) * width] for i in range(count)]
        at += count * width
    signals: list[EdfSignal] = []
    for i in range(count):
        start = signals[-1].start + signals[-1].samples if signals else 0
        signals.append(_signal({name: values[i] for name, values in fields.items()}, start, path))
    return tuple(signals)


def _signal(field: dict[str, bytes], start: int, path: str | Path) -> EdfSignal:
    label = field["label"].decode("latin-1").strip()
    samples = _whole(field["samples"], f"samples of {label!r}", path)
    low, high = (_whole(field[f"digital_{end}"], "digital range", path) for end in ("min", "max"))
    bottom, top = (_real(field[f"physical_{end}"], "range", path) for end in ("min", "max"))
    if samples < 1 or low >= high or bottom == top or max(abs(bottom), abs(top)) > _VAST:
        raise DataError(
            f"{path}: channel {label!r} has {samples} samples in a record, digital range "
            f"{low} to {high}, physical range {bottom} to {top}: the header is damaged"
        )
    gain = (top - bottom) / (high - low)
    return EdfSignal(label, samples, start, gain, bottom - gain * low)


def _whole(field: bytes, what: str, path: str | Path) -> int:
    try:
        return int(field)
    except ValueError as error:
        raise DataError(
            f"{path}: the {what} in the header is {field!r}, no whole number"
        ) from error


def _real(field: bytes, what: str, path: str | Path) -> float:
    try:
        value = float(field)
    except ValueError as error:
        raise DataError(f"{path}: the {what} in the header is {field!r}, no number") from error
    if not math.isfinite(value):
        raise DataError(f"{path}: the {what} in the header is {field!r}, no finite number")
    return value


def read_edf_notes(path: str | Path) -> list[Note]:
    """Read the notes (annotations) of an EDF+ file, in their order in time.

    Onsets count from the first sample.

    Examples
    --------
    >>> read_edf_notes("SC4001EC-Hypnogram.edf")[1]  # doctest: +SKIP
    Note(onset=30630.0, duration=120.0, text='Sleep stage 1')
    """
    header = read_edf_header(path)
    texts = [signal for signal in header.signals if signal.is_notes]
    if not texts:
        raise DataError(f"{path} has no EDF+ notes: a file with 'EDF Annotations' is wanted")
    digital = _data(header, 0, header.records)
    notes: list[Note] = []
    for record in digital:
        for signal in texts:
            stored = record[signal.start : signal.start + signal.samples].tobytes()
            notes += _notes(stored, path)
    start = notes[0].onset if notes and not notes[0].text else 0.0
    shifted = [Note(note.onset - start, *note[1:]) for note in notes if note.text]
    return sorted(shifted, key=lambda note: note.onset)


def _notes(stored: bytes, path: str | Path) -> list[Note]:
    """The time-stamped lists of one data record: onset, duration, texts, each ended by 20."""
    notes = []
    for entry in stored.split(b"\x00"):
        if not entry:
            continue
        when, *texts = entry.split(b"\x14")
        times = _ONSET.fullmatch(when)
        if times is None or len(texts) < 2 or texts.pop():
            raise DataError(f"{path}: the note {entry[:40]!r} is damaged: get the file again")
        onset, duration = float(times[1]), float(times[2]) if times[2] else None
        if not math.isfinite(onset + (duration or 0)):
            raise DataError(f"{path}: the note {entry[:40]!r} lies beyond all time")
        notes += [Note(onset, duration, text.decode("utf-8", "replace")) for text in texts]
    return notes
