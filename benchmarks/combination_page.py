"""The section "Encoder and objective" of docs/choices.md and a table of README.md, from results."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from combination_data import DATASETS, TWO_CLASSES
from combination_decisions import block, lead_lines, self_training_lines
from combination_systems import SHARES, Row

from expclr.choice import LEAD
from expclr.storage import write_text

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "choices.md"
README = HERE.parent / "README.md"
KINDS = ("ours", "cross-entropy", "rocket", "features", "RR features")

ABOUT = """## Encoder and objective

`expclr_plus` with its default settings on several encoders, beside what a user would pick
instead, on the same windows, label subsets and seeds. U: trained without labels, read by a linear
probe fitted on the share of labels that the column names. SS: then fine-tuned on that share.
Everything else learns from that share alone; what needs features measures them on test windows as
well. "dilated tcn" is the network inside the hybrid, by itself. Mean ± standard error. How it is
measured stands in `benchmarks/combination.py`, and `benchmarks/combination_gpu.sh` runs the
networks that want a GPU."""

READ = {
    "fixed": "test windows",
    "fold": "five folds of records, all of them read once",
    "validation": "groups held out of train",
    "inner": "three folds of train's records",
}


def section() -> str:
    """The section of docs/choices.md, of all result files that are there."""
    lines, results = [ABOUT, ""], dict[str, dict[str, Any]]()
    for name in DATASETS:
        path = RESULTS / f"combination_{name}.json"
        if not path.exists():
            continue
        results[name] = found = json.loads(path.read_text(encoding="utf-8"))
        for part in ("test", "trials"):
            lines += part_lines(name, part, found[part]) if part in found else []
        lines += auto_lines(name, found["auto"]["rows"]) if "auto" in found else []
    lines += self_training_lines(results) + lead_lines(results)
    return "\n".join(lines)


def part_lines(name: str, part: str, found: dict[str, Any]) -> list[str]:
    """Tables of one part of a result file, how it was made and how long it took."""
    lines = []
    rows = [named(row, found) for row in found["rows"]]
    commands = found.get("commands", [found["machine"]["command"]])
    if part == "trials":  # those of self-training have a table of their own
        rows = [row for row in rows if "threshold" not in row]
        commands = [command for command in commands if "--self-training" not in command]
    for split in dict.fromkeys(row["split"].split()[0] for row in rows):
        chosen = complete([row for row in rows if row["split"].split()[0] == split])
        lines += split_lines(name, split, chosen)
        if split in found.get("splits", {}):
            lines += [sizes_of(found["splits"][split]), ""]
        if part == "test":
            metric = metric_of(name)[0]
            lines += [best_of(chosen, metric), "", *seconds_of(chosen)]
    return [*lines, *block(commands)]


def sizes_of(sides: dict[str, Any]) -> str:
    """Windows, groups and classes of what is trained on and what is read."""
    told = []
    for side in ("train", "read"):
        of = dict(sides[side])
        windows, groups = of.pop("windows"), of.pop("groups")
        groups = groups if isinstance(groups, str) else f"{len(groups)} groups"
        classes = ", ".join(f"{name} {number}" for name, number in of.items())
        told.append(f"{windows} windows of {groups} ({classes})")
    return f"Trained on {told[0]}, read {told[1]}."


def named(row: Row, found: dict[str, Any]) -> Row:
    """A row whose system says the encoder, too, if it is a trial's."""
    row = {"split": "fixed", "on": found["machine"]["device"]} | row
    return row | {"system": f"{row['trial']} ({row['encoder']})"} if "trial" in row else row


def complete(rows: list[Row]) -> list[Row]:
    """Without systems that were not measured on all folds yet: others' means are of other folds."""
    splits: dict[str, set[str]] = {}
    for row in rows:
        splits.setdefault(row["system"], set()).add(row["split"])
    most = max(map(len, splits.values()), default=0)
    return [row for row in rows if len(splits[row["system"]]) == most]


def metric_of(name: str) -> tuple[str, str]:
    return ("macro_f1", "macro-F1") if name in TWO_CLASSES else ("accuracy", "accuracy")


def split_lines(name: str, split: str, rows: list[Row]) -> list[str]:
    metric, what = metric_of(name)
    seeds = len({row["seed"] for row in rows})
    over = f"{seeds} seed{'s' if seeds > 1 else ''}"
    if split in ("fold", "inner"):
        over += ", errors over folds"
    head = f"**{name}**, {READ[split]}: {what} in %, {over}."
    return [head, "", *table(rows, metric), "", *fewer_seeds(rows, seeds)]


def fewer_seeds(rows: list[Row], seeds: int) -> list[str]:
    """Which systems have not been measured with all seeds."""
    found: dict[str, set[int]] = {}
    for row in rows:
        found.setdefault(row["system"], set()).add(row["seed"])
    told = [f"{name} {len(of_one)}" for name, of_one in found.items() if len(of_one) < seeds]
    return [f"Fewer seeds: {', '.join(told)}.", ""] if told else []


def table(rows: list[Row], metric: str) -> list[str]:
    """Systems by columns: 1-NN with all labels, then linear or own classifier by share."""
    columns = [("1-NN", 1.0), *(("", share) for share in SHARES)]
    heads = ["1-NN, all labels", *(f"{share:.0%} labels" for share in SHARES)]
    lines = [f"| system | {' | '.join(heads)} |", "| --- |" + " ---: |" * len(heads)]
    for system in sorted(dict.fromkeys(row["system"] for row in rows), key=_kind):
        cells = []
        for probe, share in columns:
            found = [
                row
                for row in rows
                if row["system"] == system
                and row["labels"] == share
                and (row.get("probe") == "1-NN") == bool(probe)
            ]
            cells.append(mean_and_error(values(found, metric)) if found else "")
        lines.append(f"| {system} | {' | '.join(cells)} |")
    return lines


def _kind(system: str) -> int:
    return next((i for i, kind in enumerate(KINDS) if system.startswith(kind)), 0)


def values(rows: list[Row], metric: str) -> list[float]:
    """One number for each fold where there are several, else one for each seed."""
    key = "split" if len({row["split"] for row in rows}) > 1 else "seed"
    apart: dict[Any, list[float]] = {}
    for row in rows:
        apart.setdefault(row[key], []).append(row[metric])
    return [float(np.mean(of_one)) for of_one in apart.values()]


def mean_and_error(found: list[float]) -> str:
    """In percent, with the standard error of the mean where there is one."""
    mean = f"{100 * np.mean(found):.1f}"
    if len(found) < 2:
        return mean
    return f"{mean} ± {100 * np.std(found, ddof=1) / len(found) ** 0.5:.1f}"


def best_of(rows: list[Row], metric: str) -> str:
    """Who is ahead at each share of labels, of those that need no features of test windows."""
    told = []
    for share in SHARES:
        found: dict[str, list[Row]] = {}
        for row in rows:
            free = "needs features" not in row["system"] and row.get("probe") != "1-NN"
            if free and row["labels"] == share:
                found.setdefault(row["system"], []).append(row)
        if found:
            numbers = {system: values(of_one, metric) for system, of_one in found.items()}
            best = max(numbers, key=lambda system: float(np.mean(numbers[system])))
            told.append(f"{best} at {share:.0%} ({mean_and_error(numbers[best])})")
    return f"Ahead without features of test windows: {', '.join(told)}."


def seconds_of(rows: list[Row]) -> list[str]:
    """Mean seconds of each training without labels, or on all of them, by machine."""
    lines = []
    for on in dict.fromkeys(row["on"] for row in rows if "seconds" in row):
        found: dict[str, list[float]] = {}
        for row in rows:
            if row["on"] == on and "seconds" in row and row["labels"] == 1:
                found.setdefault(row["system"], []).append(row["seconds"])
        told = ", ".join(f"{name} {np.mean(times):.0f}" for name, times in found.items())
        words = "Seconds of a training, without labels or on all of them, by the clock of"
        lines += [f"{words} {on}: {told}.", ""]
    return lines


def auto_lines(name: str, rows: list[Row]) -> list[str]:
    """What ``encoder="auto"`` takes."""
    lines = [f'**{name}**, `encoder="auto"`: mean R2 of the features on groups left out.', ""]
    lines += ["| features | seed | rocket | tcn | hybrid | taken | seconds |"]
    lines += ["| --- | ---: | ---: | ---: | ---: | --- | ---: |"]
    for row in rows:
        r2 = {trial["encoder"]: trial["r2"] for trial in row["tried"]}
        taken = next(name for name in r2 if r2[name] >= max(r2.values()) - LEAD)
        cells = [f"{r2[e]:.3f}" if e in r2 else "" for e in ("rocket", "tcn", "hybrid")]
        cells = [row["features"], str(row["seed"]), *cells, taken, f"{row['seconds']:.0f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


FOR_README = {
    "ours (rocket), U": "`expclr_plus` on random convolutions, nothing fine-tuned",
    "ours (rocket), SS": "the same, fine-tuned",
    "ours (rocket), SS, self-training": "the same, fine-tuned with `self_training=0.95`",
    "cross-entropy (rocket)": "cross-entropy on the same network",
    "rocket, ridge": "MiniRocket's transform and ridge regression",
    "features, logistic regression (needs features)": "the expert features themselves",
}


def short() -> list[str]:
    """What the README shows of uci_har: the paper's row, ours, and what one would use instead."""
    found = json.loads((RESULTS / "combination_uci_har.json").read_text(encoding="utf-8"))
    rows = [named(row, found["test"]) for row in found["test"]["rows"]]
    lines = [f"| trained on uci_har | {' | '.join(f'{share:.0%} labels' for share in SHARES)} |"]
    lines += ["| --- |" + " ---: |" * len(SHARES)]
    lines += [f"| ExpCLR, fine-tuned, as the paper has it | {' | '.join(_paper_s())} |"]
    for system, words in FOR_README.items():
        cells = []
        for share in SHARES:
            of = [r for r in rows if r["system"] == system and r["labels"] == share]
            of = [r for r in of if r.get("probe") != "1-NN"]
            cells.append(mean_and_error(values(of, "accuracy")) if of else "")
        lines.append(f"| {words} | {' | '.join(cells)} |")
    return lines


def _paper_s() -> list[str]:
    """The paper's own numbers at the same shares of labels, linear classifier."""
    with (HERE.parent / "src/expclr/experiments/paper_tables.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    wanted = {
        "table": "semi",
        "dataset": "har",
        "method": "ExpCLR",
        "mode": "SS",
        "metric": "linear",
    }
    of = [row for row in rows if all(row[key] == value for key, value in wanted.items())]
    by_share = {int(row["labels_percent"]): row for row in of}
    each = [by_share[round(100 * share)] for share in SHARES]
    return [f"{float(row['mean']):.1f} ± {float(row['stderr']):.1f}" for row in each]


def write_page() -> None:
    """Replace the section where it stands, or put it at the page's end; and the README's table."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else "# Choices\n"
    head, found, rest = text.partition("## Encoder and objective")
    after = rest.find("\n## ") if found else -1
    tail = rest[after + 1 :] if after >= 0 else ""
    write_text(PAGE, f"{head.rstrip()}\n\n{section().rstrip()}\n" + (f"\n{tail}" if tail else ""))
    readme = README.read_text(encoding="utf-8")
    between = re.compile(r"(<!-- uci_har -->\n).*?(<!-- end of uci_har -->)", re.DOTALL)
    told = "\n".join(short())
    write_text(README, between.sub(lambda match: f"{match[1]}{told}\n{match[2]}", readme))
