"""Polished primal of the graph-TV prox: a better guess of the solution from an inexact dual.

The exact solution is constant across every edge whose dual is strictly inside its bound. What this
makes of an inexact dual is only a candidate: the gap decides. Arrays are as in `_tv_sweeps`.
"""

import numpy as np

from tvsvm._jit import kernel
from tvsvm.results import BoolArray, FloatArray, IntArray

SLACK = 0.99999  # a dual below this share of its bound is strictly inside it


@kernel
def polish(
    indptr: IntArray,
    heads: IntArray,
    weights: FloatArray,
    strength: FloatArray,
    g: FloatArray,
    p: FloatArray,
    columns: IntArray,
    x: FloatArray,
) -> IntArray:
    """Average g over the pieces joined by slack edges, into columns of x; return their pieces.

    All columns in one pass over the edges: the duals of an edge lie side by side in memory.
    """
    n = indptr.size - 1
    parent = np.empty((n, columns.size), dtype=np.uint32)
    for i in range(n):
        parent[i] = i
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            w = weights[e] * SLACK
            for t in range(columns.size):
                k = columns[t]
                if abs(p[e, k]) < w * strength[k]:
                    _join(parent, t, i, heads[e])
    pieces = np.zeros(columns.size, dtype=np.int64)
    total = np.zeros(n)
    count = np.zeros(n, dtype=np.int32)
    for t in range(columns.size):
        k = columns[t]
        total[:] = 0.0
        count[:] = 0
        for i in range(n):
            root = parent[parent[i, t], t]
            parent[i, t] = root
            total[root] += g[i, k]
            count[root] += 1
        for i in range(n):
            if parent[i, t] == i:
                pieces[t] += 1
                total[i] /= count[i]
            x[i, k] = total[parent[i, t]]
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
    parent = np.arange(n).astype(np.uint32).reshape(n, 1)
    for i in range(n):
        if fixed[i]:
            continue
        for e in range(indptr[i], indptr[i + 1]):
            j = heads[e]
            slack = not fixed[j]
            for k in range(columns):
                bound = weights[e] * strength[k] * SLACK
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
