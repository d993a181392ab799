"""Loops of the graph-TV prox over edges: sweeps on the dual, its primal, duality gap.

Arrays follow `Graph`'s layout: nodes by position, edge e from position i to ``heads[e]`` > i. A
loop is given some nodes and edges of theirs, ``begins[t] <= e < ends[t]`` of node ``nodes[t]``.
Columns are functions; column k bounds the dual of edge e by ``strength[k] * weights[e]``.
Throughout, ``g = z - Dᵀp``. Indices are unsigned: for signed ones numba tests on every access
whether they count from the end, which costs up to half the time.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from tvsvm._jit import kernel
from tvsvm.results import FloatArray, IntArray

# Columns are updated by AVX2 registers, two at once where there are so many: an update waits for
# the one before, and meanwhile there is time for another. Half a register for what remains.
REGISTER, HALF_REGISTER = 32, 16  # bytes
AHEAD = 16  # edges before a node's values are needed, they are fetched,
NODES_AHEAD = 8  # or so many nodes before, where these are scattered
LANES = 4  # of float64
# Over-relaxation: an edge moves its ends so many times as far as would make them meet. Measured 1.1
# to 1.2 times faster than 1; any value between 0 and 2 converges.
OVER = 1.3


class _Lanes:
    """Neighbouring columns of some rows as LLVM vectors, all computed with in one type.

    Arguments of an intrinsic come as pairs (numba type, LLVM value).
    """

    def __init__(self, context: Any, builder: Any, dtype: Any, lanes: int) -> None:
        self.context, self.builder, self.lanes = context, builder, lanes
        self.vector = ir.VectorType(context.get_value_type(dtype), lanes)

    def item(self, array: tuple[Any, Any], *indices: tuple[Any, Any]) -> Any:
        """Address of one entry of an array."""
        signed = [self.integer(index) for index in indices]
        struct = self._struct(array)
        return cgutils.get_item_pointer(self.context, self.builder, array[0], struct, signed)

    def _struct(self, array: tuple[Any, Any]) -> Any:
        return self.context.make_array(array[0])(self.context, self.builder, array[1])

    def at(self, array: tuple[Any, Any], *indices: tuple[Any, Any]) -> Any:
        """Address of the lanes that start at one entry."""
        item = self.item(array, *indices)
        return self.builder.bitcast(item, ir.VectorType(item.type.pointee, self.lanes).as_pointer())

    def load(self, address: Any) -> Any:
        return self._widened(self.builder.load(address, align=self._align(address)), self.vector)

    def store(self, value: Any, address: Any) -> None:
        self.builder.store(value, address, align=self._align(address))

    def spread(self, scalar: Any) -> Any:
        """The same number in every lane."""
        scalar = self._widened(scalar, self.vector.element)
        undefined = ir.Constant(self.vector, ir.Undefined)
        first = self.builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
        same = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(first, undefined, same)

    def smaller(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.builder.fcmp_ordered("<", a, b), a, b)

    def larger(self, a: Any, b: Any) -> Any:
        return self.builder.select(self.builder.fcmp_ordered(">", a, b), a, b)

    def variable(self, value: Any) -> Any:
        """A place for a vector that changes in a loop; LLVM makes it a register."""
        return cgutils.alloca_once_value(self.builder, value)

    def fetch(self, array: tuple[Any, Any], heads: tuple[Any, Any], e: Any, k: Any) -> None:
        """Ask for what the head of a later edge has from column k on."""
        b = self.builder
        size = b.extract_value(self._struct(heads).shape, 0)
        later, last = (b.add(a, ir.Constant(a.type, n)) for a, n in ((e[1], AHEAD), (size, -1)))
        later = b.select(b.icmp_signed("<", later, last), later, last)
        head = (heads[0].dtype, b.load(self.item(heads, (types.intp, later))))
        self.prefetch(self.item(array, head, k))

    def prefetch(self, item: Any) -> None:
        """Ask for one cache line: to be written, into all levels of the cache, data."""
        b = self.builder
        place, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [place, flag, flag, flag])
        prefetch = cgutils.get_or_insert_function(b.module, kind, "llvm.prefetch.p0")
        b.call(prefetch, [b.bitcast(item, place), flag(1), flag(3), flag(1)])

    @contextmanager
    def edges(self, begin: Any, end: Any, heads: Any) -> Iterator[tuple[Any, Any]]:
        """Loop over edges begin … end - 1, with the edge and its head as index pairs."""
        stop, start = self.integer(end), self.integer(begin)
        with cgutils.for_range(self.builder, stop, start) as loop:
            e = (types.intp, loop.index)
            yield e, (heads[0].dtype, self.builder.load(self.item(heads, e)))

    def integer(self, index: tuple[Any, Any]) -> Any:
        return self.context.cast(self.builder, index[1], index[0], types.intp)

    def _widened(self, value: Any, kind: Any) -> Any:
        return value if value.type == kind else self.builder.fpext(value, kind)

    @staticmethod
    def _align(address: Any) -> int:
        return 4 if address.type.pointee.element == ir.FloatType() else 8


# The loops over the edges of node i in several columns, written out because LLVM does not
# vectorise them by itself: measured 2 to 3 times faster for 4 to 12 columns. What belongs to node i
# stays in a register from edge to edge.


def _make_node_step(*sizes: int) -> Any:
    """`sweep_column`'s updates in as many columns from k on as registers of these bytes hold."""

    def node_step(
        _typing: Any, g: Any, i: Any, begin: Any, end: Any, heads: Any, p: Any, k: Any,
        weights: Any, strength: Any, within: Any,
    ) -> Any:  # fmt: skip
        return types.void(g, i, begin, end, heads, p, k, weights, strength, within), generate

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pairs = zip(signature.args, arguments, strict=True)
        g, i, begin, end, heads, p, k, weights, strength, within = pairs
        blocks, column = [], k
        for size in sizes:
            v = _Lanes(context, builder, g[0].dtype, size * 8 // g[0].dtype.bitwidth)
            strengths, mine = v.load(v.at(strength, column)), v.variable(v.load(v.at(g, i, column)))
            blocks.append((v, column, strengths, mine))
            column = (types.intp, builder.add(v.integer(column), ir.IntType(64)(v.lanes)))
        with v.edges(begin, end, heads) as (e, j):
            v.fetch(g, heads, e, k)
            weight = builder.load(v.item(weights, e))
            for v, column, strengths, mine in blocks:
                at_j, at_p = v.at(g, j, column), v.at(p, e, column)
                own = ir.Constant(v.vector, [1.0 - OVER / 2] * v.lanes)
                other = ir.Constant(v.vector, [OVER / 2] * v.lanes)
                bound = builder.fmul(v.spread(weight), strengths)
                gi, gj, old = builder.load(mine), v.load(at_j), v.load(at_p)
                middle = builder.fadd(builder.fmul(own, gi), builder.fmul(other, gj))
                total = builder.fadd(gi, old)
                highest, lowest = builder.fadd(total, bound), builder.fsub(total, bound)
                new = v.larger(v.smaller(middle, highest), lowest)
                moved = builder.fsub(gi, new)
                dual = builder.fsub(total, new)
                if not isinstance(within[0], types.NoneType):
                    dual = v.smaller(v.larger(dual, builder.fneg(bound)), bound)
                builder.store(new, mine)
                v.store(builder.fadd(gj, moved), at_j)
                v.store(dual, at_p)
        for v, column, _, mine in blocks:
            v.store(builder.load(mine), v.at(g, i, column))
        return context.get_dummy_value()

    return intrinsic(node_step)


def _make_node_push() -> Any:
    """Take p_e from g_i and give it to g_j, in LANES columns from k on."""

    def node_push(
        _typing: Any, g: Any, i: Any, begin: Any, end: Any, heads: Any, p: Any, k: Any
    ) -> Any:
        return types.void(g, i, begin, end, heads, p, k), generate

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        g, i, begin, end, heads, p, k = zip(signature.args, arguments, strict=True)
        v = _Lanes(context, builder, g[0].dtype, LANES)
        at_i = v.at(g, i, k)
        mine = v.variable(v.load(at_i))
        with v.edges(begin, end, heads) as (e, j):
            at_j, dual = v.at(g, j, k), v.load(v.at(p, e, k))
            builder.store(builder.fsub(builder.load(mine), dual), mine)
            v.store(builder.fadd(v.load(at_j), dual), at_j)
        v.store(builder.load(mine), at_i)
        return context.get_dummy_value()

    return intrinsic(node_push)


def _make_node_gap() -> Any:
    """Add the edges' shares to `gap` and `value`, in LANES columns from k on and in float64."""

    def node_gap(
        _typing: Any, x: Any, i: Any, begin: Any, end: Any, heads: Any, p: Any, k: Any,
        weights: Any, strength: Any, gap: Any, value: Any,
    ) -> Any:  # fmt: skip
        return types.void(x, i, begin, end, heads, p, k, weights, strength, gap, value), generate

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pairs = zip(signature.args, arguments, strict=True)
        x, i, begin, end, heads, p, k, weights, strength, gap, value = pairs
        v = _Lanes(context, builder, types.float64, LANES)
        here, strengths = v.load(v.at(x, i, k)), v.load(v.at(strength, k))
        at_gap, at_value = v.at(gap, k), v.at(value, k)
        slack, variation = v.variable(v.load(at_gap)), v.variable(v.load(at_value))
        with v.edges(begin, end, heads) as (e, j):
            step = builder.fsub(here, v.load(v.at(x, j, k)))
            bound = builder.fmul(v.spread(builder.load(v.item(weights, e))), strengths)
            term = builder.fmul(bound, v.larger(step, builder.fneg(step)))
            rest = builder.fsub(term, builder.fmul(v.load(v.at(p, e, k)), step))
            builder.store(builder.fadd(builder.load(variation), term), variation)
            builder.store(builder.fadd(builder.load(slack), rest), slack)
        v.store(builder.load(slack), at_gap)
        v.store(builder.load(variation), at_value)
        return context.get_dummy_value()

    return intrinsic(node_gap)


def _make_node_fetch() -> Any:
    """Ask for what a node, its edge e and the head of that have."""

    def node_fetch(_typing: Any, g: Any, i: Any, p: Any, e: Any, heads: Any) -> Any:
        return types.void(g, i, p, e, heads), generate

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        g, i, p, e, heads = zip(signature.args, arguments, strict=True)
        v = _Lanes(context, builder, g[0].dtype, 1)
        zero = (types.intp, ir.IntType(64)(0))
        v.prefetch(v.item(g, i, zero))
        v.prefetch(v.item(p, e, zero))
        v.prefetch(v.item(g, (heads[0].dtype, builder.load(v.item(heads, e))), zero))
        return context.get_dummy_value()

    return intrinsic(node_fetch)


def _make_count(write: bool) -> Any:
    """Read or write an array's only entry, which another thread looks at.

    What was stored before is seen by whoever sees the entry.
    """

    def count(_typing: Any, array: Any, value: Any) -> Any:
        return types.int64(array, types.int64), generate

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        v = _Lanes(context, builder, types.int64, 1)
        item = v.item((signature.args[0], arguments[0]), (types.intp, ir.IntType(64)(0)))
        if write:
            builder.store_atomic(arguments[1], item, ordering="release", align=8)
            return arguments[1]
        return builder.load_atomic(item, ordering="acquire", align=8)

    return intrinsic(count)


_read, _write = _make_count(False), _make_count(True)
_step_two = _make_node_step(REGISTER, REGISTER)
_step_one_and_half = _make_node_step(REGISTER, HALF_REGISTER)
_step_one, _step_half = _make_node_step(REGISTER), _make_node_step(HALF_REGISTER)
_node_fetch, _node_push, _node_gap = _make_node_fetch(), _make_node_push(), _make_node_gap()


@kernel
def sweep_blocks(
    nodes: IntArray,
    begins: IntArray,
    ends: IntArray,
    heads: IntArray,
    weights: FloatArray,
    strength: FloatArray,
    g: FloatArray,
    p: FloatArray,
    within: bool | None,
    scattered: bool | None,
) -> None:
    """Gauss-Seidel over the edges, in place; the columns fill half registers.

    Rounding may leave duals outside their bounds, by as much as it moves g, unless they are held
    within, which costs a seventh more. Whether, and whether the nodes are scattered, is said by
    True or None: numba compiles one loop for each, without a test inside.
    """
    lanes, half = REGISTER // g.itemsize, HALF_REGISTER // g.itemsize
    rest = g.shape[1] % (2 * lanes)
    full = g.shape[1] - rest
    for t in range(begins.size):
        i, begin, end = nodes[t], begins[t], ends[t]
        if scattered is not None:
            later = min(t + NODES_AHEAD, begins.size - 1)
            _node_fetch(g, nodes[later], p, begins[later], heads)
        for k in range(0, full, 2 * lanes):
            _step_two(g, i, begin, end, heads, p, k, weights, strength, within)
        if rest == lanes + half:
            _step_one_and_half(g, i, begin, end, heads, p, full, weights, strength, within)
        elif rest == lanes:
            _step_one(g, i, begin, end, heads, p, full, weights, strength, within)
        elif rest == half:
            _step_half(g, i, begin, end, heads, p, full, weights, strength, within)


@kernel
def sweep_column(
    nodes: IntArray,
    begins: IntArray,
    ends: IntArray,
    heads: IntArray,
    weights: FloatArray,
    strength: FloatArray,
    g: FloatArray,
    p: FloatArray,
    within: bool | None,
    scattered: bool | None,
) -> None:
    """`sweep_blocks` for a single column.

    The dual of edge (i, j) moves so that g_i and g_j meet in the middle, and on by the
    over-relaxation, or as far as its bound allows. Written for g_i first, because g_i is what the
    next edge waits for.
    """
    own, other = g.dtype.type(1.0 - OVER / 2), g.dtype.type(OVER / 2)
    for t in range(begins.size):
        i = nodes[t]
        gi = g[i, 0]
        for e in range(begins[t], ends[t]):
            bound = weights[e] * strength[0]
            j = heads[e]
            gj = g[j, 0]
            total = gi + p[e, 0]
            new = max(min(own * gi + other * gj, total + bound), total - bound)
            dual = total - new
            if within is not None:
                dual = min(max(dual, -bound), bound)
            p[e, 0] = dual
            g[j, 0] = gj + (gi - new)
            gi = new
        g[i, 0] = gi


@kernel
def sweep_half(
    mine: IntArray,
    others: IntArray,
    stages: tuple[tuple[IntArray, ...], ...],
    first: bool,
    heads: IntArray,
    weights: FloatArray,
    strength: FloatArray,
    g: FloatArray,
    p: FloatArray,
    times: int,
    patience: int,
) -> bool:
    """Sweep as one of two threads, as far as one can go without waiting long for the other.

    A sweep has two stages, the nodes of the second one scattered for the first thread; nobody
    begins a stage before both are done with the one before. Counts say how many are done. The last
    sweep ends within the bounds. Return whether it is done; if not, call again.
    """
    done = mine[0]
    while done < 2 * times:
        left = patience
        while _read(others, 0) < done:
            left -= 1
            if left == 0:
                return False
        nodes, begins, ends = stages[done % 2]
        within = done >= 2 * (times - 1)
        if g.shape[1] == 1:
            if within:
                sweep_column(nodes, begins, ends, heads, weights, strength, g, p, True, None)
            else:
                sweep_column(nodes, begins, ends, heads, weights, strength, g, p, None, None)
        elif done % 2 == 0 or not first:
            if within:
                sweep_blocks(nodes, begins, ends, heads, weights, strength, g, p, True, None)
            else:
                sweep_blocks(nodes, begins, ends, heads, weights, strength, g, p, None, None)
        elif within:
            sweep_blocks(nodes, begins, ends, heads, weights, strength, g, p, True, True)
        else:
            sweep_blocks(nodes, begins, ends, heads, weights, strength, g, p, None, True)
        done += 1
        _write(mine, done)
    return True


@kernel
def put_columns(target: FloatArray, into: IntArray, source: FloatArray, columns: IntArray) -> None:
    """``target[:, into] = source[:, columns]``, in one pass over the rows: six times faster."""
    for i in range(source.shape[0]):
        for t in range(columns.size):
            target[i, into[t]] = source[i, columns[t]]


@kernel
def push_dual(
    nodes: IntArray, begins: IntArray, ends: IntArray, heads: IntArray, p: FloatArray, g: FloatArray
) -> None:
    """Subtract Dᵀp from g, in place."""
    columns = g.shape[1]
    full = columns - columns % LANES
    for t in range(begins.size):
        i, begin, end = nodes[t], begins[t], ends[t]
        for k in range(0, full, LANES):
            _node_push(g, i, begin, end, heads, p, k)
        for k in range(full, columns):
            for e in range(begin, end):
                g[i, k] -= p[e, k]
                g[heads[e], k] += p[e, k]


@kernel
def gap_and_value(
    nodes: IntArray,
    begins: IntArray,
    ends: IntArray,
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
    """Share of these nodes in the duality gap and objective of x, per column; 0 of others.

    gap = Σ_e (bound_e |Dx|_e - p_e (Dx)_e) + ½|x - g|², a sum of terms that cannot be negative:
    nothing cancels, so a small gap is a small gap. Columns are those from `first` up to `last`, and
    whoever shares a register with them.
    """
    columns = x.shape[1]
    gap = np.zeros(columns)
    value = np.zeros(columns)
    full = columns - columns % LANES
    first -= first % LANES
    last = min(columns, last + (-last) % LANES)
    for t in range(begins.size):
        i, begin, end = nodes[t], begins[t], ends[t]
        for k in range(first, min(full, last), LANES):
            _node_gap(x, i, begin, end, heads, p, k, weights, strength, gap, value)
    for k in range(max(full, first), last):
        slack, variation = 0.0, 0.0
        for t in range(begins.size):
            here = np.float64(x[nodes[t], k])
            for e in range(begins[t], ends[t]):
                step = here - np.float64(x[heads[e], k])
                term = weights[e] * strength[k] * abs(step)
                variation += term
                slack += term - p[e, k] * step
        gap[k], value[k] = slack, variation
    for i in nodes:
        for k in range(first, last):
            off = np.float64(x[i, k]) - np.float64(g[i, k])
            gap[k] += 0.5 * off * off
            away = np.float64(x[i, k]) - np.float64(z[i, k])
            value[k] += 0.5 * away * away
    return gap, value
