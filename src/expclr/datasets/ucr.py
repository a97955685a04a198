"""Problems of the UCR and UEA time series archives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from expclr.datasets.archive import Archive, blame, open_archive
from expclr.datasets.missing import Missing
from expclr.datasets.own.cutting import check_padding
from expclr.datasets.source import Source
from expclr.datasets.store import load_pair, prepared, raw_folder
from expclr.datasets.ts_file import Series, parse_table, parse_ts
from expclr.errors import ConfigError, DataError, suggest
from expclr.windows import Windows

__all__ = ["SOURCE", "load"]

SOURCE = Source(
    mirrors=("https://timeseriesclassification.com/aeon-toolkit/",),
    one_by_one="{}.zip",
)
SUFFIXES = (".ts", ".tsv", ".txt")
VERSION = 1


def load(
    root: str | Path | None = None,
    *,
    problem: str | None = None,
    train: str | Path | None = None,
    test: str | Path | None = None,
    missing: Literal["error", "interpolate", "drop"] = "error",
    max_gap: int | None = None,
    mask: bool = False,
) -> tuple[Windows, Windows]:
    """A problem of the UCR or UEA archive, in its published split.

    Univariate or multivariate, of equal or unequal length, with or without missing values;
    ``.ts``, or ``.tsv``/``.txt`` with the class first. A file for regression gives its target
    as F.

    Parameters
    ----------
    root : path, optional
        Folder that holds ``ucr/`` with the archive: ``<problem>/`` or ``<problem>.zip`` in it,
        or one folder deeper.
    problem : str, optional
        Name of the problem; not needed when there is only one, or with files.
    train, test : path, optional
        A pair of files instead.
    missing : {"error", "interpolate", "drop"}
        What is done about missing values; see :func:`expclr.datasets.own.prepare`.
    max_gap : int, optional
    mask : bool

    Returns
    -------
    train, test : Windows
        ``lengths`` is set where series differ in length.
    """
    if (train is None) != (test is None):
        raise ConfigError("give both files, train and test, or a problem")
    if train is not None and test is not None:
        files = [Path(train), Path(test)]
        name = files[0].stem.removesuffix("_TRAIN")
    else:
        name, files = _find(raw_folder("ucr", root, wanted="folders of the archive"), problem)
    policy = {"policy": missing, "longest": max_gap, "mask": mask}
    options = {"version": VERSION, "name": name, **policy}

    def build(to: Path) -> None:
        parts = [_complete(part, Missing(missing, max_gap, mask)) for part in _read(files, name)]
        for folder, windows in zip(("train", "test"), _alike(parts, name), strict=True):
            windows.save(to / folder)

    return load_pair(prepared("ucr", files, options, build))


def _find(folder: Path, problem: str | None) -> tuple[str, list[Path]]:
    """Name of the problem, and its pair of files or its zip."""
    known: dict[str, list[Path]] = {}
    for suffix in reversed(SUFFIXES):
        for path in sorted(folder.glob(f"**/*_TRAIN{suffix}")):
            other = path.with_name(path.name.replace("_TRAIN", "_TEST"))
            known[path.name.removesuffix(f"_TRAIN{suffix}")] = [path, other]
    for path in sorted(folder.glob("**/*.zip")):
        known.setdefault(path.stem, [path])
    if problem is None and len(known) == 1:
        problem = next(iter(known))
    if problem is None:
        raise ConfigError(f"which problem of {folder}? {suggest('', list(known))}")
    if problem not in known:
        raise DataError(
            f"no problem {problem!r} in {folder}: {suggest(problem, list(known))}; or run "
            f"`expclr fetch ucr --files {problem}`"
        )
    return problem, known[problem]


def _read(files: list[Path], name: str) -> list[Series]:
    if len(files) == 2:
        return [_parse(_content(file), str(file)) for file in files]
    with open_archive(files[0]) as archive:
        members = [_member(archive, name, part) for part in ("TRAIN", "TEST")]
        return [_parse(archive.read(member), archive.where(member)) for member in members]


def _content(file: Path) -> bytes:
    with blame(file):
        return file.read_bytes()


def _member(archive: Archive, name: str, part: str) -> str:
    for suffix in SUFFIXES:
        ending = f"{name}_{part}{suffix}"
        if any(Path(known).name == ending for known in archive.names):
            return archive.find(ending)
    raise DataError(f"{archive.path} has no {name}_{part}.ts, .tsv or .txt in it")


def _parse(content: bytes, where: str) -> Series:
    parse = parse_ts if where.endswith(".ts") else parse_table
    return parse(content, where)


def _complete(series: Series, missing: Missing) -> Series:
    """Treat missing values, one series after the other, since they differ in length."""
    X, kept = [], []
    for x in series.X:
        filled, keep = missing.apply(x[None])
        X.append(filled[0])
        kept.append(bool(keep[0]))
    missing.finish("the problem")
    rows = np.flatnonzero(kept)
    return Series(
        [X[i] for i in rows],
        None if series.label is None else [series.label[i] for i in rows],
        series.classes,
        None if series.target is None else series.target[rows],
    )


def _alike(parts: list[Series], name: str) -> list[Windows]:
    """Windows of both files, with the same classes, channels and padded length."""
    lengths = [np.array([x.shape[1] for x in part.X]) for part in parts]
    channels = {len(x) for part in parts for x in part.X}
    if not all(len(length) for length in lengths) or len(channels) > 1:
        raise DataError(f"{name}: both files need a series, with as many channels in each")
    both = np.concatenate(lengths)
    check_padding(both, name)
    same = bool((both == both[0]).all())
    classes = _classes(parts)
    return [
        Windows(
            _padded(part.X, int(both.max())),
            F=None if part.target is None else part.target[:, None],
            y=None if part.label is None else np.array([classes.index(v) for v in part.label]),
            lengths=None if same else length,
            feature_names=() if part.target is None else ("target",),
            class_names=classes,
            name=name,
        )
        for part, length in zip(parts, lengths, strict=True)
    ]


def _classes(parts: list[Series]) -> tuple[str, ...]:
    """As the first file lists them; else those that occur, numbers in their order."""
    if parts[0].classes and set(parts[1].classes) <= set(parts[0].classes):
        return parts[0].classes
    names = sorted({name for part in parts for name in part.label or ()})
    return tuple(sorted(names, key=float)) if _all_numbers(names) else tuple(names)


def _all_numbers(names: Sequence[str]) -> bool:
    try:
        return all(np.isfinite(float(name)) for name in names)
    except ValueError:
        return False


def _padded(X: list[NDArray[Any]], t: int) -> NDArray[np.float32]:
    padded = np.zeros((len(X), len(X[0]), t), np.float32)
    for row, x in zip(padded, X, strict=True):
        row[:, : x.shape[1]] = x
    return padded
