"""Numbers in payloads, tables and charts."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from expclr.errors import DataError
from expclr.report import (
    Bars,
    Histogram,
    KeyValues,
    Lines,
    Mark,
    Report,
    Series,
    Table,
    pair_ratios,
    render_report,
)
from expclr.report.formats import number
from expclr.report.payload import embedded_json, pack, plain

NAMES = {"x_label": "x", "y_label": "y", "caption": "c"}


@settings(max_examples=50)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=5,
    )
)
def test_embedded_json_gives_back_what_went_in_and_cannot_end_the_script(value):
    text = embedded_json(value)
    assert not set("<>&") & set(text)
    assert json.loads(text) == plain(value)


@given(hnp.arrays(np.float32, hnp.array_shapes(max_dims=2, max_side=5)))
def test_packed_arrays_come_back_bit_by_bit(array):
    from base64 import b64decode

    packed = pack(array)
    again = np.frombuffer(b64decode(packed["base64"]), "<f4").reshape(packed["shape"])
    np.testing.assert_array_equal(again, array)


def test_numbers_are_set_for_reading():
    assert number(12345678) == "12\u202f345\u202f678"
    assert number(1999) == "1999"
    assert number(-0.5, ".2f") == "−0.50"
    assert number(np.float32("nan")) == number(None) == "–"


def test_a_table_marks_the_best_as_shown_and_puts_errors_behind():
    rows = [("a", 0.9504, 0.01, 3.0), ("b", 0.9501, 0.02, 1.0), ("c", None, None, float("nan"))]
    table = Table(
        "t",
        ("name", "acc", "se", "sec"),
        rows,
        formats={"acc": ".2f", "sec": ".0f"},
        best={"acc": "high", "sec": "low"},
        errors={"acc": "se"},
    )
    texts = [[cell.text for cell in row] for row in table.cells()]
    assert texts == [["a", "0.95 ± 0.01", "3"], ["b", "0.95 ± 0.02", "1"], ["c", "–", "–"]]
    best = [[cell.best for cell in row[1:]] for row in table.cells()]
    assert best == [[True, False], [True, True], [False, False]]
    assert table.numeric_columns() == ["acc", "se", "sec"]


def test_no_value_is_best_when_all_are_equal():
    table = Table("t", ("a",), [(1,), (1,)], best={"a": "high"})
    assert not any(cell.best for row in table.cells() for cell in row)


@pytest.mark.parametrize(
    ("columns", "rows", "options", "said"),
    [
        (("a", "b"), [(1,)], {}, "has 1 cells"),
        (("a",), [(1,)], {"best": {"aa": "high"}}, "did you mean 'a'"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(columns, rows, options, said):
    with pytest.raises(DataError, match=said):
        Table("t", columns, rows, **options)


def test_settings_keep_their_blocks():
    values = {"a": None, "b": {"c": [1, 2], "d": {"e": True}}}
    blocks = KeyValues("k", values).blocks()
    assert blocks == [("", [("a", "–")]), ("b", [("c", "1, 2"), ("d", "e yes")])]


def test_series_of_unequal_length_are_refused():
    with pytest.raises(DataError, match="2 values are wanted"):
        Series("s", [1, 2], [1])
    with pytest.raises(DataError, match="one dimension"):
        Series("s", [[1, 2]], [1])


def test_a_line_without_values_can_be_shown():
    lines = Lines("l", [Series("s", [1], [np.nan])], **NAMES)
    assert "no values" in lines.alt()
    assert json.loads(embedded_json(lines.payload()))["series"][0]["y"] == [None]


@pytest.mark.parametrize(
    ("edges", "log"), [([1, 1], False), ([2, 1], False), ([0, 1], True), ([np.nan, 1], False)]
)
def test_edges_that_do_not_grow_are_refused(edges, log):
    with pytest.raises(DataError, match="edges"):
        Histogram("h", edges, [1], log_x=log, **NAMES)


def test_a_mark_that_is_not_finite_stays_valid_json():
    chart = Histogram("h", [0, 1], [1], marks=[Mark(np.inf, "l+")], **NAMES)
    assert json.loads(embedded_json(chart.payload()))["marks"] == [{"value": None, "label": "l+"}]


def test_bars_start_at_zero_and_fill_the_width():
    bars = Bars("b", ["a", "b"], [3, -1], low=[2, -1], high=[3, 0], x_label="x", caption="c")
    up, down = bars.shown()
    assert (bars.zero(), up.start, up.size, up.low, up.high) == (25, 25, 75, 75, 100)
    assert (down.start, down.size, down.interval) == (0, 25, "−1 to 0")


def test_a_bar_without_a_value_is_empty():
    row = Bars("b", ["a"], [np.nan], x_label="x", caption="c").shown()[0]
    assert (row.size, row.value, row.low) == (0, "–", None)


@given(
    st.lists(st.floats(1e-3, 1e3) | st.sampled_from([0.0, np.inf, np.nan]), max_size=30),
)
def test_pair_ratios_count_every_ratio_once(ratios):
    values = np.array(ratios)
    known = values[np.isfinite(values)]
    if not len(known):
        with pytest.raises(DataError, match="none of"):
            pair_ratios(values, 0.1, 1.0)
        return
    chart = pair_ratios(values, 0.1, 1.0)
    shown = known[known > 0] if chart.log_x else known
    left_out = len(values) - len(shown)
    assert chart.counts.sum() == len(shown)
    assert (f" {left_out} pairs " in chart.caption) == (left_out > 0)
    positive = known[known > 0]
    wide = len(positive) > 0 and positive.max() > 10 * positive.min()
    assert chart.log_x == wide


@pytest.mark.parametrize("ratios", [[0.0, 0.0], [1.0, 1 + 2e-16], [3e9, 3e9], [7.0]])
def test_ratios_that_are_all_alike_can_be_shown(ratios):
    chart = pair_ratios(ratios, ratios[0], ratios[-1])
    assert chart.counts.sum() == len(ratios)
    assert chart.counts.max() == len(ratios)


def test_a_marked_cell_is_coloured():
    table = Table(
        "T", ("a", "b", "e"), [("x", 1.0, 0.1)], errors={"b": "e"}, marks={(0, 1): "below"}
    )
    assert table.cells()[0][1].mark == "below"
    assert '<td class="number below">' in render_report(Report("R", sections=[table]))
