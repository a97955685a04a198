"""From a results folder to a page, Markdown tables and drawn figures; nothing is typed by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from expclr.experiments.budgets import BUDGETS
from expclr.experiments.cells import PAPER_NAMES, Cells, cells_of
from expclr.experiments.choices import Choices, read_choices
from expclr.experiments.figure_sections import sections
from expclr.experiments.figures import all_figures, draw
from expclr.experiments.findings import findings
from expclr.experiments.paper_tables import all_tables, markdown
from expclr.experiments.store import Results, read_results
from expclr.report import KeyValues, Report, Section, Text, write_report
from expclr.storage import write_text

__all__ = ["is_results", "report_results"]


def is_results(path: str | Path) -> bool:
    """Whether a folder or file holds results rather than a model."""
    path = Path(path)
    return path.suffix == ".jsonl" or (path / "runs").is_dir() or any(path.glob("*.jsonl"))


def report_results(
    results: str | Path,
    out: str | Path | None = None,
    *,
    dataset: str | None = None,
    budget: str | None = None,
    code: str | None = None,
    choices: str | Path | None = None,
    drawn: bool = True,
) -> list[Path]:
    """Write ``<dataset>.html``, ``<dataset>.md`` and ``figures/`` for each dataset in a store.

    Parameters
    ----------
    results : path
        A results folder, or a packed file.
    out : path, optional
        Folder to write to; default ``report`` in the results folder.
    dataset, budget, code : str, optional
        Only these.
    choices : path, optional
        Folder of the hyper-parameters shown; default the package's own.
    drawn : bool
        Draw figures as PDF, PNG and SVG, too.

    Returns
    -------
    list of Path
        The pages and tables.
    """
    found = read_results(results)
    folder = Path(out or (results if Path(results).is_dir() else Path(results).parent))
    folder = folder if out else folder / "report"
    folder.mkdir(parents=True, exist_ok=True)
    names = [dataset] if dataset else sorted({r["run"]["dataset"] for r in found.records}) or [None]
    written = []
    for name in names:
        cells = cells_of(found.records, name, budget=budget, code=code)
        chosen = read_choices(cells.dataset, cells.budget, choices)
        written += _one(cells, found, folder, chosen, drawn=drawn)
    return written


def _one(
    cells: Cells, found: Results, folder: Path, choices: Choices, *, drawn: bool
) -> list[Path]:
    grids, figures = all_tables(cells), all_figures(cells, choices)
    page, tables = folder / f"{cells.dataset}.html", folder / f"{cells.dataset}.md"
    write_report(page, _report(cells, found, choices))
    write_text(tables, _markdown(cells, found, markdown(grids)))
    for figure in figures if drawn else ():
        draw(figure, folder / "figures" / cells.dataset)
    return [page, tables]


def _report(cells: Cells, found: Results, choices: Choices) -> Report:
    runs = [record for cell in cells.cells.values() for record in cell.records]
    parts: list[Section] = [_findings(cells)]
    parts += [grid.section() for grid in all_tables(cells)]
    parts += [s for figure in all_figures(cells, choices) for s in sections(figure)]
    parts += [_how(cells, runs, choices), _left_out(cells, found)]
    return Report(f"The paper, rerun on {cells.dataset}", _lead(cells, runs), parts)


def _lead(cells: Cells, runs: Sequence[Mapping[str, Any]]) -> str:
    beside = "; the paper's stand beside ours" if cells.dataset in PAPER_NAMES else ""
    schedule = BUDGETS[cells.budget].words() if cells.budget in BUDGETS else cells.budget
    return (
        f"{len(runs)} runs, {'one seed' if cells.seeds == 1 else f'up to {cells.seeds} seeds'}, "
        "each read once on test subjects that nothing was chosen or trained on. Every number on "
        f"this page comes from a result file{beside}. Budget {schedule}."
    )


def _findings(cells: Cells) -> Text:
    lines = [finding.line() for finding in findings(cells)]
    return Text(
        "What held, and what did not",
        "A claim holds when our numbers are apart by more than two joint standard errors in its "
        "favour, it does not hold when they are in the other direction; anything between is open."
        if lines
        else "These results say nothing about the paper's claims yet.",
        items=lines,
    )


def _how(cells: Cells, runs: Sequence[Mapping[str, Any]], choices: Choices) -> KeyValues:
    gpus = Counter(str(r.get("hardware", {}).get("gpu") or "CPU") for r in runs)
    seconds = sum(sum(r["seconds"].values()) for r in runs)
    chosen = Counter(str(r.get("chosen_by", "")).partition(" (")[0] for r in runs)
    facts: dict[str, Any] = {
        "runs": len(runs),
        "training steps": sum(int(r.get("steps", 0)) for r in runs),
        "seconds of training, embedding and probing": round(seconds),
        "hardware": dict(gpus),
        "code versions": cells.versions,
        "data": dict(Counter(r["data"] for r in runs)),
        "splits": dict(Counter(r["split"] for r in runs)),
        "what chose the settings": dict(chosen),
    }
    if choices.about:
        facts["rule of the choices"] = choices.about.get("rule", "")
    return KeyValues("How the numbers were made", facts)


def _left_out(cells: Cells, found: Results) -> Text:
    skipped = [f"{name}: {why}" for name, why in found.skipped.items()]
    items = [*cells.left_out, *skipped]
    what = (
        "Runs that differ in code, data, split or settings are never averaged. Left out of the "
        "tables, or passed over while reading:"
        if items
        else "Nothing: every run that was read stands in the tables."
    )
    return Text("Left out", what, items=items[:200])


def _markdown(cells: Cells, found: Results, tables: str) -> str:
    lines = [f"- {finding.line()}" for finding in findings(cells)]
    versions = ", ".join(f"`{name}` ({n} runs)" for name, n in cells.versions.items())
    return "\n".join(
        [
            f"<!-- written by: expclr report; {len(found)} runs read -->",
            f"Made by code {versions}.",
            "",
            *lines,
            "",
            tables,
        ]
    )
