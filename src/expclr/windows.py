"""Windows: sensor windows with what is known about them, the one thing that travels."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Self
from zipfile import is_zipfile

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expclr import arrays
from expclr.errors import DataError
from expclr.storage import new_folder, read_json, write_json

__all__ = ["Windows", "as_windows", "load_windows", "warn_if_transposed"]

FORMAT = 1
_ARRAYS = ("X", "F", "y", "group", "lengths")
_META = ("sfreq", "channel_names", "feature_names", "class_names", "name")
_CHUNK = 1 << 24  # values looked at in one go when a memory-mapped X is checked


@dataclass(frozen=True, eq=False)
class Windows:
    """Sensor windows and, as far as known, their expert features, labels and groups.

    Parameters
    ----------
    X : array (n, c, t), float32
        n windows of c channels and t timepoints; may be memory-mapped.
    F : array (n, d), optional
        Expert features; NaN where a value is missing.
    y : array (n,) of int, optional
        Class of each window, an index into ``class_names``; -1 where it is not known.
    group : array (n,), optional
        Where a window comes from (subject, patient, machine): what a fair split keeps apart.
    lengths : array (n,) of int, optional
        Timepoints that are real when series have unequal length; the rest is padding.
    sfreq : float, optional
        Sampling frequency in Hz.
    channel_names, feature_names, class_names : tuples of str
    name : str
        Of the dataset.

    Examples
    --------
    >>> import numpy as np
    >>> windows = Windows(np.zeros((4, 2, 16)), y=[0, 1, 1, -1], group=[7, 7, 8, 8])
    >>> windows
    Windows(4 windows, 2 channels x 16 timepoints, 2 classes, 2 groups)
    >>> train, test = windows.split_by_group([8])
    >>> len(train), test.y.tolist()
    (2, [1, -1])
    """

    X: NDArray[np.float32]
    F: NDArray[np.floating[Any]] | None = None
    y: NDArray[np.int64] | None = None
    group: NDArray[Any] | None = None
    lengths: NDArray[np.int64] | None = None
    sfreq: float | None = None
    channel_names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()
    name: str = ""

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "X", arrays.signal(self.X))
        put(self, "F", None if self.F is None else arrays.features(self.F, len(self.X)))
        put(self, "y", None if self.y is None else arrays.whole_numbers(self.y, "y", len(self.X)))
        put(self, "group", None if self.group is None else arrays.groups(self.group, len(self.X)))
        put(
            self,
            "lengths",
            None if self.lengths is None else arrays.real_lengths(self.lengths, self.X),
        )
        put(self, "sfreq", None if self.sfreq is None else arrays.positive(self.sfreq, "sfreq"))
        for names in ("channel_names", "feature_names", "class_names"):
            put(self, names, tuple(str(name) for name in getattr(self, names)))
        self._check_names()

    def _check_names(self) -> None:
        d = 0 if self.F is None else self.F.shape[1]
        for what, names, size in (
            ("channel_names", self.channel_names, self.X.shape[1]),
            ("feature_names", self.feature_names, d),
        ):
            if names and len(names) != size:
                raise DataError(f"{len(names)} {what} for {size}: give one name each, or none")
        highest = -1 if self.y is None or not len(self.y) else int(self.y.max())
        if self.class_names and highest >= len(self.class_names):
            raise DataError(
                f"y holds class {highest} but there are {len(self.class_names)} class_names: "
                "give one name for each class"
            )

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        n, c, t = self.X.shape
        parts = [f"{n} windows", f"{c} channels x {t} timepoints"]
        if self.lengths is not None:
            parts[-1] += f" ({self.lengths.min()} to {self.lengths.max()} real)"
        if self.F is not None:
            parts.append(f"{self.F.shape[1]} features")
        if self.y is not None:
            parts.append(f"{len(self.classes)} classes")
        if self.group is not None:
            parts.append(f"{len(np.unique(self.group))} groups")
        name = f"{self.name}: " if self.name else ""
        return f"Windows({name}{', '.join(parts)})"

    @property
    def classes(self) -> NDArray[np.int64]:
        """The classes that occur, without -1."""
        y = self._need("y")
        return np.unique(y[y >= 0])

    def _need(self, field: str) -> NDArray[Any]:
        value = getattr(self, field)
        if value is None:
            raise DataError(f"these windows have no {field}: give Windows(..., {field}=...)")
        return value

    def with_(self, **changes: Any) -> Self:
        """A copy that differs in the named fields."""
        return replace(self, **changes)

    def check_finite(self) -> Self:
        """Raise a DataError with count and place if X holds NaN or inf; else return self."""
        step = max(1, _CHUNK // max(1, self.X[0].size if len(self.X) else 1))
        bad = [
            start + np.flatnonzero(~np.isfinite(self.X[start : start + step]).all(axis=(1, 2)))
            for start in range(0, len(self.X), step)
        ]
        windows = np.concatenate(bad) if bad else np.zeros(0, int)
        if len(windows):
            first = int(windows[0])
            channel, time = np.argwhere(~np.isfinite(self.X[first]))[0]
            raise DataError(
                f"X holds NaN or inf in {len(windows)} of {len(self)} windows, first in window "
                f"{first}, channel {channel}, timepoint {time}: drop or fill them first"
            )
        return self

    def fingerprint(self) -> str:
        """Twelve characters that tell these windows from others, by size and by content.

        All of F, y, group and lengths counts, and of X the 64 windows that share it out evenly.
        """
        digest = hashlib.sha256(repr(self.X.shape).encode())
        digest.update(self.X[np.linspace(0, len(self) - 1, 64).astype(int)].tobytes())
        for field in _ARRAYS[1:]:
            if (array := getattr(self, field)) is not None:
                digest.update(field.encode() + array.tobytes())
        return digest.hexdigest()[:12]

    def content(self) -> str:
        """Characters that tell apart all that an encoder sees: every value of X, and lengths."""
        digest = hashlib.blake2b(repr((self.X.shape, self.X.dtype)).encode(), digest_size=16)
        step = max(1, _CHUNK // max(1, self.X[0].size if len(self.X) else 1))
        for start in range(0, len(self.X), step):
            digest.update(np.ascontiguousarray(self.X[start : start + step]).data)
        digest.update(b"" if self.lengths is None else self.lengths.tobytes())
        return digest.hexdigest()

    def subset(self, index: slice | ArrayLike) -> Self:
        """The windows at ``index``: a slice (no copy), a mask or positions."""
        at: Any = index if isinstance(index, slice) else np.asarray(index)
        parts = {k: v[at] for k in _ARRAYS if (v := getattr(self, k)) is not None}
        return replace(self, **parts)

    def labelled(self) -> Self:
        """Only the windows whose class is known."""
        return self.subset(self._need("y") >= 0)

    def split_by_group(
        self, test: float | Sequence[Any] | NDArray[Any], *, random_state: int = 0
    ) -> tuple[Self, Self]:
        """Split into (train, test) such that no group is on both sides.

        ``test`` is a list of groups, or the fraction of groups to draw.
        """
        held = self.group_mask(test, random_state=random_state)
        return self.subset(~held), self.subset(held)

    def group_mask(
        self, test: float | Sequence[Any] | NDArray[Any], *, random_state: int = 0
    ) -> NDArray[np.bool_]:
        """True for the windows of the test groups of ``split_by_group``."""
        group = self._need("group")
        known = np.unique(group)
        if isinstance(test, int | float):
            chosen = _draw_groups(known, float(test), random_state)
        else:
            chosen = np.asarray(test)
            missing = np.setdiff1d(chosen.astype(str), known.astype(str))
            if len(missing):
                raise DataError(
                    f"no group {', '.join(missing)}: known are {', '.join(map(str, known))}"
                )
        return np.isin(group.astype(str), chosen.astype(str))

    def label_fraction(self, fraction: float, *, random_state: int = 0) -> Self:
        """Keep the labels of a stratified fraction of the labelled windows, set the rest to -1.

        For one ``random_state`` the subsets are nested: every window labelled at 5 % is also
        labelled at 10 %. Each class keeps at least one label.
        """
        if not 0 < fraction <= 1:
            raise DataError(f"label_fraction is {fraction}: give a number above 0 and up to 1")
        y = self._need("y")
        kept = np.full_like(y, -1)
        for label in self.classes:
            members = np.flatnonzero(y == label)
            order = np.random.default_rng([random_state, int(label)]).permutation(members)
            chosen = order[: max(1, round(fraction * len(members)))]
            kept[chosen] = label
        return replace(self, y=kept)

    def save(self, path: str | Path) -> Path:
        """Write a folder of .npy files and meta.json that ``load`` memory-maps."""
        with new_folder(path, known=[f"{field}.npy" for field in _ARRAYS]) as folder:
            for field in _ARRAYS:
                if (array := getattr(self, field)) is not None:
                    np.save(folder / f"{field}.npy", array, allow_pickle=False)
            meta = {"format": FORMAT, "windows": len(self)}
            write_json(folder / "meta.json", meta | {k: getattr(self, k) for k in _META})
        return Path(path)

    @classmethod
    def load(cls, path: str | Path, *, mmap: bool = True) -> Self:
        """Open a folder written by ``save``; X stays on disk unless ``mmap`` is False."""
        folder = Path(path)
        if not folder.is_dir():
            raise DataError(f"no folder {folder}: give a folder that Windows.save wrote")
        meta = read_json(folder / "meta.json")
        if not isinstance(meta, dict) or meta.get("format") != FORMAT:
            raise DataError(f"{folder}/meta.json is not of format {FORMAT}: save the windows again")
        found: dict[str, Any] = {
            field: _load_array(folder / f"{field}.npy", mmap=mmap and field == "X")
            for field in _ARRAYS
            if (folder / f"{field}.npy").exists()
        }
        if "X" not in found:
            raise DataError(f"{folder}/X.npy is missing: save the windows again")
        try:
            return cls(**found, **{k: meta[k] for k in _META if k in meta})
        except DataError as error:
            raise DataError(f"{folder}: {error}") from error

    @classmethod
    def from_npz(cls, path: str | Path) -> Windows:
        """Read an .npz with the keys X and, as far as known, F, y, group, lengths, sfreq, names."""
        values = _read_npz(path)
        known = {f.name for f in fields(cls)}
        if "X" not in values:
            raise DataError(
                f"{path} has the keys {', '.join(values)}: an array X (n, c, t) is wanted"
            )
        values = {key: value for key, value in values.items() if key in known}
        for key in ("sfreq", "name"):
            if key in values:
                values[key] = values[key].item()
        return cls(**_with_codes(values))

    @classmethod
    def from_files(cls, x: str | Path, **options: Any) -> Windows:
        """Read recordings or tables of any size, once; they stay on disk.

        Parameters
        ----------
        x : path
            ``.npz``, ``.npy``, a folder of them, a long or wide table (``.csv``, ``.parquet``), one
            recording or a folder of recordings (``.csv``, ``.edf``, ``.hea``).
        **options
            How: those of :func:`expclr.datasets.own.prepare` but ``test`` and ``allow``.

        Examples
        --------
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> rows = [f"{i / 10},{i % 7},{'on' if i < 20 else 'off'}\\n" for i in range(40)]
        >>> _ = (folder / "pump.csv").write_text("time,torque,state\\n" + "".join(rows))
        >>> options = {"time": "time", "labels": "state", "length": 10}
        >>> Windows.from_files(folder / "pump.csv", root_cache=folder / "cache", **options)
        Windows(pump: 4 windows, 1 channels x 10 timepoints, 2 classes, 1 groups)
        """
        from expclr.datasets.own import open_windows

        return open_windows(x, **options)


def load_windows(path: str | Path) -> Windows:
    """Open a Windows folder or an .npz file."""
    return Windows.from_npz(path) if str(path).endswith(".npz") else Windows.load(path)


def as_windows(X: Any, **known: Any) -> Windows:
    """Make Windows of whatever a user has.

    Parameters
    ----------
    X : Windows, array (n, c, t), array (n, t) or list of arrays (c, t_i) or (t_i,)
        Series of unequal length are padded with zeros, and ``lengths`` set.
    **known
        Fields of :class:`Windows`; a DataFrame as F gives the feature names; y may hold
        names or None.

    Examples
    --------
    >>> import numpy as np
    >>> as_windows([np.ones((2, 5)), np.ones((2, 3))]).lengths.tolist()
    [5, 3]
    """
    known = _with_codes(known)
    if isinstance(X, Windows):
        return X.with_(**known) if known else X
    if isinstance(X, list | tuple) and len(X) and not np.isscalar(X[0]) and np.ndim(X[0]) >= 1:
        X, lengths = arrays.pad(X)
        known.setdefault("lengths", lengths)
    windows = Windows(X, **known)
    warn_if_transposed(windows)
    return windows


def _with_codes(known: dict[str, Any]) -> dict[str, Any]:
    """Fields of Windows with a DataFrame's names kept, and class names as codes."""
    named = dict(known)
    if hasattr(known.get("F"), "columns") and "feature_names" not in known:
        named["feature_names"] = tuple(map(str, known["F"].columns))
    if known.get("y") is not None and "class_names" not in known:
        named["y"], named["class_names"] = arrays.class_codes(known["y"])
    return named


def _draw_groups(known: NDArray[Any], fraction: float, random_state: int) -> NDArray[Any]:
    if not 0 < fraction < 1 or len(known) < 2:
        raise DataError(
            f"cannot hold out a fraction of {fraction} of {len(known)} groups: "
            "at least 2 groups and a fraction between 0 and 1 are wanted"
        )
    size = min(len(known) - 1, max(1, round(fraction * len(known))))
    return np.random.default_rng(random_state).choice(known, size, replace=False)


def _read_npz(path: str | Path) -> dict[str, NDArray[Any]]:
    try:
        with open(path, "rb") as file:
            if is_zipfile(file):
                file.seek(0)
                with np.load(file, allow_pickle=False) as data:
                    return {key: data[key] for key in data.files}
    except FileNotFoundError as error:
        raise DataError(f"no file {path}: check the name") from error
    except Exception as error:  # numpy, zipfile and zlib each have their own errors
        raise DataError(f"{path} is not a readable .npz ({error}): write it again") from error
    raise DataError(f"{path} is no whole .npz file: write it with numpy.savez(path, X=X, F=F)")


def _load_array(path: Path, *, mmap: bool) -> NDArray[Any]:
    try:
        return np.load(path, mmap_mode="r" if mmap else None, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise DataError(
            f"{path} is not a readable .npy ({error}): save the windows again"
        ) from error


def warn_if_transposed(windows: Windows) -> None:
    """Say that X looks transposed when it has more channels than timepoints."""
    _, c, t = windows.X.shape
    if c > t:
        warnings.warn(
            f"X has {c} channels and {t} timepoints; that looks like (n, t, c): transpose?",
            UserWarning,
            stacklevel=3,
        )
