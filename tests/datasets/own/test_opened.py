"""A source opened as Windows is read once."""

from pathlib import Path

import numpy as np
import pytest

from expclr.datasets.own import open_windows, opened
from expclr.errors import DataError


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EXPCLR_CACHE", str(tmp_path / "cache"))


def test_a_source_is_read_again_only_when_it_or_an_option_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []

    def counted(*args: object, **options: object) -> Path:
        read.append(args)
        return prepare(*args, **options)

    prepare = opened.prepare
    monkeypatch.setattr(opened, "prepare", counted)
    source, groups = tmp_path / "X.npy", tmp_path / "g.npy"
    np.save(source, np.arange(24.0).reshape(2, 3, 4))
    np.save(groups, np.array(["a", "b"]))
    for _ in range(2):
        windows = open_windows(source, group=str(groups))
    assert len(read) == 1
    np.testing.assert_array_equal(windows.X, np.load(source))
    assert windows.group.tolist() == ["a", "b"]
    open_windows(source, group=str(groups), channels="u,v,w")
    assert len(read) == 2
    np.save(groups, np.array(["a", "c"]))
    assert open_windows(source, group=str(groups)).group.tolist() == ["a", "c"]
    assert len(read) == 3


def test_a_source_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone\.csv"):
        open_windows(tmp_path / "gone.csv")
