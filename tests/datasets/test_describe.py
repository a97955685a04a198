"""What is said of a dataset is what is in it."""

import json
from pathlib import Path

import numpy as np
import pytest

from expclr.cli import main
from expclr.datasets.describe import describe, representatives, sparkline, summary_text
from expclr.windows import Windows


@pytest.fixture
def pair(windows: Windows) -> tuple[Windows, Windows]:
    return windows.split_by_group([1, 4])


def test_counts_are_those_of_the_windows(pair: tuple[Windows, Windows]) -> None:
    found = describe(*pair)
    for name, part in zip(("train", "test"), pair, strict=True):
        about = found["parts"][name]
        assert about["windows"] == len(part)
        assert about["groups"] == len(set(part.group))
        assert list(about["classes"].values()) == np.bincount(part.y, minlength=4).tolist()
        assert (about["unlabelled"], about["missing_features"]) == (0, 0)
    assert found["shared_groups"] == []
    json.dumps(found, allow_nan=False)


def test_what_is_missing_or_shared_is_said(windows: Windows) -> None:
    X, F, y = windows.X.copy(), windows.F.copy(), windows.y.copy()
    X[3, 1, 5], F[:, 0], y[:6] = np.nan, np.nan, -1
    holed = windows.with_(X=X, F=F, y=y)
    text = summary_text(describe(holed, windows))
    assert "6 unlabelled" in text
    assert "1 with missing samples" in text
    assert "33.3% of the features missing" in text
    assert "6 groups are in train and test" in text


def test_the_text_has_a_line_for_each_class(pair: tuple[Windows, Windows]) -> None:
    train, test = pair
    lines = summary_text(describe(train, test)).splitlines()
    assert lines[0] == "waves: 2 channels (0, 1), 32 timepoints, 1 s at 32 Hz, 3 features"
    for k, name in enumerate(train.class_names):
        (line,) = [line for line in lines if line.startswith(name)]
        train_count, test_count, picture = line.removeprefix(name).split()
        assert int(train_count) == (train.y == k).sum()
        assert int(test_count) == (test.y == k).sum()
        assert set(picture) <= set("▁▂▃▄▅▆▇█")
        assert len(picture) == 32


def test_windows_without_a_test_part_are_one_part(
    windows: Windows, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    windows.save(tmp_path / "waves")
    assert main(["data", "info", str(tmp_path / "waves")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "all: 48 windows of 6 groups"
    assert lines[3].split() == ["class", "all"]
    assert len(lines) == 8


def test_series_of_unequal_length_are_drawn_without_their_padding() -> None:
    X = np.zeros((2, 1, 40))
    X[:, 0, :8] = np.arange(8)
    part = Windows(X, y=[0, 0], lengths=[8, 8])
    assert describe(part, part)["sparklines"]["0"] == "▁▂▃▄▅▆▇█"
    assert describe(part, part)["lengths"] == [8, 8]


def test_windows_without_labels_have_no_pictures() -> None:
    part = Windows(np.zeros((2, 1, 8)))
    assert summary_text(describe(part, part)).splitlines()[1:] == [
        "train: 2 windows",
        "test: 2 windows",
    ]


def test_representatives_are_of_their_class_and_of_middling_strength(windows: Windows) -> None:
    rows = representatives(windows, per_class=2)
    strength = windows.X.std(axis=2).mean(axis=1)
    for label, chosen in rows.items():
        members = windows.y == label
        assert members[chosen].all()
        distance = np.abs(strength - np.median(strength[members]))
        assert distance[chosen].max() <= np.sort(distance[members])[1]


def test_a_sparkline_keeps_the_scale_it_is_given() -> None:
    assert sparkline(np.arange(8), low=0, high=16) == "▁▁▂▂▃▃▄▄"
    assert sparkline(np.ones(3), low=1, high=1) == "▅▅▅"
    assert len(sparkline(np.arange(1000), low=0, high=999, width=48)) == 48


def test_a_sparkline_shows_peaks_however_short() -> None:
    beats = np.zeros(1000)
    beats[[100, 500, 900]] = 1
    line = sparkline(beats, low=-1, high=1, width=50)
    assert [i for i, bar in enumerate(line) if bar == "█"] == [5, 25, 45]
