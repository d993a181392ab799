"""Graph-TV prox of free columns: edge sweeps, and exact flow where sweeps would take longer.

Sweeps bring a dual close very quickly when smoothing is weak or the dual is warm; they crawl when
mass has to travel far. Flow travels far cheaply and takes up the sweeps' dual where they stopped.
"""

from typing import NamedTuple

import numpy as np

from tvsvm.results import BoolArray, FloatArray, IntArray
from tvsvm.solvers import _tv_flow as flow
from tvsvm.solvers._tv_sweeps import (
    LANES,
    dual_to_primal,
    gap_and_value,
    polish,
    sweep_blocks,
    sweep_column,
)

FIRST_CHECK = 6  # sweeps before the first look at the gap,
CHECK_GROWTH = 1.5  # and by how much the number of sweeps grows from one look to the next
# Costs in nanoseconds per edge and column, to choose between sweeps and flow. Counts decide, not
# clocks: the same input always takes the same path.
SWEEP_COST = 4.0  # with its share of the looks at the gap
FLOW_COST = 60.0  # times 1 + log2(pieces), fitted on kNN graphs of 4,495 and 70,000 nodes
FLOW_LIMIT = 5_000  # arc visits per edge; usual are under 500


class Layout(NamedTuple):
    """The edges as the loops want them: see `Graph.indptr`, `Graph.heads`."""

    indptr: IntArray
    heads: IntArray
    weights: FloatArray


def unsigned_layout(indptr: IntArray, heads: IntArray, weights: FloatArray) -> Layout:
    """Layout whose indices the loops need not test for counting from the end."""
    return Layout(indptr.view(np.uint64), heads.view(np.uint32), weights)


class Columns(NamedTuple):
    """What a solve of some columns returns; gap, objective and whether above tolerance, each."""

    x: FloatArray
    dual: FloatArray
    gap: FloatArray
    value: FloatArray
    open: BoolArray
    n_iter: int


def pad(array: FloatArray, columns: int) -> FloatArray:
    """Append zero columns: the vector loop works on whole registers."""
    if array.shape[-1] == columns:
        return np.ascontiguousarray(array)
    wide = np.zeros((*array.shape[:-1], columns), array.dtype)
    wide[..., : array.shape[-1]] = array
    return wide


def padded_width(columns: int) -> int:
    """Smallest number of columns that `sweep` takes."""
    return 1 if columns == 1 else -(-columns // LANES) * LANES


def rounding_floor(z: FloatArray) -> FloatArray:
    """Gap of each column that is rounding: relative gaps mean nothing for constant functions."""
    centred = z - z.mean(axis=0)
    return float(np.finfo(z.dtype).eps) * 0.5 * np.einsum("ik,ik->k", centred, centred)


def sweep(
    layout: Layout, strength: FloatArray, g: FloatArray, p: FloatArray, times: int = 1
) -> None:
    """Run Gauss-Seidel passes over the dual, in place."""
    loop = sweep_column if g.shape[1] == 1 else sweep_blocks
    for _ in range(times):
        loop(*layout, strength, g, p)


def solve_free(
    layout: Layout,
    z: FloatArray,
    strength: FloatArray,
    dual: FloatArray,
    tol: float,
    max_iter: int,
) -> Columns:
    """Minimise strength_k TV(x_k) + ½|x_k - z_k|² in every column, from a feasible dual."""
    n_columns = z.shape[1]
    result = Columns(
        x=np.empty_like(z),
        dual=np.empty_like(dual),
        gap=np.empty(n_columns),
        value=np.empty(n_columns),
        open=np.empty(n_columns, dtype=bool),
        n_iter=0,
    )
    columns = np.arange(n_columns)
    block = _Block(layout, z, strength, dual, tol)
    n_iter = 0
    run = 0 if dual.any() else FIRST_CHECK  # a warm dual may be good enough as it is
    while True:
        run = min(run, max_iter - n_iter)
        block.sweep(run)
        n_iter += run
        open_ = block.look(n_iter)
        last = n_iter >= max_iter or not open_.any()
        # Columns that are done cost as much as the others: drop them once they fill half.
        if last or 2 * padded_width(int(open_.sum())) <= padded_width(columns.size):
            leaving = ~open_ | last
            block.write(result, columns, leaving)
            columns = columns[~leaving]
            if columns.size == 0:
                return result._replace(n_iter=n_iter)
            block = block.keep(~leaving)
        run = max(FIRST_CHECK, int(run * CHECK_GROWTH))


class _Block:
    """Some columns under way: their dual, best primal and certificate."""

    def __init__(
        self,
        layout: Layout,
        z: FloatArray,
        strength: FloatArray,
        dual: FloatArray,
        tol: float,
    ) -> None:
        self.n_columns = z.shape[1]
        width = padded_width(self.n_columns)
        self.layout, self.tol = layout, tol
        self.z, self.strength, self.dual = (pad(a, width) for a in (z, strength, dual))
        if self.dual is dual:
            self.dual = dual.copy()
        self.g = np.empty_like(self.z)
        dual_to_primal(layout.indptr, layout.heads, self.z, self.dual, self.g)
        self.x = np.empty_like(self.z)
        self.gap, self.value = self._gap(self.g)
        self.raw_gap = self.gap  # of g itself: falls steadily, where the polished one jumps
        self.floor = rounding_floor(self.z)
        self.flow_tried = np.zeros(width, dtype=bool)
        self.looked_at = 0

    def sweep(self, times: int) -> None:
        sweep(self.layout, self.strength, self.g, self.dual, times)

    def look(self, n_iter: int) -> BoolArray:
        """Certify the columns, finish slow ones by flow; return which remain open."""
        before = self.raw_gap
        pieces = self._certify()
        if n_iter > self.looked_at:
            sweeps = n_iter - self.looked_at
            for k in np.flatnonzero(self._open() & ~self.flow_tried).tolist():
                if self._slow(k, np.log(before[k] / self.raw_gap[k]) / sweeps, pieces[k]):
                    self._finish_by_flow(k)
            self.looked_at = n_iter
        return self._open()[: self.n_columns]

    def _open(self) -> BoolArray:
        return self.gap > self.tol * self.value + self.floor

    def _certify(self) -> IntArray:
        """Best of g and its polished version for every column; returns the polished pieces."""
        dual_to_primal(self.layout.indptr, self.layout.heads, self.z, self.dual, self.g)
        self.x[:] = self.g
        self.gap, self.value = self._gap(self.g)
        self.raw_gap = self.gap.copy()
        pieces = np.ones(self.gap.size, dtype=np.int64)
        open_ = np.flatnonzero(self._open())
        if open_.size:
            polished = self.g.copy()
            for k in open_.tolist():
                pieces[k] = polish(*self.layout, self.strength, self.g, self.dual, k, polished)
            gap, value = self._gap(polished)
            for k in open_[gap[open_] < self.gap[open_]].tolist():
                self.x[:, k] = polished[:, k]
                self.gap[k], self.value[k] = gap[k], value[k]
        return pieces

    def _gap(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return gap_and_value(*self.layout, self.strength, self.z, self.g, self.dual, x)

    def _slow(self, k: int, per_sweep: float, pieces: int) -> bool:
        """Whether sweeping on, at this logarithmic rate, is predicted to cost more than flow."""
        target = self.tol * self.value[k] + self.floor[k]
        left = np.log(self.gap[k] / target)
        return bool(left * SWEEP_COST > per_sweep * FLOW_COST * (1.0 + np.log2(pieces)))

    def _finish_by_flow(self, k: int) -> None:
        bound = (self.layout.weights * self.strength[k]).astype(np.float64)
        g, p = (np.array(a[:, k], dtype=np.float64) for a in (self.g, self.dual))
        x = np.empty_like(g)
        arcs = flow.arcs(self.layout.indptr, self.layout.heads)
        flow.solve_column(*arcs, bound, g, p, x, FLOW_LIMIT * bound.size)
        self.flow_tried[k] = True
        self.dual[:, k] = p
        dual_to_primal(self.layout.indptr, self.layout.heads, self.z, self.dual, self.g)
        candidate = self.x.copy()
        candidate[:, k] = x
        gap, value = self._gap(candidate)
        self.x[:, k] = candidate[:, k]
        self.gap[k], self.value[k] = gap[k], value[k]

    def keep(self, which: BoolArray) -> "_Block":
        """The same block with only the columns marked."""
        index = np.flatnonzero(which)
        small = _Block(
            self.layout, self.z[:, index], self.strength[index], self.dual[:, index], self.tol
        )
        small.x[:, : index.size] = self.x[:, index]
        for name in ("gap", "value", "raw_gap", "flow_tried"):
            getattr(small, name)[: index.size] = getattr(self, name)[index]
        small.looked_at = self.looked_at
        return small

    def write(self, result: Columns, columns: IntArray, which: BoolArray) -> None:
        """Put the marked columns where they belong in the result."""
        index = np.flatnonzero(which)
        into = columns[index]
        result.x[:, into] = self.x[:, index]
        result.dual[:, into] = self.dual[:, index]
        result.gap[into] = self.gap[index]
        result.value[into] = self.value[index]
        result.open[into] = self._open()[index]
