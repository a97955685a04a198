"""A user's own source as Windows, without choosing a folder for the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from expclr.datasets.own.prepare import prepare
from expclr.datasets.own.side_files import is_file_name
from expclr.datasets.store import prepared
from expclr.errors import DataError
from expclr.windows import Windows

__all__ = ["open_windows"]


def open_windows(x: str | Path, *, root_cache: str | Path | None = None, **options: Any) -> Windows:
    """Read any source that :func:`prepare` reads, once; afterwards it is opened from the cache.

    Parameters
    ----------
    x : path
        ``.npz``, ``.npy``, a folder of them, a long or wide table, recordings.
    root_cache : path, optional
        Default EXPCLR_CACHE, else the user's cache folder.
    **options
        Those of :func:`prepare` but ``test`` and ``allow``.

    Returns
    -------
    Windows
        Memory-mapped.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("state,t0,t1,t2\\non,1,2,3\\noff,4,5,6\\n")
    >>> open_windows(folder / "a.csv", labels="state", root_cache=folder / "cache")
    Windows(a: 2 windows, 1 channels x 3 timepoints, 2 classes)
    """
    path = Path(x)
    if not path.exists():
        raise DataError(f"no file or folder {path}: check the name")
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    side = [v for v in options.values() if isinstance(v, str | Path) and is_file_name(str(v))]
    named = {"name": path.stem} | options

    def build(folder: Path) -> None:
        prepare(folder / "all", path, test=None, **named)

    keyed = {key: str(value) for key, value in sorted(named.items())}
    store = prepared("own", [*files, *map(Path, side)], keyed, build, root_cache=root_cache)
    return Windows.load(store / "all")
