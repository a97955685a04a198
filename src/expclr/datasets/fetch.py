"""Getting raw files: checked, resumed, from mirrors, or one line on how to do it by hand."""

from __future__ import annotations

import hashlib
import logging
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from expclr.datasets.download import Resuming
from expclr.datasets.lock import locked
from expclr.datasets.source import Source
from expclr.datasets.store import cache_root, data_root
from expclr.errors import ConfigError, DataError
from expclr.storage import write_text

__all__ = ["fetch"]

log = logging.getLogger(__name__)
RECORDED = "fetched-sha256.txt"


@dataclass(frozen=True)
class Item:
    """One file to have: its place in the dataset's folder, addresses, SHA-256 if known."""

    name: str
    addresses: tuple[str, ...]
    sha256: str | None


def fetch(
    name: str,
    root: str | Path | None = None,
    *,
    files: Sequence[str] = (),
    mirror: str | None = None,
    offline: bool = False,
) -> Path:
    """Download a dataset's raw files into ``<root>/<name>``, or check those that are there.

    Parameters
    ----------
    name : str
        Of a dataset.
    root : path, optional
        Folder of all raw data; default EXPCLR_DATA, else the user's data folder.
    files : sequence of str
        Only the files that fit one of these patterns (``"100.*"``); for ``ucr``, the names of
        the problems.
    mirror : str, optional
        Address of a folder with the same files, asked first.
    offline : bool
        Download nothing: only check that all is there and unchanged.

    Returns
    -------
    Path
        The dataset's folder.
    """
    source = _source(name)
    folder = data_root(root) / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            items = list(_items(source, folder, tuple(files), mirror, offline))
            if not items:
                raise ConfigError(f"no file of {name} fits {', '.join(files)}")
            if not _serves_as_well(source, folder):
                for item in items:
                    _have(item, folder, offline)
    except OSError as error:
        raise DataError(
            f"cannot write {error.filename or folder}: {error.strerror}; set EXPCLR_DATA to a "
            "folder of yours"
        ) from error
    return folder


def _alone(folder: Path) -> AbstractContextManager[None]:
    """One process fetches into a folder at a time; the lock lies in the cache, not beside data."""
    locks = cache_root() / "locks"
    try:
        locks.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        log.debug("fetching without a lock: %s", error)
        return nullcontext()
    return locked(locks / hashlib.sha256(str(folder.resolve()).encode()).hexdigest())


def _serves_as_well(source: Source, folder: Path) -> bool:
    """The files are there under other names, or unpacked."""
    if any((folder / name).is_file() for name in source.files):
        return False
    return any(True for pattern in source.instead for _ in folder.glob(pattern))


def _source(name: str) -> Source:
    from expclr.datasets import DATASETS

    source = getattr(sys.modules[DATASETS[name].__module__], "SOURCE", None)
    if not isinstance(source, Source):
        raise ConfigError(f"{name} has no raw files to fetch: load it as it is")
    return source


def _items(
    source: Source, folder: Path, files: tuple[str, ...], mirror: str | None, offline: bool
) -> Iterator[Item]:
    bases = ((mirror.rstrip("/") + "/",) if mirror else ()) + source.mirrors
    for name, addresses in source.files.items():
        if not files or any(fnmatch(name, pattern) for pattern in files):
            first = (bases[0] + name,) if mirror else ()
            yield Item(name, first + addresses, source.sha256.get(name))
    if source.one_by_one:
        if not files:
            raise ConfigError(
                "this is a collection: say which parts to fetch, as in --files ECG5000 "
                '(in Python files=["ECG5000"])'
            )
        for part in files:
            name = _safe(source.one_by_one.format(part), "files")
            yield Item(name, tuple(base + name for base in bases), source.sha256.get(name))
    elif source.mirrors:
        yield from _listed(source, folder, files, bases, offline)


def _listed(
    source: Source, folder: Path, files: tuple[str, ...], bases: tuple[str, ...], offline: bool
) -> Iterator[Item]:
    """The files that the publisher's list of SHA-256 names, of those that are wanted."""
    path = folder / source.sums
    if not path.is_file():
        listing = Item(source.sums, tuple(base + source.sums for base in bases), None)
        try:
            _have(listing, folder, offline)
        except DataError as error:
            wanted = ", ".join(source.wanted)
            raise DataError(f"{error}, and beside it {wanted} from {bases[0]}") from error
    for line in path.read_text("utf-8", "replace").splitlines():
        found = re.fullmatch(r"([0-9a-fA-F]{64})\s+\*?(.+)", line.strip())
        if found is None:
            raise DataError(f"{path}: {line[:60]!r} is no SHA-256 and name: delete it, fetch again")
        name = _safe(found[2], path)
        if any(fnmatch(name, pattern) for pattern in source.wanted) and (
            not files or any(fnmatch(PurePosixPath(name).name, pattern) for pattern in files)
        ):
            yield Item(name, tuple(base + name for base in bases), found[1].lower())


def _safe(name: str, where: str | Path) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name:
        raise DataError(f"{where}: the name {name!r} leads out of the folder: refused")
    return name


def _have(item: Item, folder: Path, offline: bool) -> None:
    """Check a file that is there; get one that is not, or that is damaged."""
    path = folder / item.name
    recorded = _recorded(folder).get(item.name)
    if path.is_file():
        digest = _digest(path)
        if digest == (item.sha256 or recorded or digest):
            _record(item, folder, digest)
            return
        if item.sha256 is None:
            raise DataError(
                f"{path} has changed since it was fetched: delete it to fetch it again, or its "
                f"line in {folder / RECORDED} to accept it"
            )
        log.warning("%s is damaged, fetching it again", path)
    if offline:
        raise DataError(_by_hand(item, folder, "offline"))
    _download(item, path, item.sha256 or recorded)
    _record(item, folder, _digest(path))


def _download(item: Item, path: Path, sha256: str | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    reason = "no address is known"
    for address in item.addresses:
        try:
            _retrieve(address, path, sha256, Resuming(part, known=sha256 is not None))
            return
        except (OSError, ValueError) as error:  # no network; another hash
            reason = _short(error)
        log.debug("%s: %s", address, reason)
    raise DataError(_by_hand(item, path.parent, reason))


def _retrieve(address: str, path: Path, sha256: str | None, downloader: Resuming) -> None:
    import pooch

    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)  # it writes to the terminal by itself
    try:
        known = None if sha256 is None else f"sha256:{sha256}"
        pooch.retrieve(address, known, path.name, path.parent, downloader=downloader)
    finally:
        logger.setLevel(level)


def _short(error: Exception) -> str:
    if "Max retries exceeded" in str(error):  # a long story that ends with the address again
        return "no connection"
    return " ".join(str(error).split())[:150] or type(error).__name__


def _by_hand(item: Item, folder: Path, reason: str) -> str:
    name = PurePosixPath(item.name).name
    return f"cannot download {name} ({reason}): get {item.addresses[0]} and put it into {folder}"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _recorded(folder: Path) -> dict[str, str]:
    path = folder / RECORDED
    if not path.is_file():
        return {}
    lines = [line.partition("  ") for line in path.read_text("utf-8").splitlines()]
    return {name: digest for digest, _, name in lines}


def _record(item: Item, folder: Path, digest: str) -> None:
    """Where no SHA-256 is published, that of the first download is held to ever after."""
    known = _recorded(folder)
    if item.sha256 is None and item.name not in known:
        known[item.name] = digest
        write_text(folder / RECORDED, "".join(f"{d}  {n}\n" for n, d in known.items()))
