"""Parsers of bytes, given thousands of damaged inputs."""

import random
import time
import tracemalloc
from collections.abc import Callable

from tests.datasets.mutations import damaged

from expclr.errors import DataError

SECONDS = 2.0  # for one input
MEMORY = 1 << 26  # for all


def fuzz_bytes(content: bytes, parse: Callable[[bytes], object], *, times: int) -> int:
    """Parse damaged copies; the number of those refused, all with DataErrors that say why."""
    rng = random.Random(0)
    refused = 0
    tracemalloc.start()
    try:
        for _ in range(times):
            copy = damaged(content, rng)
            started = time.perf_counter()
            try:
                parse(copy)
            except DataError as error:
                refused += len(str(error)) > 10
            assert time.perf_counter() - started < SECONDS, copy
        assert tracemalloc.get_traced_memory()[1] < MEMORY
    finally:
        tracemalloc.stop()
    return refused
