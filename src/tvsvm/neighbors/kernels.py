"""Loops of the neighbour search: which rows may be neighbours, and which of those are."""

import numpy as np

from tvsvm._jit import kernel
from tvsvm.results import FloatArray, IntArray

# Bounds the memory of a product where many rows fall into one cell.
MEMBERS_AT_ONCE = 2048
# Keys that are compared together: the few below the bar are then sought among them.
KEYS_AT_ONCE = 64


@kernel
def push_smallest(keys: FloatArray, values: IntArray, key: float, value: int) -> None:
    """Replace the largest of the smallest keys, at the root of a heap, by `key`."""
    size = keys.size
    parent = 0
    while True:
        child = 2 * parent + 1
        if child >= size:
            break
        if child + 1 < size and keys[child + 1] > keys[child]:
            child += 1
        if keys[child] <= key:
            break
        keys[parent] = keys[child]
        values[parent] = values[child]
        parent = child
    keys[parent] = key
    values[parent] = value


@kernel
def keep_smallest(
    keys: FloatArray, values: IntArray, offered: FloatArray, first: int, excluded: int
) -> None:
    """Offer the values first, first + 1, ... with their keys to a heap of the smallest."""
    for start in range(0, offered.size, KEYS_AT_ONCE):
        part = offered[start : start + KEYS_AT_ONCE]
        n_below = 0
        for j in range(part.size):  # without a branch, hence several keys an instruction
            n_below += part[j] < keys[0]
        if n_below:
            for j in range(part.size):
                value = first + start + j
                if part[j] < keys[0] and value != excluded:
                    push_smallest(keys, values, part[j], value)


@kernel
def possible_neighbors(
    products: FloatArray, norms: FloatArray, rows: IntArray, n_neighbors: int, rounding: float
) -> tuple[IntArray, IntArray]:
    """All rows that rounding allows among the nearest, ascending, as CSR (indptr, candidates).

    `products` holds x_i · x_j for the given rows i and all j. Up to a constant of row i,
    |x_i - x_j|²/2 is the key |x_j|²/2 - x_i · x_j, with an error below
    rounding (|x_i| |x_j| + |x_j|²/2).
    """
    n_columns = norms.size
    half_squares = norms * norms * norms.dtype.type(0.5)
    errors = np.empty_like(norms)
    keys = np.empty_like(norms)
    smallest = np.empty(n_neighbors, norms.dtype)
    unused = np.empty(n_neighbors, np.int32)
    indptr = np.zeros(rows.size + 1, np.int64)
    candidates = np.empty(2 * n_neighbors * rows.size, np.int32)
    size = 0
    for b in range(rows.size):
        i = rows[b]
        for j in range(n_columns):
            errors[j] = rounding * (norms[i] * norms[j] + half_squares[j])
            keys[j] = half_squares[j] - products[b, j] + errors[j]
        smallest[:] = np.inf
        keep_smallest(smallest, unused, keys, 0, i)
        for start in range(0, n_columns, KEYS_AT_ONCE):
            stop = min(start + KEYS_AT_ONCE, n_columns)
            n_possible = 0
            for j in range(start, stop):
                n_possible += keys[j] - 2 * errors[j] <= smallest[0]
            if size + n_possible > candidates.size:
                longer = np.empty(2 * candidates.size + n_possible, np.int32)
                longer[:size] = candidates[:size]
                candidates = longer
            if n_possible:
                for j in range(start, stop):
                    if keys[j] - 2 * errors[j] <= smallest[0] and j != i:
                        candidates[size] = j
                        size += 1
        indptr[b + 1] = size
    return indptr, candidates[:size]


@kernel
def squared_distance(x: FloatArray, y: FloatArray, limit: float) -> float:
    """|x - y|², or a part of it that reaches `limit`."""
    total = x[0] - x[0]
    # Four sums side by side keep the processor busy; one would wait for itself at every term.
    s0 = s1 = s2 = s3 = total
    whole = x.size - x.size % 4
    for j in range(0, whole, 4):
        d0 = x[j] - y[j]
        d1 = x[j + 1] - y[j + 1]
        d2 = x[j + 2] - y[j + 2]
        d3 = x[j + 3] - y[j + 3]
        s0 += d0 * d0
        s1 += d1 * d1
        s2 += d2 * d2
        s3 += d3 * d3
        if j % 32 == 0:
            total = (s0 + s1) + (s2 + s3)
            if total >= limit:
                return total
    total = (s0 + s1) + (s2 + s3)
    for j in range(whole, x.size):
        total += (x[j] - y[j]) * (x[j] - y[j])
    return total


@kernel
def insert_sorted(keys: FloatArray, values: IntArray, key: float, value: int) -> None:
    """Insert into ascending `keys`, behind equal ones, dropping the last."""
    place = keys.size - 1
    while place > 0 and keys[place - 1] > key:
        keys[place] = keys[place - 1]
        values[place] = values[place - 1]
        place -= 1
    keys[place] = key
    values[place] = value


@kernel
def nearest_candidates(
    X: FloatArray, rows: IntArray, indptr: IntArray, candidates: IntArray, n_neighbors: int
) -> tuple[IntArray, FloatArray]:
    """Nearest of the candidates of each row and their squared distances, by differences.

    The candidates of a row ascend, so equal distances stay in the order of their rows.
    A row with fewer candidates ends with neighbours -1.
    """
    nearest = np.full((rows.size, n_neighbors), -1, np.int32)
    squared = np.full((rows.size, n_neighbors), np.inf, X.dtype)
    for b in range(rows.size):
        for c in range(indptr[b], indptr[b + 1]):
            j = candidates[c]
            limit = squared[b, n_neighbors - 1]
            d = squared_distance(X[rows[b]], X[j], limit)
            if d < limit:
                insert_sorted(squared[b], nearest[b], d, j)
    return nearest, squared


@kernel
def sparse_squared_distance(
    indices: IntArray, data: FloatArray, a: int, a_end: int, b: int, b_end: int, limit: float
) -> float:
    """|x - y|² for two sparse rows [a, a_end) and [b, b_end), or a part that reaches `limit`."""
    total = data[:0].sum()
    while (a < a_end or b < b_end) and total < limit:
        if b == b_end or (a < a_end and indices[a] < indices[b]):
            step = data[a]
            a += 1
        elif a == a_end or indices[b] < indices[a]:
            step = data[b]
            b += 1
        else:
            step = data[a] - data[b]
            a += 1
            b += 1
        total += step * step
    return total


@kernel
def nearest_sparse_candidates(
    starts: IntArray,
    indices: IntArray,
    data: FloatArray,
    rows: IntArray,
    indptr: IntArray,
    candidates: IntArray,
    n_neighbors: int,
) -> tuple[IntArray, FloatArray]:
    """`nearest_candidates` for the rows of a CSR array (starts, indices, data)."""
    nearest = np.full((rows.size, n_neighbors), -1, np.int32)
    squared = np.full((rows.size, n_neighbors), np.inf, data.dtype)
    for b in range(rows.size):
        a, a_end = starts[rows[b]], starts[rows[b] + 1]
        for c in range(indptr[b], indptr[b + 1]):
            j = candidates[c]
            limit = squared[b, n_neighbors - 1]
            d = sparse_squared_distance(indices, data, a, a_end, starts[j], starts[j + 1], limit)
            if d < limit:
                insert_sorted(squared[b], nearest[b], d, j)
    return nearest, squared


@kernel
def search_cells(
    P: FloatArray,
    half_norms: FloatArray,
    cells: IntArray,
    centers: FloatArray,
    half_center_norms: FloatArray,
    first: int,
    last: int,
    n_probes: int,
    n_candidates: int,
) -> IntArray:
    """Candidates of rows first:last among the members of the `n_probes` cells nearest to each.

    The rows of P are sorted by cell, cell b being rows cells[b]:cells[b + 1]. The distance to
    row j is ordered by half_norms[j] - p_i · p_j. Places that stay empty hold -1.
    """
    queries = P[first:last]
    n_rows = last - first
    to_center = half_center_norms - np.dot(queries, centers.T)
    nearest_centers = np.full((n_rows, n_probes), np.inf, P.dtype)
    unused = np.empty(n_probes, np.int32)
    for r in range(n_rows):
        keep_smallest(nearest_centers[r], unused, to_center[r], 0, -1)
    keys = np.full((n_rows, n_candidates), np.inf, P.dtype)
    found = np.full((n_rows, n_candidates), -1, np.int32)
    probing = np.empty(n_rows, np.int64)
    gathered = np.empty((n_rows, P.shape[1]), P.dtype)
    buffer = np.empty(n_rows * MEMBERS_AT_ONCE, P.dtype)
    # The nearest cells first: they lower the bar for all that follow.
    for b in np.argsort(to_center[n_rows // 2], kind="mergesort"):
        n_probing = 0
        for r in range(n_rows):
            if to_center[r, b] <= nearest_centers[r, 0]:
                probing[n_probing] = r
                gathered[n_probing] = queries[r]
                n_probing += 1
        if n_probing == 0:
            continue
        for start in range(cells[b], cells[b + 1], MEMBERS_AT_ONCE):
            stop = min(start + MEMBERS_AT_ONCE, cells[b + 1])
            products = buffer[: n_probing * (stop - start)].reshape(n_probing, stop - start)
            np.dot(gathered[:n_probing], P[start:stop].T, products)
            for q in range(n_probing):
                r = probing[q]
                for j in range(start, stop):
                    products[q, j - start] = half_norms[j] - products[q, j - start]
                keep_smallest(keys[r], found[r], products[q], start, first + r)
    return found
