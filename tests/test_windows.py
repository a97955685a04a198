import json
import pathlib

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from expclr.errors import DataError
from expclr.windows import Windows, as_windows, load_windows


def test_a_saved_folder_comes_back_whole_and_memory_mapped(windows, tmp_path):
    windows = windows.with_(lengths=np.arange(48) % 32 + 1, channel_names=("a", "b"))
    back = Windows.load(windows.save(tmp_path / "w"))
    for field in ("X", "F", "y", "group", "lengths"):
        np.testing.assert_array_equal(getattr(back, field), getattr(windows, field))
    for field in ("sfreq", "channel_names", "feature_names", "class_names", "name"):
        assert getattr(back, field) == getattr(windows, field)
    assert isinstance(back.X.base, np.memmap)
    assert back.fingerprint() == windows.fingerprint()


def test_names_of_groups_survive_saving(windows, tmp_path):
    windows = windows.with_(group=np.array(["m1", "m2"] * 24, dtype=object))
    assert Windows.load(windows.save(tmp_path / "w")).group.tolist() == ["m1", "m2"] * 24


def test_saving_again_replaces_the_old_windows(windows, tmp_path):
    windows.save(tmp_path / "w")
    windows.with_(F=None, feature_names=()).subset(slice(0, 3)).save(tmp_path / "w")
    back = Windows.load(tmp_path / "w")
    assert len(back) == 3
    assert back.F is None


def test_a_folder_with_a_users_files_is_never_replaced(windows, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(DataError, match=r"thesis\.tex.*new or empty folder"):
        windows.save(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_an_interrupted_save_leaves_the_old_windows(windows, tmp_path, monkeypatch):
    windows.save(tmp_path / "w")

    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "save", stop)
    with pytest.raises(KeyboardInterrupt):
        windows.subset(slice(0, 3)).save(tmp_path / "w")
    assert len(Windows.load(tmp_path / "w")) == 48
    assert [p.name for p in tmp_path.iterdir()] == ["w"]


def test_an_npz_comes_back(windows, tmp_path):
    path = tmp_path / "w.npz"
    np.savez(path, X=windows.X, F=windows.F, y=windows.y, group=windows.group, sfreq=32)
    back = load_windows(path)
    np.testing.assert_array_equal(back.X, windows.X)
    assert back.sfreq == 32
    assert len(back.classes) == 4


def test_subsets_by_mask_positions_and_slice_agree(windows):
    mask = np.arange(48) < 5
    for index in (mask, np.arange(5), slice(0, 5), list(range(5))):
        part = windows.subset(index)
        np.testing.assert_array_equal(part.X, windows.X[:5])
        np.testing.assert_array_equal(part.group, windows.group[:5])


def test_a_slice_copies_nothing(windows):
    assert np.shares_memory(windows.subset(slice(3, 9)).X, windows.X)


@pytest.mark.parametrize("test", [0.3, [1, 4], np.array([1, 4])])
def test_no_group_is_on_both_sides_of_a_split(windows, test):
    left, right = windows.split_by_group(test)
    assert len(left) + len(right) == len(windows)
    assert set(left.group) & set(right.group) == set()
    assert set(right.group) == ({1, 4} if len(np.shape(test)) else set(right.group))


def test_the_same_seed_draws_the_same_groups(windows):
    a, b, c = (windows.split_by_group(0.5, random_state=s)[1].group for s in (0, 0, 1))
    assert a.tolist() == b.tolist() != c.tolist()


@given(
    st.lists(st.integers(-1, 3), min_size=4, max_size=200),
    st.lists(st.floats(0.01, 1), min_size=2, max_size=4),
    st.integers(0, 5),
)
@settings(max_examples=50, deadline=None)
def test_label_fractions_are_nested_and_stratified(y, fractions, seed):
    windows = Windows(np.zeros((len(y), 1, 4)), y=y)
    before = np.zeros(len(y), dtype=bool)
    for fraction in sorted(fractions):
        part = windows.label_fraction(fraction, random_state=seed)
        known = part.y >= 0
        assert (part.y[known] == windows.y[known]).all()
        assert known[before].all()
        for label in windows.classes:
            n = (windows.y == label).sum()
            assert (part.y == label).sum() == max(1, round(fraction * n))
        before = known


def test_all_labels_are_a_fraction_of_one(windows):
    np.testing.assert_array_equal(windows.label_fraction(1.0).y, windows.y)


def test_features_of_a_table_bring_their_names(windows):
    F = pd.DataFrame(windows.F, columns=["size", "pace", "product"])
    assert as_windows(windows.X, F=F).feature_names == ("size", "pace", "product")


def test_labels_by_name_become_classes():
    made = as_windows(np.zeros((5, 1, 9)), y=["b", "a", None, "b", float("nan")])
    assert made.y.tolist() == [1, 0, -1, 1, -1]
    assert made.class_names == ("a", "b")


def test_series_of_unequal_length_are_padded():
    made = as_windows([np.ones((2, 5)), np.ones((2, 3))])
    assert made.X.shape == (2, 2, 5)
    assert made.X[1, :, 3:].sum() == 0
    assert made.lengths.tolist() == [5, 3]


def test_nan_is_found_with_count_and_place(windows):
    X = windows.X.copy()
    X[7, 1, 30], X[9, 0, 0] = np.nan, np.inf
    with pytest.raises(
        DataError, match="2 of 48 windows, first in window 7, channel 1, timepoint 30"
    ):
        windows.with_(X=X).check_finite()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"X": np.zeros((3, 4, 5, 6))}, r"wanted is \(n, c, t\)"),
        ({"X": np.zeros((0, 2, 5))}, "at least 1 window"),
        ({"X": np.zeros((3, 2, 0))}, "no timepoints"),
        ({"X": np.zeros((3, 2, 5), complex)}, "Complex data"),
        ({"X": np.array([["a"] * 5] * 3)}, "numbers are wanted"),
        ({"X": np.array([[object()] * 5] * 3)}, "argument must be"),
        ({"F": np.zeros((2, 4))}, r"F has shape \(2, 4\) for 3 windows"),
        ({"F": np.full((3, 1), np.inf)}, "infinite"),
        ({"y": [0, 1]}, "one value each"),
        ({"y": [0.5, 1, 2]}, "whole numbers"),
        ({"y": [0, 1, -2]}, "-1 for unknown"),
        ({"y": [0, 1, 2], "class_names": ("a", "b")}, "class 2 but there are 2"),
        ({"group": [[1], [2], [3]]}, "one value each"),
        ({"lengths": [1, 2, 9]}, "wanted are 1 to 5"),
        ({"sfreq": 0}, "positive"),
        ({"channel_names": ("a",)}, "1 channel_names for 2"),
        ({"feature_names": ("a",)}, "1 feature_names for 0"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments, words):
    with pytest.raises((DataError, TypeError), match=words) as caught:
        Windows(**({"X": np.zeros((3, 2, 5))} | arguments))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("fraction", [0, -0.1, 1.5])
def test_impossible_fractions_are_refused(windows, fraction):
    with pytest.raises(DataError, match="above 0 and up to 1"):
        windows.label_fraction(fraction)


def test_unknown_groups_are_named(windows):
    with pytest.raises(DataError, match="no group 77: known are 0, 1"):
        windows.split_by_group([1, 77])


def test_transposed_windows_are_noticed():
    with pytest.warns(UserWarning, match="transpose"):
        as_windows(np.zeros((3, 50, 4)))


def _break_meta(folder: pathlib.Path):
    (folder / "meta.json").write_text('{"format": 1')


def _other_format(folder: pathlib.Path):
    (folder / "meta.json").write_text(json.dumps({"format": 99}))


def _cut_array(folder: pathlib.Path):
    (folder / "X.npy").write_bytes((folder / "X.npy").read_bytes()[:100])


def _pickle_inside(folder: pathlib.Path):
    np.save(folder / "group.npy", np.array([{}] * 48, dtype=object), allow_pickle=True)


def _fewer_rows(folder: pathlib.Path):
    np.save(folder / "F.npy", np.zeros((5, 3)))


def _no_signal(folder: pathlib.Path):
    (folder / "X.npy").unlink()


@pytest.mark.parametrize(
    "damage", [_break_meta, _other_format, _cut_array, _pickle_inside, _fewer_rows, _no_signal]
)
def test_a_damaged_folder_is_refused_by_name(windows, tmp_path, damage):
    windows.save(tmp_path / "w")
    damage(tmp_path / "w")
    with pytest.raises(DataError, match="w"):
        Windows.load(tmp_path / "w")


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04broken"])
def test_a_damaged_npz_is_refused(tmp_path, content):
    path = tmp_path / "w.npz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"w\.npz"):
        Windows.from_npz(path)


def test_missing_paths_are_named(tmp_path):
    for path in ("none.npz", "none"):
        with pytest.raises(DataError, match="none"):
            load_windows(tmp_path / path)
    np.savez(tmp_path / "other.npz", Z=np.zeros(3))
    with pytest.raises(DataError, match="an array X"):
        load_windows(tmp_path / "other.npz")
