"""Tables of numbers in text: read exactly, or refused with the place."""

import io

import numpy as np
import pytest
from tests.datasets.fuzzing import fuzz_bytes

from expclr.datasets.text import number_table, whole_column
from expclr.errors import DataError


def table(content: bytes) -> np.ndarray:
    return number_table(io.BytesIO(content), "a.txt")


def test_numbers_are_the_nearest_to_their_text(rng: np.random.Generator) -> None:
    values = rng.normal(size=(40, 7)) * 10.0 ** rng.integers(-9, 9, (40, 7))
    text = "\n".join(" ".join(f"{v:.9e}" for v in row) for row in values)
    wanted = [[float(word) for word in line.split()] for line in text.splitlines()]
    assert table(text.encode()).tolist() == wanted


def test_blank_lines_and_ends_of_lines_do_not_matter() -> None:
    assert table(b"\r\n\n 1\t2\r\n\r\n3 4\r\n\n").tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    "content", [b"", b"\n \n", b"one 2", b"1 2\n3\n", b"1 inf\n", b"\xff\xfe1"]
)
def test_what_is_no_table_is_refused_by_name(content: bytes) -> None:
    with pytest.raises(DataError, match=r"a\.txt"):
        table(content)


@pytest.mark.parametrize("content", [b"0\n", b"4\n", b"1.5\n", b"nan\n", b"1 2\n"])
def test_a_column_holds_whole_numbers_within_bounds(content: bytes) -> None:
    with pytest.raises(DataError, match=r"a\.txt"):
        whole_column(io.BytesIO(b"1\n" + content), "a.txt", lowest=1, highest=3)


@pytest.mark.parametrize("times", [2000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_damaged_tables_raise_only_data_errors(times: int) -> None:
    content = b"  1.5e-001 -2.0e+000\r\n  2.5e-001  7.0e+000\r\n" * 5
    assert fuzz_bytes(content, table, times=times) > times // 3
