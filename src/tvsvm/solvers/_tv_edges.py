"""A graph's edges as the graph-TV prox wants them, and the loops over all of them.

The nodes come in two halves. Loops take the edges in two stages of two spans each, which touch no
node from two sides: first those inside the halves, then the few between them, and meanwhile some of
the second half that touch none of these. Two threads may take one span each: the result is the same
to the last digit, whether there is a second thread and how fast it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from time import perf_counter, sleep
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tvsvm.results import FloatArray, IntArray
from tvsvm.solvers import _tv_flow as flow
from tvsvm.solvers._helper import PATIENCE, Helper, halves
from tvsvm.solvers._tv_polish import average_pieces, join_pieces
from tvsvm.solvers._tv_scale import clip_dual
from tvsvm.solvers._tv_sweeps import (
    gap_and_value,
    push_dual,
    put_columns,
    sweep_blocks,
    sweep_column,
    sweep_half,
)

if TYPE_CHECKING:
    from tvsvm.graph import Graph

NAP = 1e-4  # seconds
# Sum of the shares of the time in which either slept: seldom above 0.4 on a quiet machine, 0.5 to 1
# next to one busy process.
LONG = 0.45


class Span(NamedTuple):
    """Some nodes, ``nodes[t]`` with the edges ``begins[t]:ends[t]``."""

    nodes: IntArray
    begins: IntArray
    ends: IntArray

    @classmethod
    def of(cls, *arrays: IntArray) -> Span:
        """A span of arrays, or views, that nobody else holds."""
        for array in arrays:
            array.flags.writeable = False  # as the graph's own are: one version of each loop
        return cls(*arrays)


Pair = tuple[Span, Span]


@dataclass(frozen=True)
class Edges:
    """Layout as in `_tv_sweeps`, with unsigned indices."""

    indptr: IntArray
    heads: IntArray
    weights: FloatArray
    inside: Pair  # of the halves
    between: Span
    stages: tuple[Pair, Pair]  # all edges, see the module
    halves: Pair  # all edges, by the half they start in
    helper: Helper

    @classmethod
    def of(cls, graph: Graph, weights: FloatArray, helper: Helper) -> Edges:
        """The edges of a graph, with other weights that nobody else holds."""
        weights.flags.writeable = False  # as with `Span`
        indptr, heads = graph.indptr.view(np.uint64), graph.heads.view(np.uint32)
        crossing, m = graph.crossing.view(np.uint64), graph.middle
        nodes, begins, ends = np.arange(graph.n_nodes, dtype=np.uint32), indptr[:-1], indptr[1:]
        first = Span.of(nodes[:m], begins[:m], crossing)
        second = Span.of(nodes[m:], begins[m:], ends[m:])
        leaving = np.flatnonzero(crossing < ends[:m])
        between = Span.of(nodes[leaving], crossing[leaving], ends[leaving])
        early, late = (
            Span.of(*(array[some] for array in second)) for some in (~graph.late, graph.late)
        )
        return cls(
            indptr,
            heads,
            weights,
            inside=(first, second),
            between=between,
            stages=((first, early), (between, late)),
            halves=(Span.of(nodes[:m], begins[:m], ends[:m]), second),
            helper=helper,
        )

    @cached_property
    def arcs(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Both directions of every edge, as flows need them."""
        return flow.arcs(self.indptr, self.heads)

    def bring_dual(
        self,
        dual: FloatArray,
        scale: FloatArray,
        strength: FloatArray,
        shrink: float,
        p: FloatArray,
    ) -> None:
        """Write a dual from elsewhere into the first columns of p, see `clip_dual`."""

        def bring(rows: slice) -> None:
            clip_dual(dual[rows], scale, self.weights[rows], strength, shrink, p[rows])

        self.helper.share(bring, *halves(len(p)))

    def sweep(self, strength: FloatArray, g: FloatArray, p: FloatArray, times: int = 1) -> None:
        """Run Gauss-Seidel passes over the dual, in place; all arrays of one type."""
        weights = self.weights.astype(g.dtype, copy=False)
        weights.flags.writeable = False
        if self.helper.free and times > 0:
            self._sweep_together(weights, strength, g, p, times)
            return
        loop = sweep_column if g.shape[1] == 1 else sweep_blocks

        for left in range(times, 0, -1):
            within = True if left == 1 else None
            for span in chain(*self.stages):
                scattered = True if span is self.between else None
                loop(*span, self.heads, weights, strength, g, p, within, scattered)

    def _sweep_together(
        self,
        weights: FloatArray,
        strength: FloatArray,
        g: FloatArray,
        p: FloatArray,
        times: int,
    ) -> None:
        """The same by two threads that meet without the interpreter, which takes too long.

        Each waits for the other twice a sweep: where others use the processors, too, that
        is slower than to go on alone.
        """
        counts = np.zeros(16, dtype=np.int64), np.zeros(16, dtype=np.int64)  # lines of their own
        spans = [tuple(tuple(stage[me]) for stage in self.stages) for me in (0, 1)]
        arrays = self.heads, weights, strength, g, p

        def half(me: int) -> float:
            try:
                mine, others, asleep = counts[me], counts[1 - me], 0.0
                while not sweep_half(mine, others, spans[me], me == 0, *arrays, times, PATIENCE):
                    begin = perf_counter()
                    sleep(NAP)  # the other thread has no processor, perhaps because of this one
                    asleep += perf_counter() - begin
                return asleep
            finally:
                counts[me][0] = 2 * times  # interrupted or not, the other must not wait for ever

        begin = perf_counter()
        try:
            asleep = self.helper.share(half, 0, 1)
        finally:
            counts[0][0] = 2 * times  # interrupted before it began
        self.helper.waited(sum(asleep) > LONG * (perf_counter() - begin))

    def primal(self, z: FloatArray, p: FloatArray, g: FloatArray) -> None:
        """g = z - Dᵀp from scratch: sweeps only keep it up to date, and rounding adds up."""
        self.copy(z, g)
        for pair in self.stages:
            self.helper.share(lambda span: push_dual(*span, self.heads, p, g), *pair)

    def copy(self, source: FloatArray, target: FloatArray) -> None:
        """target[:] = source, for arrays with one row a node or edge."""

        def copy(rows: slice) -> None:
            target[rows] = source[rows]

        self.helper.share(copy, *halves(len(source)))

    def put(
        self, target: FloatArray, into: IntArray, source: FloatArray, columns: IntArray
    ) -> None:
        """target[:, into] = source[:, columns], likewise."""

        def put(rows: slice) -> None:
            put_columns(target[rows], into, source[rows], columns)

        self.helper.share(put, *halves(len(source)))

    def gap_and_value(
        self,
        strength: FloatArray,
        z: FloatArray,
        g: FloatArray,
        p: FloatArray,
        x: FloatArray,
        columns: IntArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Duality gap and objective of x for the dual p, per column; only some if so wanted."""
        wanted = (
            (0, x.shape[1]) if columns is None else (int(columns.min()), int(columns.max()) + 1)
        )

        def share(span: Span) -> tuple[FloatArray, FloatArray]:
            return gap_and_value(*span, self.heads, self.weights, strength, z, g, p, x, *wanted)

        (gap, value), (other_gap, other_value) = self.helper.share(share, *self.halves)
        return gap + other_gap, value + other_value

    def polish(
        self, strength: FloatArray, g: FloatArray, p: FloatArray, columns: IntArray, x: FloatArray
    ) -> IntArray:
        """Average g over the pieces joined by slack edges into columns of x; return their pieces.

        All columns in one pass over the edges: the duals of an edge lie side by side in memory.
        """
        n, c = len(g), columns.size
        parent = np.empty((n, c), dtype=np.uint32)
        parent[:] = np.arange(n, dtype=np.uint32)[:, None]

        def join(span: Span) -> None:
            join_pieces(*span, self.heads, self.weights, strength, p, columns, parent)

        def average(which: IntArray) -> IntArray:
            return average_pieces(which, columns, parent, g, x)

        self.helper.share(join, *self.inside)
        join(self.between)
        return np.concatenate(self.helper.share(average, *np.array_split(np.arange(c), 2)))
