"""From windows to expert features: by name or by a function of the user's own, piece by piece."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from expclr.arrays import numbers, positive
from expclr.errors import ConfigError, DataError
from expclr.features import FEATURES
from expclr.features.call import Block, Function, call
from expclr.features.extractor import Extractor, channel_names
from expclr.features.table import features_from_table, is_table
from expclr.windows import Windows, as_windows

__all__ = ["compute", "extract", "features_of", "named", "source_of"]

log = logging.getLogger(__name__)

VALUES = 1 << 17  # of X in one piece: enough to vectorise, little enough for the caches
PIECES = 8  # for each job between two steps of the progress bar


class Source(NamedTuple):
    """What features are computed of."""

    X: NDArray[Any]  # (n, c, t)
    lengths: NDArray[np.int64]  # (n,)
    sfreq: float
    channels: tuple[str, ...]


class Computed(NamedTuple):
    """Features, their names, and how many windows miss each."""

    F: NDArray[np.float64]
    names: tuple[str, ...]
    missing: dict[str, int]


def extract(
    extractor: Any, X: Any, sfreq: float | None = None, *, n_jobs: int | None = 1
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Compute expert features of windows.

    Parameters
    ----------
    extractor : str, callable or table
        A key of ``FEATURES``; a function f(x, sfreq) -> (n, d) of x (n, c, t), called with some
        windows at a time, or its ``"module:function"``, which may return a DataFrame to name
        its columns; or a DataFrame or a .csv, .tsv or .parquet file that holds the features
        (see :func:`features_from_table`).
    X : array (n, c, t) or (n, t), list of (c, t_i), or Windows
        May be memory-mapped: only a piece of it is in memory at a time.
    sfreq : float, optional
        Sampling frequency in Hz; Windows may know it.
    n_jobs : int or None
        Pieces computed at the same time, by joblib: -1 for all cores, None for what
        ``joblib.parallel_config`` says, which also chooses the backend.

    Returns
    -------
    F : array (n, d), float64
        NaN where a feature of a window is not defined.
    names : tuple of str

    Examples
    --------
    >>> F, names = extract("basic", np.random.default_rng(0).normal(size=(10, 2, 500)), 100.0)
    >>> len(F), names[:2]
    (10, ('ch0_mean', 'ch0_std'))
    >>> extract(lambda x, sfreq: np.ptp(x, axis=2), np.eye(4)[:, None], 100.0)[0].ravel().tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    if is_table(extractor):
        return features_from_table(extractor, len(X))
    name, function = named(extractor)
    made = compute(name, function, source_of(X, sfreq), np.empty, n_jobs=n_jobs)
    return made.F, made.names


def features_of(windows: Windows, extractor: str | Function, *, n_jobs: int | None = 1) -> Windows:
    """The same windows with these features as F, and their names.

    Examples
    --------
    >>> features_of(Windows(np.eye(8)[:, None], sfreq=50.0), lambda x, sfreq: x.max(axis=2))
    Windows(8 windows, 1 channels x 8 timepoints, 1 features)
    """
    F, names = extract(extractor, windows, n_jobs=n_jobs)
    return windows.with_(F=F, feature_names=names)


def named(extractor: Any) -> tuple[str, Function]:
    """The function to call and the name to call it by."""
    function = FEATURES[extractor] if isinstance(extractor, str) else extractor
    given = extractor if isinstance(extractor, str) else None
    name = given or getattr(function, "name", None) or getattr(function, "__name__", "extractor")
    if not callable(function):
        raise ConfigError(f"feature extractor {name!r} is {function!r}: a function is wanted")
    return str(name), function


def source_of(X: Any, sfreq: float | None = None) -> Source:
    """The array as it is, double precision kept and nothing read; lists are padded."""
    if isinstance(X, list | tuple):
        X = as_windows(X)
    if isinstance(X, Windows):
        values, lengths, channels = X.X, X.lengths, X.channel_names
        sfreq = X.sfreq if sfreq is None else sfreq
    else:
        values, lengths, channels = numbers(X, "X"), None, ()
        values = values[:, None] if values.ndim == 2 else values
    if values.ndim != 3 or 0 in values.shape:
        raise DataError(
            f"X has shape {values.shape}: (n, c, t) or (n, t) is wanted, none of them 0"
        )
    if sfreq is None:
        raise DataError("the sampling frequency is not known: give sfreq= in Hz")
    if lengths is None:
        lengths = np.full(len(values), values.shape[2])
    names = channel_names(channels or values.shape[1])
    return Source(values, lengths, positive(sfreq, "sfreq"), names)


def compute(
    name: str,
    function: Function,
    source: Source,
    make: Callable[[tuple[int, int]], NDArray[np.float64]],
    *,
    n_jobs: int | None = 1,
) -> Computed:
    """Features, in the array (n, d) that ``make`` makes once d is known."""
    _check(name, function, source)
    F: NDArray[np.float64] | None = None
    lacking = 0
    for block in _blocks(name, function, source, n_jobs):
        if F is None:
            names = _names(name, function, source, block)
            F, missing = make((len(source.X), len(names))), np.zeros(len(names), int)
        if block.F.shape[1] != len(names) or block.columns not in (None, names):
            raise DataError(
                f"feature extractor {name!r} made {block.F.shape[1]} columns of window "
                f"{block.rows[0]} and {len(names)} of the first: the same are wanted of each"
            )
        F[block.rows] = block.F
        missing += np.isnan(block.F).sum(axis=0)
        lacking += int(np.isnan(block.F).any(axis=1).sum())
    assert F is not None  # a source has at least one window
    counts = {name: int(count) for name, count in zip(names, missing, strict=True) if count}
    _report(name, function, F.shape, counts, lacking)
    return Computed(F, names, counts)


def _check(name: str, function: Function, source: Source) -> None:
    if isinstance(function, Extractor):
        c = source.X.shape[1]
        for length in np.unique(source.lengths):
            for line in function.check(c, int(length), source.sfreq):
                log.warning("%s: %s", name, line)


def _blocks(name: str, function: Function, source: Source, n_jobs: int | None) -> Iterator[Block]:
    from joblib import Parallel, delayed, effective_n_jobs
    from tqdm import tqdm

    if n_jobs == 0:
        raise ConfigError("n_jobs is 0: give a number of jobs, or -1 for all cores")
    pieces = list(_pieces(source))
    step = PIECES * effective_n_jobs(n_jobs)
    bar = tqdm(total=len(source.X), desc=name, unit="window", disable=None, delay=2)
    # NumPy works without the lock that threads share; a user's function may not.
    prefer = "threads" if isinstance(function, Extractor) else None
    with bar, Parallel(n_jobs=n_jobs, prefer=prefer) as parallel:
        for first in range(0, len(pieces), step):
            for block in parallel(
                delayed(call)(name, function, _cut(source, rows), source.sfreq, rows)
                for rows in pieces[first : first + step]
            ):
                yield block
                bar.update(len(block.rows))


def _pieces(source: Source) -> Iterator[NDArray[np.int64]]:
    """Numbers of windows of one length, as many as make up a piece."""
    c = source.X.shape[1]
    for length in np.unique(source.lengths):
        rows = np.flatnonzero(source.lengths == length)
        size = max(1, VALUES // (c * int(length)))
        yield from (rows[first : first + size] for first in range(0, len(rows), size))


def _cut(source: Source, rows: NDArray[np.int64]) -> NDArray[Any]:
    together = rows[-1] - rows[0] + 1 == len(rows)  # then a view: a memory-mapped X is not read
    X = source.X[rows[0] : rows[-1] + 1] if together else source.X[rows]
    return X[..., : source.lengths[rows[0]]]


def _names(name: str, function: Function, source: Source, block: Block) -> tuple[str, ...]:
    if isinstance(function, Extractor):
        return function.names(source.channels)
    stem = name.rpartition(":")[2].strip("<>")
    return block.columns or tuple(f"{stem}_{j}" for j in range(block.F.shape[1]))


def _report(
    name: str, function: Function, shape: tuple[int, ...], missing: dict[str, int], lacking: int
) -> None:
    n, d = shape
    if not isinstance(function, Extractor) and list(missing.values()) == [n] * d:
        raise DataError(f"feature extractor {name!r} made NaN only, in windows 0 to {n - 1}")
    if missing:
        most = sorted(missing, key=lambda column: -missing[column])[:5]
        log.warning(
            "%s: %d of %d windows lack some of the %d features (NaN), most of all %s",
            *(name, lacking, n, d),
            ", ".join(f"{column} ({missing[column]})" for column in most),
        )
