"""Folders and zips, read by name; hostile and broken ones refused."""

import zipfile
from pathlib import Path

import pytest
from tests.datasets.mutations import fuzz

from expclr.datasets.archive import open_archive
from expclr.errors import DataError


def write_zip(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in files.items():
            zipped.writestr(name, content)
    return path


def test_a_zip_and_its_unpacked_folder_read_alike(tmp_path: Path) -> None:
    files = {"top.txt": b"top", "deep/down.txt": b"down"}
    path = write_zip(tmp_path / "a.zip", files)
    with zipfile.ZipFile(path) as zipped:
        zipped.extractall(tmp_path / "a")
    for place in (path, tmp_path / "a"):
        with open_archive(place) as archive:
            assert archive.names == sorted(files)
            assert {name: archive.read(name) for name in archive.names} == files
            assert archive.find("down.txt") == "deep/down.txt"
            assert archive.size("top.txt") == 3


def test_a_zip_in_a_zip_is_looked_through(tmp_path: Path) -> None:
    inner = write_zip(tmp_path / "inner.zip", {"a.txt": b"found"})
    outer = write_zip(tmp_path / "outer.zip", {"inner.zip": inner.read_bytes(), "b": b""})
    for path in (inner, outer):
        with open_archive(path, "inner.zip") as archive:
            assert archive.read("a.txt") == b"found"


@pytest.mark.parametrize("name", ["../up.txt", "/root.txt", "a/../../b", "..\\up.txt", "C:\\x"])
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    path = write_zip(tmp_path / "a.zip", {name: b"x"})
    with pytest.raises(DataError, match="leads out"), open_archive(path):
        pass


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "bomb.zip", {str(i): bytes(1 << 24) for i in range(8)})
    assert path.stat().st_size < 1 << 20
    with pytest.raises(DataError, match=r"bomb\.zip .* claims"), open_archive(path):
        pass


def test_a_bomb_inside_a_zip_is_refused(tmp_path: Path) -> None:
    bomb = write_zip(tmp_path / "bomb.zip", {str(i): bytes(1 << 24) for i in range(8)})
    outer = write_zip(tmp_path / "outer.zip", {"bomb.zip": bomb.read_bytes()})
    with pytest.raises(DataError, match="claims"), open_archive(outer, "bomb.zip"):
        pass


def test_a_file_that_is_not_there_or_twice_is_named(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.zip", {"x/a.txt": b"", "y/a.txt": b""})
    with open_archive(path) as archive:
        with pytest.raises(DataError, match="2 times"):
            archive.find("a.txt")
        with pytest.raises(DataError, match=r"b\.txt is missing in .*a\.zip"):
            archive.find("b.txt")


@pytest.mark.parametrize("times", [1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_damaged_zips_raise_only_data_errors(tmp_path: Path, times: int) -> None:
    text = "".join(f"{i} {i * i}\n" for i in range(50)).encode()
    path = write_zip(tmp_path / "a.zip", {"one.txt": text, "two.txt": text})

    def read_all() -> None:
        with open_archive(path) as archive:
            for name in archive.names:
                archive.read(name)

    assert fuzz([path], read_all, times=times) > times // 2
