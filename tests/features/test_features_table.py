"""features_from_table: rows found by window, gaps missing, nothing guessed."""

import numpy as np
import pandas as pd
import pytest

from expclr.errors import ConfigError, DataError
from expclr.features import features_from_table


@pytest.fixture
def table():
    return pd.DataFrame({"window": [3, 0, 1], "load": [1.5, np.nan, 2.0], "hours": [7, 8, 9]})


@pytest.mark.parametrize("kind", ["frame", "csv", "tsv"])
def test_rows_belong_to_their_windows(table, kind, tmp_path):
    given = table
    if kind != "frame":
        given = tmp_path / f"table.{kind}"
        table.to_csv(given, index=False, sep="," if kind == "csv" else "\t")
    F, names = features_from_table(given, 5)
    assert names == ("load", "hours")
    np.testing.assert_array_equal(
        F, [[np.nan, 8], [2, 9], [np.nan, np.nan], [1.5, 7], [np.nan, np.nan]]
    )


def test_parquet_is_read_too(table, tmp_path):
    pytest.importorskip("pyarrow")
    table.to_parquet(tmp_path / "table.parquet")
    assert features_from_table(tmp_path / "table.parquet", 5)[0].shape == (5, 2)


def test_without_a_key_rows_are_in_the_order_of_the_windows(table):
    F, _ = features_from_table(table.drop(columns="window"), 3)
    np.testing.assert_array_equal(F[:, 1], [7, 8, 9])
    with pytest.raises(DataError, match="3 rows for 4 windows"):
        features_from_table(table.drop(columns="window"), 4)


@pytest.mark.parametrize(
    ("windows", "message"),
    [
        ([0, 1, 5], "a row for window 5"),
        ([0, 1, -1], "a row for window -1"),
        ([0, 1, 0.5], "a row for window 0.5"),
        ([0, 1, 1], "2 rows for window 1"),
        (["a", "b", "c"], "windows are not numbers"),
    ],
)
def test_windows_that_cannot_be_are_named(table, windows, message):
    table["window"] = windows
    with pytest.raises(DataError, match=message):
        features_from_table(table, 5)


def test_columns_that_are_no_numbers_are_named(table):
    table["gear"] = ["low", "high", "low"]
    with pytest.raises(DataError, match="column 'gear' of the table is not of numbers"):
        features_from_table(table, 5)
    table["gear"] = [1, np.inf, 2]
    with pytest.raises(DataError, match="column 'gear' of the table holds infinite values"):
        features_from_table(table, 5)


def test_other_things_are_refused(table, tmp_path):
    with pytest.raises(DataError, match="a table is list"):
        features_from_table([1, 2], 2)
    with pytest.raises(DataError, match="no column besides 'window'"):
        features_from_table(table[["window"]], 5)
    with pytest.raises(DataError, match="cannot read"):
        features_from_table(tmp_path / "none.csv", 5)
    with pytest.raises(ConfigError, match=r"\.csv, \.tsv or \.parquet"):
        features_from_table(tmp_path / "table.xlsx", 5)
