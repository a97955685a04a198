"""What the commands certify and search do on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from expclr.datasets.opening import open_part
from expclr.errors import ConfigError, DataError
from expclr.estimators import RepresentationLearner
from expclr.evaluation import NeighbourIndex, bilipschitz, certify
from expclr.evaluation.certificates import Certificate, Method
from expclr.evaluation.disjoint_pairs import Unit
from expclr.evaluation.inputs import check_disjoint
from expclr.evaluation.intervals import Side
from expclr.evaluation.neighbours import Neighbours
from expclr.evaluation.retrieval import certify_search
from expclr.experiments.evaluation_sections import certificate_sections
from expclr.experiments.runs import open_run
from expclr.experiments.worth import certificate_record
from expclr.report import Gallery, Report, Section, Table, Text, write_report
from expclr.report.waveforms import Waveforms
from expclr.storage import read_json, write_json, write_text
from expclr.windows import Windows

__all__ = ["From", "certify_run", "search_run"]

From = Literal["held-out", "training"]
SHOWN = 10  # queries in a search's page

Array = NDArray[Any]


def certify_run(
    model: str,
    data: str,
    out: str | None,
    *,
    method: Method,
    confidence: float,
    holds: float | None,
    side: Side,
    unit: Unit,
    interval: From,
    search: int,
    test: str | None,
) -> tuple[Path, Certificate]:
    """Write the certificate as JSON, as a model card section and as a page; return it."""
    learner, train, held = open_run(model, data, test)
    if train.group is not None and held.group is not None:
        check_disjoint(train.group, held.group)
    Z, F = _embedded(learner, held, data)
    if search:
        _only_exact(method, interval, side, unit)
        certificate = certify_search(
            *_embedded(learner, train, data), Z, F, k=search, confidence=confidence, holds=holds
        )
    else:
        limits = None
        if interval == "training" or method == "paper-training":
            found = bilipschitz(*_embedded(learner, train, data))
            limits = (found.l_minus, found.l_plus)
        certificate = certify(
            Z,
            F,
            confidence=confidence,
            method=method,
            interval=limits,
            holds=holds,
            side=side,
            unit=unit,
            group=held.group,
        )
    path = Path(out or Path(model) / "certificate.json")
    _write_certificate(path, certificate, held)
    return path, certificate


def _write_certificate(path: Path, certificate: Certificate, held: Windows) -> None:
    record = certificate_record(certificate)
    write_json(path, record)
    write_text(path.with_suffix(".md"), certificate.model_card())
    lead = (
        "An encoder is useful as far as windows close in its embedding are close by what experts "
        "measure. How far that can be relied on, judged by windows it has not seen."
    )
    title = f"How well distances are kept: {held.name or 'windows'}"
    write_report(path.with_suffix(".html"), Report(title, lead, certificate_sections(record)))


def _embedded(learner: RepresentationLearner, windows: Windows, data: str) -> tuple[Array, Array]:
    """Embeddings and features in the space of training."""
    if windows.F is None:
        raise DataError(
            f"{data} has no expert features in a part that needs them: nothing to bound"
        )
    if not hasattr(learner, "feature_space_"):
        raise DataError("the model was not trained on expert features: there is nothing to bound")
    return learner.transform(windows), learner.feature_space_.transform(windows.F)


def _only_exact(method: str, interval: str, side: str, unit: str) -> None:
    if (method, interval, side, unit) != ("exact", "held-out", "both", "window"):
        raise ConfigError(
            "a certificate of a search (--search) knows confidence and holds only: leave out "
            "method, interval, side and unit"
        )


def search_run(
    model: str,
    data: str,
    query: str,
    *,
    k: int,
    certificate: str | None,
    save_index: str | None,
    report: str | None,
) -> list[str]:
    """Lines of CSV: the k windows of ``data`` nearest to each window of ``query``."""
    learner = RepresentationLearner.load(model)
    asked = open_part(query, "test")
    index, known = _index(learner, data, certificate)
    found = index.search(learner.transform(asked), k)
    if save_index:
        index.save(save_index)
    if report:
        write_report(report, _search_report(found, known, asked, index.certificate))
    head = "query,rank,window,distance,class"
    limits = ",features_at_least,features_at_most" if index.certificate else ""
    return [head + limits, *_lines(found, known)]


def _index(
    learner: RepresentationLearner, data: str, certificate: str | None
) -> tuple[NeighbourIndex, Windows | None]:
    """The index of windows, or one that was saved; its windows where they are at hand."""
    sure = None if certificate is None else Certificate.of_record(read_json(Path(certificate)))
    if (Path(data) / "Z.npy").exists():
        saved = NeighbourIndex.load(data)
        return (saved if sure is None else NeighbourIndex(saved.Z, certificate=sure)), None
    known = open_part(data)
    return NeighbourIndex(learner.transform(known), certificate=sure), known


def _lines(found: Neighbours, known: Windows | None) -> list[str]:
    lines = []
    for row, windows in enumerate(found.index):
        for place, window in enumerate(windows):
            cells = [str(row), str(place + 1), str(window), f"{found.distance[row, place]:.6g}"]
            cells.append(_class_of(known, int(window)))
            if found.feature_low is not None and found.feature_high is not None:
                limits = found.feature_low[row, place], found.feature_high[row, place]
                cells += [f"{limit:.6g}" for limit in limits]
            lines.append(",".join(cells))
    return lines


def _search_report(
    found: Neighbours, known: Windows | None, asked: Windows, sure: Certificate | None
) -> Report:
    """The first queries with the windows found for each."""
    if known is None:
        raise ConfigError("a page shows windows: search in data rather than in a saved index")
    q, k = min(SHOWN, len(asked)), found.index.shape[1]
    shown = _joined(known.subset(found.index[:q].ravel()), asked.subset(np.arange(q)))
    rows = {
        f"query {i}: {_class_of(asked, i) or 'class not known'}": [
            q * k + i,
            *range(i * k, (i + 1) * k),
        ]
        for i in range(q)
    }
    hits = [_hit(known, int(w)) for w in found.index[:q].ravel()]
    pictures = Gallery(
        "The windows most like each query",
        rows,
        waveforms=Waveforms.of(shown),
        labels=hits + ["the query"] * q,
        caption=f"First the query, then the {k} nearest of {len(known):,} windows, nearest first.",
    )
    sections: list[Section] = [pictures, _distances(found, known, q)]
    if sure is not None:
        sections.insert(0, Text("What the distances say", sure.text()))
    lead = f"{len(asked):,} windows were searched for among {len(known):,}; here are the first {q}."
    return Report(f"Similar windows in {known.name or 'the data'}", lead, sections)


def _hit(known: Windows, window: int) -> str:
    return f"{_class_of(known, window) or 'window'} {window}"


def _distances(found: Neighbours, known: Windows, queries: int) -> Table:
    """How far each hit is, and in certified units of expert features where they are known."""
    columns = {"distance": found.distance}
    if found.feature_low is not None and found.feature_high is not None:
        columns |= {"features at least": found.feature_low, "at most": found.feature_high}
    rows = [
        [f"query {i}", _hit(known, int(window)), *(float(c[i, at]) for c in columns.values())]
        for i in range(queries)
        for at, window in enumerate(found.index[i])
    ]
    caption = "Distances in the embedding."
    if len(columns) > 1:
        caption += " Between which limits the certificate puts the distance of expert features."
    return Table("", ["query", "hit", *columns], rows, formats=".3g", caption=caption)


def _joined(known: Windows, asked: Windows) -> Windows:
    if known.X.shape[1:] != asked.X.shape[1:]:
        raise DataError(
            f"windows are {known.X.shape[1:]} in the data and {asked.X.shape[1:]} in the query: "
            "a page wants the same channels and timepoints"
        )
    return Windows(
        np.concatenate([known.X, asked.X]), sfreq=known.sfreq, channel_names=known.channel_names
    )


def _class_of(windows: Windows | None, row: int) -> str:
    if windows is None or windows.y is None or windows.y[row] < 0:
        return ""
    code = int(windows.y[row])
    return windows.class_names[code] if windows.class_names else str(code)
