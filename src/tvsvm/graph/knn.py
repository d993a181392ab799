"""The graph of nearest neighbours of the rows of a data matrix."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse

from tvsvm.graph.bridges import bridged
from tvsvm.graph.core import Graph
from tvsvm.graph.weights import Weights
from tvsvm.neighbors import nearest_neighbors
from tvsvm.results import FloatArray

SAMPLE = 500  # rows that tell how all of them spread
TINY = np.finfo(np.float64).tiny


def knn_graph(
    X: ArrayLike,
    *,
    n_neighbors: int = 10,
    metric: str | Callable[..., float] = "euclidean",
    weights: Weights = "density",
    symmetrize: str = "mean",
    bridges: bool = False,
    algorithm: str = "auto",
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> Graph:
    """Graph that joins each row to its nearest neighbours.

    Parameters
    ----------
    X : array or sparse array of shape (N, d)
        Finite numbers; float32 gives a float32 graph.
    n_neighbors : int
        Neighbours of each row, k < N.
    metric, algorithm, random_state, n_jobs
        As in `tvsvm.neighbors.nearest_neighbors`.
    weights : {"density", "gaussian", "selftuning", "uniform", "distance"} or callable
        With d_ij the distance from i to its neighbour j and d_k(i) to its last one:
        "density" the next one times (m / √(d_k(i) d_k(j)))^p, with m the median of d_k: in few
        dimensions a cut through dense places costs more than one between them. p is 3 where the
        rows have up to two dimensions and falls to 0 in eight: those that they fill, estimated
        from distances, or that they spread in, by their covariance, whichever are more;
        "gaussian" exp(-4 d_ij² / d_k(i)²), at least e⁻⁴;
        "selftuning" exp(-d_ij² / (d_k(i) d_k(j))), at least machine epsilon;
        "uniform" 1;
        "distance" 1 / d_ij, where a copy counts as near as the nearest row that is not a copy;
        or a function from the (N, k) distances, nearest first, to as many weights ≥ 0.
        All but "distance" and a callable do not depend on the unit of X, and none lets an edge
        vanish.
    symmetrize : {"mean", "max", "mutual"}
        "mean" (W + Wᵀ)/2; "max" the larger of w_ij and w_ji; "mutual" the smaller, which keeps an
        edge only if both rows have each other as neighbours.
    bridges : bool
        Whether groups of at most 3k rows, and a tenth of all, that are hardly linked to others are
        linked to the nearest rows around them, by a hundredth of their weight. Components stay.

    Notes
    -----
    Copies of a row are neighbours at distance 0. More than k of them have no other neighbours and
    can become a component of their own.

    Examples
    --------
    >>> from tvsvm.graph import knn_graph
    >>> knn_graph([[0.0], [1.0], [3.0], [4.0]], n_neighbors=1).component_labels
    array([0, 0, 1, 1], dtype=int32)
    """
    if bridges and issparse(X) and isinstance(metric, str) and metric == "precomputed":
        raise ValueError(
            "`bridges` asks for distances between any two rows. Got a sparse matrix of some; pass "
            "bridges=False, or a dense matrix."
        )
    search = partial(nearest_neighbors, X, metric=metric, n_jobs=n_jobs)
    indices, distances = search(n_neighbors, algorithm=algorithm, random_state=random_state)
    n_rows = len(indices)
    indptr = np.arange(0, indices.size + 1, n_neighbors)
    directed = csr_array((distances.ravel(), indices.ravel(), indptr), shape=(n_rows, n_rows))
    dense = weights == "density"
    graph = Graph.from_distances(
        directed, weights="gaussian" if dense else weights, symmetrize=symmetrize
    )
    if bridges:
        graph = bridged(graph, n_neighbors, lambda rows, n: search(n, rows=rows)[0])
    if not dense:
        return graph
    # After the links: with the density, whatever is dense seems to be hardly linked.
    directed.data = _lengths(directed.data, metric)
    return graph.where_dense(directed, dimension=_spread(X, metric))


def _lengths(distances: FloatArray, metric: str | Callable[..., float]) -> FloatArray:
    """Distances that grow like lengths: these grow like squares of such."""
    squares = isinstance(metric, str) and metric in ("cosine", "correlation", "sqeuclidean")
    return np.sqrt(distances) if squares else distances


def _spread(X: ArrayLike, metric: str | Callable[..., float]) -> float:
    """In how many directions the rows spread: (tr C)² / tr C² of their covariance C, by a sample.

    For other distances than Euclidean that of points with these distances.
    """
    precomputed = isinstance(metric, str) and metric == "precomputed"
    if issparse(X) and precomputed:
        return 0.0  # only some distances are known
    rows = csr_array(X) if issparse(X) else np.asarray(X)
    sample = np.unique(np.linspace(0, rows.shape[0] - 1, SAMPLE).astype(int))
    part = rows[sample][:, sample] if precomputed else rows[sample]
    n = sample.size
    indices, distances = nearest_neighbors(part, n - 1, metric=metric, algorithm="exact")
    lengths = _lengths(distances, metric).astype(np.float64, copy=False)
    squares = np.zeros((n, n))
    squares[np.arange(n)[:, None], indices] = (lengths / max(lengths.max(initial=0.0), TINY)) ** 2
    # Products of the points from their centre; of different ones only, as these are unbiased.
    mean = squares.mean(axis=0)
    products = 0.5 * (mean + mean[:, None] - mean.mean() - squares)
    total = np.trace(products) / n
    np.fill_diagonal(products, 0.0)
    return float(total**2 / max(np.sum(products**2) / (n * (n - 1)), TINY))
