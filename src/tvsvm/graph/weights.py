"""From distances to weights, and from directed to undirected: the choices of a neighbour graph."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from tvsvm.graph import kernels
from tvsvm.graph.checks import checked_csr, row_numbers
from tvsvm.results import FloatArray

# Power of 1 / d_k for `density` in up to two dimensions, falling to none in eight. In the plane
# cuts then cost as in a graph of one radius, the density squared, not its root. In many dimensions
# d_k says little about density: USPS {4, 9} lost 0.1 points even by a power of 0.1.
PLANE_POWER, MANY_DIMENSIONS = 3.0, 8.0
MOST = 3.0  # natural logarithm of the largest factor of an end: no edge vanishes
DENSE = 0.2  # share of all pairs of rows that have an entry, from which on dense arrays are faster

Weights = str | Callable[[FloatArray], FloatArray]


def affinity_from_distances(distances: csr_array, weights: Weights) -> csr_array:
    """Directed affinity with the entries of `distances`, a CSR array without diagonal."""
    if callable(weights):
        data = _weights_by_rows(distances, weights)
    else:
        data = _choice(WEIGHTS, weights, "weights")(distances)
    affinity = csr_array((data, distances.indices, distances.indptr), shape=distances.shape)
    return checked_csr(affinity, "weights")


def symmetrized(affinity: csr_array, symmetrize: str) -> csr_array:
    """Symmetric affinity of a directed one."""
    return csr_array(_choice(SYMMETRIZE, symmetrize, "symmetrize")(affinity))


def _choice(options: dict[str, Any], name: str, parameter: str) -> Any:
    if name not in options:
        raise ValueError(
            f"`{parameter}` must be one of {', '.join(map(repr, options))}"
            f"{' or a callable' if parameter == 'weights' else ''}. Got {name!r}; pass one of them."
        )
    return options[name]


def _local_scale(distances: csr_array) -> FloatArray:
    """d_k(i), the distance from each row to the farthest of its neighbours."""
    return distances.max(axis=1).toarray().ravel()


def _ratio(distances: FloatArray, scale: FloatArray) -> FloatArray:
    """distances / scale, where a zero distance (a copy) counts 0 whatever the scale."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.divide(distances, scale, out=np.zeros_like(distances), where=distances > 0)


def gaussian(distances: csr_array) -> FloatArray:
    """exp(-4 d_ij² / d_k(i)²): from e⁻⁴ for the farthest neighbour of i to 1 for a copy."""
    scale = _local_scale(distances)[row_numbers(distances)]
    return np.exp(-4 * _ratio(distances.data, scale) ** 2)


def heavier_where_dense(
    affinity: csr_array, distances: csr_array, dimension: float = 0.0
) -> csr_array:
    """Affinity times (m / √(d_k(i) d_k(j)))^p with m the median of d_k: "density".

    The neighbours of a row are as many, and by "gaussian" as heavy, in dense places as in empty
    ones: in few dimensions a cut through the middle of a cluster then costs hardly more than one
    between two. p is 3 in up to two dimensions and falls to 0 in eight; these are the dimensions
    that the rows fill, or `dimension` if that is more: in thin sheets far from each other, such as
    views of things from all sides, one being denser than another says nothing about cuts.
    """
    scale = _local_scale(distances)
    positive = scale[scale > 0]
    if positive.size == 0:
        return affinity
    dimension = max(_dimension(distances, scale), dimension)
    few = (MANY_DIMENSIONS - dimension) / (MANY_DIMENSIONS - 2)
    power = PLANE_POWER * min(max(few, 0.0), 1.0)
    # Copies have no scale; they are where it is densest.
    relative = np.maximum(scale, positive.min()) / np.median(positive)
    factor = np.exp(np.clip(-power / 2 * np.log(relative), -MOST, MOST))
    data = affinity.data * factor[affinity.indices] * factor[row_numbers(affinity)]
    data = data.astype(affinity.dtype, copy=False)
    return csr_array((data, affinity.indices, affinity.indptr), shape=affinity.shape)


def agreement(affinity: csr_array) -> FloatArray:
    """Cosine between the rows at both ends of each entry of a symmetric affinity.

    Every row counts as its own neighbour, with a weight of the mean degree.
    """
    n = affinity.shape[0]
    own = float(affinity.data.sum()) / n
    if affinity.nnz <= DENSE * n**2:
        return kernels.agreement(affinity.indptr, affinity.indices, affinity.data, own)
    rows = affinity.toarray()
    np.fill_diagonal(rows, own)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray((rows @ rows.T)[row_numbers(affinity), affinity.indices])


def _dimension(distances: csr_array, scale: FloatArray) -> float:
    """How many dimensions the rows fill: maximum likelihood from distances (Levina, Bickel)."""
    farthest = scale[row_numbers(distances)]
    inner = (distances.data > 0) & (distances.data < farthest)
    if not inner.any():
        return np.inf
    return float(1 / np.mean(np.log(farthest[inner]) - np.log(distances.data[inner])))


def selftuning(distances: csr_array) -> FloatArray:
    """exp(-d_ij² / (d_k(i) d_k(j))), at least machine epsilon so that no edge vanishes."""
    scale = _local_scale(distances)
    from_head = _ratio(distances.data, scale[distances.indices])
    from_tail = _ratio(distances.data, scale[row_numbers(distances)])
    with np.errstate(over="ignore", under="ignore"):
        weights = np.exp(-from_head * from_tail)
    return np.maximum(weights, np.finfo(weights.dtype).eps)


def uniform(distances: csr_array) -> FloatArray:
    """1 for every neighbour."""
    return np.ones_like(distances.data)


def inverse_distance(distances: csr_array) -> FloatArray:
    """1 / d_ij, where a copy counts as near as the nearest neighbour that is not a copy."""
    positive = distances.data[distances.data > 0]
    if positive.size == 0:
        return np.ones_like(distances.data)
    with np.errstate(over="ignore"):  # infinite weights are refused with a message
        return 1 / np.maximum(distances.data, positive.min())


def _weights_by_rows(
    distances: csr_array, weights: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Apply `weights` to the (N, k) distances, each row from its nearest neighbour outwards."""
    counts = np.diff(distances.indptr)
    if counts.min() != counts.max():
        raise ValueError(
            "A callable `weights` needs the same number of neighbours in every row. Got between "
            f"{counts.min()} and {counts.max()}; pass your affinity to Graph.from_directed."
        )
    table = distances.data.reshape(len(counts), counts[0])
    nearest_first = np.argsort(table, axis=1, kind="stable")
    values = np.asarray(weights(np.take_along_axis(table, nearest_first, axis=1)))
    if values.shape != table.shape:
        raise ValueError(
            f"A callable `weights` must return one weight a distance. Got shape {values.shape} "
            f"for {table.shape}; return an array like the one it is given."
        )
    result = np.empty(table.shape, dtype=values.dtype)
    np.put_along_axis(result, nearest_first, values, axis=1)
    return result.ravel()


WEIGHTS: dict[str, Callable[[csr_array], FloatArray]] = {
    "density": gaussian,  # made heavier where it is dense once the graph is undirected
    "gaussian": gaussian,
    "selftuning": selftuning,
    "uniform": uniform,
    "distance": inverse_distance,
}

SYMMETRIZE: dict[str, Callable[[csr_array], csr_array]] = {
    "mean": lambda W: (W + W.T) * 0.5,
    "max": lambda W: W.maximum(W.T),
    "mutual": lambda W: W.minimum(W.T),
}
