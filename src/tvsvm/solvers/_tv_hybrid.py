"""Graph-TV prox of free columns: edge sweeps, and exact flow where sweeps would take longer.

Sweeps bring a dual close very quickly when smoothing is weak or the dual is warm; they crawl when
mass has to travel far. Flow travels far cheaply and takes up the sweeps' dual where they stopped.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from tvsvm.results import BoolArray, FloatArray, IntArray
from tvsvm.solvers import _tv_flow as flow
from tvsvm.solvers._tv_edges import Edges
from tvsvm.solvers._tv_scale import rounding_floor
from tvsvm.solvers._tv_sweeps import HALF_REGISTER

FIRST_CHECK, WARM_CHECK = 6, 4  # sweeps before the first look at the gap, without and with a dual,
CHECK_GROWTH = 1.5  # and by how much the number of sweeps grows from one look to the next
# Costs in nanoseconds per edge and column, to choose between sweeps and flow. Counts decide, not
# clocks: the same input always takes the same path.
SWEEP_COST, WIDE_SWEEP_COST = 4.0, 1.0  # of one column, of several; with a share of the looks
FLOW_COST, FLOW_COST_OF_PIECES = 30.0, 15.0  # fitted on kNN graphs of 4,495 and 70,000 nodes
POLISH_WITHIN = 100.0  # times the gap allowed: polishing seldom gains more
WORTH_POLISHING = 0.8  # of its gap at most must be left to one column before others are polished
FLOW_LIMIT = 5_000  # arc visits per edge; usual are under 500
# From this tolerance on the dual of several columns is held, and swept, in float32: half the bytes,
# twice the lanes. Rounding costs 4e-7 of the objective, more where duals are far larger than
# functions, as on long paths; gaps are computed in float64.
SINGLE_TOL = 1e-5
SINGLE_RANGE = 1e18  # largest weight, strength, bound or scale for that


class Columns(NamedTuple):
    """What a solve of some columns returns; gap, objective and whether above tolerance, each."""

    x: FloatArray
    dual: FloatArray
    gap: FloatArray
    value: FloatArray
    open: BoolArray
    n_iter: int


def pad(array: FloatArray, columns: int) -> FloatArray:
    """Append zero columns: sweeps work on whole half registers."""
    if array.shape[-1] == columns:
        return np.ascontiguousarray(array)
    wide = np.zeros((*array.shape[:-1], columns), array.dtype)
    wide[..., : array.shape[-1]] = array
    return wide


def padded_width(columns: int, dtype: np.dtype) -> int:
    """Smallest number of columns that `sweep` takes for duals of this type."""
    lanes = HALF_REGISTER // dtype.itemsize
    return 1 if columns == 1 else -(-columns // lanes) * lanes


def dual_type(strength: FloatArray, weights: FloatArray, tol: float) -> np.dtype:
    """In which precision to hold the dual; one column alone gains nothing from a shorter one."""
    if strength.size == 1 or tol < SINGLE_TOL:
        return strength.dtype
    heaviest, strongest = float(weights.max(initial=0.0)), float(strength.max())
    within = max(heaviest, strongest, heaviest * strongest) < SINGLE_RANGE
    return np.dtype(np.float32) if within else strength.dtype


def towards_zero(array: FloatArray, dtype: np.dtype, ulps: int = 1) -> FloatArray:
    """Convert to a shorter type, so much nearer to zero that rounding cannot lead beyond."""
    return (array * _shrink(array.dtype, dtype, ulps)).astype(dtype)


def _shrink(given: np.dtype, dtype: np.dtype, ulps: int = 1) -> float:
    """By what to multiply bounds of numbers that are converted to a shorter type."""
    return 1.0 - ulps * float(np.finfo(dtype).eps) if dtype.itemsize < given.itemsize else 1.0


class Start(NamedTuple):
    """A dual to start from, its columns in units of `scale`."""

    dual: FloatArray
    scale: FloatArray


def first_dual(
    edges: Edges, start: Start | None, strength: FloatArray, width: int, dtype: np.dtype
) -> FloatArray:
    """The given dual within its bounds, or zero, so wide and of the type wanted."""
    p = np.zeros((edges.heads.size, width), dtype)
    if start is not None:
        edges.bring_dual(*start, strength, _shrink(strength.dtype, dtype), p)
    return p


def solve_columns(
    edges: Edges,
    z: FloatArray,
    strength: FloatArray,
    start: Start | None,
    tol: float,
    max_iter: int,
) -> Columns:
    """Minimise strength_k TV(x_k) + ½|x_k - z_k|² in every column."""
    fewest = FIRST_CHECK if start is None else WARM_CHECK
    block = _Block.begin(edges, z, strength, start, tol)
    result = _Result(block)

    def sweep(block: _Block, columns: IntArray, run: int) -> None:
        while True:
            run = min(run, max_iter - block.n_iter)
            block.sweep(run)
            slow = block.look()
            for k in np.flatnonzero(slow):
                edges.helper.give(partial(end, block.take(np.array([k])), columns[[k]]))
            stop = block.n_iter >= max_iter
            # Columns that are done cost as much as the others: drop them once they fill half.
            if stop or 2 * block.width(block.open.sum()) <= block.width(columns.size):
                result.put(block, columns, stop)
                left = np.flatnonzero(block.open)
                if stop or left.size == 0:
                    return
                block, columns = block.take(left), columns[left]
            run = max(fewest, int(run * CHECK_GROWTH))

    def end(block: _Block, columns: IntArray) -> None:
        block.end_by_flow()
        if block.open.any():
            sweep(block, columns, fewest)
        else:
            result.put(block, columns)

    if start is None:
        block.note_gap()
    # A warm dual may be good enough as it is.
    sweep(block, np.arange(z.shape[1]), fewest if start is None else 0)
    edges.helper.finish()
    return result.gather()


class _Result:
    """Columns as they are solved, by whichever block.

    Those of the first block stay where they are, and the others join them when it rests: new memory
    for all would cost as much as many sweeps.
    """

    def __init__(self, first: "_Block") -> None:
        c = first.n_columns
        self._first, self._others = first, list[tuple[IntArray, _Block, IntArray]]()
        self._gap, self._value, self._open = np.empty(c), np.empty(c), np.empty(c, dtype=bool)
        self._n_iter = np.zeros(c, dtype=np.int64)

    def put(self, block: "_Block", columns: IntArray, all_: bool = False) -> None:
        """Take the columns of a block that are solved, or all; `columns` is where they belong."""
        index = np.flatnonzero(~block.elsewhere[: block.n_columns] & (all_ | ~block.open))
        into = columns[index]
        if block is not self._first:
            self._others.append((into, block, index))
        self._gap[into], self._value[into] = block.gap[index], block.value[index]
        self._open[into], self._n_iter[into] = block.open[index], block.n_iter

    def gather(self) -> Columns:
        """What was found, when no block is under way any more."""
        x, p = self._first.x, self._first.dual
        # A column that flow ended may have a dual of full precision.
        p = p.astype(np.result_type(p, *(block.dual for _, block, _ in self._others)), copy=False)
        for into, block, index in self._others:
            block.edges.put(x, into, block.x, index)
            block.edges.put(p, into, block.dual, index)
        c, n_iter = self._first.n_columns, int(self._n_iter.max())
        return Columns(x[:, :c], p[:, :c], self._gap, self._value, self._open, n_iter)


class _Block:
    """Some columns under way: their dual, best primal and certificate."""

    def __init__(
        self,
        edges: Edges,
        z: FloatArray,
        strength: FloatArray,
        dual: FloatArray,
        g: FloatArray,
        tol: float,
    ) -> None:
        self.n_columns = z.shape[1]
        self.edges, self.tol = edges, tol
        width = padded_width(self.n_columns, dual.dtype)
        self.z, self.strength = pad(z, width), pad(strength, width)
        self.dual, self.g = pad(dual, width), pad(g, width)
        # Products with rounded weights must stay within the true bounds as well.
        self.sweep_strength = towards_zero(self.strength, dual.dtype, ulps=2)
        self.x = self.g
        self._swept = self.g if dual.dtype == g.dtype else np.empty_like(self.g, dual.dtype)
        self.gap: FloatArray = np.zeros(width)
        self.value: FloatArray = np.zeros(width)
        self.raw_gap: FloatArray = np.zeros(width)
        self.floor = rounding_floor(self.z)
        self.rate: FloatArray = np.full(width, np.inf)  # at which log(raw_gap) falls, a sweep
        self.in_vain = np.zeros(width, dtype=bool)  # polished
        self.elsewhere = np.zeros(width, dtype=bool)  # taken by a block of its own
        self.flow_tried = False
        self.n_iter = self.looked_at = 0

    @classmethod
    def begin(
        cls,
        edges: Edges,
        z: FloatArray,
        strength: FloatArray,
        start: Start | None,
        tol: float,
    ) -> "_Block":
        """All columns, from a given dual or none."""
        dtype = dual_type(strength, edges.weights, tol)
        width = padded_width(z.shape[1], dtype)
        wide = pad(z, width)
        dual, g = first_dual(edges, start, pad(strength, width), width, dtype), np.empty_like(wide)
        if start is None:
            edges.copy(wide, g)
        else:
            edges.primal(wide, dual, g)
        return cls(edges, z, strength, dual, g, tol)

    def width(self, columns: int) -> int:
        """How many columns a sweep of so many would take."""
        return padded_width(columns, self.dual.dtype)

    @property
    def open(self) -> BoolArray:
        """Columns of this block that are not solved yet."""
        return ((self.gap > self._target()) & ~self.elsewhere)[: self.n_columns]

    def sweep(self, times: int) -> None:
        """Improve the dual; g is made anew from it by the look that follows."""
        if self._swept is not self.g:
            self.edges.copy(self.g, self._swept)
        self.edges.sweep(self.sweep_strength, self._swept, self.dual, times)
        self.n_iter += times

    def look(self) -> BoolArray:
        """Certify the columns; return which are to be ended by flow."""
        before, sweeps = self.raw_gap, self.n_iter - self.looked_at
        self.looked_at = self.n_iter
        if sweeps:
            self.edges.primal(self.z, self.dual, self.g)
        self.x = self.g
        self.note_gap()
        k = np.flatnonzero(self.open)
        if sweeps:
            self.rate[k] = np.log(before[k] / self.raw_gap[k]) / sweeps
        # Polishing costs as much as many wide sweeps: only where it may end the column's solve, and
        # not again at once where it gained next to nothing. A single column gains more often, but
        # seldom before its first sweep.
        near = (self.gap[k] < POLISH_WITHIN * self._target()[k]) & ~self.in_vain[k]
        k = k[near | self._slow(k, np.ones_like(k)) | (self.gap.size == 1 and sweeps > 0)]
        # The nearest column first: it tells whether the time has come, and about how many pieces
        # there are.
        k = k[np.argsort(self.gap[k] / self._target()[k], kind="stable")]
        first, others = k[:1], k[1:]
        pieces = np.repeat(self._polish(first), k.size)
        if (self.gap[first] <= WORTH_POLISHING * self.raw_gap[first]).all():
            pieces[1:] = self._polish(others)
        self.in_vain[:] = False
        self.in_vain[k] = self.gap[k] > 0.9 * self.raw_gap[k]
        slow = np.zeros(self.n_columns, dtype=bool)
        if not self.flow_tried:
            slow[k] = self.open[k] & self._slow(k, pieces)
        return slow

    def _target(self) -> FloatArray:
        return self.tol * self.value + self.floor

    def _polish(self, columns: IntArray) -> IntArray:
        """Take the polished version of columns where it is better; returns their pieces."""
        pieces = np.ones_like(columns)
        if columns.size:
            candidate = np.empty_like(self.g)
            pieces = self.edges.polish(self.strength, self.g, self.dual, columns, candidate)
            self._improve(candidate, columns)
        return pieces

    def _improve(self, candidate: FloatArray, columns: IntArray) -> None:
        """Take those of some columns of another primal, its only ones, that have a smaller gap."""
        gap, value = self._gap(candidate, columns)
        better = np.zeros(gap.size, dtype=bool)
        better[columns] = gap[columns] < self.gap[columns]
        if better.any():
            others = np.flatnonzero(~better)
            self.edges.put(candidate, others, self.x, others)
            self.x = candidate
            self.gap, self.value = (
                np.where(better, new, old) for new, old in ((gap, self.gap), (value, self.value))
            )

    def _gap(self, x: FloatArray, columns: IntArray | None = None) -> tuple[FloatArray, FloatArray]:
        return self.edges.gap_and_value(self.strength, self.z, self.g, self.dual, x, columns)

    def note_gap(self) -> None:
        """Take stock of g itself. Its gap falls steadily, where that of the polished g jumps."""
        self.gap, self.value = self._gap(self.g)
        self.raw_gap = self.gap.copy()

    def _slow(self, k: IntArray, pieces: IntArray) -> BoolArray:
        """Where sweeping on is predicted to cost more than flow."""
        by_flow = FLOW_COST + FLOW_COST_OF_PIECES * pieces**0.45
        left = np.log(np.maximum(self.gap[k] / self._target()[k], 1.0))
        # What is left alone when the others are done will be swept as a single column.
        alone = self.open.sum() == 1
        by_sweeps = left * (SWEEP_COST if alone else WIDE_SWEEP_COST)
        return by_sweeps > self.rate[k] * by_flow

    def end_by_flow(self) -> None:
        """Solve the columns but for half of the gap allowed."""
        mass, solution = np.ones(len(self.z)), np.zeros_like(self.z)
        flows = np.zeros_like(self.dual, np.float64)
        # The minimum is not below value - gap, so this is at most half of what will be allowed.
        allowed = 0.5 * self.tol * np.maximum(self.value - self.gap, 0.0) / len(self.z)
        for k in range(self.n_columns):
            bound = (self.edges.weights * self.strength[k]).astype(np.float64)
            g, p = (np.array(a[:, k], dtype=np.float64) for a in (self.g, self.dual))
            x, limit = np.empty_like(g), FLOW_LIMIT * bound.size
            flow.solve_column(
                *self.edges.arcs, bound, mass, g, p, x, allowed[k], limit, self.edges.helper
            )
            flows[:, k], solution[:, k] = p, x
        self.flow_tried = True
        self._flown(towards_zero(flows, self.dual.dtype), solution)
        if self.open.any() and self.dual.dtype != self.z.dtype:
            # What is allowed is less than the rounding of such duals.
            self._swept = self.g
            self.sweep_strength = self.strength
            self._flown(flows.astype(self.z.dtype, copy=False), solution)

    def _flown(self, dual: FloatArray, solution: FloatArray) -> None:
        self.dual = dual
        self.edges.primal(self.z, dual, self.g)
        self.gap[:] = np.inf  # of the old primal, for the new dual, is not known
        self._improve(solution, np.arange(self.n_columns))

    def take(self, index: IntArray) -> "_Block":
        """A block of some of the columns, which leave this one."""
        self.elsewhere[index] = True
        z, dual, g = (np.ascontiguousarray(a[:, index]) for a in (self.z, self.dual, self.g))
        taken = _Block(self.edges, z, self.strength[index], dual, g, self.tol)
        for name in ("gap", "value", "raw_gap", "rate", "in_vain"):
            getattr(taken, name)[: index.size] = getattr(self, name)[index]
        taken.flow_tried, taken.n_iter = self.flow_tried, self.n_iter
        taken.looked_at = self.looked_at
        return taken
