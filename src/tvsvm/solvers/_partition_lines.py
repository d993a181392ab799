"""Loops that divide classes: their subgraph, its eigenvectors, the best place to cut along them.

Graphs are compressed rows as in `_partition_kernels`; that of some classes, their inside, has nodes
of its own numbers, and `outer`, the weight of the edges from each of them to every other class.
"""

import numpy as np

from tvsvm._jit import kernel
from tvsvm.results import BoolArray, FloatArray, IntArray


@kernel
def inside_of(
    indptr: IntArray,
    indices: IntArray,
    weights: FloatArray,
    part: IntArray,
    chosen: BoolArray,
) -> tuple[IntArray, IntArray, IntArray, FloatArray, FloatArray]:
    """Nodes of the chosen classes; indptr, indices and weights of their inside; outer."""
    n, c = part.size, chosen.size
    number = np.full(n, -1, dtype=np.int64)
    count, n_edges = 0, np.int64(0)
    for i in range(n):
        if chosen[part[i]]:
            number[i] = count
            count += 1
            n_edges += np.int64(indptr[i + 1] - indptr[i])
    nodes = np.empty(count, dtype=np.int64)
    new_indptr = np.zeros(count + 1, dtype=np.uint64)
    new_indices = np.empty(n_edges, dtype=np.uint32)
    new_weights = np.empty(n_edges)
    outer = np.zeros((count, c))
    filled = 0
    for i in range(n):
        node = number[i]
        if node < 0:
            continue
        nodes[node] = i
        for e in range(indptr[i], indptr[i + 1]):
            other = number[indices[e]]
            if other >= 0:
                new_indices[filled] = other
                new_weights[filled] = weights[e]
                filled += 1
            else:
                outer[node, part[indices[e]]] += weights[e]
        new_indptr[node + 1] = filled
    return nodes, new_indptr, new_indices[:filled], new_weights[:filled], outer


@kernel
def normalised(
    indptr: IntArray, indices: IntArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Weights w_ij / √(d_i d_j), and 1/√d; stray nodes have 1."""
    n = indptr.size - 1
    scale = np.empty(n)
    for i in range(n):
        degree = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            degree += weights[e]
        scale[i] = 1 / np.sqrt(degree) if degree > 0 else 1.0
    scaled = np.empty_like(weights)
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            scaled[e] = weights[e] * scale[i] * scale[indices[e]]
    return scaled, scale


@kernel
def lanczos(
    indptr: IntArray,
    indices: IntArray,
    weights: FloatArray,
    Q: FloatArray,
    alpha: FloatArray,
    beta: FloatArray,
    begin: int,
    end: int,
) -> int:
    """Rows begin + 1 to end of an orthonormal Krylov basis Q, in place; how many rows there are.

    Fewer where the space is exhausted. A Q Qᵀ is tridiagonal, alpha on its diagonal and beta next
    to it. Each row is made orthogonal to all before, as otherwise vectors found come back.
    """
    n = Q.shape[1]
    for k in range(begin, end):
        q, new = Q[k], Q[k + 1]
        for i in range(n):
            value = 0.0
            for e in range(indptr[i], indptr[i + 1]):
                value += weights[e] * q[indices[e]]
            new[i] = value
        for j in range(k, -1, -1):
            row = Q[j]
            product = np.dot(row, new)
            if j == k:
                alpha[k] = product
            for i in range(n):
                new[i] -= product * row[i]
        beta[k] = np.sqrt(np.dot(new, new))
        if beta[k] < 1e-12:
            return k + 1
        for i in range(n):
            new[i] /= beta[k]
    return end + 1


@kernel
def _crossing(
    order: IntArray, indptr: IntArray, indices: IntArray, weights: FloatArray
) -> FloatArray:
    """Weight of the edges between the first nodes of an order and the others, at every place."""
    n = order.size
    place = np.empty(n, dtype=np.int64)
    for k in range(n):
        place[order[k]] = k
    crossing = np.zeros(n)
    for k in range(n):
        i = order[k]
        change = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            # An edge is cut from its first node up to its last.
            if k < place[indices[e]]:
                change += weights[e]
            else:
                change -= weights[e]
        crossing[k] = (crossing[k - 1] if k > 0 else 0.0) + change
    return crossing


@kernel
def best_division(
    order: IntArray,
    indptr: IntArray,
    indices: IntArray,
    weights: FloatArray,
    sizes: FloatArray,
    outer: FloatArray,
    total: float,
    c: int,
    smallest: float,
) -> tuple[int, float]:
    """Last place of the left one of two classes of lowest energy, and the energy.

    Neither class is smaller than a share of both; infinite if there are none such.
    """
    n = order.size
    crossing = _crossing(order, indptr, indices, weights)
    links = np.zeros(n)
    both, all_links = 0.0, 0.0
    for i in range(n):
        for k in range(outer.shape[1]):
            links[i] += outer[i, k]
        both += sizes[i]
        all_links += links[i]
    best, lowest = 0, np.inf
    left, left_links = 0.0, 0.0
    for place in range(n - 1):
        left += sizes[order[place]]
        left_links += links[order[place]]
        right = both - left
        if min(left, right) < smallest * both:
            continue
        energy = (crossing[place] + left_links) / min((c - 1) * left, total - left) + (
            crossing[place] + all_links - left_links
        ) / min((c - 1) * right, total - right)
        if energy < lowest:
            best, lowest = place, energy
    return best, lowest


@kernel
def best_gifts(
    order: IntArray,
    indptr: IntArray,
    indices: IntArray,
    weights: FloatArray,
    sizes: FloatArray,
    outer: FloatArray,
    held: FloatArray,
    cut: FloatArray,
    size: FloatArray,
    a: int,
    smallest: float,
) -> tuple[IntArray, IntArray, FloatArray]:
    """For both ends of class a: the last place of the left end, the class to give it to, change.

    The change of the energy is the lowest where the end given away has at most as many held nodes
    as the rest, and neither is smaller than a share of the class; infinite if there are none such.
    """
    n, c, total = order.size, size.size, size.sum()
    crossing = _crossing(order, indptr, indices, weights)
    places, takers = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    changes = np.full(2, np.inf)
    ratio = np.empty(c)
    for k in range(c):
        ratio[k] = cut[k] / min((c - 1) * size[k], total - size[k])
    sums, links = np.zeros(c), np.empty(c)
    for i in range(n):
        for k in range(c):
            sums[k] += outer[i, k]
    all_held, left, left_held = held.sum(), 0.0, 0.0
    left_links = np.zeros(c)
    for place in range(n - 1):
        i = order[place]
        left += sizes[i]
        left_held += held[i]
        for k in range(c):
            left_links[k] += outer[i, k]
        if min(left, size[a] - left) < smallest * size[a]:
            continue
        for side in range(2):
            moved = left if side == 0 else size[a] - left
            moved_held = left_held if side == 0 else all_held - left_held
            if moved_held > all_held - moved_held:
                continue
            border = crossing[place]
            for k in range(c):
                links[k] = left_links[k] if side == 0 else sums[k] - left_links[k]
                border += links[k]
            rest = size[a] - moved
            leave = (cut[a] - border + 2 * crossing[place]) / min((c - 1) * rest, total - rest)
            for b in range(c):
                if b == a:
                    continue
                grown = size[b] + moved
                taken = (cut[b] + border - 2 * links[b]) / min((c - 1) * grown, total - grown)
                change = leave + taken - ratio[b] - ratio[a]
                if change < changes[side]:
                    places[side], takers[side], changes[side] = place, b, change
    return places, takers, changes
