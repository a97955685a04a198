"""Commands that make windows and their features."""

from __future__ import annotations

from typing import Literal

from expclr.errors import DataError


def fetch(name: str, files: str = "", mirror: str | None = None, *, offline: bool = False) -> None:
    """Download a dataset's raw files, or check those that are there.

    Args:
        name: A dataset.
        files: Only these files: patterns with commas between, for example "100.*,101.*".
        mirror: Address of a folder with the same files, asked first.
        offline: Download nothing: only check that all is there and unchanged.
    """
    from expclr.datasets.fetch import fetch as fetch_files

    print(
        fetch_files(
            name, files=tuple(files.split(",")) if files else (), mirror=mirror, offline=offline
        )
    )


def prepare(
    name: str,
    x: str | None = None,
    features: str | None = None,
    labels: str | None = None,
    group: str | None = None,
    case: str | None = None,
    time: str | None = None,
    channels: str = "",
    intervals: str | None = None,
    sfreq: float | None = None,
    length: int | None = None,
    step: int | None = None,
    test: str | None = "0.3",
    missing: Literal["error", "interpolate", "drop"] = "error",
    max_gap: int | None = None,
    allow: str = "",
    out: str | None = None,
    random_state: int = 0,
    *,
    mask: bool = False,
) -> None:
    """Make windows ready for training: of a dataset, or of your own files with --x.

    Args:
        name: A dataset, its options behind it as in ucr,problem=ECG5000; or any name for your own
            data, which then go to data/NAME.
        x: Your signals: .npz, .npy, a folder of them, a long or wide table (.csv, .parquet), one
            recording or a folder of recordings (.csv, .edf, .hea).
        features: Columns with commas between, or a file with a row for each window or case.
        labels: A column, or a file likewise.
        group: A column or a file: what a fair split keeps apart (subject, machine).
        case: Column of a long table that says which series a row belongs to.
        time: Column of a long table; seconds or dates.
        channels: Columns or signals to take, with commas between.
        intervals: A table of recording, start, end, label.
        sfreq: Samples a second, where the files do not say.
        length: Cut into windows of so many samples.
        step: Begin a window every so many samples; default length.
        test: Fraction of the groups held out, groups with commas between, another source of the
            same form, or null.
        missing: What to do with missing samples.
        max_gap: Longest gap to interpolate, in samples.
        allow: "duplicates", "shared-groups" or both with a comma: accept them across the split.
        out: Folder to make; default data/NAME.
        random_state: Which groups are held out.
        mask: Add a channel that is 1 where a sample was filled.
    """
    if x is None:
        _prepare_known(name)
        return
    from expclr.datasets.own import prepare as prepare_own

    folder = prepare_own(
        out or f"data/{name}",
        x,
        features=features,
        labels=labels,
        group=group,
        case=case,
        time=time,
        channels=channels,
        intervals=intervals,
        sfreq=sfreq,
        length=length,
        step=step,
        test=_held_out(test),
        missing=missing,
        max_gap=max_gap,
        mask=mask,
        allow=tuple(allow.split(",")) if allow else (),
        name=name,
        random_state=random_state,
    )
    print(folder)


def _held_out(test: str | None) -> str | float | list[str] | None:
    """A fraction, or groups: ``203`` is one."""
    if test is None or "," in test:
        return test and [group.strip() for group in test.split(",") if group.strip()]
    try:
        fraction = float(test)
    except ValueError:
        return test
    return fraction if 0 < fraction < 1 else [test]


def _prepare_known(name: str) -> None:
    from expclr.datasets import DATASETS, load_dataset
    from expclr.datasets.choices import split_choice
    from expclr.errors import ConfigError, suggest

    key, _ = split_choice(name)
    if key not in DATASETS and ":" not in key:
        known = suggest(key, list(DATASETS))
        raise ConfigError(f"no dataset named {key!r}; your own data need --x. {known}")
    for part, windows in zip(("train", "test"), load_dataset(name), strict=True):
        print(f"{part}: {windows}")


def data(action: Literal["info"], name: str) -> None:
    """Say what a dataset is: counts, classes, groups, missing values, a sketch of each class.

    Args:
        action: What to do; "info" is all there is.
        name: A dataset, its options behind it as in ucr,problem=ECG5000; or a Windows folder, or
            one with train and test.
    """
    from expclr.datasets.describe import describe, summary_text
    from expclr.datasets.opening import open_data

    print(summary_text(describe(*open_data(name))))


def features(extractor: str, data: str, out: str | None = None, n_jobs: int = 1) -> None:
    """Compute expert features and write them into a Windows folder.

    Args:
        extractor: har561, eeg29, ecg88, basic, ..., "my_module:function", or a table's file.
        data: A Windows folder, or a folder with train and test in it; with --out also an .npz or
            a dataset's name.
        out: Leave the data as they are, and write a copy with the features into this folder.
        n_jobs: How many jobs at once.
    """
    from pathlib import Path

    from expclr.datasets.opening import open_data
    from expclr.features import write_features
    from expclr.features.store import copy_windows

    if out is None and not Path(data).is_dir():
        raise DataError(
            f"{data} is no folder: give a Windows folder; of an .npz or a dataset's name "
            "say with --out where the windows shall go"
        )
    folders = [Path(data) / part for part in ("train", "test") if (Path(data) / part).is_dir()]
    folders = folders or [Path(data)]
    if out is not None:
        folders = copy_windows(open_data(data), out)
    for folder in folders:
        changed = write_features(folder, extractor, n_jobs=n_jobs)
        print(f"{folder}: {'written' if changed else 'unchanged'}")
