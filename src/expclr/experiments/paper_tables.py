"""The paper's tables with our numbers beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from expclr.evaluation.summary import Mean
from expclr.experiments.cells import COMPARED, PAPER_NAMES, CellKey, Cells, apart, published
from expclr.experiments.paper import FRACTIONS, PAPER_U, SYSTEMS, ZOO
from expclr.report import Table

__all__ = ["FAR", "Entry", "Grid", "all_tables", "markdown"]

PAPER = "\N{NO-BREAK SPACE}" * 2 + "paper"  # the row below ours
FAR = 2.0  # joint standard errors from which two numbers are called different
SPOKEN = {"linear": "linear classifier", "knn1": "nearest neighbour"}
SHORT = {"linear": "linear", "knn1": "1-NN"}
PROBES = {
    "linear": "linear, standardised",
    "linear_raw": "linear, raw",
    "knn1": "1-NN, standardised",
    "knn1_raw": "1-NN, raw",
}


@dataclass(frozen=True)
class Entry:
    """A number of ours, perhaps with the paper's, which decides how it is marked."""

    value: Mean | None
    theirs: Mean | None = None

    @property
    def apart(self) -> float | None:
        """In joint standard errors."""
        return apart(self.value, self.theirs)

    @property
    def mark(self) -> Literal["above", "below"] | None:
        """On which side of the paper, beyond two joint standard errors."""
        distance = self.apart
        if distance is None or abs(distance) <= FAR:
            return None
        return "above" if distance > 0 else "below"

    def text(self) -> str:
        """Mean and standard error in percent.

        >>> Entry(Mean(92.347, 0.321, 5)).text(), Entry(None).text()
        ('92.35 ± 0.32', '–')
        """
        return "–" if self.value is None else f"{self.value:.2f}"


@dataclass(frozen=True)
class Grid:
    """A table of entries; a row of strings or numbers of the paper has no marks."""

    title: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Entry | str]]]
    caption: str = ""

    def texts(self) -> list[list[str]]:
        """Every cell as it is shown."""
        return [
            [name, *(e if isinstance(e, str) else _marked(e) for e in entries)]
            for name, entries in self.rows
        ]

    def section(self) -> Table:
        """The table in a report."""
        spread = [
            any(isinstance(entries[j], Entry) for _, entries in self.rows)
            for j in range(len(self.columns) - 1)
        ]
        columns = [self.columns[0]]
        errors: dict[str, str] = {}
        for name, wide in zip(self.columns[1:], spread, strict=True):
            columns += [name, f"{name} s.e."] if wide else [name]
            errors |= {name: f"{name} s.e."} if wide else {}
        rows = [
            [name, *(v for e, w in zip(entries, spread, strict=True) for v in _values(e, w))]
            for name, entries in self.rows
        ]
        return Table(
            self.title,
            columns,
            rows,
            formats=".2f",
            errors=errors,
            marks=self.marks(),
            caption=self.caption,
        )

    def marks(self) -> dict[tuple[int, int], Literal["above", "below"]]:
        """(row, column) -> "above" or "below"."""
        return {
            (i, j): entry.mark
            for i, (_, entries) in enumerate(self.rows)
            for j, entry in enumerate(entries, 1)
            if isinstance(entry, Entry) and entry.mark
        }

    @property
    def empty(self) -> bool:
        """Whether there is no number of ours at all."""
        return not any(
            isinstance(entry, Entry) and entry.value is not None
            for name, entries in self.rows
            if name != PAPER
            for entry in entries
        )


def _values(entry: Entry | str, wide: bool) -> list[object]:
    """A cell of the report's table, and its error beside it."""
    if isinstance(entry, str):
        return [entry, None] if wide else [entry]
    if entry.value is None:
        return [None, None]
    return [entry.value.mean, entry.value.error if entry.value.n > 1 else None]


def _marked(entry: Entry) -> str:
    return entry.text() + {"above": " ▲", "below": " ▼", None: ""}[entry.mark]


def all_tables(cells: Cells) -> list[Grid]:
    """Every table that the results have numbers for."""
    made = [table1(cells), *(semi(cells, metric) for metric in ("linear", "knn1"))]
    made += [scratch(cells), finetuned(cells), variants(cells), zoo(cells), protocols(cells)]
    if cells.dataset not in PAPER_NAMES:
        made += [table1(cells, metric="macro_f1"), semi(cells, "linear", metric="macro_f1")]
    return [grid for grid in made if not grid.empty]


def _paper(cells: Cells, table: str, row: str, mode: str, percent: int | None, probe: str) -> Mean:
    name = PAPER_NAMES.get(cells.dataset, "")
    return published().get((table, name, row, mode, percent, probe))  # type: ignore[return-value]


ROWS1 = (
    ("cross_entropy", "S", 1.0),
    ("raw_features", "-", None),
    ("random", "-", None),
    *((system, "U", None) for system in ("expclr", "expclr_published", *PAPER_U[1:])),
    ("expclr_plus", "U", None),
    ("rocket", "-", None),
    ("rocket_features", "-", None),
)


def table1(cells: Cells, metric: str = "accuracy", *, also: Sequence[str] = ()) -> Grid:
    """The paper's Table 1, our own rows last, and ``also`` these without labels."""
    with_paper = metric == "accuracy" and cells.dataset in PAPER_NAMES
    beside = ("", ", paper", ", apart") if with_paper else ("",)
    columns = ["system", *(SHORT[probe] + what for probe in COMPARED for what in beside)]
    rows = []
    for system, mode, labels in (*ROWS1, *((system, "U", None) for system in also)):
        entries: list[Entry | str] = []
        for probe, ours in COMPARED.items():
            percent = None if labels is None else round(100 * labels)
            row = SYSTEMS[system].beside or SYSTEMS[system].label
            theirs = _paper(cells, "table1", row, mode, percent, probe)
            theirs = theirs if with_paper else None  # type: ignore[assignment]
            entry = Entry(cells.mean(ours, system, mode, labels, metric=metric), theirs)
            entries += [entry]
            if with_paper:
                entries += [Entry(theirs), _distance(entry)]
        if cells.of(system, mode, labels):
            rows.append((_label(system, mode), entries))
    return Grid(
        f"Learning without labels: {_spoken(metric)}",
        columns,
        rows,
        f"{_how(cells)} “Apart” is our mean minus the paper's, in joint standard errors; "
        "coloured and marked beyond two. rocket rows and cross-entropy are trained on labels; "
        "rocket's are read by ridge regression."
        if with_paper
        else _how(cells),
    )


def semi(cells: Cells, probe: str, metric: str = "accuracy") -> Grid:
    """The paper's tables over the share of labels, its numbers below ours."""
    with_paper = metric == "accuracy" and cells.dataset in PAPER_NAMES
    systems = [
        *(("expclr", m) for m in ("SS", "S")),
        ("cross_entropy", "S"),
        *((s, "SS") for s in ("tstcc", "kim2021", "simclr", "sleepprior", "expclr_plus")),
        ("rocket", "-"),
        ("raw_features", "-"),
    ]
    rows: list[tuple[str, list[Entry | str]]] = []
    for system, mode in systems:
        theirs = [
            _paper(cells, "semi", SYSTEMS[system].label, mode, round(100 * f), probe)
            if with_paper
            else None
            for f in FRACTIONS
        ]
        ours = [
            Entry(cells.mean(COMPARED[probe], system, mode, f, metric=metric), t)
            for f, t in zip(FRACTIONS, theirs, strict=True)
        ]
        if not _known(ours):
            continue
        rows.append((_label(system, mode), list(ours)))
        if any(theirs):
            rows.append((PAPER, [Entry(t) for t in theirs]))
    return Grid(
        f"Few labels, {SPOKEN[probe]}: {_spoken(metric)}",
        ["system", *(_share(f) for f in FRACTIONS)],
        rows,
        f"{_how(cells)} Probes are fitted on the labelled windows alone."
        + (" Coloured and marked: beyond two joint standard errors from the paper." * with_paper),
    )


def scratch(cells: Cells) -> Grid:
    """What fine-tuning after training without labels adds, seed by seed."""
    rows = []
    for probe, ours in COMPARED.items():
        gains: list[Entry | str] = []
        for share in FRACTIONS:
            pair = [cells.of("expclr", mode, share) for mode in ("SS", "S")]
            gains.append(Entry(_paired(pair[0], pair[1], ours)))
        rows.append((SPOKEN[probe], gains))
    return Grid(
        "ExpCLR (SS) minus ExpCLR (S), in points",
        ["probe", *(_share(f) for f in FRACTIONS)],
        rows,
        "Means and standard errors of the differences of equal seeds.",
    )


def _paired(a: object, b: object, probe: str) -> Mean | None:
    if a is None or b is None:
        return None
    sides = [
        {r["run"]["seed"]: r["metrics"]["subset"][probe]["accuracy"] for r in cell.records}  # type: ignore[attr-defined]
        for cell in (a, b)
    ]
    common = sorted(set(sides[0]) & set(sides[1]))
    return Mean.of([100 * (sides[0][s] - sides[1][s]) for s in common]) if common else None


def finetuned(cells: Cells) -> Grid:
    """Every system fine-tuned by ExpCLR on labels."""
    rows = []
    for system in ("expclr", "kim2021", "simclr", "sleepprior", "tstcc"):
        finetune = None if system == "expclr" else "expclr"
        entries = [
            Entry(cells.mean("linear", system, "SS", f, finetune=finetune)) for f in FRACTIONS
        ]
        if _known(entries):
            rows.append((SYSTEMS[system].label, entries))
    rows = rows if len(rows) > 1 else []
    return Grid(
        "Every system fine-tuned by ExpCLR (S): accuracy of the linear classifier",
        ["trained without labels by", *(_share(f) for f in FRACTIONS)],
        rows,
        _how(cells),
    )


def variants(cells: Cells) -> Grid:
    """ExpCLR without labels under other settings."""
    keys = [
        k
        for k in cells.cells
        if k.mode == "U" and k.system in ("expclr", "nhnm") and (k.variant or k.system == "nhnm")
    ]
    rows: list[tuple[str, list[Entry | str]]] = [("as in the paper", _both(cells, "expclr", ()))]
    for key in sorted(keys, key=_order):
        name = ", ".join(f"{_plain(n)} {v}" for n, v in key.variant)
        rows.append((name or "no hard-negative mining", _both(cells, key.system, key.variant)))
    shown = rows if len(rows) > 1 else []
    return Grid(
        "ExpCLR without labels, other settings: accuracy",
        ["setting", *SPOKEN.values()],
        shown,
        f"{_how(cells)} All with the learning rate chosen for ExpCLR.",
    )


def _plain(setting: str) -> str:
    return setting.removeprefix("method.").replace("dim", "dimension").replace("_", " ")


def _order(key: CellKey) -> tuple[str, list[tuple[str, float, str]]]:
    """By setting, numbers by their size."""
    numbers = [
        (name, float(v), "") if isinstance(v, int | float) else (name, 0.0, str(v))
        for name, v in key.variant
    ]
    return key.system, numbers


def _both(cells: Cells, system: str, variant: tuple[tuple[str, object], ...]) -> list[Entry | str]:
    return [Entry(cells.mean(p, system, "U", variant=variant)) for p in COMPARED.values()]


def zoo(cells: Cells) -> Grid:
    """Every method that learns without labels, later ones too."""
    named = (*PAPER_U, "nhnm", "expclr_plus", *ZOO)
    others = sorted({k.system for k in cells.cells if k.mode == "U"}.difference(named))
    systems = (*named, *others)
    rows = [
        (
            SYSTEMS[s].label,
            [Entry(cells.mean(p, s, "U", metric=m)) for p in COMPARED.values() for m in _BOTH],
        )
        for s in systems
        if cells.of(s, "U")
    ]
    if not any(cells.of(s, "U") for s in (*ZOO, *others)):
        rows = []
    columns = [f"{SHORT[p]}, {_BOTH[m]}" for p in COMPARED for m in _BOTH]
    return Grid("Every method without labels, in %", ["method", *columns], rows, _how(cells))


_BOTH = {"accuracy": "accuracy", "macro_f1": "macro-F1"}


def protocols(cells: Cells) -> Grid:
    """All four probes of every system without labels."""
    rows = [(_label(s, m), [Entry(cells.mean(p, s, m, f)) for p in PROBES]) for s, m, f in ROWS1]
    return Grid(
        "Both probe protocols: accuracy",
        ["system", *PROBES.values()],
        [row for row in rows if any(e.value for e in row[1])],
        "The paper does not say whether embeddings are standardised before they are probed.",
    )


def markdown(grids: Sequence[Grid]) -> str:
    """The tables as Markdown."""
    return "\n".join(_markdown(grid) for grid in grids)


def _markdown(grid: Grid) -> str:
    lines = [f"### {grid.title}", "", "| " + " | ".join(grid.columns) + " |"]
    lines.append("| --- |" + " ---: |" * (len(grid.columns) - 1))
    for row in grid.texts():
        name, *cells = row
        lines.append("| " + " | ".join([name, *cells]) + " |")
    return "\n".join([*lines, "", grid.caption, ""])


def _known(entries: Sequence[Entry | str]) -> bool:
    return any(isinstance(entry, Entry) and entry.value is not None for entry in entries)


def _share(part: float) -> str:
    return f"{100 * part:g}\N{NO-BREAK SPACE}%"


def _distance(entry: Entry) -> str:
    """In joint standard errors, or in points where there is no error bar."""
    if entry.value is None or entry.theirs is None:
        return "–"
    if entry.apart is None:
        return _signed(f"{entry.value.mean - entry.theirs.mean:+.2f} points")
    return _signed(f"{entry.apart:+.1f} s.e.")


def _signed(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}").replace(" ", "\N{NO-BREAK SPACE}")


def _label(system: str, mode: str) -> str:
    label = SYSTEMS[system].label
    return label if mode == "-" else f"{label} ({mode})"


def _spoken(metric: str) -> str:
    return {"accuracy": "accuracy in %", "macro_f1": "macro-F1 in %"}[metric]


def _how(cells: Cells) -> str:
    return f"{cells.dataset}, budget {cells.budget}, " + (
        f"mean ± standard error of up to {cells.seeds} seeds."
        if cells.seeds > 1
        else "one seed: without error bars nothing is called different."
    )
