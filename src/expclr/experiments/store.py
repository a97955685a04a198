"""The results store: one JSON file a run, never changed, merged by copying files together."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from expclr.errors import DataError
from expclr.storage import write_json, write_text

__all__ = ["FORMAT", "Results", "Store", "code_version", "read_results"]

log = logging.getLogger(__name__)

FORMAT = 1
WANTED = ("id", "run", "config", "config_hash", "code", "data", "split", "seconds", "metrics")
# What a number depends on: files and folders of the package.
SOURCES = (
    *("arrays.py", "batches.py", "engine", "estimators.py", "examples.py", "fast.py", "fixed.py"),
    *("inputs.py", "loss.py", "many.py", "self_training.py", "train.py", "train_many.py"),
    *("windows.py", "encoders", "methods", "experiments/protocol.py", "experiments/untrained.py"),
    *("evaluation/inputs.py", "evaluation/linear_head.py", "evaluation/logistic.py"),
    *("evaluation/many_logistic.py", "evaluation/many_probes.py"),
    *("evaluation/probes.py", "evaluation/scores.py"),
    *("features/space.py", "features/space_columns.py", "features/space_parts.py"),
)

Record = dict[str, Any]


@dataclass(frozen=True)
class Results:
    """Records read from disk, and what was passed over, by name and with the reason."""

    records: list[Record]
    skipped: dict[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.records)


class Store:
    """A folder of results that grows by one file a run.

    Parameters
    ----------
    folder : path
        ``runs/<id>.json`` are its records; any ``*.jsonl`` beside ``runs`` holds packed ones.

    Examples
    --------
    >>> import tempfile
    >>> store = Store(tempfile.mkdtemp())
    >>> store.add(dict.fromkeys(WANTED, "") | {"id": "a1"})
    >>> "a1" in store, len(store.results())
    (True, 1)
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.runs = self.folder / "runs"
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(
                f"cannot write {self.folder}: {error.strerror}; choose another folder"
            ) from error
        self._known = {record["id"] for record in self.results().records}

    def __contains__(self, key: object) -> bool:
        return key in self._known

    def add(self, record: Record) -> None:
        """Write a record, whole or not at all; one that is there already is kept."""
        if record["id"] in self._known:
            return
        write_json(self.runs / f"{record['id']}.json", {"format": FORMAT} | record)
        self._known.add(record["id"])

    def results(self) -> Results:
        """All records on disk."""
        return read_results(self.folder)

    def pack(self, path: str | Path) -> Path:
        """Write all records into one file of JSON lines, in the order of their ids."""
        records = sorted(self.results().records, key=lambda record: str(record["id"]))
        write_text(path, "".join(json.dumps(record) + "\n" for record in records))
        return Path(path)

    def merge(self, others: Iterable[str | Path]) -> int:
        """Add the records of other stores or packed files; return how many were new."""
        before = len(self._known)
        for other in others:
            for record in read_results(other).records:
                self.add(record)
        return len(self._known) - before


def read_results(path: str | Path) -> Results:
    """Read a results folder or a packed file; what is broken or foreign is named and passed over.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "notes.jsonl").write_text('{"id": "half')
    >>> read_results(folder).skipped
    {'notes.jsonl:1': 'not JSON'}
    """
    records: dict[str, Record] = {}
    skipped: dict[str, str] = {}
    for name, text in _texts(Path(path)):
        record, fault = _parse(text)
        if record is None:
            skipped[name] = fault
            log.warning("%s is passed over: %s", name, fault)
        else:
            records.setdefault(record["id"], record)
    return Results(list(records.values()), skipped)


def _texts(path: Path) -> Iterator[tuple[str, str]]:
    """(name, JSON text) of every would-be record."""
    if not path.exists():
        raise DataError(f"no results {path}: give the folder that expclr reproduce wrote")
    singles = sorted((path / "runs").glob("*.json")) if path.is_dir() else []
    packed = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    for file in singles:
        yield file.name, file.read_text(encoding="utf-8", errors="replace")
    for file in packed:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        yield from ((f"{file.name}:{n}", line) for n, line in enumerate(lines, 1) if line.strip())


def _parse(text: str) -> tuple[Record | None, str]:
    try:
        record = json.loads(text)
    except json.JSONDecodeError:
        return None, "not JSON"
    if not isinstance(record, dict):
        return None, "not a record"
    missing = [name for name in WANTED if name not in record]
    if missing:
        return None, f"no record of a run: {missing[0]} is missing"
    if record.get("format", FORMAT) != FORMAT:
        return None, f"of format {record['format']}, not {FORMAT}"
    return record, ""


@cache
def code_version() -> str:
    """The package's version and a hash over all source that a number depends on.

    Examples
    --------
    >>> version, _, digest = code_version().partition("+")
    >>> len(digest)
    12
    """
    from expclr import __version__

    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256()
    for name in SOURCES:
        place = root / name
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            if file.is_file():
                digest.update(file.relative_to(root).as_posix().encode() + file.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:12]}"
