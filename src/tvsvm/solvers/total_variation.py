"""The prox of graph total variation, the step that all TV and Cheeger methods share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import joblib
import numpy as np
from numpy.typing import ArrayLike

from tvsvm._threads import a_core_is_free
from tvsvm.results import BoolArray, FloatArray, SolverResult, Status
from tvsvm.solvers._helper import Helper, halves
from tvsvm.solvers._tv_edges import Edges
from tvsvm.solvers._tv_hybrid import SINGLE_RANGE, Columns, Start, solve_columns
from tvsvm.solvers._tv_primal_dual import solve_primal_dual
from tvsvm.solvers._tv_rows import RowConstraint, solve_rows
from tvsvm.solvers._tv_scale import bring_in, bring_out, location_and_scale

if TYPE_CHECKING:
    from tvsvm.graph import Graph

# Below this many edge duals, a tenth of a millisecond a sweep, threads cost more than they save.
WORTH_THREADS = 100_000
METHODS = ("hybrid", "primal-dual")


@dataclass(frozen=True)
class TVProxResult(SolverResult):
    """Solution of the graph-TV prox with its certificate.

    Attributes
    ----------
    solution : ndarray of shape (N, c) or (N,)
        The minimiser G.
    dual : ndarray of shape (E, c) or (E,)
        The dual p, one row for each row of `Graph.edges`, |p_ek| ≤ strength_k w_e; without
        constraints G = Z - Dᵀp. Pass it as `dual` to start a similar problem from here. In single
        precision where it was found in that.
    gap : float
        Objective of `solution` minus the dual's lower bound, never less than the true
        suboptimality: |G - G*|² ≤ 2 gap.
    certificate : float
        The relative gap, gap / objective; of the worst column where columns are independent.
    n_iter : int
        Sweeps (hybrid) or iterations (primal-dual) done.
    """

    dual: FloatArray
    gap: float


def graph_tv_prox(
    graph: Graph,
    Z: ArrayLike,
    strength: ArrayLike = 1.0,
    *,
    simplex: bool = False,
    fixed: ArrayLike | None = None,
    dual: ArrayLike | None = None,
    tol: float = 1e-4,
    max_iter: int = 10_000,
    method: str = "hybrid",
    n_jobs: int | None = None,
) -> TVProxResult:
    """Smooth functions on a graph by total variation.

    min_G Σ_k strength_k TV(g_k) + ½|G - Z|²

    Parameters
    ----------
    graph : Graph
        The graph, N nodes and E edges.
    Z : array-like of shape (N, c) or (N,)
        One function a column. float32 is solved in float32.
    strength : float or array-like of shape (c,)
        Weight of the total variation, a number for all columns or one for each.
    simplex : bool
        Whether the rows of G must be non-negative and sum to one.
    fixed : array-like of shape (N,) of bool, or of indices, optional
        Rows in which G must equal Z.
    dual : array-like of shape (E, c) or (E,), optional
        Where to start: the `dual` of a similar problem. It is clipped to its bounds.
    tol : float
        Stop when the duality gap is at most `tol` times the objective (in every column where
        columns are independent; in all where rows are constrained), or at rounding. From 1e-5 on,
        several columns are swept in single precision; the gap is always one in double precision.
    max_iter : int
        Most sweeps or iterations.
    method : {"hybrid", "primal-dual"}
        "hybrid": Gauss-Seidel over edges, and exact maximum flow where that is predicted to be
        faster. "primal-dual": the paper's accelerated primal-dual iteration.
    n_jobs : int, optional
        Threads, as in scikit-learn: None means one, -1 all cores. More than two are not used, and
        one where the problem is small or others use the processors. The result is the same to the
        last digit.

    Returns
    -------
    TVProxResult
        Solution, dual, gap and iterations.

    Examples
    --------
    >>> from tvsvm.graph import Graph
    >>> from tvsvm.solvers import graph_tv_prox
    >>> path = Graph([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> graph_tv_prox(path, [0.0, 0.0, 9.0], strength=2.0).solution.round(2)
    array([1., 1., 7.])
    """
    z = _checked_functions(Z, graph.n_nodes)
    c = z.shape[1]
    strength = _checked_strength(strength, c)
    held = _checked_rows(fixed, graph.n_nodes)
    _check_options(tol, max_iter, method)
    _check_simplex(z, simplex, held)

    # Centre and scale so that nothing over- or underflows and rounding is relative to what varies;
    # a power of two changes no digit. The simplex has its own scale.
    unit = np.zeros(c, z.dtype), np.ones(c, z.dtype)
    shift, scale = unit if simplex else location_and_scale(z)
    weights = np.asarray(graph.edge_weights, dtype=z.dtype)
    largest = float(weights.max(initial=0.0))
    with np.errstate(over="ignore"):
        bounded = np.minimum(strength / scale, np.finfo(z.dtype).max ** 0.5 / (1.0 + largest))
    s_in = bounded.astype(z.dtype)
    z_in, solution = np.empty_like(z), np.empty_like(z)

    jobs = joblib.effective_n_jobs(n_jobs)
    worth = jobs > 1 and graph.n_edges * c >= WORTH_THREADS and a_core_is_free()
    with Helper(worth) as helper:
        rows_of = halves(graph.n_nodes)
        helper.share(
            lambda rows: bring_in(z, graph.order[rows], shift, scale, z_in[rows]), *rows_of
        )
        start = None
        if dual is not None:
            # Constants are their own solution.
            constant = False if simplex else np.ptp(z_in, axis=0) == 0
            start = Start(_checked_dual(dual, graph.n_edges, c), np.where(constant, np.inf, scale))
        edges = Edges.of(graph, weights, helper)
        if simplex or held.any() or method == "primal-dual":
            rows = RowConstraint(z_in, simplex, held[graph.order])
            solve = solve_primal_dual if method == "primal-dual" else solve_rows
            columns = solve(edges, z_in, s_in, start, rows, tol, max_iter)
        else:
            columns = solve_columns(edges, z_in, s_in, start, tol, max_iter)

        p_out = _scaled(columns.dual, scale, helper)
        helper.share(
            lambda rows: bring_out(columns.x[rows], graph.order[rows], shift, scale, solution),
            *rows_of,
        )
    solution[held] = z[held]
    return _result(columns, solution, p_out, scale, np.ndim(Z))


def _scaled(dual: FloatArray, scale: FloatArray, helper: Helper) -> FloatArray:
    """The dual times the scale, in place unless its precision is too short for that."""
    if scale.max() > SINGLE_RANGE or scale.min() < 1 / SINGLE_RANGE:
        dual = dual.astype(scale.dtype, copy=False)
    factor = scale.astype(dual.dtype)

    def multiply(rows: slice) -> None:
        dual[rows] *= factor

    helper.share(multiply, *halves(len(dual)))
    return dual


def _result(
    columns: Columns,
    solution: FloatArray,
    dual: FloatArray,
    scale: FloatArray,
    ndim: int,
) -> TVProxResult:
    gap, value = columns.gap, columns.value
    # A gap of all columns together may lie in the one of the largest scale.
    unit = (scale if gap.size == scale.size else scale.max()).astype(np.float64)
    with np.errstate(over="ignore"):
        total = float(np.sum(gap * unit * unit))
    relative = np.divide(gap, value, out=np.zeros_like(gap), where=value > 0)
    return TVProxResult(
        solution=solution[:, 0] if ndim == 1 else solution,
        status=Status.MAX_ITER if columns.open.any() else Status.CONVERGED,
        n_iter=columns.n_iter,
        certificate=float(relative.max(initial=0.0)),
        dual=dual[:, 0] if ndim == 1 else dual,
        gap=total,
    )


def _checked_functions(Z: ArrayLike, n_nodes: int) -> FloatArray:
    array = np.asarray(Z)
    dtype = np.float32 if array.dtype == np.float32 else np.float64
    array = np.ascontiguousarray(array, dtype=dtype)
    if array.ndim not in (1, 2) or array.shape[0] != n_nodes or array.size == 0:
        raise ValueError(
            f"`Z` must have shape ({n_nodes},) or ({n_nodes}, c), one row a node. "
            f"Got {array.shape}; pass functions on the graph's nodes."
        )
    if not np.isfinite(array).all():
        raise ValueError("`Z` must be finite. Got NaN or infinity; remove or replace them.")
    return array.reshape(n_nodes, -1)


def _checked_strength(strength: ArrayLike, c: int) -> FloatArray:
    array = np.asarray(strength, dtype=np.float64)
    if array.ndim > 1 or (array.ndim == 1 and array.size != c):
        raise ValueError(
            f"`strength` must be a number or have one entry a column ({c}). "
            f"Got shape {array.shape}; pass one strength for each column of Z."
        )
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise ValueError(
            f"`strength` must be finite and not negative. Got {strength!r}; "
            "pass 0 for no smoothing."
        )
    return np.broadcast_to(array, (c,))


def _checked_rows(fixed: ArrayLike | None, n_nodes: int) -> BoolArray:
    mask = np.zeros(n_nodes, dtype=bool)
    if fixed is None:
        return mask
    rows = np.asarray(fixed)
    if rows.dtype == bool and rows.shape != (n_nodes,):
        raise ValueError(
            f"`fixed` as a mask must have shape ({n_nodes},). Got {rows.shape}; "
            "pass one entry a node, or indices."
        )
    if (
        rows.dtype != bool
        and rows.size
        and (rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= n_nodes)
    ):
        raise ValueError(
            f"`fixed` must hold node numbers from 0 to {n_nodes - 1}, or be a mask. Got {fixed!r}."
        )
    mask[rows if rows.size else []] = True
    return mask


def _checked_dual(dual: ArrayLike, n_edges: int, c: int) -> FloatArray:
    array = np.asarray(dual)
    if array.shape not in ((n_edges, c), (n_edges,) if c == 1 else (n_edges, c)):
        raise ValueError(
            f"`dual` must have shape ({n_edges}, {c}), one row an edge. Got {array.shape}; "
            "pass the dual of a problem on the same graph with as many columns."
        )
    if not np.isfinite(array).all():
        raise ValueError("`dual` must be finite. Got NaN or infinity; pass None to start anew.")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64)
    return array.reshape(n_edges, c)


def _check_options(tol: float, max_iter: int, method: str) -> None:
    if not tol > 0:
        raise ValueError(f"`tol` must be positive. Got {tol!r}; pass for example 1e-6.")
    if max_iter < 1:
        raise ValueError(f"`max_iter` must be at least 1. Got {max_iter!r}.")
    if method not in METHODS:
        raise ValueError(f"`method` must be one of {METHODS}. Got {method!r}.")


def _check_simplex(z: FloatArray, simplex: bool, held: BoolArray) -> None:
    if not simplex:
        return
    if np.abs(z).max() > 1e15:
        raise ValueError(
            f"`Z` must be of the simplex' own scale. Got values up to {np.abs(z).max():.3g}; "
            "rescale Z or project it first."
        )
    rows = z[held]
    if rows.size and ((rows < 0).any() or (np.abs(rows.sum(axis=1) - 1.0) > 1e-6).any()):
        raise ValueError(
            "`fixed` rows of Z must lie on the simplex when simplex=True. Got rows that are "
            "negative or do not sum to one; pass for example one-hot rows."
        )
