"""Loops of the graph-TV prox: edge sweeps on the dual, duality gap, polished primal.

Arrays follow `Graph`'s layout: nodes by position, edge e from position i to ``heads[e]`` > i with
``indptr[i] <= e < indptr[i + 1]``. Columns are functions; column k bounds the dual of edge e by
``strength[k] * weights[e]``. Throughout, ``g = z - Dᵀp``. Indices are unsigned: for signed ones
numba tests on every access whether they count from the end, which costs up to half the time.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from tvsvm._jit import kernel
from tvsvm.results import BoolArray, FloatArray, IntArray

# Columns updated at once: one AVX2 register of float64, or half of one for what remains. Wider
# spills, narrower starves.
LANES, HALF_LANES = 4, 2
SLACK = 0.99999  # a dual below this share of its bound is strictly inside it


def _make_edge_step(lanes: int) -> Any:
    """`sweep_column`'s update of edge e in columns k … k + lanes - 1, in vector instructions.

    Written out because LLVM does not vectorise so short a loop by itself: measured 1.5 to 2 times
    faster for 4 to 12 columns.
    """

    def edge_step(
        _typing: Any, g: Any, i: Any, j: Any, p: Any, e: Any, k: Any, weight: Any, strength: Any
    ) -> Any:
        return types.void(g, i, j, p, e, k, weight, strength), generate

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        g_type, i_type, j_type, p_type, e_type, k_type, _, s_type = signature.args
        g, i, j, p, e, k, weight, strength = arguments
        scalar = context.get_value_type(g_type.dtype)
        vector = ir.VectorType(scalar, lanes)
        align = context.get_abi_sizeof(scalar)
        i, j, e, k = (
            context.cast(builder, index, index_type, types.intp)
            for index, index_type in ((i, i_type), (j, j_type), (e, e_type), (k, k_type))
        )

        def pointer(array_type: Any, array: Any, indices: list[Any]) -> Any:
            struct = context.make_array(array_type)(context, builder, array)
            item = cgutils.get_item_pointer(context, builder, array_type, struct, indices)
            return builder.bitcast(item, vector.as_pointer())

        def load(address: Any) -> Any:
            return builder.load(address, align=align)

        def smaller(a: Any, b: Any) -> Any:
            return builder.select(builder.fcmp_ordered("<", a, b), a, b)

        def larger(a: Any, b: Any) -> Any:
            return builder.select(builder.fcmp_ordered(">", a, b), a, b)

        at_i, at_j = pointer(g_type, g, [i, k]), pointer(g_type, g, [j, k])
        at_p = pointer(p_type, p, [e, k])
        undefined = ir.Constant(vector, ir.Undefined)
        first = builder.insert_element(undefined, weight, ir.Constant(ir.IntType(32), 0))
        same = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
        weights = builder.shuffle_vector(first, undefined, same)

        bound = builder.fmul(weights, load(pointer(s_type, strength, [k])))
        gi, gj, old = load(at_i), load(at_j), load(at_p)
        middle = builder.fmul(ir.Constant(vector, [0.5] * lanes), builder.fadd(gi, gj))
        highest = builder.fadd(gi, builder.fadd(bound, old))
        lowest = builder.fsub(gi, builder.fsub(bound, old))
        new = larger(smaller(middle, highest), lowest)
        moved = builder.fsub(gi, new)
        dual = smaller(larger(builder.fadd(old, moved), builder.fneg(bound)), bound)
        builder.store(new, at_i, align=align)
        builder.store(builder.fadd(gj, moved), at_j, align=align)
        builder.store(dual, at_p, align=align)
        return context.get_dummy_value()

    return intrinsic(edge_step)


_edge_step = _make_edge_step(LANES)
_half_edge_step = _make_edge_step(HALF_LANES)


@kernel
def sweep_blocks(
    begin: IntArray,
    end: IntArray,
    heads: IntArray,
    weights: FloatArray,
    strength: FloatArray,
    g: FloatArray,
    p: FloatArray,
    first: int,
    last: int,
) -> None:
    """Gauss-Seidel over edges begin[i] … end[i] - 1 of nodes first … last - 1, in place.

    The number of columns is even.
    """
    columns = g.shape[1]
    full = columns - columns % LANES
    for i in range(first, last):
        for e in range(begin[i], end[i]):
            for k in range(0, full, LANES):
                _edge_step(g, i, heads[e], p, e, k, weights[e], strength)
            for k in range(full, columns, HALF_LANES):
                _half_edge_step(g, i, heads[e], p, e, k, weights[e], strength)


@kernel
def sweep_column(
    begin: IntArray,
    end: IntArray,
    heads: IntArray,
    weights: FloatArray,
    strength: FloatArray,
    g: FloatArray,
    p: FloatArray,
    first: int,
    last: int,
) -> None:
    """`sweep_blocks` for a single column.

    The dual of edge (i, j) moves so that g_i and g_j meet in the middle, or as far as its bound
    allows. Written for g_i first, because g_i is what the next edge waits for.
    """
    half = g.dtype.type(0.5)
    for i in range(first, last):
        gi = g[i, 0]
        for e in range(begin[i], end[i]):
            bound = weights[e] * strength[0]
            old = p[e, 0]
            gj = g[heads[e], 0]
            new = max(min(half * (gi + gj), gi + (bound + old)), gi - (bound - old))
            moved = gi - new
            p[e, 0] = min(max(old + moved, -bound), bound)
            g[heads[e], 0] = gj + moved
            gi = new
        g[i, 0] = gi


@kernel
def last_inner_edges(indptr: IntArray, heads: IntArray, bounds: IntArray) -> IntArray:
    """For each node, where its edges leave its part, bounds[t] … bounds[t + 1] - 1."""
    stop = indptr[1:].copy()
    for t in range(bounds.size - 1):
        for i in range(bounds[t], bounds[t + 1]):
            for e in range(indptr[i], indptr[i + 1]):
                if heads[e] >= bounds[t + 1]:
                    stop[i] = e
                    break
    return stop


@kernel
def clip_dual(weights: FloatArray, strength: FloatArray, p: FloatArray) -> None:
    """Bring a dual from elsewhere inside its bounds, in place."""
    for e in range(p.shape[0]):
        for k in range(p.shape[1]):
            bound = weights[e] * strength[k]
            p[e, k] = min(max(p[e, k], -bound), bound)


@kernel
def dual_to_primal(
    indptr: IntArray, heads: IntArray, z: FloatArray, p: FloatArray, g: FloatArray
) -> None:
    """g = z - Dᵀp, from scratch: sweeps only keep it up to date, and rounding adds up."""
    g[:] = z
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            j = heads[e]
            for k in range(g.shape[1]):
                g[i, k] -= p[e, k]
                g[j, k] += p[e, k]


@kernel
def gap_and_value(
    indptr: IntArray,
    heads: IntArray,
    weights: FloatArray,
    strength: FloatArray,
    z: FloatArray,
    g: FloatArray,
    p: FloatArray,
    x: FloatArray,
    first: int,
    last: int,
) -> tuple[FloatArray, FloatArray]:
    """Share of nodes first … last - 1 in the duality gap and objective of x, per column.

    gap = Σ_e (bound_e |Dx|_e - p_e (Dx)_e) + ½|x - g|², a sum of terms that cannot be negative:
    nothing cancels, so a small gap is a small gap.
    """
    columns = x.shape[1]
    gap = np.zeros(columns)
    value = np.zeros(columns)
    if columns == 1:  # sums in registers, where several columns need them in memory
        slack, variation = 0.0, 0.0
        for i in range(first, last):
            here = np.float64(x[i, 0])
            for e in range(indptr[i], indptr[i + 1]):
                step = here - np.float64(x[heads[e], 0])
                term = weights[e] * strength[0] * abs(step)
                variation += term
                slack += term - p[e, 0] * step
        gap[0], value[0] = slack, variation
    else:
        for i in range(first, last):
            for e in range(indptr[i], indptr[i + 1]):
                j = heads[e]
                w = weights[e]
                for k in range(columns):
                    step = np.float64(x[i, k]) - np.float64(x[j, k])
                    term = w * strength[k] * abs(step)
                    value[k] += term
                    gap[k] += term - p[e, k] * step
    for i in range(first, last):
        for k in range(columns):
            off = np.float64(x[i, k]) - np.float64(g[i, k])
            gap[k] += 0.5 * off * off
            away = np.float64(x[i, k]) - np.float64(z[i, k])
            value[k] += 0.5 * away * away
    return gap, value


@kernel
def polish(
    indptr: IntArray,
    heads: IntArray,
    weights: FloatArray,
    strength: FloatArray,
    g: FloatArray,
    p: FloatArray,
    k: int,
    x: FloatArray,
) -> int:
    """Average g over the pieces joined by slack edges, into column k of x; return the pieces.

    The exact solution is constant across every edge whose dual is strictly inside its bound.
    What this makes of an inexact dual is only a candidate: the gap decides.
    """
    n = indptr.size - 1
    parent = np.arange(n).astype(np.uint32)
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            if abs(p[e, k]) < weights[e] * strength[k] * SLACK:
                _join(parent, i, heads[e])
    total = np.zeros(n)
    count = np.zeros(n, dtype=np.int32)
    for i in range(n):
        parent[i] = parent[parent[i]]
        total[parent[i]] += g[i, k]
        count[parent[i]] += 1
    pieces = 0
    for i in range(n):
        if parent[i] == i:
            pieces += 1
            total[i] /= count[i]
        x[i, k] = total[parent[i]]
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
    parent = np.arange(n).astype(np.uint32)
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
                _join(parent, i, j)
    mean = np.zeros_like(v)
    count = np.zeros(n, dtype=np.int32)
    for i in range(n):
        parent[i] = parent[parent[i]]
        root = parent[i]
        count[root] += 1
        for k in range(columns):
            mean[root, k] += (v[i, k] - mean[root, k]) / count[root]
    for i in range(n):
        if parent[i] != i:
            mean[i] = mean[parent[i]]
    return mean


@kernel
def _join(parent: IntArray, i: int, j: int) -> None:
    """Unite two pieces; the smaller index stays root, so that one forward pass resolves all."""
    a, b = np.uint32(i), np.uint32(j)
    if parent[a] == parent[b]:  # so it is for most edges inside a large piece
        return
    while parent[a] != a:
        parent[a] = parent[parent[a]]
        a = parent[a]
    while parent[b] != b:
        parent[b] = parent[parent[b]]
        b = parent[b]
    if a < b:
        parent[b] = a
    else:
        parent[a] = b
