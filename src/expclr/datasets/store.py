"""Raw files in, prepared stores out: where they lie, what keys them, who may write them."""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from expclr.datasets.lock import locked
from expclr.errors import DataError
from expclr.storage import new_folder, write_json, write_text
from expclr.windows import FORMAT, Windows

__all__ = ["cache_root", "data_root", "fingerprint", "load_pair", "prepared", "raw_folder"]

log = logging.getLogger(__name__)
NO_ROOM = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR),
)


def data_root(root: str | Path | None = None) -> Path:
    """The folder of all raw data: ``root``, else EXPCLR_DATA, else the user's data folder."""
    from platformdirs import user_data_path

    return Path(root or os.environ.get("EXPCLR_DATA") or user_data_path("expclr")).expanduser()


def cache_root(root_cache: str | Path | None = None) -> Path:
    """The folder of all prepared stores: given, else EXPCLR_CACHE, else the user's cache folder."""
    from platformdirs import user_cache_path

    chosen = root_cache or os.environ.get("EXPCLR_CACHE") or user_cache_path("expclr")
    return Path(chosen).expanduser()


def raw_folder(name: str, root: str | Path | None = None, *, wanted: str = "its raw files") -> Path:
    """The folder ``<root>/<name>`` of a dataset's raw files, or one line on how to get them."""
    folder = data_root(root) / name
    if folder.is_dir() and any(folder.iterdir()):
        return folder
    raise DataError(
        f"no data in {folder}: put {wanted} there, or run `expclr fetch {name}` "
        "(another place for raw data: root=... or EXPCLR_DATA)"
    )


def fingerprint(files: Sequence[str | Path], *, root_cache: str | Path | None = None) -> str:
    """SHA-256 over names and whole contents of ``files``, in their order.

    It is the same on every machine. What was hashed once is remembered in the cache for as
    long as path, size and modification time of every file stay the same, so that a second
    call reads nothing, and an edit that keeps the size is still seen.
    """
    paths = [Path(file) for file in files]
    try:
        looks = [(str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns) for p in paths]
    except OSError as error:
        raise DataError(f"cannot read {error.filename}: {error.strerror}") from error
    note = cache_root(root_cache) / "fingerprints" / _sha256(looks)
    if note.is_file() and len(known := note.read_text()) == 64:
        return known
    digest = _sha256([(p.name, _content(p)) for p in paths])
    _remember(note, digest)
    return digest


def _content(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error


def _remember(note: Path, digest: str) -> None:
    """A cache that only others may write is no reason to stop."""
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        write_text(note, digest)
    except (OSError, DataError) as error:
        log.debug("fingerprint not remembered: %s", error)


def _sha256(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def prepared(
    name: str,
    files: Sequence[str | Path],
    options: dict[str, Any],
    build: Callable[[Path], None],
    *,
    root_cache: str | Path | None = None,
) -> Path:
    """The store that ``build`` makes of ``files``: found in the cache, or made there once.

    Several processes may ask at once: one builds, the others wait. A process killed while
    it builds leaves neither a store nor a lock.

    Parameters
    ----------
    name : str
        Of the dataset: the folder in the cache.
    files : list of paths
        All raw files that are read; their fingerprint is part of the store's key.
    options : dict
        What else decides the result, as JSON values; put a version number of the builder
        there.
    build : callable
        Gets an empty folder and saves Windows to its ``train`` and ``test``.
    root_cache : path, optional
        Default EXPCLR_CACHE, else the user's cache folder.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from expclr import Windows
    >>> def build(folder):
    ...     for part in ("train", "test"):
    ...         Windows(np.zeros((3, 1, 8))).save(folder / part)
    >>> store = prepared("mine", [], {"version": 1}, build, root_cache=tempfile.mkdtemp())
    >>> load_pair(store)[0]
    Windows(3 windows, 1 channels x 8 timepoints)
    """
    content = fingerprint(files, root_cache=root_cache)
    key = _sha256([FORMAT, content, options])[:24]
    folder = cache_root(root_cache) / name
    final = folder / key
    if final.is_dir():
        return final
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / f"{key}.lock"):
            if not final.is_dir():
                _sweep(folder, key)
                log.info("preparing %s from %d file(s) in %s", name, len(files), final)
                source = {"name": name, "fingerprint": content, "options": options}
                _build(final, build, source | {"files": [str(file) for file in files]})
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise DataError(
            f"cannot prepare {name} in {folder}: {error.strerror}; set EXPCLR_CACHE to a folder "
            "with room"
        ) from error
    return final


def _sweep(folder: Path, key: str) -> None:
    """Remove what a killed process left behind; only the holder of the lock may."""
    for left in folder.glob(f".{key}.*"):
        shutil.rmtree(left, ignore_errors=True)


def _build(final: Path, build: Callable[[Path], None], source: dict[str, Any]) -> None:
    with new_folder(final) as folder:
        build(folder)
        write_json(folder / "source.json", source)


def load_pair(folder: str | Path) -> tuple[Windows, Windows]:
    """Open a prepared store as (train, test), X on disk."""
    try:
        return Windows.load(Path(folder) / "train"), Windows.load(Path(folder) / "test")
    except DataError as error:
        raise DataError(f"{error}; or delete {folder} to have it prepared again") from error
