"""The loops of the graph-TV prox over one graph, shared between threads."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from tvsvm.results import FloatArray, IntArray
from tvsvm.solvers._tv_sweeps import (
    gap_and_value,
    last_inner_edges,
    push_dual,
    sweep_blocks,
    sweep_column,
)


class Layout(NamedTuple):
    """The edges as the loops want them, with unsigned indices: see `_tv_sweeps`."""

    indptr: IntArray
    heads: IntArray
    weights: FloatArray


class Team:
    """One or more threads that work on the same columns.

    Nodes are cut into as many parts as there are threads, with about equally many edges inside. In
    a sweep each thread takes the edges inside its part; then one thread takes the edges between
    parts. The order of nodes keeps neighbours close, so those are few. Splitting columns instead is
    slower: a pass over half the columns takes much more than half the time.
    """

    def __init__(self, indptr: IntArray, heads: IntArray, weights: FloatArray, jobs: int) -> None:
        self.layout = Layout(indptr.view(np.uint64), heads.view(np.uint32), weights)
        self.size = jobs
        self.bounds = np.array([0, indptr.size - 1])
        self._begin, self._end = self.layout.indptr[:-1], self.layout.indptr[1:]
        self._inner_end = self._end
        self._pool = None
        if jobs > 1:
            # An edge counts half for each end: for two parts that makes them exactly equal.
            degrees = np.diff(indptr) + np.bincount(heads, minlength=indptr.size - 1)
            shares = np.arange(1, jobs) * (2 * heads.size / jobs)
            inner = np.searchsorted(np.cumsum(degrees), shares)
            self.bounds = np.array([0, *inner.tolist(), indptr.size - 1])
            self._inner_end = last_inner_edges(*self.layout[:2], self.bounds)
            self._pool = ThreadPoolExecutor(jobs)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def map(self, function: Callable[..., Any], *items: Iterable[Any]) -> list[Any]:
        """Call a function for each item, in the threads there are."""
        return list((self._pool.map if self._pool is not None else map)(function, *items))

    def in_parts(self, function: Callable[[int, int], Any]) -> list[Any]:
        """Call a function of a range of nodes for each part."""
        return self.map(function, self.bounds[:-1].tolist(), self.bounds[1:].tolist())

    def over_edges(self, loop: Callable[..., None], *arrays: FloatArray) -> None:
        """Run a loop that writes to both ends of edges: first inside the parts, then between."""
        heads = self.layout.heads
        self.in_parts(
            lambda first, last: loop(self._begin, self._inner_end, heads, *arrays, first, last)
        )
        if self._pool is not None:
            loop(self._inner_end, self._end, heads, *arrays, 0, int(self.bounds[-2]))

    def sweep(self, strength: FloatArray, g: FloatArray, p: FloatArray, times: int = 1) -> None:
        """Run Gauss-Seidel passes over the dual, in place; all arrays of one type."""
        loop = sweep_column if g.shape[1] == 1 else sweep_blocks
        weights = self.layout.weights.astype(g.dtype, copy=False)
        for _ in range(times):
            self.over_edges(loop, weights, strength, g, p)

    def primal(self, z: FloatArray, p: FloatArray, g: FloatArray) -> None:
        """g = z - Dᵀp from scratch: sweeps only keep it up to date, and rounding adds up."""
        g[:] = z
        self.over_edges(push_dual, p, g)

    def gap_and_value(
        self, strength: FloatArray, z: FloatArray, g: FloatArray, p: FloatArray, x: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Duality gap and objective of x for the dual p, per column."""
        shares = self.in_parts(
            lambda first, last: gap_and_value(*self.layout, strength, z, g, p, x, first, last)
        )
        return sum(share[0] for share in shares), sum(share[1] for share in shares)
