"""Arrays written and read by rows."""

import io
from pathlib import Path

import numpy as np
import pytest
from tests.datasets.fuzzing import fuzz_bytes

from expclr.datasets import npy
from expclr.datasets.npy import NpyWriter, npy_blocks, npy_columns
from expclr.errors import DataError


def saved(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def read(content: bytes) -> np.ndarray:
    return np.concatenate(list(npy_blocks(io.BytesIO(content), "X.npy", size=len(content))))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npy, "BLOCK", 100)


@pytest.mark.parametrize("shape", [(7,), (7, 3), (1, 2, 5), (12, 2, 5), (3, 40)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2", ">f8", "?", "U5"])
def test_blocks_are_the_array(shape: tuple[int, ...], dtype: str) -> None:
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    np.testing.assert_array_equal(read(saved(array)), array)


def test_an_array_that_grew_is_the_array_saved_at_once(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    array = rng.normal(size=(1000, 2, 3)).astype(np.float32)
    with NpyWriter(tmp_path / "X.npy", (2, 3)) as writer:
        for part in np.split(array, [1, 1, 400]):
            writer.append(part)
    np.testing.assert_array_equal(np.load(tmp_path / "X.npy"), array)
    np.testing.assert_array_equal(read((tmp_path / "X.npy").read_bytes()), array)


def test_rows_of_another_shape_are_refused(tmp_path: Path) -> None:
    with NpyWriter(tmp_path / "X.npy", (2, 3)) as writer, pytest.raises(DataError, match="fit"):
        writer.append(np.zeros((4, 3, 2)))


def test_a_header_that_lies_about_length_is_refused() -> None:
    content = saved(np.zeros((4, 3))).replace(b"(4, 3)", b"(9, 3)")
    with pytest.raises(DataError, match=r"X\.npy says that it holds \(9, 3\)"):
        read(content)


@pytest.mark.parametrize(
    "shape", [b"(0, 0)", b"(4, 0)", b"(-1, )", b"(4.0,)", b"(True,)", b"4", b"()", b"(10**9,)"]
)
def test_impossible_shapes_are_refused_at_once(shape: bytes) -> None:
    with pytest.raises(DataError, match=r"X\.npy"):
        read(saved(np.zeros((4, 3))).replace(b"(4, 3)", shape.ljust(6)[: max(6, len(shape))]))


def test_objects_and_columns_are_refused() -> None:
    with pytest.raises(DataError, match="numbers or text"):
        read(saved(np.array([None, {}])))
    with pytest.raises(DataError, match="Fortran"):
        read(saved(np.asfortranarray(np.zeros((4, 3)))))


@pytest.mark.parametrize("times", [3000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_damaged_arrays_raise_only_data_errors(times: int) -> None:
    assert fuzz_bytes(saved(np.zeros((4, 3))), read, times=times) > times // 2


def test_columns_of_a_recording_make_up_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(npy, "BLOCK", 40)
    for shape in ((3, 7), (7,), (1, 1)):
        values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        np.save(tmp_path / "a.npy", values)
        blocks = list(npy_columns(tmp_path / "a.npy"))
        np.testing.assert_array_equal(np.concatenate(blocks, axis=1), np.atleast_2d(values))
    for broken in (np.zeros((2, 2, 2)), np.zeros((2, 0)), np.array(["a"])):
        np.save(tmp_path / "a.npy", broken)
        with pytest.raises(DataError, match=r"a\.npy"):
            list(npy_columns(tmp_path / "a.npy"))
    np.save(tmp_path / "a.npy", np.zeros((2, 9)))
    (tmp_path / "a.npy").write_bytes((tmp_path / "a.npy").read_bytes()[:-1])
    with pytest.raises(DataError, match="truncated"):
        list(npy_columns(tmp_path / "a.npy"))
