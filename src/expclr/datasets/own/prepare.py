"""A user's own data: from files of any size to a memory-mapped store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from expclr.datasets.checks import check_split
from expclr.datasets.choices import check_options
from expclr.datasets.missing import Missing
from expclr.datasets.own.blocks import Gathered, label_codes, save_around, write_blocks
from expclr.datasets.own.cutting import LARGEST_WINDOW
from expclr.datasets.own.reading import Reading, open_stream
from expclr.datasets.own.side_files import is_file_name, read_side
from expclr.datasets.own.splitting import deal_out, held_out
from expclr.errors import ConfigError, DataError
from expclr.storage import new_folder, refuse_strangers

__all__ = ["prepare"]

STORE = (
    "train",
    "test",
    "meta.json",
    *(f"{name}.npy" for name in ("X", "F", "y", "group", "lengths")),
)


def prepare(
    out: str | Path,
    x: str | Path,
    *,
    features: str | Path | Sequence[str] | None = None,
    labels: str | Path | None = None,
    group: str | Path | None = None,
    case: str | None = None,
    time: str | None = None,
    channels: str | Sequence[str] = (),
    intervals: str | Path | None = None,
    sfreq: float | None = None,
    length: int | None = None,
    step: int | None = None,
    test: float | str | Path | Sequence[Any] | None = 0.3,
    missing: Literal["error", "interpolate", "drop"] = "error",
    max_gap: int | None = None,
    mask: bool = False,
    allow: Sequence[str] = (),
    name: str = "",
    random_state: int = 0,
) -> Path:
    """Make a store of your own recordings, whatever their size.

    Parameters
    ----------
    out : path
        Folder to make: ``train`` and ``test`` in it, or one Windows folder with ``test=None``.
    x : path
        The signals, one of

        - ``.npz`` with X (n, c, t) and, as far as known, F, y, group, lengths, sfreq, names;
        - a folder of ``X.npy``, ``F.npy``, ``y.npy``, ...; or one ``.npy`` (n, c, t) or (n, t);
        - a long table (``.csv``, ``.parquet``): a row for each sample, with columns for case,
          time and each channel, or case, time, ``channel`` and ``value``;
        - a wide table: a row for each window, its columns the samples, channel after channel;
        - one recording or a folder of them: ``.csv``, ``.parquet``, ``.edf``, ``.hea`` (WFDB),
          ``.npy`` (c, t).
    features, labels, group : str
        Columns of the table (features: several, as a list or with commas), or files with a row
        for each window, or for each case when they have a column ``case`` or ``recording``.
        Labels that are empty, ``nan`` or ``-1`` are unknown. In a window that is cut, the label
        is the most frequent one, the features are means. The group of a recording is its name
        unless given; a case in one of several files is called ``file/case``.
    case, time : str
        Columns of a long table, those called ``case`` and ``time`` unless given; a table that
        has one is long. Times are seconds or dates; they must increase, and what they skip
        counts as missing.
    channels : str or sequence of str
        Columns or signals to take; of a wide table or array, their names.
    intervals : path
        Table with the columns recording, start, end, label: labels in seconds, on the clock of
        ``time``, else from the first sample.
    sfreq : float
        Samples a second, where the source does not say.
    length, step : int
        Cut recordings and cases into windows of so many samples, every so many (default
        ``length``). Without it each case is one window, padded to the longest.
    test : float, sequence, path or None
        Fraction of the groups held out for testing (of the windows when there are no groups,
        class by class), groups (one or a list), another source of the same form, or nothing.
    missing : {"error", "interpolate", "drop"}
        NaN in a signal: refuse with count and place, fill gaps of up to ``max_gap`` samples
        (default a quarter of the window), or leave such windows out.
    max_gap : int
    mask : bool
        Add the channel ``missing``: 1 where a sample was filled.
    allow : sequence of {"duplicates", "shared-groups"}
        Accept the same window, or the same group, in train and test.
    name : str
        Of the dataset; default that of ``out``.
    random_state : int
        Which groups are held out.

    Returns
    -------
    Path
        ``out``, memory-mapped by ``Windows.load``. Memory stays within some hundred megabytes.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> rows = [f"{case},{t / 10},{t + n}\\n" for n, case in enumerate("abcd") for t in range(40)]
    >>> _ = (folder / "runs.csv").write_text("case,time,torque\\n" + "".join(rows))
    >>> store = prepare(folder / "runs", folder / "runs.csv", time="time", length=10, test=["d"])
    >>> from expclr import Windows
    >>> Windows.load(store / "train")
    Windows(runs: 12 windows, 1 channels x 10 timepoints, 3 groups)
    """
    check_options("prepare", prepare, locals())
    labels, group = (str(v) if v else None for v in (labels, group))
    chosen = _Choices(
        features=_side(features), labels=_side(labels), group=_side(group), missing=missing,
        max_gap=max_gap, mask=mask, name=name or Path(out).name,
    )  # fmt: skip
    reading = Reading(
        case=case or None,
        time=time or None,
        channels=_names(channels),
        labels=None if chosen.labels else labels,
        group=None if chosen.group else group,
        features=() if chosen.features else _names(features or ()),
        intervals=None if intervals is None else str(intervals),
        sfreq=sfreq,
        length=length,
        step=step,
        apart=tuple(str(v) for v in (intervals, chosen.features, chosen.labels, chosen.group) if v),
    )
    _check_choices(labels, intervals, length, step)
    _check_out(Path(out), Path(x))
    if isinstance(test, str) and not _is_source(test):
        test = [test]
    with new_folder(out, known=STORE) as folder:
        if test is None:
            (known,) = _read([(x, folder)], chosen, reading)
            save_around(folder, str(x), **known)
        elif isinstance(test, str | Path):
            sources = [(x, folder / "train"), (test, folder / "test")]
            _save_pair(_read(sources, chosen, reading), folder, (x, test), allow)
        else:
            (known,) = _read([(x, folder / "all")], chosen, reading)
            held = held_out(known["group"], known.get("y"), test, random_state=random_state)
            _save_pair(deal_out(folder, known, held), folder, (x, x), allow)
    return Path(out)


@dataclass(frozen=True)
class _Choices:
    """What is done with the windows once they are read."""

    features: str | None
    labels: str | None
    group: str | None
    missing: Literal["error", "interpolate", "drop"]
    max_gap: int | None
    mask: bool
    name: str


def _side(value: str | Path | Sequence[str] | None) -> str | None:
    return str(value) if isinstance(value, str | Path) and is_file_name(str(value)) else None


def _is_source(test: str) -> bool:
    """Whether it is a file or folder, there or mistyped, rather than a group."""
    ends = (".npz", ".edf", ".hea")
    return Path(test).exists() or is_file_name(test) or test.lower().endswith(ends)


def _names(value: str | Path | Sequence[str]) -> tuple[str, ...]:
    parts = str(value).split(",") if isinstance(value, str | Path) else map(str, value)
    return tuple(name.strip() for name in parts if name.strip())


def _check_choices(
    labels: str | None, intervals: str | Path | None, length: int | None, step: int | None
) -> None:
    if labels and intervals:
        raise ConfigError("give labels or intervals, not both")
    if step is not None and length is None:
        raise ConfigError("step is given without length: how long is a window?")
    if length is not None and 4 * length > LARGEST_WINDOW:
        raise ConfigError(f"length is {length}: so long a window does not fit in memory")
    if length is not None and (length < 1 or (step is not None and step < 1)):
        raise ConfigError(f"length is {length} and step {step}: whole numbers from 1 are wanted")


def _check_out(out: Path, x: Path) -> None:
    """A store is made anew; what is no store, or the source itself, must not be lost."""
    if x.resolve().is_relative_to(out.resolve()):
        raise DataError(f"{x} lies in {out}, which would be replaced: choose another name")
    refuse_strangers(out, STORE)
    is_store = any((out / part / "meta.json").is_file() for part in (".", "train"))
    if out.exists() and not is_store and any(out.iterdir()):
        raise DataError(f"{out} is there already and is no store of windows: choose another name")


def _read(
    sources: list[tuple[str | Path, Path]], chosen: _Choices, reading: Reading
) -> list[dict[str, Any]]:
    """Write the X.npy of each source into its folder; give the other fields of its Windows."""
    parts: list[tuple[Gathered, dict[str, Any]]] = []
    for source, folder in sources:
        folder.mkdir(exist_ok=True)
        stream = open_stream(source, reading, folder)
        missing = Missing(chosen.missing, chosen.max_gap, chosen.mask)
        gathered = write_blocks(folder / "X.npy", stream.blocks, missing, str(source))
        parts.append((gathered, stream.known))
    return _settle(parts, chosen, reading)


def _settle(
    parts: list[tuple[Gathered, dict[str, Any]]], chosen: _Choices, reading: Reading
) -> list[dict[str, Any]]:
    """Join files of their own, and number the classes of all parts alike."""
    F_names: tuple[str, ...] = reading.features
    found: list[dict[str, Any]] = []
    for gathered, known in parts:
        own = {"F": gathered.F, "label": gathered.label, "group": gathered.group}
        for field, path in (
            ("F", chosen.features),
            ("label", chosen.labels),
            ("group", chosen.group),
        ):
            if path:
                side = read_side(path, numeric=field == "F", key=reading.case)
                own[field] = side.rows(gathered)
                F_names = side.names if field == "F" else F_names
        names = tuple(known.get("channel_names") or ())
        if chosen.mask and names:
            names += ("missing",)
        entry = known | own | {"lengths": gathered.lengths, "name": chosen.name}
        entry |= {"channel_names": names, "feature_names": known.get("feature_names") or F_names}
        found.append(entry)
    _number_classes(found)
    return found


def _number_classes(parts: list[dict[str, Any]]) -> None:
    """Put ``y`` and ``class_names`` in the place of ``label``; codes with names stay."""
    labels = [part.pop("label") for part in parts]
    if any(label is None for label in labels):
        return
    together = np.concatenate(labels)
    if together.dtype.kind in "biu":
        for part, label in zip(parts, labels, strict=True):
            part["y"] = label.astype(np.int64)
        return
    codes, names = label_codes(together)
    ends = np.cumsum([len(label) for label in labels])[:-1]
    for part, y in zip(parts, np.split(codes, ends), strict=True):
        part |= {"y": y, "class_names": names}


def _save_pair(
    parts: list[dict[str, Any]],
    folder: Path,
    sources: tuple[str | Path, str | Path],
    allow: Sequence[str],
) -> None:
    train, test = (
        save_around(folder / part, str(source), **known)
        for part, source, known in zip(("train", "test"), sources, parts, strict=True)
    )
    if train.X.shape[1:] != test.X.shape[1:]:
        raise DataError(
            f"train windows are {train.X.shape[1:]} and test windows {test.X.shape[1:]}: channels "
            "and timepoints must agree"
        )
    check_split(train, test, allow=allow, files=(folder / "train/X.npy", folder / "test/X.npy"))
