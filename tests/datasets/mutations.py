"""Files damaged in the ways disks, downloads and attackers damage them."""

import random
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from expclr.errors import DataError

WORDS = (
    b"-1",
    b"0",
    b"1",
    b"99999999",
    b"-99999999",
    b"nan",
    b"inf",
    b"1e308",
    b"1e-308",
    b"+",
    b"",
)
SECONDS = 2.0  # what one damaged file may take at most
MEMORY = 1 << 26  # and how much memory


def damaged(content: bytes, rng: random.Random) -> bytes:
    kind = rng.randrange(5)
    at = rng.randrange(len(content))
    if kind == 0:
        return content[:at]
    if kind == 1:
        return content[:at] + bytes(rng.randrange(256) for _ in range(rng.randrange(1, 9)))
    if kind == 2:
        return content[:at] + content[at + rng.randrange(1, 30) :]
    changed = bytearray(content)
    if kind == 3:
        for _ in range(rng.choice([1, 2, 8, 32])):
            changed[rng.randrange(len(content))] = rng.randrange(256)
    else:
        word = rng.choice(WORDS)
        width = rng.choice([len(word), 8, 8, 4])
        changed[at : at + width] = word.ljust(width)[: max(width, len(word))]
    return bytes(changed)


def fuzz(files: list[Path], read: Callable[[], object], *, times: int, seed: int = 0) -> int:
    """Damage one of the files at a time and read; the number of refusals, all DataErrors."""
    rng = random.Random(seed)
    whole = {file: file.read_bytes() for file in files}
    refused = 0
    tracemalloc.start()
    try:
        for _ in range(times):
            file = rng.choice(files)
            overwrite(file, damaged(whole[file], rng))
            started = time.perf_counter()
            refusal = refusal_of(read)
            if refusal:
                assert any(f.stem in refusal for f in files), refusal
                refused += 1
            assert time.perf_counter() - started < SECONDS
            overwrite(file, whole[file])
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()
    return refused


def refusal_of(read: Callable[[], object]) -> str:
    try:
        read()
    except DataError as error:
        return str(error)
    return ""


def overwrite(file: Path, content: bytes) -> None:
    """In place, which is ten times as fast as emptying the file first."""
    with file.open("r+b") as stream:
        stream.write(content)
        if file.stat().st_size > len(content):
            stream.truncate()
