"""Windows side by side, such as some of each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from expclr.errors import DataError
from expclr.report.waveforms import Waveforms
from expclr.windows import Windows

__all__ = ["Gallery", "gallery"]


@dataclass(frozen=True, eq=False)
class Gallery:
    """Waveforms under headings.

    Parameters
    ----------
    title : str
        Heading; empty to go on under the one before.
    rows : mapping from heading to positions
        Which of ``waveforms`` are shown under each heading.
    waveforms : Waveforms
    labels : sequence of str
        What is written above each waveform.
    caption : str
        How to read it.
    """

    title: str
    rows: Mapping[str, Sequence[int]]
    _: KW_ONLY
    waveforms: Waveforms
    labels: Sequence[str]
    caption: str
    kind: ClassVar[str] = "gallery"

    def __post_init__(self) -> None:
        n = len(self.waveforms)
        if len(self.labels) != n:
            raise DataError(f"{len(self.labels)} labels for {n} waveforms: one each is wanted")
        for heading, row in self.rows.items():
            if any(not 0 <= i < n for i in row):
                raise DataError(
                    f"{heading!r} shows {list(row)}: positions from 0 to {n - 1} are wanted"
                )

    def alt(self) -> str:
        """What is shown, in words."""
        listed = ", ".join(f"{heading} ({len(row)})" for heading, row in self.rows.items())
        return f"Waveforms of {listed}."

    def payload(self) -> dict[str, Any]:
        rows = [{"name": name, "windows": list(row)} for name, row in self.rows.items()]
        return {
            "rows": rows,
            "labels": list(self.labels),
            "waveforms": self.waveforms.payload(),
        }


def gallery(
    windows: Windows,
    *,
    title: str = "Windows of each class",
    per_class: int = 6,
    random_state: int = 0,
) -> Gallery:
    """Some windows of each class, drawn at random.

    Examples
    --------
    >>> import numpy as np
    >>> windows = Windows(np.zeros((4, 1, 8)), y=[0, 1, 1, 1], class_names=("rest", "walk"))
    >>> gallery(windows, per_class=2).alt()
    'Waveforms of rest (1), walk (2).'
    """
    chosen = _draw(windows, per_class, random_state)
    index = np.concatenate([*chosen.values()])
    ends = np.cumsum([len(row) for row in chosen.values()])
    starts = [0, *ends[:-1]]
    rows = {name: range(a, b) for name, a, b in zip(chosen, starts, ends, strict=True)}
    return Gallery(
        title,
        rows,
        waveforms=Waveforms.of(windows.subset(index)),
        labels=[_label(windows, i) for i in index],
        caption="Windows drawn at random from each class. All are drawn to the same scale, "
        "channel by channel.",
    )


def _draw(windows: Windows, per_class: int, random_state: int) -> dict[str, NDArray[np.int64]]:
    rng = np.random.default_rng(random_state)
    if windows.y is None or not len(windows.classes):
        size = min(per_class, len(windows))
        return {"all windows": np.sort(rng.choice(len(windows), size, replace=False))}
    rows = {}
    for label in windows.classes:
        members = np.flatnonzero(windows.y == label)
        name = windows.class_names[label] if windows.class_names else f"class {label}"
        rows[name] = np.sort(rng.choice(members, min(per_class, len(members)), replace=False))
    return rows


def _label(windows: Windows, i: int) -> str:
    place = "" if windows.group is None else f", group {windows.group[i]}"
    return f"Window {i}{place}"
