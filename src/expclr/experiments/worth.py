"""What an embedding is worth, as plain numbers for metrics.json: probes, search, outliers, ..."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from expclr.errors import ConfigError, DataError
from expclr.estimators import RepresentationLearner
from expclr.evaluation import PROBES, bilipschitz, certify, label_efficiency
from expclr.evaluation.bounds import bound_comparison, order_statistics_bound
from expclr.evaluation.certificates import Certificate, certify_ratios
from expclr.evaluation.inputs import check_disjoint
from expclr.evaluation.intervals import pairs_needed
from expclr.evaluation.label_curves import LabelCurve, labels_needed
from expclr.evaluation.label_loops import PROTOCOL, Chooser, label_loop
from expclr.evaluation.outliers import leave_one_class_out, outlier_scores
from expclr.evaluation.pair_ratios import PairRatios
from expclr.evaluation.retrieval import retrieval_quality
from expclr.evaluation.scores import Scores
from expclr.evaluation.summary import Mean, bootstrap_intervals
from expclr.report.ratios import pair_ratios
from expclr.windows import Windows

__all__ = [
    "ALSO",
    "Embeddings",
    "baseline_records",
    "certificate_record",
    "check_parts",
    "curve_record",
    "distance_record",
    "fill_gaps",
    "held_out_certificate",
    "label_records",
    "p_value_record",
    "pair_ratios_of",
    "probe_records",
    "rival_record",
    "suggestion_records",
    "task_records",
]

ALSO = ("baselines", "labels", "suggestions")
HOLDS = 0.99  # of new pairs the certificate of a report is right for
LEVEL = 0.05  # of the p-values of outliers
HITS = 10  # neighbours by which a search is judged
SEEDS = 5  # repetitions of a label loop
BUDGETS = (10, 20, 30, 50, 100, 200)
QUANTILES = (0.005, 0.05, 0.5, 0.95, 0.995)
LARGEST = 300_000_000  # numbers in raw windows that probes still take
METRICS = ("accuracy", "macro_f1", "kappa")

log = logging.getLogger(__name__)

Embeddings = tuple[NDArray[Any], NDArray[Any]]  # of train and test windows


def check_parts(train: Windows, test: Windows, *, allow: Sequence[str] = ()) -> None:
    """Refuse test groups that also trained, unless "shared-groups" are allowed."""
    for name in allow:
        if name != "shared-groups":
            raise ConfigError(f"allow is {name!r}: 'shared-groups' is all that can be allowed")
    if train.group is not None and test.group is not None and not allow:
        check_disjoint(train.group, test.group)


def probe_records(Z: Embeddings, train: Windows, test: Windows) -> dict[str, Any]:
    """Every probe's numbers, with intervals over test groups; nothing without labels."""
    if not _labelled(train, test):
        return {}
    found = {}
    for name, probe in PROBES.items():
        scores = _unless_refused(f"no probe {name}", probe, Z[0], train.y, Z[1], test.y)
        if scores is not None:
            found[name] = scores.record() | _intervals(scores, test)
    return found


def _unless_refused(what: str, measure: Callable[..., Any], *args: Any, **settings: Any) -> Any:
    """What is measured; None, and a warning, for windows of which it cannot be."""
    try:
        return measure(*args, **settings)
    except DataError as error:
        log.warning("%s: %s", what, error)
        return None


def pair_ratios_of(Z_test: NDArray[Any], F_test: NDArray[Any]) -> PairRatios | None:
    """The ratios of all pairs of test windows, where any has one."""
    pairs: PairRatios | None = _unless_refused("no distances", bilipschitz, Z_test, F_test)
    return pairs


def _labelled(*parts: Windows) -> bool:
    return all(part.y is not None and len(part.classes) > 0 for part in parts)


def _intervals(scores: Scores, test: Windows) -> dict[str, Any]:
    """95 % intervals under resampling of whole test groups, where there are two or more."""
    if test.group is None or len(np.unique(test.group[scores.rows])) < 2:
        return {}
    groups = len(np.unique(test.group[scores.rows]))
    limits = bootstrap_intervals(scores, test.group)
    return {
        "intervals": {"groups": groups, "confidence": 0.95}
        | {name: [_number(low), _number(high)] for name, (low, high) in limits.items()}
    }


def task_records(
    Z: Embeddings, F: Embeddings | None, train: Windows, test: Windows
) -> dict[str, Any]:
    """Similar windows and outliers: the tasks that need no further training."""
    labelled = _labelled(train, test)
    y, y_query = (train.y, test.y) if labelled else (None, None)
    features, asked = F if F is not None else (None, None)
    records: dict[str, Any] = {}
    if labelled or F is not None:
        records["search"] = retrieval_quality(
            *Z, y=y, y_query=y_query, F=features, F_query=asked, k=min(HITS, len(train))
        )
    several = labelled and len(np.intersect1d(train.classes, test.classes)) > 1
    if several and y is not None and y_query is not None:
        outliers = _unless_refused("no outliers", leave_one_class_out, Z[0], y, Z[1], y_query)
        p_values = _unless_refused("no p-values", p_value_record, Z, train, test)
        found = {"outliers": outliers, "p_values": p_values}
        records |= {name: values for name, values in found.items() if values is not None}
    return records


def p_value_record(Z: Embeddings, train: Windows, test: Windows) -> dict[str, float]:
    """Shares of test windows with small p-values, with each class in turn unknown to train.

    p-values come from held-out normal windows of train, of whole groups where these are known.
    """
    assert train.y is not None
    assert test.y is not None
    false, found = [], []
    for left_out in np.intersect1d(train.classes, test.classes):
        normal, asked = (train.y >= 0) & (train.y != left_out), test.y >= 0
        group = None if train.group is None else train.group[normal]
        p_values = outlier_scores(Z[0][normal], Z[1][asked], group=group).p_values
        strange = test.y[asked] == left_out
        false.append((p_values[~strange] <= LEVEL).mean())
        found.append((p_values[strange] <= LEVEL).mean())
    return {"level": LEVEL, "normal": float(np.mean(false)), "left_out": float(np.mean(found))}


def distance_record(pairs: PairRatios) -> dict[str, Any]:
    """Limits, quantiles and histogram of pair ratios; an infinite one is None in JSON."""
    levels = np.quantile(pairs.ratios, QUANTILES, method="inverted_cdf")
    return {
        "l_minus": _number(pairs.l_minus),
        "l_plus": _number(pairs.l_plus),
        "pairs": pairs.pairs,
        "collapsed": pairs.collapsed,
        "quantiles": {str(q): _number(v) for q, v in zip(QUANTILES, levels, strict=True)},
        **_counted(pairs.ratios, pairs.l_minus, pairs.l_plus),
    }


def held_out_certificate(
    Z_test: NDArray[Any], F_test: NDArray[Any], test: Windows
) -> Certificate | None:
    """For 99 % of new pairs the shortest interval; with too few pairs for that, their range."""
    whole: Certificate | None = _unless_refused(
        "no certificate", certify, Z_test, F_test, group=test.group
    )
    if whole is None:
        return None
    enough = pairs_needed(lambda n: float(order_statistics_bound(n, 0.05)), 1 - HOLDS)
    if whole.n_pairs < enough:
        return whole
    return certify_ratios(whole.ratios, holds=HOLDS, subject=whole.subject, left_out=whole.left_out)


def certificate_record(certificate: Certificate) -> dict[str, Any]:
    """The certificate, its pairs' ratios in bins, and what bounds say for other numbers of pairs.

    The comparison takes the share of pairs outside as 5 %, as the paper's figure does.
    """
    counted = _counted(certificate.ratios, certificate.lower, certificate.upper)
    steps = np.unique(np.logspace(1, 5, 17).round().astype(int))
    comparison = bound_comparison(steps, confidence=certificate.confidence)
    return certificate.record() | counted | {"bounds": comparison}


def baseline_records(
    learner: RepresentationLearner, F: Embeddings | None, train: Windows, test: Windows
) -> dict[str, Any]:
    """Expert features, raw windows and an untrained encoder through the same measurements."""
    inputs: dict[str, Embeddings] = {}
    if train.X.size <= LARGEST:
        inputs["raw windows"] = _flat(train), _flat(test)
    else:
        log.warning("raw windows are left out: %d numbers are too many", train.X.size)
    if F is not None:
        inputs["expert features"] = fill_gaps(*F)
    untrained = _untrained(learner, train)
    inputs["random encoder"] = untrained.transform(train), untrained.transform(test)
    return {
        name: {"probes": probe_records(Z, train, test), **task_records(Z, F, train, test)}
        for name, Z in tqdm(inputs.items(), desc="baselines", disable=None)
    }


def _untrained(learner: RepresentationLearner, train: Windows) -> RepresentationLearner:
    """The same network as it was before training; labels alone would teach it by cross-entropy."""
    config = replace(
        learner.config,
        method="random",
        method_params={},
        finetune_method="cross_entropy",
        encoder=learner.encoder_name_,
        include_features=False,
    )
    return RepresentationLearner.from_config(config).fit(train)


def label_records(
    learner: RepresentationLearner,
    train: Windows,
    test: Windows,
    F: Embeddings | None = None,
    *,
    rivals: bool = False,
) -> dict[str, Any]:
    """The label efficiency curve, and its area for every probe and set of labels.

    With rivals: the same of the network trained on these labels alone, and of probes on expert
    features; and with how many labels the embedding matches what each of them does with all.
    """
    seed = learner.random_state or 0
    curve = label_efficiency(learner, train, test, seed=seed)
    record = curve_record(curve)
    if rivals:
        others: dict[str, Any] = {"labels alone": _untrained(learner, train)}
        others |= {} if F is None else {"expert features": fill_gaps(*F)}
        curves = {n: label_efficiency(e, train, test, seed=seed) for n, e in others.items()}
        record["rivals"] = {n: rival_record(curve, rival) for n, rival in curves.items()}
    return record


def curve_record(curve: LabelCurve) -> dict[str, Any]:
    """A curve and, for each probe and set of labels, its area."""
    area = {f"{p}, {on}": curve.area(probe=p, fitted_on=on).mean for p, on in curve.kinds}
    return {"records": curve.records, "area": area}


def rival_record(curve: LabelCurve, rival: LabelCurve) -> dict[str, Any]:
    """A rival's curve, and how many labels the first one needs to match it where it has all."""
    matched = {
        f"{p}, {on}": labels_needed(curve, rival, probe=p, fitted_on=on) for p, on in curve.kinds
    }
    return curve_record(rival) | {"labels_to_match": matched}


def suggestion_records(Z: Embeddings, train: Windows, test: Windows) -> list[dict[str, Any]]:
    """Accuracy against the number of labels, suggested and by chance, with standard errors."""
    assert train.y is not None
    assert test.y is not None
    known = np.count_nonzero(train.y >= 0)
    budgets = tuple(b for b in BUDGETS if b <= known)
    if not budgets:
        raise DataError(
            f"train has {known} labels: suggestions are compared with chance from {BUDGETS[0]} on"
        )
    choosers: tuple[Chooser, ...] = ("suggested", "random")
    records = []
    for chooser in choosers:
        loops = [
            label_loop(
                Z[0], train.y, Z[1], test.y, chooser=chooser, budgets=budgets, random_state=seed
            )
            for seed in tqdm(range(SEEDS), desc=f"labels, {chooser}", disable=None)
        ]
        for step, budget in enumerate(budgets):
            numbers = {m: Mean.of([loop[step][m] for loop in loops]) for m in METRICS}
            record = {m: {"mean": n.mean, "error": n.error} for m, n in numbers.items()}
            told = {"chooser": chooser, "protocol": PROTOCOL, "labels": budget, "seeds": SEEDS}
            records.append(told | record)
    return records


def fill_gaps(F_train: NDArray[Any], F_test: NDArray[Any]) -> Embeddings:
    """Missing features as the median of train, for what cannot do without."""
    from sklearn.impute import SimpleImputer

    filled = SimpleImputer(strategy="median", keep_empty_features=True).fit(F_train)
    return filled.transform(F_train), filled.transform(F_test)


def _flat(windows: Windows) -> NDArray[Any]:
    return windows.X.reshape(len(windows), -1)


def _counted(ratios: NDArray[Any], lower: float, upper: float) -> dict[str, Any]:
    """The histogram that a report shows; none when no ratio is finite."""
    if not np.isfinite(ratios).any():
        return {}
    chart = pair_ratios(ratios, lower, upper)
    edges, counts = np.asarray(chart.edges), np.asarray(chart.counts)
    return {"histogram": {"edges": edges.tolist(), "counts": counts.tolist()}}


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
