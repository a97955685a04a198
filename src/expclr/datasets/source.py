"""Where a dataset's raw files can be got from; each dataset's module has one, as ``SOURCE``."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Source"]


@dataclass(frozen=True)
class Source:
    """Addresses of raw files.

    Parameters
    ----------
    files : dict
        Name of each file in the dataset's folder -> its addresses, the mirrors after the first.
    sha256 : dict
        Known SHA-256 of those files. What is not listed is recorded at the first download.
    mirrors : tuple of str
        For a dataset of many files: addresses of its folder, each ending in ``/``. The folder
        holds a list of all files with their SHA-256, as PhysioNet's does.
    wanted : tuple of str
        Patterns (as in ``*.dat``) of the files in that list to get.
    sums : str
        Name of that list; empty where there is none.
    one_by_one : str
        For a collection: how the file of one of its parts is called, as in ``{}.zip``; which
        parts is said when they are fetched.
    instead : tuple of str
        Patterns of what serves as well as ``files``, such as an unpacked folder.
    """

    files: dict[str, tuple[str, ...]] = field(default_factory=dict)
    sha256: dict[str, str] = field(default_factory=dict)
    mirrors: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    sums: str = "SHA256SUMS.txt"
    one_by_one: str = ""
    instead: tuple[str, ...] = ()
