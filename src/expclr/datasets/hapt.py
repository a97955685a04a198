"""HAPT: the raw phone recordings behind UCI HAR, filtered and cut as the published ones were."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from expclr.datasets.archive import Archive, open_archive
from expclr.datasets.parts import features_key
from expclr.datasets.source import Source
from expclr.datasets.store import load_pair, prepared, raw_folder
from expclr.datasets.text import number_table
from expclr.errors import ConfigError, DataError
from expclr.features.har561 import har561_values
from expclr.features.har_names import har_features
from expclr.features.har_signals import HAR_CHANNELS, HAR_SFREQ, har_channels, har_signals
from expclr.windows import Windows

__all__ = ["ACTIVITIES", "SOURCE", "cut_starts", "load", "read"]

ACTIVITIES = (
    "WALKING",
    "WALKING_UPSTAIRS",
    "WALKING_DOWNSTAIRS",
    "SITTING",
    "STANDING",
    "LAYING",
    "STAND_TO_SIT",
    "SIT_TO_STAND",
    "SIT_TO_LIE",
    "LIE_TO_SIT",
    "STAND_TO_LIE",
    "LIE_TO_STAND",
)
TEST_SUBJECTS = (2, 4, 9, 10, 12, 13, 18, 20, 24)  # the published split
INNER = "HAPT Data Set.zip"
INDEX = "har_window_index.csv"
INDEX_COLUMNS = ("row", "hapt_experiment", "start_sample0", "subject", "y")
LENGTH, STEP = 128, 64
SHORTEST_LINE = 6  # bytes of three numbers
SOURCE = Source(
    {
        "HAPT Data Set.zip": (
            "https://archive.ics.uci.edu/static/public/341/"
            "smartphone+based+recognition+of+human+activities+and+postural+transitions.zip",
            "https://archive.ics.uci.edu/ml/machine-learning-databases/00341/HAPT%20Data%20Set.zip",
        )
    },
    instead=("*.zip", "RawData", "*/RawData"),
)
VERSION = 1


class Window(NamedTuple):
    """Where one window lies, and what it shows."""

    experiment: int
    start: int
    subject: int
    activity: int
    test: bool


def load(
    root: str | Path | None = None,
    *,
    classes: Literal["hapt12", "har6"] = "hapt12",
    features: Literal["har561"] | None = "har561",
) -> tuple[Windows, Windows]:
    """Human Activities and Postural Transitions, from the raw recordings (Reyes-Ortiz 2015).

    Each recording is filtered as the published signals were, then cut into windows of 128
    samples every 64 inside each labelled segment: 7767 windows of 21 people to train and 3162
    of 9 others to test, the published ones in the published order.

    Parameters
    ----------
    root : path, optional
        Folder that holds ``hapt/`` with the zip that contains ``RawData/``, or that folder
        unpacked.
    classes : {"hapt12", "har6"}
        All 12 activities, or the 6 of UCI HAR with exactly its 10299 windows; the latter needs
        the list of their starts, ``hapt/har_window_index.csv``.
    features : {"har561", None}
        Compute the 561 features from the continuous signals, unscaled, or leave F out.

    Returns
    -------
    train, test : Windows
        The 9 channels of UCI HAR; groups are people.
    """
    if classes not in ("hapt12", "har6"):
        raise ConfigError(f"classes is {classes!r}: wanted is 'hapt12' or 'har6'")
    if features not in ("har561", None):
        raise ConfigError(f"features is {features!r}: wanted is 'har561' or None")
    folder = raw_folder("hapt", root, wanted="the zip with RawData/")
    source = _source(folder)
    files = [source] if source.is_file() else sorted((source / "RawData").glob("*.txt"))
    index = folder / INDEX if classes == "har6" else None
    if index is not None and not index.is_file():
        raise DataError(f"{index} is missing: classes='har6' needs the published windows")

    def build(to: Path) -> None:
        parts = read(source, features=features, index=index)
        for part, windows in zip(("train", "test"), parts, strict=True):
            windows.save(to / part)

    options = {"version": VERSION, "classes": classes, "features": features_key(features)}
    return load_pair(prepared("hapt", [*files, *([index] if index else [])], options, build))


def _source(folder: Path) -> Path:
    for place in (folder, *sorted(path for path in folder.iterdir() if path.is_dir())):
        if (place / "RawData").is_dir():
            return place
    zips = sorted(folder.glob("*.zip"))
    if not zips:
        raise DataError(f"no zip and no folder RawData in {folder}: put the HAPT zip there")
    return zips[0]


def read(
    source: Path, *, features: str | None = None, index: Path | None = None
) -> tuple[Windows, Windows]:
    """Read the zip or the folder ``source``: all segments, or the windows that ``index`` lists."""
    with open_archive(source, INNER) as archive:
        windows = _segments(archive) if index is None else _published(index)
        whole, test = _cut_all(archive, windows, features)
    return whole.subset(~test), whole.subset(test)


def cut_starts(start: int, stop: int, length: int, step: int) -> range:
    """First samples of the windows that lie whole in [start, stop).

    >>> list(cut_starts(10, 300, 128, 64))
    [10, 74, 138]
    """
    return range(start, stop - length + 1, step)


def _segments(archive: Archive) -> list[Window]:
    """Windows inside the labelled segments, in the order of RawData/labels.txt."""
    name = archive.find("RawData/labels.txt")
    with archive.open(name) as file:
        table = number_table(file, archive.where(name), columns=5)
    if not _plausible(table):
        raise DataError(
            f"{archive.where(name)}: lines of experiment, user, activity 1 to {len(ACTIVITIES)}, "
            "first and last sample are wanted, without overlap"
        )
    rows = table.astype(np.int64).tolist()
    for experiment, _, _, _, last in rows:
        size = archive.size(_file(archive, "acc", experiment))
        if last * SHORTEST_LINE > size:
            raise DataError(
                f"{archive.where(name)}: a label of experiment {experiment} ends at sample {last}, "
                f"which its recording of {size} bytes cannot have"
            )
    return [
        Window(experiment, at, subject, activity - 1, subject in TEST_SUBJECTS)
        for experiment, subject, activity, first, last in rows
        for at in cut_starts(first - 1, last, LENGTH, STEP)
    ]


def _plausible(table: NDArray[np.float64]) -> bool:
    whole = (table == np.floor(table)) & (table >= 1) & (table < 1e15)
    activity, first, last = table[:, 2:].T
    ordered = table[np.lexsort((first, table[:, 0]))]
    same = ordered[1:, 0] == ordered[:-1, 0]
    apart = bool((ordered[1:, 3] > ordered[:-1, 4])[same].all())
    in_order = bool((last >= first).all() and (activity <= len(ACTIVITIES)).all())
    return bool(whole.all()) and in_order and apart


def _published(path: Path) -> list[Window]:
    """The windows of UCI HAR, in its order."""
    try:
        rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
        numbered = sorted((r["split"] == "test", *(int(r[k]) for k in INDEX_COLUMNS)) for r in rows)
    except (KeyError, TypeError, ValueError, csv.Error) as error:
        raise DataError(
            f"{path}: {error!r}; a column split and whole numbers in {', '.join(INDEX_COLUMNS)} "
            "are wanted"
        ) from error
    return [Window(e, start, s, y - 1, bool(test)) for test, _, e, start, s, y in numbered]


def _cut_all(
    archive: Archive, windows: list[Window], features: str | None
) -> tuple[Windows, NDArray[np.bool_]]:
    """All windows, and which of them are for testing."""
    if not windows:
        raise DataError(f"no labelled segment of {archive.path} is {LENGTH} samples long")
    X = np.empty((len(windows), len(HAR_CHANNELS), LENGTH), np.float32)
    blocks: dict[int, NDArray[np.float64]] = {}
    experiments = sorted({window.experiment for window in windows})
    for experiment in tqdm(experiments, desc="hapt", unit="recording", disable=None):
        rows = [i for i, window in enumerate(windows) if window.experiment == experiment]
        signals = _recording(archive, experiment)
        cut = np.stack([_cut(signals, windows[i]) for i in rows])  # (k, 9, LENGTH + 1)
        X[rows] = cut[..., :-1]
        if features:
            blocks |= zip(rows, har561_values(cut, next_sample=True), strict=True)
    _, _, subject, activity, test = (np.array(column) for column in zip(*windows, strict=True))
    if test.all() or not test.any():
        raise DataError(f"the labels of {archive.path} leave no window for training or for testing")
    whole = Windows(
        X,
        F=np.stack([blocks[i] for i in range(len(X))]) if features else None,
        y=activity,
        group=subject,
        sfreq=HAR_SFREQ,
        channel_names=HAR_CHANNELS,
        feature_names=tuple(f.name for f in har_features()) if features else (),
        class_names=ACTIVITIES[:6] if activity.max() < 6 else ACTIVITIES,
        name="hapt",
    )
    return whole, test


def _cut(signals: NDArray[np.float64], window: Window) -> NDArray[np.float64]:
    """One window and the sample after it, which the last jerk needs; at the end jerk is 0."""
    t = signals.shape[1]
    if not 0 <= window.start <= t - LENGTH:
        raise DataError(
            f"experiment {window.experiment} has {t} samples, but a label wants {LENGTH} from "
            f"{window.start}: recording and labels do not belong together"
        )
    at = np.arange(window.start, window.start + LENGTH + 1)
    return signals[:, np.minimum(at, t - 1)]


def _recording(archive: Archive, experiment: int) -> NDArray[np.float64]:
    """Filter one experiment's accelerometer and gyroscope."""
    names = [_file(archive, sensor, experiment) for sensor in ("acc", "gyro")]
    raw = []
    for name in names:
        with archive.open(name) as file:
            raw.append(number_table(file, archive.where(name), columns=3))
    if len(raw[0]) != len(raw[1]):
        raise DataError(
            f"{archive.where(names[0])} has {len(raw[0])} samples and {Path(names[1]).name} "
            f"{len(raw[1])}: as many in both are wanted"
        )
    return har_channels(har_signals(raw[0], raw[1]))


def _file(archive: Archive, sensor: str, experiment: int) -> str:
    pattern = re.compile(rf"(^|/)RawData/{sensor}_exp{experiment:02d}_user\d+\.txt$")
    names = [name for name in archive.names if pattern.search(name)]
    if len(names) != 1:
        raise DataError(
            f"{archive.path} has {len(names)} files RawData/{sensor}_exp{experiment:02d}_"
            "user*.txt: one is wanted, since the labels speak of it"
        )
    return names[0]
