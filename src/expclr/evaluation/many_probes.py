"""The probes of many runs at once: on a GPU they take less time than the training they judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from expclr import arrays
from expclr.engine import resolve_device
from expclr.errors import ConfigError, DataError, suggest
from expclr.evaluation.inputs import embedding
from expclr.evaluation.many_logistic import fit_many_logistic
from expclr.evaluation.scores import Scores, score

__all__ = ["probe_many"]

AT_ONCE = 1 << 28  # float64 numbers of embeddings on the device in one go: 2 GB
DISTANCES = 1 << 26  # float32 distances in one go


class _Kind(NamedTuple):
    k: int  # 0: linear
    standardised: bool

    def protocol(self) -> str:
        kind = f"{self.k}-NN" if self.k else "linear"
        return f"{kind}, {'standardised' if self.standardised else 'raw'}"


KINDS = {
    "linear": _Kind(0, True),
    "linear_raw": _Kind(0, False),
    "knn1": _Kind(1, True),
    "knn1_raw": _Kind(1, False),
    "knn5": _Kind(5, True),
}


def probe_many(
    Z_train: Sequence[ArrayLike],
    y_train: ArrayLike,
    Z_test: Sequence[ArrayLike],
    y_test: ArrayLike,
    *,
    probes: Sequence[str] = ("linear", "linear_raw", "knn1", "knn1_raw"),
    device: str = "auto",
) -> list[dict[str, Scores]]:
    """The numbers of ``PROBES`` for many runs on the same windows, computed side by side.

    Parameters
    ----------
    Z_train, Z_test : sequences of arrays (n, e)
        One of each for every run, all of the same shape.
    y_train : array (n,) or (runs, n)
        Classes, -1 where not known; two dimensions when runs had different labels.
    y_test : array (n,)
    probes : sequence of str
        Keys of ``PROBES``.
    device : str
        "auto" takes a GPU where there is one. On a CPU the probes one by one are faster.

    Returns
    -------
    list of dict
        For each run, from the name of a probe to its ``Scores``.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.tile([0, 1], 20)
    >>> runs = [y[:, None] + np.random.default_rng(s).normal(size=(40, 3)) / 9 for s in (0, 1)]
    >>> found = probe_many(runs, y, runs, y, probes=["linear"], device="cpu")
    >>> [run["linear"]["accuracy"] for run in found]
    [1.0, 1.0]
    """
    for name in probes:
        if name not in KINDS:
            raise ConfigError(f"no probe {name!r} for many runs: {suggest(name, list(KINDS))}")
    train, test = _same_shape(Z_train, "Z_train"), _same_shape(Z_test, "Z_test")
    if len(train) != len(test) or train[0].shape[1] != test[0].shape[1]:
        raise DataError(
            f"Z_train holds {len(train)} runs of {train[0].shape[1]} columns, Z_test {len(test)} "
            f"of {test[0].shape[1]}: embed both with the same encoders"
        )
    y = _labels(y_train, len(train), len(train[0]))
    truth = arrays.whole_numbers(y_test, "y_test", len(test[0]))
    classes = np.unique(y[y >= 0])
    found: list[dict[str, Scores]] = []
    on = resolve_device(device)
    if on.type == "mps":  # which has no double precision
        on = torch.device("cpu")
    for part in _parts(train, test):
        stacked = _stack(train[part], on), _stack(test[part], on)
        predicted = {name: _predict(*stacked, y[part], classes, KINDS[name]) for name in probes}
        for i, labels in enumerate(y[part]):
            found.append(
                {
                    name: _judge(labels, truth, p[i], bool(done[i]), KINDS[name])
                    for name, (p, done) in predicted.items()
                }
            )
    return found


def _same_shape(Z: Sequence[ArrayLike], what: str) -> list[NDArray[Any]]:
    runs = [embedding(z, f"{what}[{i}]") for i, z in enumerate(Z)]
    shapes = sorted({run.shape for run in runs})
    if len(shapes) != 1:
        raise DataError(
            f"{what} holds arrays of the shapes {shapes}: one array a run, all alike, is wanted; "
            "probe others by themselves"
        )
    return runs


def _labels(y_train: ArrayLike, runs: int, n: int) -> NDArray[np.int64]:
    given = np.asarray(y_train)
    each = given if given.ndim == 2 else [given] * runs
    if len(each) != runs:
        raise DataError(f"y_train has {len(each)} rows for {runs} runs: one each, or one for all")
    y = np.stack([arrays.whole_numbers(row, "y_train", n) for row in each])
    for i, row in enumerate(y):
        known = np.unique(row[row >= 0])
        if len(known) < 2:
            raise DataError(
                f"the labels of run {i} hold the classes {known.tolist()}: a probe needs labels "
                "of 2 classes or more"
            )
    return y


def _parts(train: list[NDArray[Any]], test: list[NDArray[Any]]) -> Iterator[slice]:
    step = max(1, AT_ONCE // (train[0].size + test[0].size))
    for start in range(0, len(train), step):
        yield slice(start, start + step)


def _stack(runs: list[NDArray[Any]], device: torch.device) -> Tensor:
    stacked = torch.stack([torch.as_tensor(np.ascontiguousarray(run)) for run in runs])
    return stacked.to(device, torch.float64)


def _predict(
    Z: Tensor, asked: Tensor, y: NDArray[np.int64], classes: NDArray[np.int64], kind: _Kind
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Predicted classes (runs, m), and which runs converged."""
    codes = torch.as_tensor(np.where(y >= 0, np.searchsorted(classes, y), -1), device=Z.device)
    known = (codes >= 0)[..., None]
    n = known.sum(dim=1, keepdim=True)
    mean = (Z * known).sum(dim=1, keepdim=True) / n
    scale = torch.ones_like(mean)
    if kind.standardised:
        deviation = (((Z - mean) ** 2 * known).sum(dim=1, keepdim=True) / n).sqrt()
        varies = deviation > 10 * torch.finfo(Z.dtype).eps * (mean.abs() + deviation)
        scale = torch.where(varies, deviation, scale)
    X, Q = (Z - mean) / scale, (asked - mean) / scale
    if kind.k:
        said, done = _vote(X, Q, codes, len(classes), kind.k), np.ones(len(Z), bool)
    else:
        fits = fit_many_logistic(X, codes, len(classes))
        said, done = fits.logits(Q).argmax(dim=2), fits.converged.cpu().numpy()
    return classes[said.cpu().numpy()], done


def _vote(X: Tensor, Q: Tensor, codes: Tensor, classes: int, k: int) -> Tensor:
    """The class that most of the k nearest labelled rows have, the first of equals."""
    said = torch.empty(len(Q), Q.shape[1], dtype=torch.long, device=Q.device)
    for run in range(len(X)):
        labels = codes[run][codes[run] >= 0]
        rows = X[run][codes[run] >= 0].float()
        if len(rows) < k:
            raise DataError(f"k is {k}: 1 to {len(rows)}, the labelled windows, are wanted")
        squares, step = (rows**2).sum(dim=1), max(1, DISTANCES // len(rows))
        for start in range(0, Q.shape[1], step):
            part = Q[run, start : start + step].float()
            near = torch.addmm(squares, part, rows.T, alpha=-2).topk(k, largest=False).indices
            votes = torch.nn.functional.one_hot(labels[near], classes).sum(dim=1)
            said[run, start : start + step] = votes.argmax(dim=1)
    return said


def _judge(
    labels: NDArray[np.int64],
    truth: NDArray[np.int64],
    predicted: NDArray[np.int64],
    converged: bool,
    kind: _Kind,
) -> Scores:
    trained, asked = labels[labels >= 0], truth >= 0
    if not asked.any():
        raise DataError("y_test holds no label: a probe needs labelled windows on both sides")
    found = score(truth[asked], predicted[asked], protocol=kind.protocol(), trained=trained)
    found["n_train"] = float(len(trained))
    found.rows, found.asked = np.flatnonzero(asked), len(truth)
    if not kind.k:
        found["converged"] = float(converged)
    return found
