"""Nearest neighbours of the rows of an array: exact for few rows, approximate for many."""

from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, hstack, issparse
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_array, check_random_state
from sklearn.utils.extmath import row_norms
from threadpoolctl import threadpool_limits

from tvsvm._rows import directions
from tvsvm.neighbors.approximate import approximate_neighbors
from tvsvm.neighbors.exact import exact_cost, exact_neighbors
from tvsvm.neighbors.rows import as_rows
from tvsvm.results import FloatArray, IntArray

# "auto" is exact up to this many multiplications, about two seconds.
EXACT_WORK = 1e11
ALGORITHMS = ("auto", "exact", "approximate")


def nearest_neighbors(
    X: ArrayLike,
    n_neighbors: int,
    *,
    metric: str | Callable[..., float] = "euclidean",
    algorithm: str = "auto",
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    rows: IntArray | None = None,
) -> tuple[IntArray, FloatArray]:
    """Nearest neighbours of each row of X, or of some, among the other rows.

    Parameters
    ----------
    X : array or sparse array of shape (N, d)
        Finite numbers. Computed in float32 where that holds them (float32, float16, integers up
        to 16 bits), else in float64.
    n_neighbors : int
        Neighbours of each row, k < N. A row is not its own neighbour, but a copy of it is.
    metric : str or callable
        "euclidean"; "cosine", half the squared Euclidean distance of the rows at length one, where
        rows of zeros point in one direction of their own, orthogonal to all others; or any metric
        of scikit-learn's `NearestNeighbors`, which searches exactly at any size.
    algorithm : {"auto", "exact", "approximate"}
        "approximate" aims at 0.99 of the true neighbours, estimated on a sample of rows; their
        distances are exact. "auto" is exact while that takes no more than seconds.
    random_state : int, RandomState or None
        Sampling of the approximate search: the same number gives the same neighbours, for every
        `n_jobs`.
    n_jobs : int or None
        Threads, as in joblib.
    rows : array of int of shape (n,), optional
        Numbers of the rows whose neighbours are wanted; "auto" then is exact. None: all rows.

    Returns
    -------
    indices : ndarray of shape (N, k) or (n, k), int32
        From the nearest outwards; the exact search has equal distances in the order of the rows.
    distances : ndarray of the same shape
    """
    checked = _checked(X)
    _check_n_neighbors(n_neighbors, checked.shape[0])
    if algorithm not in ALGORITHMS:
        raise ValueError(
            f"`algorithm` must be one of {', '.join(map(repr, ALGORITHMS))}. "
            f"Got {algorithm!r}; pass one of them."
        )
    if metric not in ("euclidean", "cosine"):
        return _by_scikit_learn(checked, n_neighbors, metric, algorithm, n_jobs, rows)
    data = as_rows(_unit_rows(checked) if metric == "cosine" else checked)
    exact = algorithm == "exact" or (
        algorithm == "auto" and (rows is not None or data.shape[0] * exact_cost(data) <= EXACT_WORK)
    )
    # One thread in BLAS: the threads are ours, and rounding must not depend on their number.
    with threadpool_limits(1):
        if exact:
            indices, distances = exact_neighbors(data, n_neighbors, n_jobs=n_jobs, subset=rows)
        else:
            random = check_random_state(random_state)
            indices, distances = approximate_neighbors(
                data, n_neighbors, random=random, n_jobs=n_jobs
            )
            if rows is not None:
                indices, distances = indices[rows], distances[rows]
    return indices, distances**2 / 2 if metric == "cosine" else distances


def _checked(X: ArrayLike) -> Any:
    """X as a float array or CSR array, in the caller's memory if it can be."""
    array = check_array(X, accept_sparse="csr", dtype="numeric", input_name="X")
    fits_float32 = np.result_type(array.dtype, np.float32) == np.float32
    array = array.astype(np.float32 if fits_float32 else np.float64, copy=False)
    return csr_array(array) if issparse(array) else array


def _check_n_neighbors(n_neighbors: int, n_rows: int) -> None:
    if not isinstance(n_neighbors, Integral) or n_neighbors < 1:
        raise ValueError(
            f"`n_neighbors` must be a positive integer. Got {n_neighbors}; pass e.g. 10."
        )
    if n_neighbors >= n_rows:
        cure = f"pass n_neighbors <= {n_rows - 1}" if n_rows > 1 else "pass at least 2 rows"
        raise ValueError(
            "`n_neighbors` must be smaller than the number of rows. "
            f"Got {n_neighbors} for {n_rows} rows; {cure}."
        )


def _unit_rows(X: Any) -> Any:
    """Rows of length one; where there are rows of zeros, one more column that they point along."""
    units = directions(X)
    zero = row_norms(units) == 0
    if not zero.any():
        return units
    column = zero[:, None].astype(X.dtype)
    if issparse(X):
        return csr_array(hstack([units, csr_array(column)]))
    return np.hstack([units, column])


def _by_scikit_learn(
    X: Any,
    n_neighbors: int,
    metric: str | Callable[..., float],
    algorithm: str,
    n_jobs: int | None,
    rows: IntArray | None,
) -> tuple[IntArray, FloatArray]:
    if algorithm == "approximate":
        raise ValueError(
            "The approximate search knows the metrics 'euclidean' and 'cosine'. "
            f"Got {metric!r}; pass algorithm='exact'."
        )
    search = NearestNeighbors(n_neighbors=n_neighbors, metric=metric, n_jobs=n_jobs).fit(X)
    if rows is None:
        distances, indices = search.kneighbors()
    else:
        distances, indices = search.kneighbors(X[rows], n_neighbors + 1)
        itself = indices == rows[:, None]
        itself[~itself.any(axis=1), -1] = True  # hidden behind copies
        shape = (rows.size, n_neighbors)
        distances, indices = distances[~itself].reshape(shape), indices[~itself].reshape(shape)
    by_distance = np.lexsort((indices, distances), axis=1)
    indices = np.take_along_axis(indices, by_distance, axis=1)
    distances = np.take_along_axis(distances, by_distance, axis=1)
    return indices.astype(np.int32), distances.astype(X.dtype, copy=False)
