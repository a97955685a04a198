"""Recordings: a folder of them or one file, cut into windows or taken as whole cases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from expclr.datasets.archive import blame
from expclr.datasets.edf import read_edf_blocks
from expclr.datasets.npy import npy_columns
from expclr.datasets.own.chunks import Chunk, Clock
from expclr.datasets.own.cutting import cut_windows, whole_cases
from expclr.datasets.own.intervals import Intervals, read_intervals
from expclr.datasets.own.long_table import long_chunks, long_table
from expclr.datasets.own.reading import Reading, Stream
from expclr.datasets.recording import Recording
from expclr.datasets.wfdb import read_wfdb_blocks
from expclr.errors import DataError, suggest

__all__ = ["SUFFIXES", "stream"]

SUFFIXES = (".edf", ".hea")
TABLES = (".csv", ".tsv", ".txt", ".parquet")
LONGEST_GAP = 10_000  # samples put in for a gap, which is enough to see that it is one


def stream(path: Path, reading: Reading, scratch: Path) -> Stream:
    """Read recordings one after the other."""
    files = [path] if path.is_file() else _recordings(path, reading)
    known: dict[str, Any] = {"sfreq": reading.sfreq, "channel_names": ()}
    clock = Clock(str(path), LONGEST_GAP if reading.length is None else reading.length)
    chunks = _chunks(files, path, reading, known, clock)
    if reading.length is None:
        return Stream(whole_cases(chunks, scratch, str(path)), known)
    return Stream(cut_windows(chunks, reading.length, reading.step or reading.length), known)


def _recordings(folder: Path, reading: Reading) -> list[Path]:
    wanted = (*TABLES, *SUFFIXES, ".npy")
    apart = {Path(path).resolve() for path in reading.apart}
    with blame(folder):
        found = sorted(folder.rglob("*"))
    files = [p for p in found if p.suffix.lower() in wanted and p.is_file()]
    files = [f for f in files if f.resolve() not in apart and not _is_hidden(f, folder)]
    if not files:
        raise DataError(f"{folder} has no recording: files {', '.join(wanted)} are looked for")
    names = [_name(file, folder) for file in files]
    twice = [file for i, file in enumerate(files) if names[i] in names[:i]]
    if twice:
        raise DataError(f"{twice[0]} has the name of another recording: rename one, or move it")
    return files


def _is_hidden(file: Path, root: Path) -> bool:
    """What systems and editors put beside files, such as ``._a.csv``."""
    return any(part.startswith(".") for part in file.relative_to(root).parts)


def _chunks(
    files: list[Path], root: Path, reading: Reading, known: dict[str, Any], clock: Clock
) -> Iterator[Chunk]:
    intervals = _intervals(files, root, reading)
    for file in tqdm(files, desc="recordings", disable=None if len(files) > 1 else True):
        name = _name(file, root)
        chunks = _read(file, name, reading, known, alone=len(files) == 1)
        if intervals is not None:
            chunks = intervals[name].mark(chunks, known["sfreq"])
        for chunk in clock.run(chunks):
            if reading.sfreq is None and clock.step:
                _agree_rate(known, float(f"{1 / clock.step:.9g}"), file)
            yield chunk


def _name(file: Path, root: Path) -> str:
    within = file.relative_to(root) if file != root else Path(file.name)
    return within.with_suffix("").as_posix()


def _intervals(files: list[Path], root: Path, reading: Reading) -> dict[str, Intervals] | None:
    if reading.intervals is None:
        return None
    found = read_intervals(reading.intervals)
    names = [_name(file, root) for file in files]
    if set(found) == {""} and len(names) == 1:
        return {names[0]: found[""]}
    for name in found:
        if name not in names:
            raise DataError(f"{reading.intervals}: no recording {name!r}: {suggest(name, names)}")
    without = replace(
        next(iter(found.values())), start=np.zeros(0), end=np.zeros(0), label=np.array([], str)
    )
    return {name: found.get(name, without) for name in names}


def _read(
    file: Path, name: str, reading: Reading, known: dict[str, Any], *, alone: bool
) -> Iterator[Chunk]:
    if file.suffix.lower() in TABLES:
        return _read_table(file, name, reading, known, alone=alone)
    if reading.labels or reading.group or reading.features or reading.time or reading.case:
        raise DataError(f"{file} has no columns: labels, group and features must be files")
    blocks = _signals(file, reading)
    first = next(blocks)  # now: whoever marks intervals must know the rate
    _agree(known, first.channel_names, file)
    if first.sfreq:
        _agree_rate(known, first.sfreq, file)
    return (Chunk(name, block.X.T) for block in chain([first], blocks))


def _read_table(
    file: Path, name: str, reading: Reading, known: dict[str, Any], *, alone: bool
) -> Iterator[Chunk]:
    case = reading.named("case", file)
    table = long_table(
        file,
        case=case,
        time=reading.named("time", file),
        channels=reading.channels,
        label=reading.labels,
        group=reading.group,
        features=reading.features,
    )
    _agree(known, table.channels, file)
    for chunk in long_chunks(table):
        if case is None:
            yield replace(chunk, case=name)
        else:
            yield chunk if alone else replace(chunk, case=f"{name}/{chunk.case}")


def _signals(file: Path, reading: Reading) -> Iterator[Recording]:
    """A recording as stretches that follow each other."""
    channels = reading.channels or None
    if file.suffix.lower() == ".edf":
        return read_edf_blocks(file, channels=channels)
    if file.suffix.lower() == ".hea":
        return read_wfdb_blocks(file, channels=channels)
    rate = reading.sfreq or 0.0
    return (Recording(X, rate, reading.channels) for X in npy_columns(file))


def _agree(known: dict[str, Any], channels: tuple[str, ...], file: Path) -> None:
    """All recordings have the channels of the first."""
    known["channel_names"] = known["channel_names"] or channels
    if known["channel_names"] != channels:
        others = ", ".join(known["channel_names"])
        raise DataError(
            f"{file} has the channels {', '.join(channels)}, others have {others}: name the ones "
            "wanted with channels="
        )


def _agree_rate(known: dict[str, Any], sfreq: float, file: Path) -> None:
    known["sfreq"] = known["sfreq"] or sfreq
    if abs(known["sfreq"] / sfreq - 1) > 0.01:
        raise DataError(
            f"{file} has {sfreq:g} samples a second where {known['sfreq']:g} are wanted: bring the "
            "recordings to one rate"
        )
