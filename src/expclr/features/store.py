"""Expert features of a Windows folder on disk, computed again only when something changed."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from expclr.features.extraction import compute, named, source_of
from expclr.features.extractor import Extractor
from expclr.features.table import features_from_table, is_table
from expclr.storage import new_folder, read_json, write_json
from expclr.windows import Windows

__all__ = ["copy_windows", "write_features"]


def write_features(folder: str | Path, extractor: Any, *, n_jobs: int | None = 1) -> bool:
    """Compute features of the windows in a folder and keep them there, as its F.

    Name, version and units of the extractor and the fingerprint of the windows go into
    ``meta.json``; while they stay the same, nothing is computed again. A function of your own
    is trusted to be unchanged only if it has an attribute ``version``.

    Parameters
    ----------
    folder : path
        Written by ``Windows.save``; it holds the old features or the new ones at any moment.
    extractor, n_jobs
        As for :func:`expclr.features.extract`.

    Returns
    -------
    bool
        Whether something was computed.

    Examples
    --------
    >>> import tempfile
    >>> folder = Windows(np.eye(8)[:, None], sfreq=50.0).save(tempfile.mkdtemp() + "/windows")
    >>> write_features(folder, "basic"), write_features(folder, "basic")
    (True, False)
    """
    path = Path(folder)
    windows = Windows.load(path)
    meta = read_json(path / "meta.json")
    key = _key(extractor) | {"fingerprint": _fingerprint(path, windows)}
    if key["version"] and key.items() <= meta.get("features", {}).items():
        return False
    with new_folder(path) as aside:
        _carry(path, aside)
        known = key | _write(aside, windows, extractor, n_jobs)
        names = known.pop("names")
        write_json(aside / "meta.json", meta | {"feature_names": names, "features": known})
    return True


def copy_windows(parts: tuple[Windows, Windows | None], folder: str | Path) -> list[Path]:
    """Save windows, or their train and test part, unless the folder holds them already."""
    train, test = parts
    named = [(train, Path(folder))]
    if test is not None:
        named = [(train, Path(folder) / "train"), (test, Path(folder) / "test")]
    for windows, path in named:
        if not (path / "meta.json").exists() or _bare(Windows.load(path)) != _bare(windows):
            path.parent.mkdir(parents=True, exist_ok=True)
            windows.save(path)
    return [path for _, path in named]


def _bare(windows: Windows) -> tuple[str, float | None, tuple[str, ...]]:
    """What tells windows from others, whatever their features."""
    without = windows.with_(F=None, feature_names=())
    return without.fingerprint(), windows.sfreq, windows.channel_names


def _key(extractor: Any) -> dict[str, Any]:
    if is_table(extractor):
        return {"extractor": "table", "version": None}
    name, function = named(extractor)
    return {"extractor": name, "version": getattr(function, "version", None)}


def _write(aside: Path, windows: Windows, extractor: Any, n_jobs: int | None) -> dict[str, Any]:
    """Write F.npy; return what is known of its columns."""
    if is_table(extractor):
        F, names = features_from_table(extractor, len(windows))
        np.save(aside / "F.npy", F)
        return {"names": names}
    name, function = named(extractor)
    source = source_of(windows)

    def make(shape: tuple[int, int]) -> Any:
        return np.lib.format.open_memmap(aside / "F.npy", mode="w+", shape=shape)

    made = compute(name, function, source, make, n_jobs=n_jobs)
    known: dict[str, Any] = {"names": made.names, "missing": made.missing}
    if isinstance(function, Extractor):
        known |= {"units": function.units(source.channels), "uses": function.uses}
    return known


def _carry(folder: Path, aside: Path) -> None:
    """All but the features, without copying where the file system allows."""
    for path in folder.iterdir():
        if path.name in ("F.npy", "meta.json"):
            continue
        try:
            os.link(path, aside / path.name)
        except OSError:
            (shutil.copytree if path.is_dir() else shutil.copy2)(path, aside / path.name)


def _fingerprint(folder: Path, windows: Windows) -> str:
    """SHA-256 over all that features depend on."""
    parts = [repr((windows.sfreq, windows.channel_names))]
    for path in (folder / "X.npy", folder / "lengths.npy"):
        if path.exists():
            with path.open("rb") as file:
                parts.append(hashlib.file_digest(file, "sha256").hexdigest())
    return hashlib.sha256(repr(parts).encode()).hexdigest()
