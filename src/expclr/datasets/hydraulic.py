"""The UCI hydraulic rig: minute-long cycles of a test bench whose parts wear in known grades."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from expclr.datasets.archive import Archive, open_archive
from expclr.datasets.source import Source
from expclr.datasets.store import load_pair, prepared, raw_folder
from expclr.datasets.text import number_table
from expclr.errors import ConfigError, DataError, suggest
from expclr.windows import Windows

__all__ = ["CONDITIONS", "SOURCE", "load", "read"]

SOURCE = Source(
    {
        "condition+monitoring+of+hydraulic+systems.zip": (
            "https://archive.ics.uci.edu/static/public/447/"
            "condition+monitoring+of+hydraulic+systems.zip",
        )
    },
    instead=("*.zip", "profile.txt"),
)
CONDITIONS = ("cooler", "valve", "pump", "accumulator")  # %, %, grade of leakage, bar
FLAG = ("stable", "settling")
SENSORS = ("CE", "CP", "TS1", "TS2", "TS3", "TS4")
STATISTICS = ("mean", "std", "slope")
VERSION = 1


def load(
    root: str | Path | None = None,
    *,
    label: str = "stable",
    features: Literal["conditions", "statistics"] = "conditions",
    sensors: Sequence[str] = SENSORS,
    test: float = 0.3,
    random_state: int = 0,
) -> tuple[Windows, Windows]:
    """Condition monitoring of a hydraulic system (Helwig 2015), 2205 cycles of 60 s at 1 Hz.

    Parameters
    ----------
    root : path, optional
        Folder that holds ``hydraulic/`` with a tab-separated file for each sensor and
        ``profile.txt``, or with the zip of them.
    label : {"stable", "cooler", "valve", "pump", "accumulator"}
        The class: the stable flag, or one of the graded conditions.
    features : {"conditions", "statistics"}
        The graded conditions that are not the label, or mean, standard deviation and slope of
        each sensor.
    sensors : sequence of str
        Files to read as channels; those of 1 Hz, since they must have as many samples.
    test : float
        Fraction of the test runs. A run is a stretch of cycles under the same four conditions;
        its cycles are alike, so runs are the groups, and no run is on both sides.
    random_state : int
        Which runs are held out.

    Returns
    -------
    train, test : Windows
    """
    if label not in ("stable", *CONDITIONS):
        raise ConfigError(f"no label {label!r}: {suggest(label, ['stable', *CONDITIONS])}")
    if features not in ("conditions", "statistics"):
        raise ConfigError(f"features is {features!r}: wanted is 'conditions' or 'statistics'")
    sensors = [str(name) for name in sensors]
    if not sensors:
        raise ConfigError(f"no sensors are named: some of {', '.join(SENSORS)} are wanted")
    folder = raw_folder("hydraulic", root, wanted="profile.txt and a file for each sensor")
    files = [folder / f"{name}.txt" for name in (*sensors, "profile")]
    source = folder if files[-1].is_file() else _zip(folder)
    if source is folder:
        _check_sensors(folder, sensors)

    def build(to: Path) -> None:
        windows = read(source, tuple(sensors), label=label, features=features)
        train, held = windows.split_by_group(test, random_state=random_state)
        train.save(to / "train")
        held.save(to / "test")

    options = {
        "version": VERSION,
        "label": label,
        "features": features,
        "sensors": list(sensors),
        "test": test,
        "random_state": random_state,
    }
    return load_pair(prepared("hydraulic", [source] if source.is_file() else files, options, build))


def _zip(folder: Path) -> Path:
    zips = sorted(folder.glob("*.zip"))
    if not zips:
        raise DataError(f"no profile.txt and no zip in {folder}: put one there")
    return zips[0]


def _check_sensors(folder: Path, sensors: Sequence[str]) -> None:
    known = [path.stem for path in folder.glob("*.txt") if path.stem != "profile"]
    for name in sensors:
        if name not in known:
            raise DataError(f"no {name}.txt in {folder}: {suggest(name, known)}")


def read(source: Path, sensors: tuple[str, ...], *, label: str, features: str) -> Windows:
    """Read all cycles from the zip or the folder ``source``."""
    with open_archive(source) as archive:
        return _read(archive, sensors, label, features)


def _read(archive: Archive, sensors: tuple[str, ...], label: str, features: str) -> Windows:
    profile = _table(archive, "profile")
    if profile.shape[1] != len(CONDITIONS) + 1:
        raise DataError(
            f"profile.txt has {profile.shape[1]} columns: {', '.join(CONDITIONS)} and the stable "
            "flag are wanted"
        )
    X = _cycles(archive, sensors, len(profile))
    y, classes = _labels(profile, label)
    F, names = _conditions(profile, label) if features == "conditions" else _statistics(X, sensors)
    return Windows(
        X,
        F=F,
        y=y,
        group=_runs(profile),
        sfreq=1.0,
        channel_names=sensors,
        feature_names=names,
        class_names=classes,
        name="hydraulic",
    )


def _table(archive: Archive, name: str) -> NDArray[np.float64]:
    found = archive.find(f"{name}.txt")
    with archive.open(found) as file:
        return number_table(file, archive.where(found))


def _cycles(archive: Archive, sensors: tuple[str, ...], n: int) -> NDArray[np.float32]:
    """Stack the sensors as channels (n, c, t)."""
    tables = [_table(archive, name).astype(np.float32) for name in sensors]
    wanted = (n, tables[0].shape[1])
    for name, table in zip(sensors, tables, strict=True):
        if table.shape != wanted:
            raise DataError(
                f"{name}.txt has {table.shape[0]} cycles of {table.shape[1]} samples: {n} as in "
                f"profile.txt, of {wanted[1]} as in {sensors[0]}.txt are wanted"
            )
    return np.stack(tables, axis=1)


def _labels(profile: NDArray[np.float64], label: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    column = profile[:, ("stable", *CONDITIONS).index(label) - 1]
    grades, y = np.unique(column, return_inverse=True)
    if label == "stable":
        if not np.isin(grades, (0, 1)).all():
            raise DataError(f"profile.txt has the stable flags {grades[:9]}: 0 and 1 are wanted")
        return column.astype(np.int64), FLAG
    return y, tuple(f"{grade:g}" for grade in grades)


def _runs(profile: NDArray[np.float64]) -> NDArray[np.int64]:
    """Number the stretches of cycles under the same four conditions."""
    changes = (np.diff(profile[:, : len(CONDITIONS)], axis=0) != 0).any(axis=1)
    return np.concatenate([[0], np.cumsum(changes)])


def _conditions(
    profile: NDArray[np.float64], label: str
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    kept = [i for i, name in enumerate(CONDITIONS) if name != label]
    return profile[:, kept], tuple(CONDITIONS[i] for i in kept)


def _statistics(
    X: NDArray[np.float32], sensors: tuple[str, ...]
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Mean, standard deviation and least-squares slope per second of each sensor."""
    second = np.arange(X.shape[2]) - (X.shape[2] - 1) / 2
    slope = X @ second / (second @ second)
    F = np.stack([X.mean(axis=2), X.std(axis=2), slope], axis=2)  # (n, c, 3)
    return F.reshape(len(X), -1), tuple(f"{s}_{what}" for s in sensors for what in STATISTICS)
