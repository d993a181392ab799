"""Graph-TV prox with constrained rows: on the simplex, fixed, or both.

Block coordinate descent on the dual. One block is the edges (a sweep, as without constraints), the
other the rows' own multipliers Y, whose best value given the edges is V - Proj(V), V = Z - Dᵀp.
Where rows are fixed, but not on the simplex, flow ends what would take many sweeps.
"""

import numpy as np

from tvsvm.results import BoolArray, FloatArray
from tvsvm.solvers import _tv_flow as flow
from tvsvm.solvers._helper import Helper, halves
from tvsvm.solvers._tv_edges import Edges
from tvsvm.solvers._tv_hybrid import (
    CHECK_GROWTH,
    FIRST_CHECK,
    FLOW_LIMIT,
    Columns,
    Start,
    dual_type,
    first_dual,
    pad,
    padded_width,
    towards_zero,
)
from tvsvm.solvers._tv_polish import polish_rows
from tvsvm.solvers._tv_scale import rounding_floor
from tvsvm.solvers.simplex import project_rows

# Largest entry of Z for sweeps in single precision: rows are projected, so what counts is the
# precision next to 1, and gaps of SINGLE_TOL need five digits there.
SINGLE_SIZE = 100.0
FLOW_SWEEPS = 40  # sweeps that take as long as a flow
# Of the gap asked for, what flows may leave: the second is used if the first one, with what
# fixed rows have moved in it, was not enough.
FLOW_SHARES = (0.5, 0.05)
# Mass of fixed rows in a flow, over what pulls at them, by which they move less than free ones: so
# little that the gap, in which they do not move at all, is as small as is asked for; and flows are
# not lost in rounding.
HEAVY = 1e6


class RowConstraint:
    """The set each row lives in: the simplex or everything, and for fixed rows their value."""

    def __init__(self, z: FloatArray, simplex: bool, fixed: BoolArray) -> None:
        self.n_columns = z.shape[1]
        self.simplex = simplex
        self.fixed = fixed
        self.values = z[fixed]

    def rounding_floor(self, dtype: np.dtype) -> float:
        """Gap that is rounding for rows on the simplex, whose scale is 1 whatever z is."""
        eps = float(np.finfo(dtype).eps)
        return 0.5 * eps * self.fixed.size if self.simplex else 0.0

    def project(self, v: FloatArray, out: FloatArray, helper: Helper) -> None:
        """Write the projection of `v` into `out`; columns beyond the problem's are padding."""
        c = self.n_columns
        if self.simplex:
            helper.share(lambda rows: project_rows(v[rows, :c], out[rows, :c]), *halves(len(v)))
        else:
            out[:] = v
        out[self.fixed, :c] = self.values


def solve_rows(
    edges: Edges,
    z: FloatArray,
    strength: FloatArray,
    start: Start | None,
    rows: RowConstraint,
    tol: float,
    max_iter: int,
) -> Columns:
    """Minimise Σ_k strength_k TV(x_k) + ½|X - Z|² over X with constrained rows."""
    c = z.shape[1]
    single = rows.simplex and np.abs(z).max() < SINGLE_SIZE
    dtype = dual_type(strength, edges.weights, tol) if single else z.dtype
    width = padded_width(c, dtype)
    z, strength = pad(z, width), pad(strength, width)
    sweep_strength = towards_zero(strength, dtype, ulps=2)
    p = first_dual(edges, start, strength, width, dtype)
    floor = rounding_floor(z).sum() + rows.rounding_floor(dtype)
    v = np.empty_like(z)
    x = np.zeros(z.shape, dtype)
    edges.primal(z, p, v)
    n_iter = 0
    run = FIRST_CHECK if start is None else 0
    before, shares = np.inf, [] if rows.simplex else list(FLOW_SHARES)
    while True:
        run = min(run, max_iter - n_iter)
        moving = v.astype(dtype)
        for _ in range(run):
            rows.project(moving, x, edges.helper)
            moving -= x
            edges.sweep(sweep_strength, x, p)
            moving += x
        n_iter += run
        best, gap, value = _best_primal(edges, z, strength, p, rows, v)
        open_ = gap > tol * value + floor
        if open_ and shares and run > 0:
            gain, left = np.log(before / gap) / run, np.log(gap / (tol * value + floor))
            if left > gain * FLOW_SWEEPS:
                allowed = shares.pop(0) * tol * max(value - gap, 0.0)
                found = _flow(edges, strength, p, rows, v, allowed)
                best, gap, value = _best_primal(edges, z, strength, p, rows, v, found)
                open_ = gap > tol * value + floor
        before = gap
        if not open_ or n_iter >= max_iter:
            return joint_columns(best[:, :c], p[:, :c], gap, value, open_, n_iter)
        run = max(FIRST_CHECK, int(run * CHECK_GROWTH))


def _flow(
    edges: Edges,
    strength: FloatArray,
    p: FloatArray,
    rows: RowConstraint,
    v: FloatArray,
    allowed: float,
) -> FloatArray:
    """Improve the dual of fixed rows by flow, in place, until it is allowed to end; v = z - Dᵀp.

    Return its primal.
    """
    primal = np.zeros_like(v)
    start, _, edge, _ = edges.arcs
    links = np.append(0.0, np.cumsum(edges.weights[edge], dtype=np.float64))
    degree = np.diff(links[start])[rows.fixed].max(initial=0.0)
    share = allowed / (len(v) * rows.n_columns)
    for k in range(rows.n_columns):
        bound = (edges.weights * strength[k]).astype(np.float64)
        g, dual = v[:, k].astype(np.float64), p[:, k].astype(np.float64)
        values = rows.values[:, k]
        heavy = HEAVY * max(1.0, float(strength[k] * degree))
        mass = np.where(rows.fixed, heavy, 1.0)
        g[rows.fixed] = values + (g[rows.fixed] - values) / heavy
        x, limit = np.empty_like(g), FLOW_LIMIT * bound.size
        flow.solve_column(*edges.arcs, bound, mass, g, dual, x, share, limit, edges.helper)
        p[:, k], primal[:, k] = towards_zero(dual, p.dtype), x
    return primal


def joint_columns(
    x: FloatArray, dual: FloatArray, gap: float, value: float, open_: bool, n_iter: int
) -> Columns:
    """Result of columns that are one problem: gap, value and status as arrays of length 1."""
    return Columns(x, dual, np.array([gap]), np.array([value]), np.array([open_]), n_iter)


def certify(
    edges: Edges,
    z: FloatArray,
    strength: FloatArray,
    p: FloatArray,
    v: FloatArray,
    nearest: FloatArray,
    x: FloatArray,
) -> tuple[float, float]:
    """Gap and value of any feasible x for the dual p, with v = z - Dᵀp and its projection.

    The rows' share of the gap, ½|x - v|² - ½|nearest - v|², is written so that nothing cancels.
    """
    gaps, values = edges.gap_and_value(strength, z, nearest, p, x)
    beyond = float(np.vdot(x - nearest, nearest - v))  # never negative but for rounding
    return float(gaps.sum()) + max(beyond, 0.0), float(values.sum())


def _best_primal(
    edges: Edges,
    z: FloatArray,
    strength: FloatArray,
    p: FloatArray,
    rows: RowConstraint,
    v: FloatArray,
    *others: FloatArray,
) -> tuple[FloatArray, float, float]:
    """Best primal for the dual p, with its gap and value; makes v = z - Dᵀp anew.

    Of the nearest rows that are allowed, these averaged over pieces, and others.
    """
    edges.primal(z, p, v)
    nearest = np.zeros_like(v)
    rows.project(v, nearest, edges.helper)
    polished = polish_rows(
        edges.indptr, edges.heads, edges.weights, strength, p, rows.fixed, nearest, v
    )
    for other in (polished, *others):
        rows.project(other, other, edges.helper)
    certified = [
        (x, *certify(edges, z, strength, p, v, nearest, x)) for x in (nearest, polished, *others)
    ]
    return min(certified, key=lambda one: one[1])
