"""The tables of docs/evaluation.md, between its marks, from the kept result files.

python benchmarks/downstream_tables.py
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from expclr.evaluation.label_curves import LabelCurve, labels_needed
from expclr.evaluation.summary import Mean
from expclr.storage import write_text

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "evaluation.md"
BASELINES = (
    "random encoder",
    "expert features",
    "expert features, standardised",
    "raw windows",
)
PROBES = {
    "linear": "linear, standardised",
    "linear_raw": "linear, raw",
    "knn1": "1-NN, standardised",
    "knn1_raw": "1-NN, raw",
}
LABELS_ALONE = "labels alone, the same network"
SPEED = {
    "linear": "linear probe, {windows:,} × 100",
    "nearest": "1-NN, {windows:,} × {asked:,} × 100",
    "ratios": "ratios of all pairs of {windows:,} windows",
    "search": "`NeighbourIndex`, 10 nearest of {windows:,} × 100 for {asked:,} queries",
}

Result = Mapping[str, Any]


def filled(page: str) -> str:
    """The page with its numbers as the result files have them."""
    for name, text in _blocks():
        between = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
        page = between.sub(lambda match, text=text: f"{match[1]}{text}\n{match[2]}", page)
    return page


def _blocks() -> Iterator[tuple[str, str]]:
    for path in sorted((HERE / "results").glob("downstream_*.json")):
        result = _read(path)
        for name, table in TABLES.items():
            yield f"{result['data']}: {name}", table(result)
    yield "speed", speed_table(_read(HERE / "results" / "evaluation.json"))


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def _encoders(result: Result) -> dict[str, Result]:
    """Trained ones first, whenever they were measured."""
    order = {name: place for place, name in enumerate(BASELINES, 1)}
    return dict(sorted(result["encoders"].items(), key=lambda item: order.get(item[0], 0)))


def _values(encoder: Result, *path: str) -> list[float]:
    values = []
    for record in encoder["runs"]:
        for key in path:
            record = record.get(key, {}) if isinstance(record, Mapping) else {}
        if isinstance(record, int | float):
            values.append(float(record))
    return values


def _cell(encoder: Result, *path: str) -> str:
    values = _values(encoder, *path)
    return f"{Mean.of(values):.3f}" if values else "–"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)


def _columns(result: Result, columns: Mapping[str, tuple[str, ...]]) -> list[list[str]]:
    return [[n, *(_cell(e, *p) for p in columns.values())] for n, e in _encoders(result).items()]


def prediction_table(result: Result) -> str:
    columns = {name: ("probes", key, "accuracy") for key, name in PROBES.items()}
    columns |= {
        "macro-F1, kappa (linear, standardised)": ("probes", "linear", "macro_f1"),
        "": ("probes", "linear", "kappa"),
    }
    rows = _columns(result, columns)
    for row, encoder in zip(rows, _encoders(result).values(), strict=True):
        kappa = row.pop()
        row[-1] += f", {kappa}"
        interval = encoder["runs"][0]["probes"]["linear"].get("intervals", {}).get("accuracy")
        row.append(f"{interval[0]:.3f} to {interval[1]:.3f}" if interval else "–")
    head = ["input", *columns][:-1]
    return _table([*head, "95 % over test groups (linear, standardised; first seed)"], rows)


def efficiency_table(result: Result) -> str:
    rows, labels = [], {}
    for name, how, curve in _curves(result):
        # What stays as it is gives the last number of its row whenever all labels are used.
        learns = how == ", fine-tuned" or name == LABELS_ALONE
        for on, words in [("subset", "these labels"), ("all", "all labels")][: 1 + learns]:
            mean = curve.mean(fitted_on=on)
            labels = {r["fraction"]: r["labels"] for r in curve.records}
            cells = [f"{value:.3f}" for value in mean.values()]
            rows.append([f"{name}{how}", words, *cells, f"{curve.area(fitted_on=on):.3f}"])
    shares = [f"{share:.0%} ({n:,})".replace("%", " %") for share, n in sorted(labels.items())]
    return _table(["input", "probe fitted on", *shares, "mean height"], rows)


def matching_table(result: Result) -> str:
    """With how many labels each fine-tuned encoder does what others do with all of them."""
    curves = {(name, how): curve for name, how, curve in _curves(result)}
    tuned = {n: c for (n, how), c in curves.items() if how == ", fine-tuned"}
    rivals = {f"{n}{how}": c for (n, how), c in curves.items() if n not in tuned}
    rows = []
    for rival, theirs in rivals.items():
        cells = [_needed(labels_needed(own, theirs), own) for own in tuned.values()]
        rows.append([rival, *cells])
    return _table(["to match with all labels", *(f"{n}, fine-tuned" for n in tuned)], rows)


def _needed(labels: float | None, curve: LabelCurve) -> str:
    known = [r["labels"] for r in curve.records]
    if labels is None:
        return f"more than all {max(known):,}"
    return f"at most {min(known):,}" if labels <= min(known) else f"{labels:,.0f}"


def _curves(result: Result) -> Iterator[tuple[str, str, LabelCurve]]:
    for name, encoder in _encoders(result).items():
        for kind in ("fine-tuned", "frozen"):
            runs = [r["efficiency"] for r in encoder["runs"] if kind in r.get("efficiency", {})]
            if runs:
                records = [record for run in runs for record in run[kind]["records"]]
                alone = (name, kind) == ("random encoder", "fine-tuned")
                plain = name in BASELINES[1:]
                shown = LABELS_ALONE if alone else name
                yield shown, "" if alone or plain else f", {kind}", LabelCurve(records)


def outlier_table(result: Result) -> str:
    columns = {
        "AUROC, k-NN distance": ("outliers", "mean"),
        "AUROC, local outlier factor": ("outliers_lof", "mean"),
        "normal windows with p ≤ .05": ("p_values", "normal"),
        "left-out windows with p ≤ .05": ("p_values", "left_out"),
    }
    return _table(["input", *columns], _columns(result, columns))


def left_out_table(result: Result) -> str:
    """AUROC of the k-NN distance for each class in turn."""
    names = {name: str(code) for code, name in enumerate(result["class_names"])} | {"mean": "mean"}
    rows = _columns(result, {name: ("outliers", code) for name, code in names.items()})
    for name, encoder in _encoders(result).items():
        strict = [_cell(encoder, "outliers_unseen", code) for code in names.values()]
        if set(strict) != {"–"}:
            rows.append([f"{name}, trained without the class (first seed)", *strict])
    return _table(["left out", *names], rows)


def search_table(result: Result) -> str:
    columns = {
        "precision at 10": ("search", "precision"),
        "of the 10 nearest by features": ("search", "agreement"),
    }
    first = next(iter(_encoders(result).values()))
    chance = [_cell(first, part, f"{key}_by_chance") for part, key in columns.values()]
    return _table(["input", *columns], [*_columns(result, columns), ["by chance", *chance]])


def suggestion_table(result: Result) -> str:
    rows, budgets = [], []
    for name, encoder in _encoders(result).items():
        records = encoder["runs"][0].get("suggestions", [])
        for chooser in dict.fromkeys(r["chooser"] for r in records):
            chosen = [r for r in records if r["chooser"] == chooser]
            budgets = [str(r["labels"]) for r in chosen]
            cells = [f"{r['accuracy']['mean']:.3f} ± {r['accuracy']['error']:.3f}" for r in chosen]
            rows.append([f"{name}, {chooser}", *cells])
    return _table(["labels", *budgets], rows)


def certificate_table(result: Result) -> str:
    rows = []
    for name, encoder in _encoders(result).items():
        found = encoder["runs"][0].get("distances", {}).get("certificates", {})
        for kind, record in found.items():
            upper = "∞" if record["upper"] is None else f"{record['upper']:.3g}"
            limits = f"{record['lower']:.3g} to {upper}"
            miss = f"{record['miss_probability']:.4f}"
            rows.append([name, kind, limits, miss, f"{record['n_pairs']:,}"])
    head = ["encoder", "certificate", "feature / embedding distance", "wrong in at most", "pairs"]
    return _table(head, rows)


def models(result: Result) -> str:
    """What was trained, and how often."""
    words = []
    for name, encoder in _encoders(result).items():
        settings = [run["settings"] for run in encoder["runs"] if "settings" in run]
        if settings and name not in BASELINES:
            words.append(f"`{name}` on encoder `{settings[0]['encoder']}` ({len(settings)} seeds)")
    untrained = len(result["encoders"]["random encoder"]["runs"])
    test = f"{result['test']['windows']:,} test windows of {result['test_groups']} groups"
    return (
        f"{', '.join(words)}, all with default settings; the random encoder is the same network "
        f"untrained ({untrained} seeds). Mean ± standard error over seeds; {test}."
    )


def speed_table(result: Result) -> str:
    rows = []
    for name, words in SPEED.items():
        task = result["tasks"][name]
        goal, usual = f"{task['goal']['seconds']:g} s", task.get("usual_cpu_seconds")
        memory = ""
        if "peak_mb" in task["goal"]:
            goal += f", {task['goal']['peak_mb']:g} MB"
            memory = f", {task['peak_mb']:.0f} MB"
        cpu, wall = f"{task['cpu_seconds']:.2f} s{memory}", f"{task['seconds']:.1f} s"
        usually = f"{usual:.2f} s" if usual else "–"
        rows.append([words.format(**task), cpu, goal, usually, wall])
    threads, load = result["machine"]["threads"], _loads(result)
    head = [
        "task",
        f"seconds of the processor ({threads} thread)",
        "goal on two idle cores",
        "the usual way, of the processor",
        f"wall, with a load of {load}",
    ]
    return _table(head, rows)


def _loads(result: Result) -> str:
    loads = {f"{result['tasks'][name]['load_before']:.0f}" for name in SPEED}
    return " to ".join(sorted(loads))


TABLES = {
    "models": models,
    "prediction": prediction_table,
    "efficiency": efficiency_table,
    "matching": matching_table,
    "outliers": outlier_table,
    "left out": left_out_table,
    "search": search_table,
    "labels": suggestion_table,
    "certificates": certificate_table,
}


if __name__ == "__main__":
    write_text(PAGE, filled(PAGE.read_text(encoding="utf-8")))
