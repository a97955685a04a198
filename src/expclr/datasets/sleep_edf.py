"""Sleep-EDF Expanded, sleep cassette: nights of 20 (or 78) people, five sleep stages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from expclr.datasets.edf import read_edf, read_edf_header, read_edf_notes
from expclr.datasets.parts import check_choice, features_key, held_out, save_part
from expclr.datasets.recording import Note, Recording
from expclr.datasets.source import Source
from expclr.datasets.store import load_pair, prepared, raw_folder
from expclr.errors import ConfigError, DataError
from expclr.windows import Windows

__all__ = ["CLASSES", "SOURCE", "Night", "load", "score_epochs"]

SOURCE = Source(
    mirrors=(
        "https://physionet.org/files/sleep-edfx/1.0.0/",
        "https://physionet-open.s3.amazonaws.com/sleep-edfx/1.0.0/",
    ),
    wanted=("sleep-cassette/SC4*.edf",),
)

CLASSES = ("W", "N1", "N2", "N3", "REM")
STAGES = {
    f"Sleep stage {name}": code for name, code in zip("W1234R", (0, 1, 2, 3, 3, 4), strict=True)
}
UNSCORED = ("Sleep stage ?", "Movement time")
EPOCH = 30  # seconds
MOST_WAKE = 24 * 60  # minutes; no recording is longer
SLOW = 8  # Hz; up to there no band of the EEG can be measured
PAPER_SUBJECTS = range(20)
PAPER_NIGHTS = 39  # the second night of subject 13 was lost
TESTED = (6, 18, 2, 13)
VALIDATED = (11, 10, 3, 1)
VERSION = 2
_PSG = re.compile(r"SC4(\d\d)(\d)\w\w-PSG\.edf")
Scored = tuple[NDArray[np.int64], NDArray[np.int64]]  # the kept epochs, and their stages


@dataclass(frozen=True)
class Night:
    """The two files of one night."""

    subject: int
    number: int
    psg: Path
    hypnogram: Path


def load(
    root: str | Path | None = None,
    *,
    subjects: str = "paper",
    channels: str | Sequence[str] = ("EEG Fpz-Cz",),
    scale: str = "microvolt",
    split: str | float | Sequence[int] = "paper",
    features: str | None = "auto",
    wake_minutes: float = 30,
    random_state: int = 0,
) -> tuple[Windows, Windows]:
    """Sleep-EDF Expanded 1.0.0, sleep cassette: 30 s epochs at 100 Hz, people as groups.

    Stages W, N1, N2, N3 (stages 3 and 4) and REM; epochs without a stage or with movement are
    dropped. Defaults give 35503 epochs of 16 people to train and 6805 of 4 others to test, with the
    29 features of eeg29.

    Parameters
    ----------
    root : path, optional
        Folder that holds ``sleep_edf/`` with the files ``SC4...-PSG.edf`` and
        ``SC4...-Hypnogram.edf``, in folders or not.
    subjects : "paper" or "all"
        The first 20 people (39 nights), or all that are there (78 people, 153 nights).
    channels : str or list of str
        By name; slower ones are held between their samples.
    scale : "microvolt" or "zscore-night"
        "zscore-night": each channel by mean and standard deviation of the night's epochs.
    split : "paper", "tstcc", "tstcc-validation", fraction or list of subjects
        "paper": subjects 6, 18, 2, 13 are tested. "tstcc": the same test, but 11, 10, 3, 1 are
        left out for validation; "tstcc-validation": those four instead of the test. Else the
        subjects to test, or the fraction of them to draw.
    features : "auto", "eeg29" or None
        The expert features, of the signal in microvolts; "auto": eeg29 unless the channels are
        too slow for any band of the EEG.
    wake_minutes : float
        Wake kept before the first and after the end of the last epoch of sleep, counted in
        kept epochs.
    random_state : int
        Of a drawn split.

    Returns
    -------
    train, test : Windows
        Memory-mapped; prepared once and kept in the cache.
    """
    check_choice("subjects", subjects, ("paper", "all"))
    check_choice("scale", scale, ("microvolt", "zscore-night"))
    check_choice("features", features, ("auto", "eeg29", None))
    if not 0 <= wake_minutes <= MOST_WAKE:
        raise ConfigError(f"wake_minutes is {wake_minutes}: 0 to {MOST_WAKE} are wanted")
    names = [channels] if isinstance(channels, str) else list(channels)
    nights = _nights(raw_folder("sleep_edf", root, wanted="the SC4*.edf files"), subjects, split)
    train, test = _parts(nights, split, random_state)
    options: dict[str, Any] = {"channels": names, "scale": scale, "wake": wake_minutes}
    options |= {"features": [features, features_key("eeg29")]}
    options |= {"train": sorted({n.subject for n in train})}
    options |= {"test": sorted({n.subject for n in test}), "version": VERSION}

    def build(folder: Path) -> None:
        like = read_edf(train[0].psg, channels=names)
        made = features if features != "auto" else "eeg29" if like.sfreq > SLOW else None
        for part, chosen in (("train", train), ("test", test)):
            scored = [_scored(night, wake_minutes) for night in chosen]
            _save(folder / part, chosen, scored, like, features=made, zscore=scale != "microvolt")

    files = [file for night in [*train, *test] for file in (night.psg, night.hypnogram)]
    return load_pair(prepared("sleep_edf", files, options, build))


def _nights(folder: Path, subjects: str, split: Any) -> list[Night]:
    found = [_night(psg) for psg in sorted(folder.rglob("SC4*-PSG.edf"))]
    if subjects == "paper":
        found = [night for night in found if night.subject in PAPER_SUBJECTS]
    if not found:
        raise DataError(f"no file SC4...-PSG.edf in {folder}: put the sleep-cassette files there")
    if isinstance(split, str):
        check_choice("split", split, ("paper", "tstcc", "tstcc-validation"))
        _check_complete(found, folder, subjects, split)
    return found


def _check_complete(nights: list[Night], folder: Path, subjects: str, split: str) -> None:
    if subjects != "paper":
        raise ConfigError(
            f"split {split!r} is of the 20 people of the paper: with subjects={subjects!r} give "
            "the subjects to test, or a fraction"
        )
    if len(nights) != PAPER_NIGHTS or len({n.subject for n in nights}) != len(PAPER_SUBJECTS):
        raise DataError(
            f"{folder} holds {len(nights)} of the {PAPER_NIGHTS} nights of split {split!r}: get "
            "the rest, or give the subjects to test: split=[...]"
        )


def _night(psg: Path) -> Night:
    name = _PSG.fullmatch(psg.name)
    hypnograms = sorted(psg.parent.glob(f"{psg.name[:6]}*-Hypnogram.edf"))
    if name is None or len(hypnograms) != 1:
        raise DataError(
            f"{psg} has {len(hypnograms)} files {psg.name[:6]}..-Hypnogram.edf beside it: one is "
            "wanted, with the name of sleep-edfx"
        )
    return Night(int(name[1]), int(name[2]), psg, hypnograms[0])


def _parts(nights: list[Night], split: Any, random_state: int) -> tuple[list[Night], list[Night]]:
    subjects = [night.subject for night in nights]
    if not isinstance(split, str):
        held = held_out(split, subjects, random_state=random_state)
    else:
        held = np.isin(subjects, VALIDATED if split == "tstcc-validation" else TESTED)
    out = np.isin(subjects, (*TESTED, *VALIDATED) if str(split).startswith("tstcc") else ())
    train = [n for n, h, o in zip(nights, held, out, strict=True) if not h and not o]
    return train, [n for n, h in zip(nights, held, strict=True) if h]


def score_epochs(
    notes: Sequence[Note], epochs: int, *, wake_minutes: float = 30, path: str | Path = ""
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which epochs of a night to keep, and their stages.

    Parameters
    ----------
    notes : list of Note
        Of the hypnogram.
    epochs : int
        Whole epochs of the recording. Wake scored beyond its end is cut off, sleep is an error.
    wake_minutes : float
        See ``load``.
    path : path
        Of the hypnogram, for messages.

    Returns
    -------
    index, y : arrays of int

    Examples
    --------
    >>> notes = [Note(0, 90, "Sleep stage W"), Note(90, 60, "Sleep stage 2")]
    >>> [a.tolist() for a in score_epochs(notes, 5, wake_minutes=1)]
    [[1, 2, 3, 4], [0, 0, 2, 2]]
    """
    y = np.full(epochs, -1)
    for note in notes:
        _score(y, note, path)
    kept = np.flatnonzero(y >= 0)
    asleep = np.flatnonzero(y[kept] > 0)
    if not len(asleep):
        raise DataError(f"{path} scores no sleep: is it the hypnogram of this night?")
    wake = round(wake_minutes * 60 / EPOCH)
    kept = kept[max(0, asleep[0] - wake) : asleep[-1] + 1 + wake]
    return kept, y[kept]


def _score(y: NDArray[np.int64], note: Note, path: str | Path) -> None:
    """Write the stage of one note into its epochs."""
    if note.text in UNSCORED or not note.text.startswith("Sleep stage"):
        return
    if note.text not in STAGES or note.duration is None:
        raise DataError(f"{path}: {note} is no sleep stage with a duration: the file is damaged")
    start, stop = note.onset / EPOCH, (note.onset + note.duration) / EPOCH
    if start % 1 or stop % 1 or start < 0:
        raise DataError(f"{path}: {note} does not cover whole epochs of {EPOCH} s from 0 s on")
    stage = STAGES[note.text]
    if stop > len(y) and stage:
        raise DataError(
            f"{path}: {note} ends at {stop * EPOCH:.0f} s, but the recording lasts "
            f"{len(y) * EPOCH} s: are both files of one night?"
        )
    epochs = slice(int(min(start, len(y))), int(min(stop, len(y))))
    if (y[epochs] >= 0).any():
        raise DataError(f"{path}: {note} overlaps another stage: the file is damaged")
    y[epochs] = stage


def _save(
    path: Path,
    nights: list[Night],
    scored: list[Scored],
    like: Recording,
    *,
    features: str | None,
    zscore: bool,
) -> None:
    """Save a part; all nights have the channels and the rate of ``like``."""
    counts = [len(index) for index, _ in scored]
    ends = np.cumsum(counts).tolist()
    rows = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
    known = {
        "y": np.concatenate([y for _, y in scored]),
        "group": np.repeat([night.subject for night in nights], counts),
        "sfreq": like.sfreq,
        "channel_names": like.channel_names,
        "class_names": CLASSES,
        "name": "sleep_edf",
    }
    shape = (sum(counts), len(like.channel_names), _samples(like.sfreq, nights[0].psg))
    bar = tqdm(nights, f"sleep_edf {path.name}", unit="night", disable=None)
    pieces = (
        (at, _epochs(night, index, like))
        for night, at, (index, _) in zip(bar, rows, scored, strict=True)
    )
    changes = [(at, _zscore) for at in rows] if zscore else []
    save_part(path, shape, pieces, known, features=features, changes=changes)


def _scored(night: Night, wake_minutes: float) -> Scored:
    epochs = int(read_edf_header(night.psg).seconds // EPOCH)
    notes = read_edf_notes(night.hypnogram)
    return score_epochs(notes, epochs, wake_minutes=wake_minutes, path=night.hypnogram)


def _samples(sfreq: float, psg: Path) -> int:
    samples = sfreq * EPOCH
    if samples % 1:
        raise DataError(f"{psg} has {samples} samples in {EPOCH} s: a whole number is wanted")
    return int(samples)


def _epochs(night: Night, index: NDArray[np.int64], like: Recording) -> NDArray[np.float32]:
    """The kept epochs of a night, (n, c, t)."""
    recording = read_edf(night.psg, channels=like.channel_names)
    if recording.sfreq != like.sfreq:
        raise DataError(
            f"{night.psg} is sampled at {recording.sfreq} Hz, other nights at {like.sfreq} Hz"
        )
    t = _samples(like.sfreq, night.psg)
    c, whole = len(recording.X), recording.X.shape[1] // t * t
    epochs = recording.X[:, :whole].reshape(c, -1, t).transpose(1, 0, 2)
    return np.ascontiguousarray(epochs[index])


def _zscore(X: NDArray[np.float32]) -> NDArray[np.float32]:
    mean = X.mean(axis=(0, 2), keepdims=True, dtype=np.float64)
    std = X.std(axis=(0, 2), keepdims=True, dtype=np.float64)
    return ((X - mean) / np.where(std > 0, std, 1)).astype(np.float32)
