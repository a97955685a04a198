"""Results as means over seeds: one cell for each system, mode, share of labels and setting."""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from expclr.errors import DataError, suggest
from expclr.evaluation.summary import Mean
from expclr.experiments.paper import SYSTEMS

__all__ = ["PAPER_NAMES", "Cell", "CellKey", "Cells", "apart", "cells_of", "published"]

PAPER_NAMES = {"uci_har": "har", "sleep_edf": "sleepedf", "afdb": "waveform"}
COMPARED = {"linear": "linear", "knn1": "knn1_raw"}  # the paper's metric -> our probe
MUST_AGREE = ("code", "data", "split", "budget", "config_hash")
_NAMES = {
    "code": "code versions",
    "data": "data",
    "split": "splits",
    "budget": "budgets",
    "config_hash": "settings",
}


@dataclass(frozen=True)
class CellKey:
    """What the runs of a cell have in common, apart from their seeds."""

    system: str
    mode: str
    labels: float | None = None
    variant: tuple[tuple[str, Any], ...] = ()
    finetune: str | None = None


@dataclass(frozen=True)
class Cell:
    """The runs of one cell: same settings, data, split and code, different seeds."""

    records: Sequence[Mapping[str, Any]]

    def mean(self, probe: str, metric: str = "accuracy", fitted_on: str = "subset") -> Mean | None:
        """Over seeds, in percent; None where some run has no such number."""
        found = [
            record["metrics"].get(fitted_on, {}).get(probe, {}).get(metric)
            for record in self.records
        ]
        if any(value is None for value in found):
            return None
        return Mean.of([100 * value for value in found])


@dataclass(frozen=True)
class Cells:
    """All cells of one dataset, and what was left out of them, in words.

    Parameters
    ----------
    budget : str
        Of every run in the cells.
    """

    dataset: str
    budget: str
    cells: Mapping[CellKey, Cell]
    left_out: list[str] = field(default_factory=list)

    def of(self, system: str, mode: str, labels: float | None = None, **others: Any) -> Cell | None:
        """The cell with these keys, if there is one."""
        return self.cells.get(CellKey(system, mode, labels, **others))

    def mean(self, probe: str, *key: Any, metric: str = "accuracy", **others: Any) -> Mean | None:
        """Mean of a probe in a cell; None without one."""
        cell = self.of(*key, **others)
        return None if cell is None else cell.mean(probe, metric)

    @property
    def versions(self) -> dict[str, int]:
        """How many runs each code version made."""
        return dict(Counter(r["code"] for cell in self.cells.values() for r in cell.records))

    @property
    def seeds(self) -> int:
        """Runs of the fullest cell."""
        return max((len(cell.records) for cell in self.cells.values()), default=0)


def cells_of(
    records: Iterable[Mapping[str, Any]],
    dataset: str | None = None,
    *,
    budget: str | None = None,
    code: str | None = None,
) -> Cells:
    """Sort the records of a dataset into cells; nothing that differs is averaged.

    Where runs of one cell differ in code, data, split, budget or settings, those with most seeds
    make the cell (the newest of equals), and ``left_out`` says how many others there were and in
    what they differ.

    Parameters
    ----------
    records : iterable of dict
        Of a results store.
    dataset : str, optional
        Default the one with most records.
    budget, code : str, optional
        Only these; the budget with most records by default.
    """
    judged = [r for r in records if r["run"]["part"] == "test"]
    datasets = Counter(r["run"]["dataset"] for r in judged)
    if not datasets:
        raise DataError("no finished run on test data: run expclr reproduce first")
    dataset = dataset or datasets.most_common(1)[0][0]
    if dataset not in datasets:
        raise DataError(f"no result on {dataset!r}: {suggest(dataset, list(datasets))}")
    judged = [r for r in judged if r["run"]["dataset"] == dataset and code in (None, r["code"])]
    budgets = Counter(r["budget"] for r in judged)
    budget = budget or (budgets.most_common(1)[0][0] if budgets else "")
    grouped: dict[CellKey, list[Mapping[str, Any]]] = defaultdict(list)
    for record in judged:
        if record["budget"] == budget:
            grouped[_key(record["run"])].append(record)
    if not grouped:
        raise DataError(
            f"no result on {dataset} with budget {budget!r} and code {code!r}: there are budgets "
            f"{', '.join(sorted(budgets)) or 'none'}"
        )
    cells, left_out = {}, []
    for key, group in grouped.items():
        kept, notes = _alike(group)
        cells[key] = Cell(kept)
        left_out += [f"{words(key)}: {note}" for note in notes]
    return Cells(dataset, budget, cells, left_out)


def _key(run: Mapping[str, Any]) -> CellKey:
    variant = tuple(sorted((k, v) for k, v in run["variant"].items()))
    return CellKey(run["system"], run["mode"], run["labels"], variant, run["finetune"])


def _alike(
    group: Sequence[Mapping[str, Any]],
) -> tuple[list[Mapping[str, Any]], list[str]]:
    """The largest set of runs that may be averaged, and how the others differ from it."""
    sets: dict[tuple[Any, ...], dict[int, Mapping[str, Any]]] = defaultdict(dict)
    for record in group:
        sets[tuple(record[name] for name in MUST_AGREE)][record["run"]["seed"]] = record

    def rank(identity: tuple[Any, ...]) -> tuple[int, str]:
        runs = sets[identity].values()
        return len(runs), max(str(run.get("finished", "")) for run in runs)

    best, *others = sorted(sets, key=rank, reverse=True)
    notes = []
    for other in others:
        pairs = zip(MUST_AGREE, best, other, strict=True)
        differs = [f"{_NAMES[name]} {b} and {a}" for name, a, b in pairs if a != b]
        notes.append(f"{len(sets[other])} runs left out: {'; '.join(differs)}")
    return [sets[best][seed] for seed in sorted(sets[best])], notes


def words(key: CellKey) -> str:
    """A cell in one line.

    >>> words(CellKey("expclr", "SS", 0.05))
    'ExpCLR (SS), 5 % labels'
    """
    label = SYSTEMS[key.system].label if key.system in SYSTEMS else key.system
    parts = [label if key.mode == "-" else f"{label} ({key.mode})"]
    parts += [f"{name.removeprefix('method.')} {value}" for name, value in key.variant]
    parts += [f"fine-tuned by {key.finetune}"] if key.finetune else []
    parts += [] if key.labels is None else [f"{100 * key.labels:g} % labels"]
    return ", ".join(parts)


@cache
def published() -> dict[tuple[str, str, str, str, int | None, str], Mean]:
    """The paper's numbers: (table, dataset, row, mode, percent of labels, metric) -> mean.

    They are the 291 numbers of Table 1 and the six semi-supervised tables of Nonnenmacher et al.,
    "Utilizing Expert Features for Contrastive Learning of Time-Series Representations" (ICML
    2022), standard errors over five trials.

    Examples
    --------
    >>> f"{published()['table1', 'har', 'ExpCLR', 'U', None, 'linear']:.2f}"
    '91.18 ± 0.41'
    """
    text = files("expclr.experiments").joinpath("paper_tables.csv").read_text(encoding="utf-8")
    found = {}
    for row in csv.DictReader(text.splitlines()):
        percent = int(row["labels_percent"]) if row["labels_percent"] else None
        key = (row["table"], row["dataset"], row["method"], row["mode"], percent, row["metric"])
        found[key] = Mean(float(row["mean"]), float(row["stderr"]), 5)
    return found


def apart(ours: Mean | None, theirs: Mean | None) -> float | None:
    """Our mean minus theirs in joint standard errors; None where either has no error bar.

    Examples
    --------
    >>> round(apart(Mean(92.0, 0.3, 5), Mean(91.0, 0.4, 5)), 6)
    2.0
    >>> apart(Mean(92.0, float("nan"), 1), Mean(91.0, 0.4, 5))
    """
    if ours is None or theirs is None:
        return None
    joint = float(np.hypot(ours.error, theirs.error))
    return (ours.mean - theirs.mean) / joint if joint > 0 else None
