"""Files of the UCR and UEA archives: .ts, and tables with the class in the first column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.errors import DataError

__all__ = ["Series", "parse_table", "parse_ts"]

KEYS = (
    *("problemname", "timestamps", "missing", "univariate", "dimensions", "dimension"),
    *("equallength", "serieslength", "classlabel", "targetlabel", "data"),
)


@dataclass(frozen=True, eq=False)
class Series:
    """The series (c, t_i) of a file with NaN where a sample is missing, and its labels.

    ``classes`` are the names listed in the file, in its order; ``target`` is the number to
    predict where the file is one for regression.
    """

    X: list[NDArray[np.float32]]
    label: list[str] | None
    classes: tuple[str, ...] = ()
    target: NDArray[np.float64] | None = None


def parse_ts(content: bytes, where: str) -> Series:
    """Parse a .ts file.

    Examples
    --------
    >>> text = b"@classLabel true up down\\n@data\\n1,2,?:4,5,6:up\\n"
    >>> series = parse_ts(text, "a.ts")
    >>> series.X[0].tolist(), series.label, series.classes
    ([[1.0, 2.0, nan], [4.0, 5.0, 6.0]], ['up'], ('up', 'down'))
    """
    lines = _lines(content, where)
    head, first = _head(lines, where)
    classes = head.get("classlabel", ["false"])
    labelled = classes[0] == "true"
    regression = head.get("targetlabel", ["false"])[0] == "true"
    if head.get("timestamps", ["false"])[0] == "true":
        raise DataError(f"{where} has time stamps: resample it to even steps and leave them out")
    X, last = [], []
    for number, line in enumerate(lines[first:], first + 1):
        if not line or line.startswith("#"):
            continue
        fields = line.split(":")
        if labelled or regression:
            last.append(fields.pop().strip())
        X.append(_channels(fields, f"{where} line {number}"))
    _check(X, where)
    target = _samples(last, where).astype(np.float64) if regression else None
    names = tuple(classes[1:])
    if labelled and names and not set(last) <= set(names):
        raise DataError(
            f"{where}: the class {min(set(last) - set(names))!r} is not one of @classLabel: "
            f"{', '.join(names)}"
        )
    return Series(X, last if labelled else None, names, target)


def _lines(content: bytes, where: str) -> list[str]:
    try:
        return [line.strip() for line in content.decode("utf-8-sig").split("\n")]
    except UnicodeDecodeError as error:
        raise DataError(f"{where} is not text ({error}): is it the right file?") from error


def _head(lines: list[str], where: str) -> tuple[dict[str, list[str]], int]:
    """The lines ``@key value ...`` up to ``@data``, and the number of lines they take."""
    head: dict[str, list[str]] = {}
    for number, line in enumerate(lines):
        if not line or line.startswith("#"):
            continue
        key, *values = line.split() if line.startswith("@") else [""]
        if key.lower().removeprefix("@") not in KEYS:
            raise DataError(f"{where} line {number + 1}: {line[:60]!r} comes before @data")
        if key.lower() == "@data":
            return head, number + 1
        if key.lower() == "@classlabel":
            values = [v.lower() if i == 0 else v for i, v in enumerate(values)]
        else:
            values = [v.lower() for v in values]
        head[key.lower().removeprefix("@")] = values or ["false"]
    raise DataError(f"{where} has no line @data: it is no .ts file, or it is truncated")


def _channels(fields: list[str], where: str) -> NDArray[np.float32]:
    channels = [_samples(field.split(","), where) for field in fields]
    if not channels or len({len(channel) for channel in channels}) > 1:
        raise DataError(
            f"{where} has channels of {[len(channel) for channel in channels]} samples: as many "
            "in each are wanted"
        )
    return np.stack(channels).astype(np.float32)


def _samples(cells: list[str], where: str) -> NDArray[np.float64]:
    try:
        values = np.array(cells, dtype=np.float64)
    except ValueError:
        try:
            known = [np.nan if c.strip().lower() in ("?", "") else float(c) for c in cells]
        except ValueError as error:
            raise DataError(f"{where}: {error}") from None
        values = np.array(known)
    if (np.abs(values) > np.finfo(np.float32).max).any():
        raise DataError(f"{where}: a value is infinite or beyond single precision")
    return values


def _check(X: list[NDArray[Any]], where: str) -> None:
    if not X:
        raise DataError(f"{where} holds no series")
    counts = {len(series) for series in X}
    if len(counts) > 1:
        raise DataError(f"{where} has series of {sorted(counts)} channels: as many are wanted")


def parse_table(content: bytes, where: str) -> Series:
    """Parse a .tsv or .txt: a line for each series, its class first; NaN at the end is padding.

    Examples
    --------
    >>> series = parse_table(b"1\\t0.5\\t0.25\\t1\\n2\\t3\\tNaN\\tNaN\\n", "a.tsv")
    >>> [x.tolist() for x in series.X], series.label
    ([[[0.5, 0.25, 1.0]], [[3.0]]], ['1', '2'])
    """
    X, label = [], []
    for number, line in enumerate(_lines(content, where), 1):
        if not line:
            continue
        name, *cells = line.replace(",", " ").split() or [""]
        values = _samples(cells, f"{where} line {number}")
        known = np.flatnonzero(~np.isnan(values))
        if not len(known):
            raise DataError(f"{where} line {number} has a class but no samples")
        X.append(values[None, : known[-1] + 1].astype(np.float32))
        label.append(_class(name, f"{where} line {number}"))
    _check(X, where)
    return Series(X, label)


def _class(name: str, where: str) -> str:
    """``1.0000000e+00`` and ``1`` are one class."""
    try:
        value = float(name)
    except ValueError:
        return name
    if not np.isfinite(value):
        raise DataError(f"{where}: the class is {name}")
    return str(int(value)) if value.is_integer() else name
