"""Loops over nodes and edges: halves of an order, edge list, differences, energies, agreement."""

import numpy as np

from tvsvm._jit import kernel
from tvsvm.results import BoolArray, FloatArray, IntArray

# An edge between the halves takes about twice the time of one inside.
LATE = 2


@kernel
def smoothed(indptr: IntArray, indices: IntArray, order: IntArray, sweeps: int) -> FloatArray:
    """Positions in `order`, replaced by the means over their neighbours again and again."""
    values = np.empty(order.size, np.float32)
    for p in range(order.size):
        values[order[p]] = p / order.size
    for _ in range(sweeps):
        for p in range(order.size):
            u = order[p]
            total = np.float32(0.0)
            for e in range(indptr[u], indptr[u + 1]):
                total += values[indices[e]]
            if indptr[u] < indptr[u + 1]:
                values[u] = total / np.float32(indptr[u + 1] - indptr[u])
    return values


@kernel
def crossing(indptr: IntArray, heads: IntArray, middle: int) -> IntArray:
    """First edge of each position before `middle` that leads behind it, or the end of its edges."""
    first = np.empty(middle, np.int64)
    for p in range(middle):
        e = indptr[p + 1]
        while e > indptr[p] and heads[e - 1] >= middle:
            e -= 1
        first[p] = e
    return first


@kernel
def late(indptr: IntArray, heads: IntArray, crossing: IntArray) -> BoolArray:
    """Positions behind the middle whose edges touch no node that an edge from before it leads to.

    The last ones, with about as much work as the edges between the halves.
    """
    middle = crossing.size
    reached = np.zeros(indptr.size - 1 - middle, np.bool_)
    wanted = 0
    for p in range(middle):
        for e in range(crossing[p], indptr[p + 1]):
            reached[heads[e] - middle] = True
            wanted += LATE
    out = np.zeros_like(reached)
    for q in range(out.size - 1, -1, -1):
        if wanted <= 0:
            break
        apart = not reached[q]
        for e in range(indptr[middle + q], indptr[middle + q + 1]):
            apart = apart and not reached[heads[e] - middle]
        if apart:
            out[q] = True
            wanted -= indptr[middle + q + 1] - indptr[middle + q]
    return out


@kernel
def upper_edges(
    indptr: IntArray, indices: IntArray, data: FloatArray, order: IntArray
) -> tuple[IntArray, IntArray, FloatArray]:
    """Each undirected edge once, as (indptr, heads, weights) over positions in `order`."""
    n_nodes = order.size
    position = np.empty(n_nodes, np.int32)
    for p in range(n_nodes):
        position[order[p]] = p
    start = np.zeros(n_nodes + 1, np.int64)
    for p in range(n_nodes):
        u = order[p]
        start[p + 1] = start[p]
        for e in range(indptr[u], indptr[u + 1]):
            if position[indices[e]] > p:
                start[p + 1] += 1
    heads = np.empty(start[n_nodes], np.int32)
    weights = np.empty(start[n_nodes], data.dtype)
    fill = start[:-1].copy()
    # Walking the heads upwards leaves every list of heads sorted.
    for q in range(n_nodes):
        u = order[q]
        for e in range(indptr[u], indptr[u + 1]):
            p = position[indices[e]]
            if p < q:
                heads[fill[p]] = q
                weights[fill[p]] = data[e]
                fill[p] += 1
    return start, heads, weights


@kernel
def endpoints(indptr: IntArray, heads: IntArray, order: IntArray) -> IntArray:
    """Node numbers at both ends of each edge."""
    edges = np.empty((heads.size, 2), np.int32)
    for p in range(order.size):
        for e in range(indptr[p], indptr[p + 1]):
            edges[e, 0] = order[p]
            edges[e, 1] = order[heads[e]]
    return edges


@kernel
def total_variation(edges: IntArray, weights: FloatArray, F: FloatArray) -> FloatArray:
    """Σ_e w_e |f_i - f_j| for every column of F, summed in double precision."""
    total = np.zeros(F.shape[1])
    for e in range(weights.size):
        i = edges[e, 0]
        j = edges[e, 1]
        for k in range(F.shape[1]):
            total[k] += weights[e] * abs(np.float64(F[i, k]) - F[j, k])
    return total


@kernel
def dirichlet(edges: IntArray, weights: FloatArray, F: FloatArray) -> FloatArray:
    """Σ_e w_e (f_i - f_j)² for every column of F, summed in double precision."""
    total = np.zeros(F.shape[1])
    for e in range(weights.size):
        i = edges[e, 0]
        j = edges[e, 1]
        for k in range(F.shape[1]):
            step = np.float64(F[i, k]) - F[j, k]
            total[k] += weights[e] * step * step
    return total


@kernel
def difference(edges: IntArray, F: FloatArray) -> FloatArray:
    """f_i - f_j along every edge."""
    out = np.empty((edges.shape[0], F.shape[1]), F.dtype)
    for e in range(edges.shape[0]):
        i = edges[e, 0]
        j = edges[e, 1]
        for k in range(F.shape[1]):
            out[e, k] = F[i, k] - F[j, k]
    return out


@kernel
def difference_adjoint(edges: IntArray, P: FloatArray, n_nodes: int) -> FloatArray:
    """Σ of P over the edges that leave a node minus those that enter it."""
    out = np.zeros((n_nodes, P.shape[1]), P.dtype)
    for e in range(edges.shape[0]):
        i = edges[e, 0]
        j = edges[e, 1]
        for k in range(P.shape[1]):
            out[i, k] += P[e, k]
            out[j, k] -= P[e, k]
    return out


@kernel
def strongest(indptr: IntArray, indices: IntArray, weights: FloatArray) -> IntArray:
    """Node at the other end of the heaviest edge of each node, the first of equals; else itself."""
    out = np.arange(indptr.size - 1)
    for i in range(out.size):
        heaviest = weights.dtype.type(0.0)
        for e in range(indptr[i], indptr[i + 1]):
            if weights[e] > heaviest:
                heaviest = weights[e]
                out[i] = indices[e]
    return out


@kernel
def agreement(indptr: IntArray, indices: IntArray, weights: FloatArray, own: float) -> FloatArray:
    """Cosine between the rows at both ends of each entry, all with `own` on their diagonal.

    The entries are symmetric. Of two rows the shorter one is gone through, so that a hub costs no
    more than its edges.
    """
    n_nodes = indptr.size - 1
    norm = np.empty(n_nodes)
    for i in range(n_nodes):
        squares = own * own
        for e in range(indptr[i], indptr[i + 1]):
            squares += weights[e] * weights[e]
        norm[i] = np.sqrt(squares)
    out = np.empty(weights.size)
    row = np.zeros(n_nodes)
    for i in range(n_nodes):
        row[i] = own
        for e in range(indptr[i], indptr[i + 1]):
            row[indices[e]] = weights[e]
        length = indptr[i + 1] - indptr[i]
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            other = indptr[j + 1] - indptr[j]
            if other > length or (other == length and j > i):
                continue
            product = own * weights[e]
            back = e
            for t in range(indptr[j], indptr[j + 1]):
                product += row[indices[t]] * weights[t]
                if indices[t] == i:
                    back = t
            out[e] = out[back] = product / (norm[i] * norm[j])
        row[i] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            row[indices[e]] = 0.0
    return out
