"""Every dataset whose real files are there: raw files stay as they are, splits are fair."""

import os
from pathlib import Path

import numpy as np
import pytest

from expclr.datasets import load_dataset
from expclr.datasets.checks import check_split

ROOT = Path(os.environ.get("EXPCLR_DATA", "nowhere"))
CHOICES = (
    "uci_har",
    "hapt,features=null",
    "mitdb",
    "ucr,problem=BasicMotions",
    "ucr,problem=JapaneseVowels",
    "ucr,problem=ECG5000",
    "hydraulic",
    "machine",
)


def looks(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of all that lies in a folder."""
    stats = {str(path): path.stat() for path in sorted(folder.rglob("*"))}
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in stats.items()}


@pytest.mark.parametrize("choice", CHOICES)
def test_raw_files_stay_as_they_are_and_the_parts_apart(
    choice: str, monkeypatch: pytest.MonkeyPatch, session_cache: Path
) -> None:
    name = choice.partition(",")[0]
    if name != "machine" and not (ROOT / name).is_dir():
        pytest.skip(f"EXPCLR_DATA has no {name}/")
    monkeypatch.setenv("EXPCLR_CACHE", str(session_cache))
    before = looks(ROOT / name)
    train, test = load_dataset(choice)
    assert looks(ROOT / name) == before
    check_split(train, test)
    assert set(np.unique(test.y)) <= set(np.unique(train.y))
    for part in (train, test):
        part.check_finite()
        assert part.X.dtype == np.float32
        assert (part.X[:, :, :1] != part.X).any(axis=(1, 2)).mean() > 0.9
