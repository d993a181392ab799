"""A graph's edges as the graph-TV prox wants them, and the loops over all of them.

The nodes come in two halves, and the few edges between them in two times two parts. Loops take the
edges in three stages of two spans each, which touch no node from two sides. Two threads may take
one each: the result is the same to the last digit, whether there is a second thread and how fast
it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from time import sleep
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
MANY_NAPS = 2  # a sweep: 0 to 1.4 on a quiet machine, from 2.4 on next to one busy process


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
    stages: tuple[Pair, Pair, Pair]  # all edges, first those inside the halves
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
        return cls(
            indptr,
            heads,
            weights,
            stages=((first, second), *_quarters(between, heads)),
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

        def sweep(within: bool | None, span: Span, scattered: bool | None) -> None:
            loop(*span, self.heads, weights, strength, g, p, within, scattered)

        for left in range(times, 0, -1):
            self._over(partial(sweep, True if left == 1 else None))

    def _sweep_together(
        self,
        weights: FloatArray,
        strength: FloatArray,
        g: FloatArray,
        p: FloatArray,
        times: int,
    ) -> None:
        """The same by two threads that meet without the interpreter, which takes too long.

        Each waits for the other three times a sweep: where others use the processors, too, that
        is slower than to go on alone.
        """
        counts = np.zeros(16, dtype=np.int64), np.zeros(16, dtype=np.int64)  # lines of their own
        spans = [tuple(tuple(stage[me]) for stage in self.stages) for me in (0, 1)]
        arrays = self.heads, weights, strength, g, p

        def half(me: int) -> int:
            try:
                mine, others, naps = counts[me], counts[1 - me], 0
                while not sweep_half(mine, others, spans[me], *arrays, times, PATIENCE):
                    sleep(NAP)  # the other thread has no processor, perhaps because of this one
                    naps += 1
                return naps
            finally:
                counts[me][0] = 3 * times  # interrupted or not, the other must not wait for ever

        try:
            naps = self.helper.share(half, 0, 1)
        finally:
            counts[0][0] = 3 * times  # interrupted before it began
        self.helper.waited(sum(naps) > MANY_NAPS * times)

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
        self, strength: FloatArray, z: FloatArray, g: FloatArray, p: FloatArray, x: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Duality gap and objective of x for the dual p, per column."""

        def share(span: Span) -> tuple[FloatArray, FloatArray]:
            return gap_and_value(*span, self.heads, self.weights, strength, z, g, p, x)

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

        def join(span: Span, _: bool | None) -> None:
            join_pieces(*span, self.heads, self.weights, strength, p, columns, parent)

        def average(which: IntArray) -> IntArray:
            return average_pieces(which, columns, parent, g, x)

        self._over(join)
        return np.concatenate(self.helper.share(average, *np.array_split(np.arange(c), 2)))

    def _over(self, loop: Callable[[Span, bool | None], None]) -> None:
        """Run a loop that changes what belongs to the nodes at both ends of a span's edges.

        It is told, by True or None, whether these nodes are scattered.
        """
        inside, *between = self.stages
        self.helper.share(lambda span: loop(span, None), *inside)
        for span in chain(*between):
            loop(span, True)


def _quarters(between: Span, heads: IntArray) -> tuple[Pair, Pair]:
    """Edges between two sets of nodes, each set cut in two so that pairs of parts are as large."""
    nodes, begins, ends = between
    sizes = (ends - begins).astype(np.int64)
    behind = np.cumsum(sizes)
    firsts = behind - sizes
    edges = np.repeat(begins.astype(np.int64) - firsts, sizes) + np.arange(sizes.sum())
    half = np.searchsorted(behind, sizes.sum() / 2)
    middle = np.median(heads[edges]) if edges.size else 0
    lower = np.add.reduceat(heads[edges] < middle, firsts) if edges.size else sizes
    splits = begins + lower.astype(np.uint64)

    def part(which: slice, begins: IntArray, ends: IntArray) -> Span:
        some = begins[which] < ends[which]
        return Span.of(nodes[which][some], begins[which][some], ends[which][some])

    up, down = slice(0, half), slice(half, None)
    return (
        (part(up, begins, splits), part(down, splits, ends)),
        (part(up, splits, ends), part(down, begins, splits)),
    )
