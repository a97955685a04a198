"""UCR and UEA archive: every form of its files."""

import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.datasets.fuzzing import fuzz_bytes

from expclr.datasets import load_dataset
from expclr.datasets.ts_file import parse_table, parse_ts
from expclr.errors import ConfigError, DataError
from expclr.windows import Windows

ROOT = Path(os.environ.get("EXPCLR_DATA", "nowhere"))
needs_data = pytest.mark.skipif(not (ROOT / "ucr").is_dir(), reason="EXPCLR_DATA has no ucr/")
TS = """#A comment: with a colon
@problemName Toy
@timeStamps false
@missing true
@univariate false
@dimensions 2
@equalLength false
@classLabel true Walk Rest
@data
1.5,2,3:4,5,6:Walk
# another
7,?,9,10:1,2,3,4:Rest
"""


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EXPCLR_CACHE", str(tmp_path / "cache"))


def pair(folder: Path, train: str, test: str | None = None, *, suffix: str = ".ts") -> Path:
    """Write a problem Toy below ``folder``; gives the root of raw data."""
    place = folder / "ucr" / "Toy"
    place.mkdir(parents=True)
    (place / f"Toy_TRAIN{suffix}").write_text(train)
    (place / f"Toy_TEST{suffix}").write_text(train if test is None else test)
    return folder


def load(root: Path, **options: object) -> tuple[Windows, Windows]:
    return load_dataset("ucr", root=root, **options)


def test_multivariate_series_of_unequal_length_are_padded(tmp_path: Path) -> None:
    train, _ = load(pair(tmp_path, TS.replace("?", "8")))
    assert train.X[0].tolist() == [[1.5, 2, 3, 0], [4, 5, 6, 0]]
    assert train.lengths.tolist() == [3, 4]
    assert train.y.tolist() == [0, 1]
    assert (train.class_names, train.name) == (("Walk", "Rest"), "Toy")


def test_missing_values_are_refused_or_filled(tmp_path: Path) -> None:
    root = pair(tmp_path, TS)
    with pytest.raises(DataError, match="window 1, channel 0, timepoint 1"):
        load(root)
    train, _ = load(root, missing="interpolate")
    assert train.X[1, 0].tolist() == [7, 8, 9, 10]
    train, _ = load(root, missing="interpolate", mask=True)
    assert train.X[1, 2].tolist() == [0, 1, 0, 0]
    train, _ = load(root, missing="drop")
    assert train.y.tolist() == [0]


def test_tables_have_the_class_first_and_nan_as_padding(tmp_path: Path) -> None:
    text = "-1\t1\t2\t3\n10\t4\t5\tNaN\n2\t6\t7\t8\n"
    train, _ = load(pair(tmp_path, text, suffix=".tsv"))
    assert train.class_names == ("-1", "2", "10")
    assert train.y.tolist() == [0, 2, 1]
    assert train.lengths.tolist() == [3, 2, 3]
    assert train.X[1, 0].tolist() == [4, 5, 0]


def test_old_text_files_with_spaced_numbers_read_alike(tmp_path: Path) -> None:
    text = "  1.0000000e+00  1.5e+00  2.5e+00\n  2.0000000e+00  3.5e+00  4.5e+00\n"
    train, _ = load(pair(tmp_path, text, suffix=".txt"))
    assert train.class_names == ("1", "2")
    assert train.X[:, 0].tolist() == [[1.5, 2.5], [3.5, 4.5]]
    assert train.lengths is None


def test_both_files_share_classes_and_padded_length(tmp_path: Path) -> None:
    train, test = load(pair(tmp_path, "b\t1\t2\n", "a\t1\t2\t3\n", suffix=".tsv"))
    assert train.X.shape[2] == test.X.shape[2] == 3
    assert (train.y.tolist(), test.y.tolist()) == ([1], [0])
    assert (train.lengths.tolist(), test.lengths.tolist()) == ([2], [3])


def test_a_regression_target_becomes_the_feature(tmp_path: Path) -> None:
    text = "@targetLabel true\n@data\n1,2:0.25\n3,4:-8\n"
    train, _ = load(pair(tmp_path, text))
    assert train.F.tolist() == [[0.25], [-8]]
    assert train.y is None


def test_a_zip_or_a_pair_of_files_reads_like_the_folder(tmp_path: Path) -> None:
    root = pair(tmp_path, TS.replace("?", "8"))
    files = [root / "ucr" / "Toy" / f"Toy_{part}.ts" for part in ("TRAIN", "TEST")]
    (tmp_path / "zip" / "ucr").mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "zip" / "ucr" / "Toy.zip", "w") as zipped:
        for file in files:
            zipped.write(file, file.name)
    whole = load(root)[1].X
    np.testing.assert_array_equal(load(tmp_path / "zip")[1].X, whole)
    np.testing.assert_array_equal(load(tmp_path, train=files[0], test=files[1])[1].X, whole)


def test_the_problem_must_be_named_when_there_are_several(tmp_path: Path) -> None:
    root = pair(tmp_path, TS)
    (root / "ucr" / "Other.zip").touch()
    with pytest.raises(ConfigError, match="Known: Other, Toy"):
        load(root)
    with pytest.raises(DataError, match="did you mean 'Toy'"):
        load(root, problem="Tooy")
    with pytest.raises(ConfigError, match="both files"):
        load(root, train=root / "a.ts")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no line @data"),
        ("@data\n", "no series"),
        ("1,2,3\n@data\n1,2\n", "line 1"),
        ("@classes true a\n@data\n1,2:a\n", "line 1"),
        (TS.replace(":4,5,6", ":4,5"), r"line 10 has channels of \[3, 2\]"),
        (TS.replace(":4,5,6", ""), "channels"),
        (TS.replace(":Walk", ":Run"), "'Run' is not one of @classLabel: Walk, Rest"),
        (TS.replace("1.5", "one"), "line 10"),
        (TS.replace("1.5", "1e300"), "line 10"),
        (TS.replace("1.5", "inf"), "line 10"),
        (TS.replace("@timeStamps false", "@timeStamps true"), "time stamps"),
    ],
)
def test_broken_ts_files_are_refused(text: str, said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
        parse_ts(text.encode(), "Toy_TRAIN.ts")
    assert "Toy_TRAIN.ts" in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "1\n", ",\n", "1\tx\n", "1\tnan\n", "nan\t1\n", "1\t1e99\n", "\xff"]
)
def test_broken_tables_are_refused(text: str) -> None:
    with pytest.raises(DataError, match=r"Toy\.tsv"):
        parse_table(text.encode("latin-1"), "Toy.tsv")


def test_one_long_series_among_short_ones_does_not_fill_memory(tmp_path: Path) -> None:
    text = "1\t1\t2\n" * 2000 + "1" + "\t1" * 100_000 + "\n"
    with pytest.raises(DataError, match="padded"):
        load(pair(tmp_path, text, suffix=".tsv"))


@pytest.mark.parametrize("times", [3000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_damaged_files_raise_only_data_errors(times: int) -> None:
    def ts(content: bytes) -> None:
        parse_ts(content, "a.ts")

    def table(content: bytes) -> None:
        parse_table(content, "a.tsv")

    assert fuzz_bytes(TS.encode(), ts, times=times) > times // 4
    assert fuzz_bytes(b"1\t2.5\t3.5\n2\t4\tNaN\n" * 4, table, times=times) > times // 10


@needs_data
@pytest.mark.parametrize(
    ("problem", "shapes", "classes"),
    [
        ("BasicMotions", [(40, 6, 100), (40, 6, 100)], 4),
        ("JapaneseVowels", [(270, 12, 29), (370, 12, 29)], 9),
        ("ECG5000", [(500, 1, 140), (4500, 1, 140)], 5),
    ],
)
def test_published_problems_come_out_complete(
    problem: str, shapes: list[tuple[int, ...]], classes: int
) -> None:
    parts = load_dataset("ucr", problem=problem)
    assert [part.X.shape for part in parts] == shapes
    assert all(len(part.class_names) == classes for part in parts)


@needs_data
def test_published_values_and_lengths_are_those_of_the_text() -> None:
    train, _ = load_dataset("ucr", problem="JapaneseVowels")
    text = (ROOT / "ucr" / "JapaneseVowels" / "JapaneseVowels_TRAIN.ts").read_text()
    line = text.partition("@data")[2].strip().splitlines()[100]
    *channels, label = line.split(":")
    length = len(channels[0].split(","))
    assert train.lengths[100] == length
    assert train.class_names[train.y[100]] == label
    for x, channel in zip(train.X[100], channels, strict=True):
        assert x[:length].tolist() == [np.float32(v) for v in channel.split(",")]
        assert not x[length:].any()
