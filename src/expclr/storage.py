"""Folders that are either whole or not there."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from expclr.errors import DataError

__all__ = [
    "check_writable",
    "new_folder",
    "read_json",
    "refuse_strangers",
    "write_bytes",
    "write_json",
    "write_text",
]

_ASIDE = ".expclr-aside-"  # part of the name of what is not whole yet
_YOUNG = 60  # seconds; what was just made may not be locked yet


@contextmanager
def new_folder(path: str | Path, *, known: Collection[str] = ()) -> Iterator[Path]:
    """Yield an empty folder beside ``path`` that takes its place when the block ends well.

    Everything written is flushed to disk before the rename, so that a kill at any moment
    leaves the old folder or the new one, never a half of either. An old folder is replaced
    only if all it holds has names that are ``known`` or written anew: a user's own files stay.
    """
    final = Path(path).absolute()
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{final.name}{_ASIDE}", dir=final.parent))
    except OSError as error:
        raise DataError(f"cannot write {final}: {error.strerror}; choose another folder") from error
    held = _lock(aside)
    try:
        with suppress(OSError):
            _sweep(final)
        yield aside
        refuse_strangers(final, {entry.name for entry in aside.iterdir()} | set(known))
        _flush(aside)
        _take_place(aside, final)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        if held is not None:
            os.close(held)


def _lock(folder: Path) -> int | None:
    """A lock that ends with its process; None where another has it, or the system has none."""
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def _sweep(final: Path) -> None:
    """Delete what killed processes left half written beside ``final``."""
    ours = f".{final.name}{_ASIDE}"
    for left in final.parent.iterdir():
        name = left.name
        if name.startswith(ours) and not name.startswith(f"{ours}old-") and left.is_dir():
            _delete_if_left(left)


def _delete_if_left(folder: Path) -> None:
    young = time.time() - folder.stat().st_mtime < _YOUNG
    held = None if young else _lock(folder)
    if held is not None:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def refuse_strangers(final: Path, known: Collection[str]) -> None:
    """Raise a DataError if a folder that is to be replaced holds anything but known names."""
    if final.exists() and not final.is_dir():
        raise DataError(f"{final} is a file: give a folder")
    names = sorted(entry.name for entry in final.iterdir()) if final.exists() else []
    # What a killed process left half written is ours too.
    strangers = [name for name in names if name not in known and _ASIDE not in name]
    if strangers:
        raise DataError(
            f"{final} holds {strangers[0]!r} and would be replaced: give a new or empty folder"
        )


def check_writable(folder: Path, known: Collection[str]) -> None:
    """Make the folder and write into it: fail before the work rather than after it."""
    refuse_strangers(folder, known)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise DataError(
            f"cannot write {folder}: {error.strerror}; choose another folder"
        ) from error


def _take_place(aside: Path, final: Path) -> None:
    """Rename ``aside`` to ``final``; what was there ends up in ``aside``, to be deleted."""
    aside.chmod(0o755)
    if not final.exists():
        aside.rename(final)
    elif not _exchange(aside, final):
        old = Path(tempfile.mkdtemp(prefix=f".{final.name}{_ASIDE}old-", dir=final.parent))
        final.rename(old / final.name)  # a kill between these two lines leaves only this copy
        aside.rename(final)
        shutil.rmtree(old, ignore_errors=True)
    _fsync(final.parent)


def _exchange(a: Path, b: Path) -> bool:
    """Swap two folders in one step, where the system can (Linux)."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None) if os.name == "posix" else None
    here, swap = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return rename is not None and rename(here, bytes(a), here, bytes(b), swap) == 0


def _flush(folder: Path) -> None:
    for path in [*folder.rglob("*"), folder]:
        _fsync(path)


def _fsync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file whole: aside, flushed, renamed."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file whole: aside, flushed, renamed."""
    final = Path(path)
    try:
        handle, aside = tempfile.mkstemp(prefix=f".{final.name}{_ASIDE}", dir=final.parent)
    except OSError as error:
        raise DataError(f"cannot write {final}: {error.strerror}; choose another folder") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(aside, 0o644)
        os.replace(aside, final)
    except OSError as error:  # a full disk, say
        Path(aside).unlink(missing_ok=True)
        raise DataError(
            f"cannot write {final}: {error.strerror}; what is finished stays. Make room, and the "
            "same command goes on"
        ) from error


def write_json(path: str | Path, value: Any) -> None:
    """Write ``value`` as readable JSON, whole or not at all."""
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + "\n")


def read_json(path: str | Path) -> Any:
    """Read JSON; a missing or broken file is a DataError that names it."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"{path} is missing: is this the right folder?") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path} is not readable JSON ({error}): write it again") from error
