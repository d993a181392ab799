"""The labelled rows alone, one class against one other: what many labels are best used for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from tvsvm.problem import MethodResult, Problem
from tvsvm.results import FloatArray, IntArray, Status
from tvsvm.solvers import simplex_projection

# λ/η that compete by leave-one-out. Ten times as much lets the class with more labels win.
RATIOS = (0.03, 0.1, 0.3)
NEAR = 0.1  # λ/r of the functions for new points
ROUNDING = 10 * np.finfo(np.float64).eps  # beside the trace: labels may have very large weights


@dataclass(frozen=True, eq=False)
class Comparison:
    """A function f = Φw + b that is 1 on one class and -1 on another.

    Attributes
    ----------
    coordinates : ndarray of shape (rank,)
        w.
    intercept : float
        b.
    error : float
        Mean square, by weight, of what labels are missed by that were left out one by one.
    """

    coordinates: FloatArray
    intercept: float
    error: float


Comparisons = dict[tuple[int, int], Comparison]


def pairwise(problem: Problem) -> MethodResult:
    """Ridge regression with an intercept between each two classes; a row is of the class it beats.

    A class is worth as much as the comparison that it comes off worst in, on the simplex. For two
    classes this is RLS with an intercept. Classes that lie around others need one against one: one
    against the rest has no room for a class in the middle.

    Parameters
    ----------
    problem : Problem
        With one column a class, c > 1. The graph has no say.

    Returns
    -------
    MethodResult
        For new points the space has the functions nearest to the solution; for two classes these
        are the functions themselves, up to the simplex.
    """
    found = _best_comparisons(problem)
    everywhere = np.arange(problem.space.n_points)
    solution = _worth(problem, found, everywhere)
    if problem.n_columns == 2:
        half = np.array([[-0.5, 0.5]])
        coordinates = found[1, 0].coordinates[:, None] @ half
        intercept = 0.5 + found[1, 0].intercept * half[0]
    else:
        intercept = np.full(problem.n_columns, 1 / problem.n_columns)
        near = problem.space.quadratic(lam=NEAR, r=1.0)
        coordinates = near.coordinates(solution - intercept)
    return MethodResult(
        solution=solution,
        status=Status.CONVERGED,
        n_iter=1,
        certificate=0.0,
        coordinates=coordinates,
        intercept=intercept,
        energy_path=np.array([np.mean([each.error for each in found.values()])]),
    )


def pairwise_at(problem: Problem, rows: IntArray) -> FloatArray:
    """The solution of `pairwise` at some rows, (n, c), without that of the others."""
    return _worth(problem, _best_comparisons(problem), rows)


def _worth(problem: Problem, found: Comparisons, rows: IntArray) -> FloatArray:
    """(1 + worst comparison) / 2 of each class at some rows, projected on the simplex."""
    worst = np.ones((rows.size, problem.n_columns))
    whole = rows.size == problem.space.n_points
    features = problem.space.features if whole else problem.space.features[rows]
    for k in range(1, problem.n_columns):
        with_k = [found[k, j] for j in range(k)]
        W = np.column_stack([each.coordinates for each in with_k])
        values = features @ W.astype(features.dtype, copy=False)
        values += np.array([each.intercept for each in with_k])
        worst[:, k] = np.minimum(worst[:, k], values.min(axis=1))
        np.minimum(worst[:, :k], -values, out=worst[:, :k])
    return simplex_projection(0.5 + 0.5 * worst)


def _best_comparisons(problem: Problem) -> Comparisons:
    """The comparisons (k, j), j < k, for the ratio that misses labels left out by least."""
    codes = problem.targets.argmax(axis=1)
    found: dict[tuple[int, int], list[Comparison]] = {}
    for k in range(1, problem.n_columns):
        for j in range(k):
            among = np.flatnonzero((codes == k) | (codes == j))
            features = problem.space.features[problem.rows[among]].astype(np.float64, copy=False)
            targets = np.where(codes[among] == k, 1.0, -1.0)
            found[k, j] = compared(features, targets, problem.weights[among], RATIOS)
    errors = [[each.error for each in by_ratio] for by_ratio in found.values()]
    best = int(np.mean(errors, axis=0).argmin())
    return {pair: by_ratio[best] for pair, by_ratio in found.items()}


def compared(
    features: FloatArray, targets: FloatArray, weights: FloatArray, ratios: Sequence[float]
) -> list[Comparison]:
    """Minimise Σ_i w_i (y_i - f_i)² + ratio |w|² over f = Φw + b, by rows or by coordinates.

    Rows are scaled by √w_i. What a label is missed by when it is left out follows from the inverse
    of the system with all of them.
    """
    scale = np.sqrt(weights)
    A, y = features * scale[:, None], targets * scale
    solve = _by_rows if A.shape[0] <= A.shape[1] else _by_coordinates
    return [
        Comparison(w, b, float(left_out @ left_out / weights.sum()))
        for w, b, left_out in solve(A, y, scale, ratios)
    ]


def _by_rows(
    A: FloatArray, y: FloatArray, scale: FloatArray, ratios: Sequence[float]
) -> Iterator[tuple[FloatArray, float, FloatArray]]:
    """w, b and what each label is missed by when it is left out, for each ratio."""
    G = A @ A.T
    for ratio in ratios:
        inverse = _inverse(G, ratio)
        ones = inverse @ scale
        level = float(scale @ ones)
        inverse -= np.outer(ones, ones) / level
        coef = inverse @ y
        yield A.T @ coef, float(ones @ y) / level, coef / inverse.diagonal()


def _by_coordinates(
    A: FloatArray, y: FloatArray, scale: FloatArray, ratios: Sequence[float]
) -> Iterator[tuple[FloatArray, float, FloatArray]]:
    """The same; quicker where there are more labels than coordinates."""
    rank = A.shape[1]
    A = np.column_stack([A, scale])
    G = A.T @ A
    for ratio in ratios:
        solved = _inverse(G, np.append(np.full(rank, ratio), 0.0)) @ A.T
        w = solved @ y
        own = np.einsum("ij,ji->i", A, solved)
        yield w[:-1], float(w[-1]), (y - A @ w) / np.maximum(1 - own, ROUNDING)


def _inverse(G: FloatArray, diagonal: FloatArray | float) -> FloatArray:
    """(G + diagonal)⁻¹ for a positive semi-definite G."""
    G = G.copy()
    G[np.diag_indices_from(G)] += diagonal + ROUNDING * np.trace(G)
    return cho_solve(cho_factor(G, lower=True, overwrite_a=True), np.eye(len(G)))
