"""Label efficiency: what an encoder is worth after fine-tuning on a share of the labels."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from tqdm import tqdm

from expclr.errors import ConfigError, DataError
from expclr.evaluation import PROBES
from expclr.evaluation.inputs import check_disjoint
from expclr.evaluation.summary import Mean
from expclr.windows import Windows

__all__ = ["FRACTIONS", "LabelCurve", "label_efficiency", "labels_needed"]

FRACTIONS = (0.05, 0.1, 0.2, 0.5, 0.7, 1.0)

Embeddings = tuple[Any, Any]  # of train and test windows


class Embedder(Protocol):
    """What is asked of an estimator here."""

    def finetune(self, X: Any) -> Any:
        """Go on training on labels."""

    def transform(self, X: Any) -> Any:
        """Embed windows."""


@dataclass(frozen=True)
class LabelCurve:
    """Probe results over the share of labels, from one seed or several.

    Attributes
    ----------
    records : list of dict
        For each seed, share, probe and set of windows the probe was fitted on: ``seed``,
        ``fraction``, ``labels``, ``probe``, ``fitted_on`` ("subset": the labelled subset
        only; "all": all training labels), ``protocol`` and the probe's numbers.

    Examples
    --------
    >>> rows = [dict(seed=0, probe="linear", fitted_on="subset", fraction=f, labels=100 * f,
    ...              accuracy=a) for f, a in [(0.1, 0.6), (1.0, 0.8)]]
    >>> curve = LabelCurve(rows)
    >>> curve.mean()[0.1].mean
    0.6
    >>> round(curve.area().mean, 2)
    0.7
    """

    records: list[dict[str, Any]]

    @property
    def kinds(self) -> list[tuple[str, str]]:
        """Every probe with every set of windows it was fitted on."""
        return sorted({(r["probe"], r["fitted_on"]) for r in self.records})

    def mean(
        self, metric: str = "accuracy", *, probe: str = "linear", fitted_on: str = "subset"
    ) -> dict[float, Mean]:
        """From each share of labels to mean and standard error over seeds."""
        chosen = self._chosen(metric, probe, fitted_on)
        fractions = sorted({r["fraction"] for r in chosen})
        return {f: Mean.of([r[metric] for r in chosen if r["fraction"] == f]) for f in fractions}

    def area(
        self, metric: str = "accuracy", *, probe: str = "linear", fitted_on: str = "subset"
    ) -> Mean:
        """Mean height of the curve over the logarithm of the share of labels, over seeds."""
        chosen = self._chosen(metric, probe, fitted_on)
        seeds = sorted({r["seed"] for r in chosen})
        return Mean.of([_height([r for r in chosen if r["seed"] == s], metric) for s in seeds])

    def __add__(self, other: LabelCurve) -> LabelCurve:
        """Both curves' records: those of several seeds make error bars."""
        return LabelCurve(self.records + other.records)

    def _chosen(self, metric: str, probe: str, fitted_on: str) -> list[dict[str, Any]]:
        chosen = [r for r in self.records if (r["probe"], r["fitted_on"]) == (probe, fitted_on)]
        if not chosen or metric not in chosen[0]:
            raise ConfigError(
                f"no {metric} of probe {probe!r} fitted on {fitted_on!r}: there are {self.kinds}"
            )
        return chosen


def label_efficiency(
    estimator: Embedder | Embeddings,
    train: Windows,
    test: Windows,
    *,
    fractions: Sequence[float] = FRACTIONS,
    probes: Sequence[str] = ("linear", "knn1"),
    finetune: bool = True,
    random_state: int = 0,
    seed: int | None = None,
) -> LabelCurve:
    """Fine-tune copies of a fitted estimator on nested shares of the labels and probe each.

    Parameters
    ----------
    estimator : RepresentationLearner, or a pair of arrays
        Fitted without labels; stays as it is. Or what train and test are already: embeddings,
        expert features, raw windows; then nothing is fine-tuned.
    train, test : Windows
        With labels. The subsets are ``train.label_fraction(f)``: stratified, nested, and the
        same for every estimator that is given the same ``random_state``.
    fractions : sequence of float
        Shares of the labels; the paper's by default.
    probes : sequence of str
        Keys of ``PROBES``.
    finetune : bool
        False: the encoder stays as it is, only the probe gets the labels.
    random_state : int
        Draws the subsets.
    seed : int, optional
        Of the estimator: told apart in the records, so that several estimators on the same
        subsets have error bars; default ``random_state``.

    Examples
    --------
    >>> import numpy as np
    >>> from expclr import Windows
    >>> y = np.tile([0, 1], 50)
    >>> X = y[:, None, None] + np.random.default_rng(0).normal(size=(100, 1, 4)) / 9
    >>> windows = Windows(X, y=y)
    >>> curve = label_efficiency((X, X), windows, windows, fractions=(0.1, 1))
    >>> [(r["fraction"], r["labels"]) for r in curve.records if r["probe"] == "knn1"]
    [(0.1, 10), (0.1, 10), (1, 100), (1, 100)]
    """
    _check(train, test, fractions)
    learns = finetune and not isinstance(estimator, tuple)
    named = {"seed": random_state if seed is None else seed}
    records: list[dict[str, Any]] = []
    Z: Embeddings | None = None
    for fraction in tqdm(sorted(fractions), desc="label shares", disable=None):
        subset = train.label_fraction(fraction, random_state=random_state)
        if learns or Z is None:  # what stays as it is need not be embedded and probed again
            Z = _embed(estimator, subset if learns else None, train, test)
            on_all = _probe(Z, train, test, probes, "all")
        share = named | {"fraction": fraction, "labels": _labels(subset)}
        found = _probe(Z, subset, test, probes, "subset") + on_all
        records += [share | record for record in found]
    return LabelCurve(records)


def labels_needed(
    curve: LabelCurve,
    rival: LabelCurve,
    metric: str = "accuracy",
    *,
    probe: str = "linear",
    fitted_on: str = "subset",
) -> float | None:
    """How many labels a method needs to match a rival that has all of them.

    Between two shares the mean curve is taken as straight over the logarithm of the number
    of labels.

    Returns
    -------
    float or None
        A number of labels; None when all do not suffice. When the least share suffices it is
        that of the least share: an upper limit.

    Examples
    --------
    >>> def curve(*points):
    ...     return LabelCurve([dict(seed=0, probe="linear", fitted_on="subset", fraction=n / 100,
    ...                             labels=n, accuracy=a) for n, a in points])
    >>> labels_needed(curve((1, 0.5), (100, 0.9)), curve((1, 0.2), (100, 0.7)))
    10.0
    """
    own = curve.mean(metric, probe=probe, fitted_on=fitted_on)
    theirs = rival.mean(metric, probe=probe, fitted_on=fitted_on)
    goal = theirs[max(theirs)].mean
    labels = {r["fraction"]: r["labels"] for r in curve.records}
    points = [(float(np.log(labels[f])), own[f].mean) for f in sorted(own)]
    if points[0][1] >= goal:
        return float(labels[min(own)])
    for (x0, y0), (x1, y1) in pairwise(points):
        if y1 >= goal:
            return round(float(np.exp(x0 + (x1 - x0) * (goal - y0) / (y1 - y0))), 6)
    return None


def _embed(
    estimator: Embedder | Embeddings, labelled: Windows | None, train: Windows, test: Windows
) -> Embeddings:
    """What the estimator, or a copy that has learnt from labels, makes of both parts."""
    if isinstance(estimator, tuple):
        return estimator
    if labelled is not None:
        estimator = copy.deepcopy(estimator)
        estimator.finetune(labelled)
    return estimator.transform(train), estimator.transform(test)


def _probe(
    Z: Embeddings, known: Windows, test: Windows, probes: Sequence[str], fitted_on: str
) -> list[dict[str, Any]]:
    records = []
    for name in probes:
        found = PROBES[name](Z[0], known.y, Z[1], test.y)
        protocol = getattr(found, "protocol", name)
        records.append({"probe": name, "fitted_on": fitted_on, "protocol": protocol, **found})
    return records


def _labels(windows: Windows) -> int:
    assert windows.y is not None
    return int(np.count_nonzero(windows.y >= 0))


def _height(records: list[dict[str, Any]], metric: str) -> float:
    records = sorted(records, key=lambda r: r["fraction"])
    x, y = np.log([r["fraction"] for r in records]), np.array([r[metric] for r in records])
    return float(np.trapezoid(y, x) / (x[-1] - x[0])) if len(x) > 1 else float(y[0])


def _check(train: Windows, test: Windows, fractions: Sequence[float]) -> None:
    for side, windows in (("train", train), ("test", test)):
        if windows.y is None or not len(windows.classes):
            raise DataError(f"{side} has no labels: give Windows(..., y=...)")
    if train.group is not None and test.group is not None:
        check_disjoint(train.group, test.group)
    if not fractions or len(set(fractions)) < len(fractions):
        raise ConfigError(f"fractions are {fractions}: different numbers up to 1 are wanted")
