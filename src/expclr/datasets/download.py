"""One download, taken up again where it broke off."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any

from tqdm import tqdm

__all__ = ["Resuming"]

log = logging.getLogger(__name__)
TIMEOUT = (10, 60)  # seconds to connect, and between two pieces
TRIES = 4
PIECE = 1 << 16


class Resuming:
    """A downloader for pooch that keeps what it has got in the file ``part``.

    Within one call a broken transfer goes on where it stopped, as long as the file on the
    server stays the same; in a later call only when its hash is ``known``, since otherwise
    nobody would notice two halves of two versions.
    """

    def __init__(self, part: Path, *, known: bool) -> None:
        self.part = part
        self.known = known
        self._mark: str | None = None  # the server's, of the version that was begun

    def __call__(self, url: str, output_file: str, pooch: Any) -> None:
        for left in reversed(range(TRIES)):
            try:
                self._transfer(url)
                break
            except OSError as error:
                if left == 0 or _is_final(error):
                    raise
                log.info("%s broke off (%s), going on", url, error)
        os.replace(self.part, output_file)

    def _transfer(self, url: str) -> None:
        """Get the rest of the file; all of it where the server has a new version."""
        import requests

        if not (self.known or self._mark):
            self.part.unlink(missing_ok=True)
        have = self.part.stat().st_size if self.part.is_file() else 0
        headers = {"Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
        if have and self._mark:
            headers["If-Range"] = self._mark
        with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
            if answer.status_code == 416:  # nothing is left, or the part is too long
                self.part.unlink()
                raise OSError("the part that was there does not fit")
            answer.raise_for_status()
            goes_on = answer.status_code == 206
            if goes_on and f"bytes {have}-" not in answer.headers.get("Content-Range", ""):
                raise OSError("the server sent another part than was asked for")
            total = int(answer.headers.get("Content-Length", 0)) + (have if goes_on else 0)
            self._mark = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
            self._write(answer, "ab" if goes_on else "wb", total, have if goes_on else 0)
        size = self.part.stat().st_size
        if total and size != total:
            raise OSError(f"the transfer ended after {size} of {total} bytes")

    def _write(self, answer: Any, mode: str, total: int, have: int) -> None:
        with (
            self.part.open(mode) as file,
            tqdm(
                desc=self.part.name.removeprefix(".").removesuffix(".part"),
                total=total or None,
                initial=have,
                unit="B",
                unit_scale=True,
                disable=None,
            ) as bar,
        ):
            for piece in answer.iter_content(PIECE):
                file.write(piece)
                bar.update(len(piece))


def _is_final(error: OSError) -> bool:
    """Asking again does not help: the server says no, or nothing is reached at all."""
    from requests import ConnectionError as NotReached
    from requests import ConnectTimeout, HTTPError

    refused = isinstance(error, NotReached) and "Max retries exceeded" in str(error)
    return isinstance(error, HTTPError | ConnectTimeout) or refused
