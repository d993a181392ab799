"""Polished primal of the graph-TV prox: a better guess of the solution from an inexact dual.

The exact solution is constant across every edge whose dual is strictly inside its bound. What this
makes of an inexact dual is only a candidate: the gap decides. Arrays are as in `_tv_sweeps`.
"""

import numpy as np

from tvsvm._jit import kernel
from tvsvm.results import BoolArray, FloatArray, IntArray

SLACK = 0.99999  # a dual below this share of its bound is strictly inside it,
# if it is so by more than the rounding of sums with values of about 1.
ROUNDING = 4


@kernel
def join_pieces(
    nodes: IntArray,
    begins: IntArray,
    ends: IntArray,
    heads: IntArray,
    weights: FloatArray,
    strength: FloatArray,
    p: FloatArray,
    columns: IntArray,
    parent: IntArray,
) -> None:
    """Join the ends of slack edges, in a tree for each of the columns, in place.

    All columns in one pass over the edges: the duals of an edge lie side by side in memory.
    """
    rounding = ROUNDING * np.finfo(p.dtype).eps
    for t in range(begins.size):
        for e in range(begins[t], ends[t]):
            w = weights[e] * SLACK
            for c in range(columns.size):
                k = columns[c]
                if abs(p[e, k]) < w * strength[k] - rounding:
                    _join(parent, c, nodes[t], heads[e])


@kernel
def average_pieces(
    which: IntArray, columns: IntArray, parent: IntArray, g: FloatArray, x: FloatArray
) -> IntArray:
    """Average g over the pieces into x, for which of the columns; return their pieces."""
    n = parent.shape[0]
    pieces = np.zeros(which.size, dtype=np.int64)
    total = np.zeros(n)
    count = np.zeros(n, dtype=np.int32)
    for t in range(which.size):
        c = which[t]
        k = columns[c]
        total[:] = 0.0
        count[:] = 0
        for i in range(n):
            root = parent[parent[i, c], c]
            parent[i, c] = root
            total[root] += g[i, k]
            count[root] += 1
        for i in range(n):
            if parent[i, c] == i:
                pieces[t] += 1
                total[i] /= count[i]
            x[i, k] = total[parent[i, c]]
    return pieces


@kernel
def polish_rows(
    indptr: IntArray,
    heads: IntArray,
    weights: FloatArray,
    strength: FloatArray,
    p: FloatArray,
    fixed: BoolArray,
    x: FloatArray,
    v: FloatArray,
) -> FloatArray:
    """Average rows of v over the pieces joined by edges slack in all columns.

    x is the projection of v on the rows' sets. A column in which both ends are zero has no say:
    there the simplex holds them, not the edge. Fixed rows stay alone.
    """
    n, columns = x.shape
    rounding = ROUNDING * np.finfo(p.dtype).eps
    parent = np.arange(n).astype(np.uint32).reshape(n, 1)
    for i in range(n):
        if fixed[i]:
            continue
        for e in range(indptr[i], indptr[i + 1]):
            j = heads[e]
            slack = not fixed[j]
            for k in range(columns):
                bound = weights[e] * strength[k] * SLACK - rounding
                slack = slack and (abs(p[e, k]) < bound or (x[i, k] == 0.0 and x[j, k] == 0.0))
            if slack:
                _join(parent, 0, i, j)
    mean = np.zeros_like(v)
    count = np.zeros(n, dtype=np.int32)
    for i in range(n):
        root = parent[parent[i, 0], 0]
        parent[i, 0] = root
        count[root] += 1
        for k in range(columns):
            mean[root, k] += (v[i, k] - mean[root, k]) / count[root]
    for i in range(n):
        if parent[i, 0] != i:
            mean[i] = mean[parent[i, 0]]
    return mean


@kernel
def _join(parent: IntArray, t: int, i: int, j: int) -> None:
    """Unite two pieces; the smaller index stays root, so that one forward pass resolves all."""
    a, b = np.uint32(i), np.uint32(j)
    if parent[a, t] == parent[b, t]:  # so it is for most edges inside a large piece
        return
    while parent[a, t] != a:
        parent[a, t] = parent[parent[a, t], t]
        a = parent[a, t]
    while parent[b, t] != b:
        parent[b, t] = parent[parent[b, t], t]
        b = parent[b, t]
    if a < b:
        parent[b, t] = a
    else:
        parent[a, t] = b
