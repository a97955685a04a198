"""CSV and Parquet tables read by blocks."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from tests.datasets.mutations import fuzz

from expclr.datasets.own import tables
from expclr.datasets.own.tables import column_names, read_table, table_blocks
from expclr.errors import DataError

TEXT = 'id,x,"a name",y\nann,1.5,u,-2e3\nbob,,"v, w",0\ncia,NA,"q""q",7\n'


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "ROWS", 7)


def write(tmp_path: Path, text: str, name: str = "a.csv") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def test_columns_are_read_by_name(tmp_path: Path) -> None:
    path = write(tmp_path, TEXT)
    assert column_names(path) == ("id", "x", "a name", "y")
    table = read_table(path, ["y", "x"], ["a name", "id"])
    np.testing.assert_array_equal(table["x"], [1.5, np.nan, np.nan])
    assert table["y"].tolist() == [-2000, 0, 7]
    assert table["a name"].tolist() == ["u", "v, w", 'q"q']


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blocks_join_to_what_the_csv_module_reads(
    tmp_path: Path, rng: np.random.Generator, delimiter: str, end: str
) -> None:
    rows = [[str(i), f"{v:.9g}", f"w{i % 3}"] for i, v in enumerate(rng.normal(size=40))]
    rows[17][1] = ""
    text = end.join(delimiter.join(row) for row in [["i", "v", "w"], *rows]) + end * 2
    blocks = list(table_blocks(write(tmp_path, text), ["v"], ["w"]))
    assert len(blocks) == 6
    wanted = list(csv.reader(io.StringIO(text), delimiter=delimiter))[1:41]
    values = np.concatenate([block["v"] for block in blocks])
    np.testing.assert_array_equal(values, [float(row[1] or "nan") for row in wanted])
    assert np.concatenate([b["w"] for b in blocks]).tolist() == [row[2] for row in wanted]


def test_parquet_reads_like_csv(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = write(tmp_path, TEXT)
    pandas.read_csv(path).to_parquet(tmp_path / "a.parquet")
    assert column_names(tmp_path / "a.parquet") == column_names(path)
    a, b = (read_table(p, ["x", "y"], ["id"]) for p in (path, tmp_path / "a.parquet"))
    for name in a:
        np.testing.assert_array_equal(a[name], b[name])


def test_parquet_times_are_seconds(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    moments = pandas.to_datetime(["1970-01-01 00:00:01.0", "1970-01-01 00:00:01.5"])
    pandas.DataFrame({"t": moments}).to_parquet(tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet", ["t"])["t"].tolist() == [1, 1.5]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "first line"),
        ("x,x\n1,2\n", "once"),
        ("x,\n1,2\n", "once"),
        ("x,y\n", "no rows"),
        ("x,y\n1,2\n3\n", "line 3 has 1 fields"),
        ("x,y\n1,2\n3,4,5\n", "line 3 has 3 fields"),
        ("x,y\n1,2\n\n3,four\n", "line 4, column y: 'four'"),
        ('x,y\n1,"2\n', "line 2"),
        ("z,y\n1,2\n", "did you mean|Known: y, z"),
        ("x;y\n0,5;1\n", "'0,5' is no number; write decimals with a point"),
        ("0.5,0.25\n1,2\n", "first line must name the columns, it holds numbers"),
        ("7,3\n1,2\n", "it holds numbers"),
    ],
)
def test_broken_tables_are_refused_with_the_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
        read_table(write(tmp_path, text), ["x", "y"])
    assert "a.csv" in str(caught.value)


@pytest.mark.parametrize("first", [0, 1])
def test_columns_may_be_counted(tmp_path: Path, first: int) -> None:
    path = write(tmp_path, f"{first},{first + 1}\n5,6\n")
    assert column_names(path) == (str(first), str(first + 1))


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"x,y\n1,\xff\n")
    with pytest.raises(DataError, match=r"a\.csv.*UTF-8"):
        read_table(tmp_path / "a.csv", ["x"])
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no")
    pytest.importorskip("pyarrow")
    with pytest.raises(DataError, match=r"a\.parquet"):
        read_table(tmp_path / "a.parquet", ["x"])


@pytest.mark.parametrize("times", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_damaged_tables_raise_only_data_errors(tmp_path: Path, times: int) -> None:
    path = write(tmp_path, TEXT + "dan,3,z,4\n" * 10)

    def read() -> None:
        read_table(path, ["x", "y"], ["id", "a name"])

    assert fuzz([path], read, times=times) > times // 4


@pytest.mark.parametrize("times", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_damaged_parquet_raises_only_data_errors(tmp_path: Path, times: int) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / "a.parquet"
    pandas.DataFrame({"x": np.arange(90) / 7, "s": ["on", "off", "on"] * 30}).to_parquet(path)

    def read() -> None:
        read_table(path, ["x"], ["s"])

    assert fuzz([path], read, times=times) > times // 2
