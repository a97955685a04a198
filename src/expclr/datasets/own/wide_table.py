"""Tables with one row for each window: its label, group and features, then its samples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from expclr.datasets.own.blocks import Block
from expclr.datasets.own.reading import Reading, Stream
from expclr.datasets.own.tables import column_names, table_blocks
from expclr.errors import DataError

__all__ = ["stream"]


def stream(path: Path, reading: Reading) -> Stream:
    """All columns that play no other part are samples: channel after channel."""
    words = tuple(name for name in (reading.labels, reading.group) if name)
    taken = {*words, *reading.features}
    samples = tuple(name for name in column_names(path) if name not in taken)
    c = max(1, len(reading.channels))
    if not samples or len(samples) % c:
        raise DataError(
            f"{path} has {len(samples)} columns of samples: a multiple of {c} channels is wanted"
        )
    known = {"sfreq": reading.sfreq, "channel_names": reading.channels}
    return Stream(_blocks(path, reading, samples, words, c), known)


def _blocks(
    path: Path, reading: Reading, samples: tuple[str, ...], words: tuple[str, ...], c: int
) -> Iterator[Block]:
    numeric = (*samples, *reading.features)
    for block in table_blocks(path, numeric, words):
        X = np.stack([block[name] for name in samples], axis=1)
        F = [block[name] for name in reading.features]
        yield Block(
            X.reshape(len(X), c, -1),
            F=np.stack(F, axis=1) if F else None,
            label=block[reading.labels] if reading.labels else None,
            group=block[reading.group] if reading.group else None,
        )
