"""Fetching from a server on this machine: whole, resumed, checked, or refused in one line."""

import hashlib
import http.server
import logging
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from expclr.datasets import fetch as fetching
from expclr.datasets.fetch import RECORDED, fetch
from expclr.datasets.source import Source
from expclr.errors import ConfigError, DataError

BODY = bytes(range(256)) * 2000


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves ``server.files``; breaks a transfer off after ``server.stop_after`` bytes, once."""

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers.get("Range")))
        time.sleep(self.server.delay)
        body = self.server.files.get(self.path)
        if body is None:
            self.send_error(404)
            return
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        tag = hashlib.sha256(body).hexdigest()
        fresh = self.headers.get("If-Range", tag) == tag
        start = int(wanted[1]) if wanted and fresh and self.server.ranges else 0
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body) - start))
        if self.server.tags:
            self.send_header("ETag", tag)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.end_headers()
        stop, self.server.stop_after = self.server.stop_after, None
        self.wfile.write(body[start : None if stop is None else start + stop])
        if stop is not None:
            self.server.files |= self.server.then
            self.connection.close()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[http.server.ThreadingHTTPServer]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.files, server.asked = {"/a.zip": BODY}, []
    server.stop_after, server.ranges, server.tags, server.then = None, True, True, {}
    server.delay = 0.0
    server.url = f"http://127.0.0.1:{server.server_port}/"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("EXPCLR_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, Source]:
    """Sources by name, in the place of those of the datasets."""
    sources: dict[str, Source] = {}
    monkeypatch.setattr(fetching, "_source", sources.__getitem__)
    return sources


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_a_file_comes_whole_and_only_once(
    server: http.server.ThreadingHTTPServer, known: dict[str, Source], tmp_path: Path
) -> None:
    known["toy"] = Source({"a.zip": (server.url + "a.zip",)}, {"a.zip": sha256(BODY)})
    folder = fetch("toy", tmp_path)
    assert folder == tmp_path / "toy"
    assert (folder / "a.zip").read_bytes() == BODY
    assert [path.name for path in folder.iterdir()] == ["a.zip"]
    fetch("toy", tmp_path)
    fetch("toy", tmp_path, offline=True)
    assert len(server.asked) == 1


def test_several_that_fetch_at_once_ask_once(
    server: http.server.ThreadingHTTPServer, known: dict[str, Source], tmp_path: Path
) -> None:
    server.delay = 0.2
    known["toy"] = Source({"a.zip": (server.url + "a.zip",)})
    with ThreadPoolExecutor(3) as pool:
        folders = list(pool.map(lambda _: fetch("toy", tmp_path), range(3)))
    assert (folders[0] / "a.zip").read_bytes() == BODY
    assert len(server.asked) == 1


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_transfer_goes_on(
    server: http.server.ThreadingHTTPServer,
    known: dict[str, Source],
    tmp_path: Path,
    ranges: bool,
) -> None:
    server.stop_after, server.ranges = 200_000, ranges
    known["toy"] = Source({"a.zip": (server.url + "a.zip",)})
    assert (fetch("toy", tmp_path) / "a.zip").read_bytes() == BODY
    assert [asked is not None for _, asked in server.asked] == [False, True]


def test_two_versions_are_never_mixed(
    server: http.server.ThreadingHTTPServer, known: dict[str, Source], tmp_path: Path
) -> None:
    server.stop_after, server.then = 200_000, {"/a.zip": BODY[::-1]}
    known["toy"] = Source({"a.zip": (server.url + "a.zip",)})
    assert (fetch("toy", tmp_path) / "a.zip").read_bytes() == BODY[::-1]


def test_without_a_hash_and_a_mark_a_broken_transfer_starts_anew(
    server: http.server.ThreadingHTTPServer, known: dict[str, Source], tmp_path: Path
) -> None:
    server.stop_after, server.tags = 200_000, False
    known["toy"] = Source({"a.zip": (server.url + "a.zip",)})
    assert (fetch("toy", tmp_path) / "a.zip").read_bytes() == BODY
    assert [asked for _, asked in server.asked] == [None, None]


def test_a_part_of_an_earlier_day_is_used_when_the_hash_is_known(
    server: http.server.ThreadingHTTPServer, known: dict[str, Source], tmp_path: Path
) -> None:
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / ".a.zip.part").write_bytes(BODY[:1000])
    known["toy"] = Source({"a.zip": (server.url + "a.zip",)}, {"a.zip": sha256(BODY)})
    assert (fetch("toy", tmp_path) / "a.zip").read_bytes() == BODY
    assert server.asked == [("/a.zip", "bytes=1000-")]


def test_the_next_mirror_is_asked(
    server: http.server.ThreadingHTTPServer, known: dict[str, Source], tmp_path: Path
) -> None:
    server.files["/bad/a.zip"] = b"something else"
    addresses = tuple(server.url + path for path in ("gone/a.zip", "bad/a.zip", "a.zip"))
    known["toy"] = Source({"a.zip": addresses}, {"a.zip": sha256(BODY)})
    assert (fetch("toy", tmp_path) / "a.zip").read_bytes() == BODY
    assert [path for path, _ in server.asked] == ["/gone/a.zip", "/bad/a.zip", "/a.zip"]


def test_a_mirror_of_ones_own_is_asked_first(
    server: http.server.ThreadingHTTPServer, known: dict[str, Source], tmp_path: Path
) -> None:
    known["toy"] = Source({"a.zip": ("http://127.0.0.1:9/a.zip",)})
    assert (fetch("toy", tmp_path, mirror=server.url) / "a.zip").read_bytes() == BODY


def test_a_file_with_another_hash_is_refused(
    server: http.server.ThreadingHTTPServer, known: dict[str, Source], tmp_path: Path
) -> None:
    known["toy"] = Source({"a.zip": (server.url + "a.zip",)}, {"a.zip": "0" * 64})
    with pytest.raises(DataError, match=r"cannot download a\.zip \(SHA256 hash of downloaded"):
        fetch("toy", tmp_path)
    assert not (tmp_path / "toy" / "a.zip").exists()


def test_a_damaged_file_with_a_known_hash_is_fetched_again(
    server: http.server.ThreadingHTTPServer,
    known: dict[str, Source],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    known["toy"] = Source({"a.zip": (server.url + "a.zip",)}, {"a.zip": sha256(BODY)})
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "a.zip").write_bytes(BODY[:-1])
    with pytest.raises(DataError, match="offline"):
        fetch("toy", tmp_path, offline=True)
    with caplog.at_level(logging.WARNING):
        fetch("toy", tmp_path)
    assert (tmp_path / "toy" / "a.zip").read_bytes() == BODY
    assert "damaged" in caplog.text


def test_the_first_hash_is_held_to_ever_after(
    server: http.server.ThreadingHTTPServer, known: dict[str, Source], tmp_path: Path
) -> None:
    known["toy"] = Source({"a.zip": (server.url + "a.zip",)})
    folder = fetch("toy", tmp_path)
    assert (folder / RECORDED).read_text() == f"{sha256(BODY)}  a.zip\n"
    (folder / "a.zip").write_bytes(b"edited")
    with pytest.raises(DataError, match="has changed since"):
        fetch("toy", tmp_path)
    (folder / "a.zip").unlink()
    server.files["/a.zip"] = b"a new version"
    with pytest.raises(DataError, match="cannot download"):
        fetch("toy", tmp_path)


def test_without_network_one_line_says_what_to_do(known: dict[str, Source], tmp_path: Path) -> None:
    known["toy"] = Source({"a.zip": ("http://127.0.0.1:9/a.zip",)})
    for offline in (False, True):
        with pytest.raises(DataError) as caught:
            fetch("toy", tmp_path, offline=offline)
        said = str(caught.value)
        assert "\n" not in said
        assert all(w in said for w in ("a.zip", "http://127.0.0.1:9/a.zip", str(tmp_path / "toy")))


def test_without_network_a_published_list_is_asked_for_with_its_files(
    known: dict[str, Source], tmp_path: Path
) -> None:
    known["toy"] = Source(mirrors=("http://127.0.0.1:9/v1/",), wanted=("*.dat", "*.hea"))
    said = r"get http://127.0.0.1:9/v1/SHA256SUMS.txt .*toy, and beside it \*\.dat, \*\.hea from"
    with pytest.raises(DataError, match=said):
        fetch("toy", tmp_path)


def test_a_refused_connection_is_told_in_few_words(
    known: dict[str, Source], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    known["toy"] = Source({"a.zip": ("http://127.0.0.1:9/a.zip", "http://127.0.0.1:9/b.zip")})
    with caplog.at_level(logging.INFO), pytest.raises(DataError, match=r"\(no connection\): get"):
        fetch("toy", tmp_path)
    assert not caplog.text


def test_files_under_other_names_serve_as_well(known: dict[str, Source], tmp_path: Path) -> None:
    address = ("http://127.0.0.1:9/a.zip",)
    known["toy"] = Source({"a.zip": address}, instead=("*/RawData", "other.zip"))
    with pytest.raises(DataError, match=r"a\.zip"):
        fetch("toy", tmp_path)
    (tmp_path / "toy" / "unpacked" / "RawData").mkdir(parents=True)
    assert fetch("toy", tmp_path, offline=True) == tmp_path / "toy"


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("uci_har", "UCI HAR Dataset.zip"),
        ("hapt", "hapt_raw.zip"),
        ("hydraulic", "profile.txt"),
    ],
)
def test_what_a_dataset_can_be_read_from_need_not_be_fetched(
    tmp_path: Path, name: str, file: str
) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / file).touch()
    assert fetch(name, tmp_path, offline=True) == tmp_path / name
    assert [path.name for path in (tmp_path / name).iterdir()] == [file]


def test_a_place_that_cannot_be_written_is_said(known: dict[str, Source], tmp_path: Path) -> None:
    known["toy"] = Source({"a.zip": ("http://127.0.0.1:9/a.zip",)})
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"cannot write .*file.*EXPCLR_DATA"):
        fetch("toy", tmp_path / "file")


def test_a_published_list_says_what_to_get_and_checks_it(
    server: http.server.ThreadingHTTPServer, known: dict[str, Source], tmp_path: Path
) -> None:
    files = {"100.dat": b"one", "100.hea": b"two", "deep/101.dat": b"three", "read.me": b"four"}
    listed = "".join(f"{sha256(content)} {name}\n" for name, content in files.items())
    server.files = {f"/{name}": content for name, content in files.items()}
    server.files["/SHA256SUMS.txt"] = listed.encode()
    known["toy"] = Source(mirrors=(server.url,), wanted=("*.dat", "*.hea"))
    folder = fetch("toy", tmp_path, files=["100.*"])
    assert (folder / "100.hea").read_bytes() == b"two"
    assert not (folder / "deep").exists()
    fetch("toy", tmp_path)
    assert (folder / "deep" / "101.dat").read_bytes() == b"three"
    assert not (folder / "read.me").exists()
    with pytest.raises(ConfigError, match="no file of toy fits"):
        fetch("toy", tmp_path, files=["999.*"])
    server.files["/100.dat"] = b"forged"
    (folder / "100.dat").unlink()
    with pytest.raises(DataError, match=r"100\.dat"):
        fetch("toy", tmp_path)


@pytest.mark.parametrize("name", ["../up.dat", "/etc/x.dat", "C:\\x.dat"])
def test_a_list_with_names_that_lead_out_is_refused(
    server: http.server.ThreadingHTTPServer, known: dict[str, Source], tmp_path: Path, name: str
) -> None:
    server.files["/SHA256SUMS.txt"] = f"{'0' * 64} {name}\n".encode()
    known["toy"] = Source(mirrors=(server.url,), wanted=("*",))
    with pytest.raises(DataError, match="leads out"):
        fetch("toy", tmp_path)


def test_a_collection_is_fetched_part_by_part(
    server: http.server.ThreadingHTTPServer, known: dict[str, Source], tmp_path: Path
) -> None:
    known["toy"] = Source(mirrors=(server.url,), one_by_one="{}.zip")
    assert (fetch("toy", tmp_path, files=["a"]) / "a.zip").read_bytes() == BODY
    with pytest.raises(ConfigError, match="which parts"):
        fetch("toy", tmp_path)
    with pytest.raises(DataError, match="leads out"):
        fetch("toy", tmp_path, files=["../../a"])


def test_a_dataset_without_raw_files_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no raw files"):
        fetch("machine", tmp_path)
    with pytest.raises(ConfigError, match="did you mean 'uci_har'"):
        fetch("uci_hra", tmp_path)
