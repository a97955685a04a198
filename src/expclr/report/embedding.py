"""An EmbeddingMap from an embedding and its windows."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import ArrayLike, NDArray

from expclr.errors import DataError
from expclr.report.maps import EmbeddingMap, Projection
from expclr.report.waveforms import Waveforms
from expclr.windows import Windows

__all__ = ["embedding_map"]

_log = logging.getLogger(__name__)


def embedding_map(
    Z: ArrayLike,
    windows: Windows,
    *,
    title: str = "Map of the embedding",
    max_points: int = 800,
    n_neighbours: int = 5,
    random_state: int = 0,
) -> EmbeddingMap:
    """Draw windows by their embedding, with waveforms, features and nearest neighbours.

    Parameters
    ----------
    Z : array (n, e)
        Embedding of the windows.
    windows : Windows
        The n windows, with whatever is known about them.
    title : str
        Heading of the section.
    max_points : int
        Of more windows than this a random part is shown.
    n_neighbours : int
        How many neighbours each point has: the nearest of the shown points by Euclidean
        distance in all e dimensions.
    random_state : int
        Of the random part and of t-SNE.

    Returns
    -------
    EmbeddingMap
        Projected by PCA and, from 10 points on, by t-SNE.

    Examples
    --------
    >>> import numpy as np
    >>> windows = Windows(np.zeros((4, 1, 8)), y=[0, 0, 1, 1])
    >>> shown = embedding_map([[0, 0], [0, 1], [5, 0], [5, 1.5]], windows, n_neighbours=1)
    >>> shown.neighbours.ravel().tolist(), [p.name for p in shown.projections]
    ([1, 0, 3, 2], ['PCA'])
    """
    Z = _checked(Z, windows)
    chosen = _draw(len(Z), max_points, random_state)
    Z, part = Z[chosen], windows.subset(chosen)
    neighbours, distances, typical = _neighbours(Z, n_neighbours)
    return EmbeddingMap(
        title,
        [_pca(Z), *_tsne(Z, random_state)],
        caption=_caption(len(Z), len(windows)),
        classes=part.y,
        class_names=part.class_names,
        features=part.F,
        feature_names=part.feature_names,
        waveforms=Waveforms.of(part),
        neighbours=neighbours,
        distances=distances,
        typical_distance=typical,
        group=part.group,
        numbers=chosen,
    )


def _checked(Z: ArrayLike, windows: Windows) -> NDArray[np.float64]:
    array = np.asarray(Z, dtype=np.float64)
    if array.ndim != 2 or len(array) != len(windows) or not array.size:
        raise DataError(
            f"Z has shape {array.shape} for {len(windows)} windows: ({len(windows)}, e) is wanted"
        )
    if not np.isfinite(array).all():
        bad = int((~np.isfinite(array).all(axis=1)).sum())
        raise DataError(f"Z holds NaN or inf in {bad} rows: leave those windows out")
    return array


def _draw(n: int, max_points: int, random_state: int) -> NDArray[np.int64]:
    if n <= max_points:
        return np.arange(n)
    return np.sort(np.random.default_rng(random_state).choice(n, max_points, replace=False))


def _neighbours(
    Z: NDArray[np.float64], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], float]:
    """Each point's k nearest, their distances, and the median distance of two points."""
    from scipy.spatial.distance import cdist

    distances = cdist(Z, Z)
    typical = float(np.median(distances[np.triu_indices(len(Z), 1)])) if len(Z) > 1 else 0.0
    np.fill_diagonal(distances, np.inf)
    nearest = distances.argsort(axis=1, kind="stable")[:, : min(k, len(Z) - 1)]
    return nearest, np.take_along_axis(distances, nearest, axis=1), typical


def _pca(Z: NDArray[np.float64]) -> Projection:
    # The singular vectors' signs are fixed, so that the same Z gives the same picture.
    centred = Z - Z.mean(axis=0)
    left, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    largest = np.abs(axes).argmax(axis=1)
    signs = np.where(axes[np.arange(len(axes)), largest] < 0, -1.0, 1.0)
    points = np.zeros((len(Z), 2))
    points[:, : len(sizes[:2])] = (left * sizes * signs)[:, :2]
    total = (sizes**2).sum()
    share = (sizes[:2] ** 2).sum() / total if total > 0 else 1.0
    note = f"PCA: the two directions of most variance; they hold {100 * share:.0f} % of it."
    return Projection("PCA", points, note)


def _tsne(Z: NDArray[np.float64], random_state: int) -> list[Projection]:
    """T-SNE from 10 different points on: below that it shows nothing that PCA does not."""
    if len(np.unique(Z, axis=0)) < 10 or Z.shape[1] < 2:
        return []
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    _log.info("t-SNE of %d points", len(Z))
    perplexity = min(30.0, (len(Z) - 1) / 3)
    tsne = TSNE(2, perplexity=perplexity, init="pca", random_state=random_state)
    # With several threads the sums, and after 1000 steps the picture, differ from run to run.
    with threadpool_limits(1):
        points = tsne.fit_transform(Z)
    return [
        Projection(
            "t-SNE",
            points,
            "t-SNE: keeps near windows near; the sizes of the groups and the gaps between them "
            "mean little.",
        )
    ]


def _caption(shown: int, n: int) -> str:
    part = f"{shown} windows" if shown == n else f"{shown} of {n} windows, drawn at random"
    return (
        f"One mark for each of {part}: near marks are windows that the encoder finds alike. "
        "Nearest neighbours are the nearest of the shown windows by Euclidean distance in the "
        "whole embedding, not in this picture; the typical distance is the median of all pairs."
    )
