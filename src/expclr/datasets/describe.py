"""What a dataset is, in numbers and small pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from expclr.datasets.checks import shared_groups
from expclr.windows import Windows

__all__ = ["describe", "representatives", "sparkline", "summary_text"]

BARS = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 48
LOOKED_AT = 200  # windows of a class among which a typical one is sought


def describe(train: Windows, test: Windows | None = None) -> dict[str, Any]:
    """Counts, classes, groups, missing values and one typical window of each class.

    Parameters
    ----------
    train, test : Windows
        Windows without a test part are described as one part, "all".

    Returns
    -------
    dict
        JSON values; ``summary_text`` makes lines of it.

    Examples
    --------
    >>> from expclr import Windows
    >>> part = Windows(np.tile(np.arange(8.0), (2, 1)), y=[0, 1], class_names=("on", "off"))
    >>> found = describe(part, part)
    >>> found["parts"]["train"]["classes"], found["sparklines"]["on"]
    ({'on': 1, 'off': 1}, '▁▂▃▄▅▆▇█')
    """
    c, t = train.X.shape[1:]
    parts = {"all": train} if test is None else {"train": train, "test": test}
    return {
        "name": train.name,
        "channels": list(train.channel_names) or [str(i) for i in range(c)],
        "timepoints": t,
        "lengths": None
        if train.lengths is None
        else _range(*(part.lengths for part in parts.values())),
        "sfreq": train.sfreq,
        "features": 0 if train.F is None else train.F.shape[1],
        "parts": {name: _part(part) for name, part in parts.items()},
        "shared_groups": [] if test is None else shared_groups(train, test),
        "sparklines": _sparklines(train),
    }


def _range(*lengths: NDArray[np.int64] | None) -> list[int]:
    known = np.concatenate([length for length in lengths if length is not None])
    return [int(known.min()), int(known.max())]


def _part(windows: Windows) -> dict[str, Any]:
    step = max(1, (1 << 24) // windows.X[0].size)
    blocks = (windows.X[i : i + step] for i in range(0, len(windows), step))
    missing = sum(int((~np.isfinite(block)).any(axis=(1, 2)).sum()) for block in blocks)
    return {
        "windows": len(windows),
        "groups": None if windows.group is None else len(np.unique(windows.group)),
        "classes": _counts(windows),
        "unlabelled": None if windows.y is None else int((windows.y < 0).sum()),
        "windows_with_missing_samples": missing,
        "missing_features": None if windows.F is None else float(np.isnan(windows.F).mean()),
    }


def _counts(windows: Windows) -> dict[str, int]:
    if windows.y is None:
        return {}
    names = windows.class_names or [str(k) for k in range(int(windows.y.max()) + 1)]
    return {name: int((windows.y == k).sum()) for k, name in enumerate(names)}


def representatives(windows: Windows, *, per_class: int = 1) -> dict[int, list[int]]:
    """Rows of typical windows of each class: those of middling strength.

    Examples
    --------
    >>> from expclr import Windows
    >>> representatives(Windows(np.outer([1, 2, 9], [0.0, 1.0]), y=[0, 0, 0]))
    {0: [1]}
    """
    if windows.y is None:
        return {}
    found = {}
    for label in windows.classes.tolist():
        members = np.flatnonzero(windows.y == label)
        looked_at = members[:: max(1, len(members) // LOOKED_AT)]
        strength = np.nan_to_num(windows.X[looked_at]).std(axis=2).mean(axis=1)
        order = looked_at[np.argsort(np.abs(strength - np.median(strength)), kind="stable")]
        found[label] = order[:per_class].tolist()
    return found


def _sparklines(train: Windows) -> dict[str, str]:
    """The liveliest channel of a typical window of each class, all on one scale."""
    rows = {label: row[0] for label, row in representatives(train).items()}
    if not rows:
        return {}
    shown = train.subset(list(rows.values()))
    X = np.nan_to_num(shown.X)
    channel = int(X.std(axis=2).mean(axis=0).argmax())
    ends = [X.shape[2]] * len(X) if shown.lengths is None else shown.lengths.tolist()
    series = [x[channel, :end] for x, end in zip(X, ends, strict=True)]
    low, high = min(x.min() for x in series), max(x.max() for x in series)
    names = list(_counts(train))
    return {
        names[label]: sparkline(x, low=float(low), high=float(high))
        for label, x in zip(rows, series, strict=True)
    }


def sparkline(values: NDArray[Any], *, low: float, high: float, width: int = SPARK_WIDTH) -> str:
    """A series as a line of bars between ``low`` and ``high``.

    A bar stands for a stretch of the series, and is the value in it that lies farthest from the
    mean: the peaks of an ECG are short.

    Examples
    --------
    >>> sparkline(np.sin(np.arange(24) / 3), low=-1, high=1, width=12)
    '▆███▆▂▁▁▁▃▇█'
    """
    series = np.asarray(values, float)
    parts = np.array_split(series, min(width, len(series)))
    shown = np.array([part[np.abs(part - series.mean()).argmax()] for part in parts])
    scaled = (shown - low) / (high - low) if high > low else np.full(len(shown), 0.5)
    level = np.clip((scaled * len(BARS)).astype(int), 0, len(BARS) - 1)
    return "".join(BARS[i] for i in level)


def summary_text(summary: dict[str, Any]) -> str:
    """``describe`` as lines for a terminal.

    Examples
    --------
    >>> from expclr import Windows
    >>> part = Windows(np.tile(np.arange(8.0), (2, 1)), y=[0, 1], class_names=("on", "off"))
    >>> print(summary_text(describe(part, part)))
    1 channels (0), 8 timepoints, 0 features
    train: 2 windows
    test: 2 windows
    <BLANKLINE>
    class  train   test
    on         1      1  ▁▂▃▄▅▆▇█
    off        1      1  ▁▂▃▄▅▆▇█
    """
    lines = [_shape_line(summary)]
    lines += [_part_line(name, part) for name, part in summary["parts"].items()]
    if summary["shared_groups"]:
        lines.append(f"{len(summary['shared_groups'])} groups are in train and test")
    return "\n".join(lines + _class_lines(summary))


def _shape_line(summary: dict[str, Any]) -> str:
    channels = summary["channels"]
    shown = ", ".join(channels[:12]) + (", ..." if len(channels) > 12 else "")
    name = f"{summary['name']}: " if summary["name"] else ""
    line = f"{name}{len(channels)} channels ({shown}), {summary['timepoints']} timepoints"
    if summary["lengths"]:
        line += f" ({summary['lengths'][0]} to {summary['lengths'][1]} real)"
    if summary["sfreq"]:
        line += f", {summary['timepoints'] / summary['sfreq']:g} s at {summary['sfreq']:g} Hz"
    return f"{line}, {summary['features']} features"


def _part_line(name: str, part: dict[str, Any]) -> str:
    line = f"{name}: {part['windows']} windows"
    if part["groups"]:
        line += f" of {part['groups']} groups"
    if part["unlabelled"]:
        line += f", {part['unlabelled']} unlabelled"
    if part["windows_with_missing_samples"]:
        line += f", {part['windows_with_missing_samples']} with missing samples"
    if part["missing_features"]:
        line += f", {part['missing_features']:.1%} of the features missing"
    return line


def _class_lines(summary: dict[str, Any]) -> list[str]:
    classes = {part: about["classes"] for part, about in summary["parts"].items()}
    names = list(dict.fromkeys(name for counts in classes.values() for name in counts))
    if not names:
        return []
    width = max(5, *(len(name) for name in names))
    lines = ["", "  ".join([f"{'class':{width}}", *(f"{part:>5}" for part in classes)])]
    for name in names:
        counts = [f"{found.get(name, 0):5}" for found in classes.values()]
        line = "  ".join([f"{name:{width}}", *counts, summary["sparklines"].get(name, "")])
        lines.append(line.rstrip())
    return lines
