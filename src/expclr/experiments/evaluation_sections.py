"""Report sections about what an embedding is worth, built from the numbers in metrics.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from expclr.evaluation.label_loops import PROTOCOL
from expclr.report import Bars, Histogram, Lines, Mark, Section, Series, Table, Text

__all__ = [
    "certificate_sections",
    "distance_sections",
    "evaluation_sections",
    "label_sections",
    "outlier_sections",
    "probe_sections",
    "search_sections",
    "suggestion_sections",
]

METRICS = ("accuracy", "macro_f1", "kappa")
SHOWN = "linear"  # the probe whose mistakes and recalls are shown
BOUNDS = {
    "paper_validation": "the paper, interval of the held-out pairs",
    "paper_training": "the paper, interval of training",
    "exact_validation": "exact, interval of the held-out pairs",
    "exact_training": "exact, interval of training",
}

Values = Mapping[str, Any]


def evaluation_sections(values: Values, class_names: Sequence[str] = ()) -> list[Section]:
    """All sections for which there are numbers."""
    return [
        *probe_sections(values, class_names),
        *label_sections(values),
        *suggestion_sections(values),
        *search_sections(values),
        *outlier_sections(values, class_names),
        *distance_sections(values),
        *certificate_sections(values.get("certificate")),
    ]


def probe_sections(values: Values, class_names: Sequence[str] = ()) -> list[Section]:
    """What probes read, for each kind of input, and where the linear one errs."""
    if not values.get("probes"):
        return []
    sections: list[Section] = [_probe_table(values)]
    shown = values["probes"].get(SHOWN)
    if shown is not None:
        sections += [_recalls(shown, class_names), _confusion(shown, class_names)]
    return sections


def _probe_table(values: Values) -> Table:
    rows = []
    for name, probes in _inputs(values, "probes").items():
        for probe in probes.values():
            interval = probe.get("intervals", {}).get("accuracy")
            spread = f"{interval[0]:.3f} to {interval[1]:.3f}" if interval else None
            rows.append([name, probe["protocol"], *(probe[m] for m in METRICS), spread])
    groups = next(iter(values["probes"].values())).get("intervals", {}).get("groups")
    spread = (
        f" Intervals of the accuracy (95 %) are over the {groups} groups of the test windows, "
        "drawn anew as a whole."
        if groups
        else ""
    )
    return Table(
        "What can be read from the embedding",
        ["input", "probe", *METRICS, "interval"],
        rows,
        formats=".3f",
        caption="Simple classifiers fitted on the training windows and read on the test windows: "
        f"the better they do, the better classes are laid out.{spread}",
    )


def _recalls(probe: Values, class_names: Sequence[str]) -> Bars:
    names = [_class(c, class_names) for c in probe["recall"]]
    unseen = [_class(c, class_names) for c in probe["unseen"]]
    note = f" Train has no window of {', '.join(unseen)}." if unseen else ""
    return Bars(
        "Recall of each class",
        names,
        list(probe["recall"].values()),
        x_label="recall",
        caption=f"Share of the test windows of a class that the probe ({probe['protocol']}) "
        f"recognises.{note}",
    )


def _confusion(probe: Values, class_names: Sequence[str]) -> Table:
    names = [_class(c, class_names) for c in probe["classes"]]
    return Table(
        "",
        ["true class", *names],
        [[name, *row] for name, row in zip(names, probe["confusion"], strict=True)],
        caption="Test windows of each class (row) by the class the probe says (column).",
    )


def label_sections(values: Values, fitted_on: str = "subset") -> list[Section]:
    """Accuracy over the number of labels after fine-tuning on them."""
    if not values.get("labels"):
        return []
    found = values["labels"]
    series = [_label_line(found["records"], probe, on) for probe, on in _kinds(found["records"])]
    caption = (
        "Copies of the encoder were fine-tuned on a share of the labels each; the probe was then "
        "fitted on these labels, or on all."
    )
    lines = _label_lines("Accuracy by number of labels", series, caption)
    return [lines, *([_rival_lines(found)] if found.get("rivals") else []), _label_table(found)]


def _rival_lines(found: Values) -> Lines:
    """The linear probe's curve beside those of rivals."""
    shown = {"embedding": found, **found["rivals"]}
    series = [
        replace(_label_line(record["records"], SHOWN, "subset"), name=name)
        for name, record in shown.items()
    ]
    return _label_lines(
        "",
        series,
        "The linear probe on standardised columns, fitted on the labelled windows: the embedding, "
        "fine-tuned; the same network with these labels alone; and expert features, which have "
        "to be measured for every new window.",
    )


def _label_table(found: Values) -> Table:
    """Curves as one number each, and how many labels it takes to match rivals."""
    named = {
        f"{probe}, {on}": _line_name(found["records"], probe, on)
        for probe, on in _kinds(found["records"])
    }
    rows = [["embedding", line, found["area"][key], ""] for key, line in named.items()]
    for name, rival in found.get("rivals", {}).items():
        needed, area = rival["labels_to_match"], rival["area"]
        rows += [[name, line, area[key], needed[key]] for key, line in named.items()]
    most = max(r["labels"] for r in found["records"])
    matched = (
        f" Labels to match: with how many the embedding does as well as this rival with all {most};"
        " a dash where all are not enough."
    )
    rivals = bool(found.get("rivals"))
    return Table(
        "",
        ["input", "line", "mean height", *(["labels to match"] if rivals else [])],
        rows if rivals else [row[:-1] for row in rows],
        formats={"mean height": ".3f", "labels to match": ".0f"} if rivals else ".3f",
        caption="Mean height: of the accuracy, over the logarithm of the number of labels."
        + (matched if rivals else ""),
    )


def _kinds(records: Sequence[Values]) -> list[tuple[str, str]]:
    return sorted({(r["probe"], r["fitted_on"]) for r in records})


def _label_line(records: Sequence[Values], probe: str, on: str) -> Series:
    chosen = [r for r in records if (r["probe"], r["fitted_on"]) == (probe, on)]
    labels, accuracy = zip(*((r["labels"], 100 * r["accuracy"]) for r in chosen), strict=True)
    return Series(_line_name(chosen, probe, on), labels, accuracy)


def _line_name(records: Sequence[Values], probe: str, on: str) -> str:
    protocol = next(r["protocol"] for r in records if r["probe"] == probe)
    return f"{protocol}, probe fitted on {_NAMED[on]}"


def _label_lines(title: str, series: Sequence[Series], caption: str) -> Lines:
    return Lines(
        title,
        series,
        x_label="labelled training windows",
        y_label="accuracy (%)",
        log_x=True,
        caption=caption,
    )


_NAMED = {"subset": "these labels", "all": "all labels"}


def suggestion_sections(values: Values) -> list[Section]:
    """Accuracy when windows to label are suggested, against windows drawn at random."""
    if not values.get("suggestions"):
        return []
    series = []
    for chooser in ("suggested", "random"):
        records = [r for r in values["suggestions"] if r["chooser"] == chooser]
        mean = np.array([r["accuracy"]["mean"] for r in records])
        error = np.array([r["accuracy"]["error"] for r in records])
        x, low, high = [r["labels"] for r in records], mean - error, mean + error
        series.append(Series(chooser, x, 100 * mean, low=100 * low, high=100 * high))
    seeds = values["suggestions"][0]["seeds"]
    return [
        Lines(
            "Which windows to label",
            series,
            x_label="labels",
            y_label=f"accuracy (%) of the probe ({PROTOCOL})",
            log_x=True,
            caption="The line higher up on the left needs fewer labels. Whiskers: standard error "
            f"over {seeds} repetitions; suggestions differ between them only where there are too "
            "many windows to compare all with each other.",
        )
    ]


def search_sections(values: Values) -> list[Section]:
    """How good a search is, for each kind of input."""
    if not values.get("search"):
        return []
    names = {
        "precision": "same class",
        "precision_by_chance": "by chance",
        "agreement": "among the nearest by features",
        "agreement_by_chance": "by chance (features)",
    }
    known = [name for name in names if name in values["search"]]
    rows = [[name, *(s.get(k) for k in known)] for name, s in _inputs(values, "search").items()]
    k = int(values["search"]["k"])
    return [
        Table(
            "Similar windows",
            ["input", *(names[name] for name in known)],
            rows,
            formats=".3f",
            caption=f"Each test window was searched for among the training windows. Of the {k} "
            "hits: the share that has its class, and the share that is also among the "
            f"{k} nearest by expert features.",
        )
    ]


def outlier_sections(values: Values, class_names: Sequence[str] = ()) -> list[Section]:
    """How well windows of a class that train lacks stand out, for each kind of input."""
    if not values.get("outliers"):
        return []
    found = values["outliers"]
    names = {c: _class(c, class_names) for c in found if c != "mean"} | {"mean": "mean"}
    inputs = _inputs(values, "outliers").items()
    bars = Bars(
        "Windows unlike any seen before",
        list(names.values()),
        [found[c] for c in names],
        x_label="AUROC",
        caption="Each class in turn was left out of train; by their distance to the 10th "
        "nearest training window, how well are its test windows told from the others? "
        "1 is perfect, 0.5 is chance.",
    )
    table = Table(
        "",
        ["input", *names.values()],
        [[name, *(o[c] for c in names)] for name, o in inputs],
        formats=".3f",
        caption="The same number for each input.",
    )
    return [bars, table, *_p_value_sections(values)]


def _p_value_sections(values: Values) -> list[Section]:
    """How often p-values are small, for windows of the class that was left out and others."""
    if not values.get("p_values"):
        return []
    level = values["p_values"]["level"]
    rows = [[name, p["normal"], p["left_out"]] for name, p in _inputs(values, "p_values").items()]
    return [
        Table(
            "",
            ["input", f"normal, p ≤ {level:g}", f"left out, p ≤ {level:g}"],
            rows,
            formats=".3f",
            caption="Shares of the test windows with small p-values, which come from held-out "
            f"training windows: about {level:g} of the normal ones is wanted, and as many as can "
            "be of the class that was left out.",
        )
    ]


def distance_sections(values: Values) -> list[Section]:
    """The ratios of all pairs of test windows with the limits of Definition 1."""
    found = values.get("distances")
    if not found or "histogram" not in found:
        return []
    marks = [Mark(found[key], label) for key, label in _LIMITS.items() if found[key] is not None]
    none = (
        f" {found['collapsed']} pairs have different features but the same embedding: l+ is "
        "infinite."
        if found["collapsed"]
        else ""
    )
    return [
        _histogram(
            "How well distances are kept",
            found["histogram"],
            marks,
            f"The ratio for each of {found['pairs']:,} pairs of test windows. The narrower the "
            "histogram, the better the embedding keeps the experts' distances; l− and l+ are "
            f"the limits, which would be equal in a perfect embedding.{none}",
        )
    ]


_LIMITS = {"l_minus": "l−", "l_plus": "l+"}


def certificate_sections(certificate: Values | None) -> list[Section]:
    """The certificate in words, its pairs, and how tight it could be with other numbers of them."""
    if not certificate:
        return []
    sections: list[Section] = [Text("What distances say about new windows", certificate["text"])]
    if "histogram" in certificate:
        marks = [
            Mark(certificate[key], key)
            for key in ("lower", "upper")
            if certificate[key] is not None
        ]
        text = f"The {certificate['n_pairs']:,} independent pairs behind it, and its interval."
        sections.append(_histogram("", certificate["histogram"], marks, text))
    if "bounds" in certificate:
        sections.append(_bound_figure(certificate["bounds"]))
    return sections


def _bound_figure(bounds: Values) -> Lines:
    """The paper's comparison of bounds over the number of validation pairs."""
    series = [
        Series(label, bounds["n_pairs"], np.minimum(bounds[name], 1))
        for name, label in BOUNDS.items()
    ]
    return Lines(
        "",
        series,
        x_label="independent held-out pairs",
        y_label="new pairs outside at most",
        log_x=True,
        log_y=True,
        caption="How much each bound can promise with so many pairs, when 5 % of them lie outside "
        "the interval of training; 1 promises nothing.",
    )


def _histogram(title: str, found: Values, marks: Sequence[Mark], caption: str) -> Histogram:
    edges = found["edges"]
    return Histogram(
        title,
        edges,
        found["counts"],
        x_label="feature distance / embedding distance",
        y_label="pairs",
        marks=marks,
        log_x=bool(edges[0] > 0 and edges[-1] > 10 * edges[0]),
        caption=caption,
    )


def _inputs(values: Values, key: str) -> dict[str, Any]:
    """The embedding's numbers first, then those of each baseline that has them."""
    rest = {name: b[key] for name, b in values.get("baselines", {}).items() if b.get(key)}
    return {"embedding": values[key]} | rest


def _class(code: int | str, names: Sequence[str]) -> str:
    return names[int(code)] if int(code) < len(names) else f"class {code}"
