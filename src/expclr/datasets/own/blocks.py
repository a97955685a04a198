"""Windows that come in blocks, written to a store one block at a time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from expclr.datasets.missing import Missing
from expclr.datasets.npy import NpyWriter
from expclr.errors import DataError
from expclr.storage import write_json
from expclr.windows import FORMAT, Windows

__all__ = ["Block", "Gathered", "label_codes", "save_around", "write_blocks"]


@dataclass(frozen=True, eq=False)
class Block:
    """Some windows of a source, in their order, and what the source says about each.

    ``X`` is (k, c, t); all else, where it is known, has k rows. ``label`` holds names or whole
    numbers as the source has them, ``case`` what each window is part of.
    """

    X: NDArray[Any]
    F: NDArray[Any] | None = None
    label: NDArray[Any] | None = None
    group: NDArray[Any] | None = None
    case: NDArray[Any] | None = None
    lengths: NDArray[np.int64] | None = None


@dataclass(frozen=True, eq=False)
class Gathered:
    """All that was known of the windows whose X was written, and their rows in the source."""

    rows: NDArray[np.int64]
    total: int
    F: NDArray[Any] | None = None
    label: NDArray[Any] | None = None
    group: NDArray[Any] | None = None
    case: NDArray[Any] | None = None
    lengths: NDArray[np.int64] | None = None


def write_blocks(path: Path, blocks: Iterable[Block], missing: Missing, where: str) -> Gathered:
    """Write the X of all blocks to the file ``path``; gather the rest."""
    writer: NpyWriter | None = None
    kept: list[Block] = []
    rows: list[NDArray[np.int64]] = []
    try:
        for block in tqdm(blocks, desc=f"reading {where}", unit="block", disable=None):
            with np.errstate(over="ignore"):  # an infinite value is refused in the next line
                X = block.X.astype(np.float32, copy=False)
            X, keep = missing.apply(X, block.lengths)
            writer = writer or NpyWriter(path, X.shape[1:])
            writer.append(X[keep])
            rows.append(np.flatnonzero(keep) + missing.rows - len(X))
            kept.append(_without_signal(block, keep))
    finally:
        if writer is not None:
            writer.close()
    missing.finish(where)
    if writer is None or writer.rows == 0:
        raise DataError(f"{where} gives no window: are its recordings shorter than one?")
    parts = {name: _join([getattr(b, name) for b in kept]) for name in _KNOWN}
    return Gathered(np.concatenate(rows), missing.rows, **parts)


_KNOWN = tuple(f.name for f in fields(Block) if f.name != "X")


def _without_signal(block: Block, keep: NDArray[np.bool_]) -> Block:
    known = {name: getattr(block, name) for name in _KNOWN}
    masked = {name: None if v is None else v[keep] for name, v in known.items()}
    return replace(block, X=np.empty(0, np.float32), **masked)  # a slice would keep all of X


def _join(parts: list[NDArray[Any] | None]) -> NDArray[Any] | None:
    found = [part for part in parts if part is not None]
    return np.concatenate(found) if found else None


def label_codes(label: NDArray[Any]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Codes and names of the classes; whole numbers in numeric order, "", nan and -1 unknown.

    Examples
    --------
    >>> label_codes(np.array(["10", "9", "", "10"]))
    (array([ 1,  0, -1,  1]), ('9', '10'))
    """
    text = np.array([_tidy(value) for value in label.tolist()], dtype=str)
    names = [name for name in sorted(set(text.tolist())) if name not in ("", "nan", "-1")]
    if all(_is_number(name) for name in names):
        names.sort(key=float)
    code = {name: i for i, name in enumerate(names)}
    return np.array([code.get(name, -1) for name in text.tolist()], np.int64), tuple(names)


def _tidy(value: Any) -> str:
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if whole else value).strip()


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def save_around(folder: Path, where: str, **known: Any) -> Windows:
    """Make a Windows folder of one that holds X.npy already: check, then write the rest."""
    try:
        windows = Windows(np.load(folder / "X.npy", mmap_mode="r"), **known)
    except DataError as error:
        raise DataError(f"{where}: {error}") from error
    meta: dict[str, Any] = {"format": FORMAT, "windows": len(windows)}
    for field in fields(Windows):
        value = getattr(windows, field.name)
        if field.name == "X":
            continue
        if isinstance(value, np.ndarray):
            np.save(folder / f"{field.name}.npy", value, allow_pickle=False)
        elif field.name not in ("F", "y", "group", "lengths"):
            meta[field.name] = value
    write_json(folder / "meta.json", meta)
    return windows
