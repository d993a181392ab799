"""Graph-TV prox of free columns: edge sweeps, and exact flow where sweeps would take longer.

Sweeps bring a dual close very quickly when smoothing is weak or the dual is warm; they crawl when
mass has to travel far. Flow travels far cheaply and takes up the sweeps' dual where they stopped.
"""

from typing import NamedTuple

import numpy as np

from tvsvm.results import BoolArray, FloatArray, IntArray
from tvsvm.solvers import _tv_flow as flow
from tvsvm.solvers._tv_sweeps import HALF_LANES, polish
from tvsvm.solvers._tv_team import Team

FIRST_CHECK = 6  # sweeps before the first look at the gap,
CHECK_GROWTH = 1.5  # and by how much the number of sweeps grows from one look to the next
# Costs in nanoseconds per edge and column, to choose between sweeps and flow. Counts decide, not
# clocks: the same input always takes the same path.
SWEEP_COST, WIDE_SWEEP_COST = 4.0, 2.0  # of one column, of several; with a share of the looks
FLOW_COST, FLOW_COST_OF_PIECES = 30.0, 15.0  # fitted on kNN graphs of 4,495 and 70,000 nodes
POLISH_WITHIN = 100.0  # times the gap allowed: polishing seldom gains more
FLOW_LIMIT = 5_000  # arc visits per edge; usual are under 500


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
    return 1 if columns == 1 else -(-columns // HALF_LANES) * HALF_LANES


def rounding_floor(z: FloatArray) -> FloatArray:
    """Gap of each column that is rounding: relative gaps mean nothing for constant functions."""
    centred = z - z.mean(axis=0)
    return float(np.finfo(z.dtype).eps) * 0.5 * np.einsum("ik,ik->k", centred, centred)


def solve_free(
    team: Team,
    z: FloatArray,
    strength: FloatArray,
    dual: FloatArray,
    tol: float,
    max_iter: int,
) -> Columns:
    """Minimise strength_k TV(x_k) + ½|x_k - z_k|² in every column, from a feasible dual.

    The dual may be overwritten.
    """
    block = _Block(team, z, strength, dual, tol)
    columns = np.arange(z.shape[1])
    result: Columns | None = None
    n_iter, run = 0, FIRST_CHECK
    if dual.any():
        run = 0  # a warm dual may be good enough as it is
    else:
        block.note_gap()
    while True:
        run = min(run, max_iter - n_iter)
        block.sweep(run)
        n_iter += run
        open_ = block.look(n_iter)
        last = n_iter >= max_iter or not open_.any()
        if last and result is None:
            return block.result(n_iter)
        # Columns that are done cost as much as the others: drop them once they fill half.
        if last or 2 * padded_width(int(open_.sum())) <= padded_width(columns.size):
            leaving = ~open_ | last
            result = result or _empty_result(z, dual)
            block.write(result, columns, leaving)
            columns = columns[~leaving]
            if columns.size == 0:
                return result._replace(n_iter=n_iter)
            block = block.keep(~leaving)
        run = max(FIRST_CHECK, int(run * CHECK_GROWTH))


def _empty_result(z: FloatArray, dual: FloatArray) -> Columns:
    c = z.shape[1]
    x, p = np.empty_like(z), np.empty_like(dual)
    return Columns(x, p, np.empty(c), np.empty(c), np.empty(c, dtype=bool), 0)


class _Block:
    """Some columns under way: their dual, best primal and certificate."""

    def __init__(
        self,
        team: Team,
        z: FloatArray,
        strength: FloatArray,
        dual: FloatArray,
        tol: float,
    ) -> None:
        self.n_columns = z.shape[1]
        width = padded_width(self.n_columns)
        self.team, self.tol = team, tol
        self.z, self.strength, self.dual = (pad(a, width) for a in (z, strength, dual))
        self.g = np.empty_like(self.z)
        team.primal(self.z, self.dual, self.g)
        self.x = np.empty_like(self.z)
        self.gap: FloatArray = np.zeros(width)
        self.value: FloatArray = np.zeros(width)
        self.raw_gap: FloatArray = np.zeros(width)
        self.floor = rounding_floor(self.z)
        self.flow_tried = np.zeros(width, dtype=bool)
        self.looked_at = 0

    def sweep(self, times: int) -> None:
        self.team.sweep(self.strength, self.g, self.dual, times)

    def look(self, n_iter: int) -> BoolArray:
        """Certify the columns, finish slow ones by flow; return which remain open."""
        before, sweeps = self.raw_gap, n_iter - self.looked_at
        self.team.primal(self.z, self.dual, self.g)
        self.x[:] = self.g
        self.note_gap()
        k = np.flatnonzero(self._open())
        per_sweep = np.log(before[k] / self.raw_gap[k]) / sweeps if sweeps else np.full(k.size, 1e9)
        # Polishing costs as much as many wide sweeps: only where it may end the column's solve.
        near = self.gap[k] < POLISH_WITHIN * self._target()[k]
        worth = near | self._slow(k, per_sweep, np.ones_like(k)) | (self.gap.size == 1)
        k, per_sweep = k[worth], per_sweep[worth]
        pieces = self._polish(k)
        slow = self._open()[k] & ~self.flow_tried[k] & self._slow(k, per_sweep, pieces)
        self._finish_by_flow(k[slow])
        self.looked_at = n_iter
        return self._open()[: self.n_columns]

    def _target(self) -> FloatArray:
        return self.tol * self.value + self.floor

    def _open(self) -> BoolArray:
        return self.gap > self._target()

    def _polish(self, columns: IntArray) -> IntArray:
        """Take the polished version of columns where it is better; returns their pieces."""
        pieces = np.ones_like(columns)
        if columns.size:
            candidate = self.g.copy()
            arrays = (*self.team.layout, self.strength, self.g, self.dual)
            pieces[:] = self.team.map(lambda k: polish(*arrays, k, candidate), columns.tolist())
            self._improve(candidate)
        return pieces

    def _improve(self, candidate: FloatArray) -> None:
        """Take the columns of another primal that have a smaller gap."""
        gap, value = self._gap(candidate)
        better = gap < self.gap
        self.x[:, better] = candidate[:, better]
        self.gap, self.value = np.where(better, gap, self.gap), np.where(better, value, self.value)

    def _gap(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.team.gap_and_value(self.strength, self.z, self.g, self.dual, x)

    def note_gap(self) -> None:
        """Take stock of g itself. Its gap falls steadily, where that of the polished g jumps."""
        self.gap, self.value = self._gap(self.g)
        self.raw_gap = self.gap.copy()

    def _slow(self, k: IntArray, per_sweep: FloatArray, pieces: IntArray) -> BoolArray:
        """Where sweeping on, at this logarithmic rate, is predicted to cost more than flow."""
        left = np.log(np.maximum(self.gap[k] / self._target()[k], 1.0))
        by_flow = FLOW_COST + FLOW_COST_OF_PIECES * pieces**0.45
        by_sweeps = left * (SWEEP_COST if self.gap.size == 1 else WIDE_SWEEP_COST)
        return by_sweeps > per_sweep * by_flow

    def _finish_by_flow(self, columns: IntArray) -> None:
        if columns.size == 0:
            return
        arcs = flow.arcs(*self.team.layout[:2])
        candidate = self.x.copy()

        def solve(k: int) -> None:
            bound = (self.team.layout.weights * self.strength[k]).astype(np.float64)
            g, p = (np.array(a[:, k], dtype=np.float64) for a in (self.g, self.dual))
            x = np.empty_like(g)
            flow.solve_column(*arcs, bound, g, p, x, FLOW_LIMIT * bound.size)
            self.dual[:, k], candidate[:, k] = p, x

        self.team.map(solve, columns.tolist())
        self.flow_tried[columns] = True
        self.team.primal(self.z, self.dual, self.g)
        # The dual changed, so the gap of the old primal is not known any more.
        self.gap[columns] = np.inf
        self._improve(candidate)

    def keep(self, which: BoolArray) -> "_Block":
        """The same block with only the columns marked."""
        index = np.flatnonzero(which)
        small = _Block(
            self.team, self.z[:, index], self.strength[index], self.dual[:, index], self.tol
        )
        small.x[:, : index.size] = self.x[:, index]
        for name in ("gap", "value", "raw_gap", "flow_tried"):
            getattr(small, name)[: index.size] = getattr(self, name)[index]
        small.looked_at = self.looked_at
        return small

    def result(self, n_iter: int) -> Columns:
        """All columns as they are."""
        c = self.n_columns
        return Columns(
            self.x[:, :c], self.dual[:, :c], self.gap[:c], self.value[:c], self._open()[:c], n_iter
        )

    def write(self, result: Columns, columns: IntArray, which: BoolArray) -> None:
        """Put the marked columns where they belong in the result."""
        index = np.flatnonzero(which)
        into = columns[index]
        result.x[:, into] = self.x[:, index]
        result.dual[:, into] = self.dual[:, index]
        result.gap[into] = self.gap[index]
        result.value[into] = self.value[index]
        result.open[into] = self._open()[index]
