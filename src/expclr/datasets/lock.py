"""One process at a time: a lock on a file that ends with the process that holds it."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["locked"]

log = logging.getLogger(__name__)
_POLL = 0.05  # seconds


@contextmanager
def locked(path: str | Path) -> Iterator[None]:
    """Hold the lock file ``path`` for the block; wait while another process holds it.

    The operating system keeps the lock, so it ends with its process, killed or not. On a
    file system without locks the block runs unlocked.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _wait(handle, Path(path))
        yield
    finally:
        os.close(handle)


def _wait(handle: int, path: Path) -> None:
    told = False
    while not _take(handle):
        if not told:
            log.info("waiting for the process that holds %s", path)
            told = True
        time.sleep(_POLL)


def _take(handle: int) -> bool:
    """Take the lock, or say that another process has it."""
    try:
        import fcntl
    except ImportError:
        return _take_windows(handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        log.warning("this file system has no locks (%s)", error)
    return True


def _take_windows(handle: int) -> bool:
    import msvcrt

    try:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        return False
    return True
