"""Regression of the labels on the leading eigenvectors of the graph.

What is smooth on the graph is a sum of few of these. Unlike a cut they need not agree with the
classes one by one: a class may be two clusters that are nearer to another class than to each other.
"""

import numpy as np
from scipy.sparse import csr_array

from tvsvm.graph import Graph
from tvsvm.methods.pairwise import NEAR, RATIOS, compared
from tvsvm.problem import MethodResult, Problem
from tvsvm.results import FloatArray, IntArray, Status
from tvsvm.solvers import simplex_projection, smooth_functions

# Eigenvectors: so many, and so many for each class, but no more than can be computed in seconds;
# of large graphs no more than have so many values.
SOME, FOR_A_CLASS, MOST, MOST_VALUES = 10, 5, 60, 2**23
LARGE = 0.05  # share of the rows from which on a component has more than one function


def waves(graph: Graph, n_classes: int) -> FloatArray:
    """Leading eigenvectors of the graph, (N, m), the k-th with a root mean square of 1/k.

    So a function of them is penalised by the squares of their numbers, as by those of the
    frequencies where rows fill one dimension, and more gently elsewhere. Components, which are
    eigenvectors themselves, come first.
    """
    count = min(SOME + FOR_A_CLASS * n_classes, MOST, max(MOST_VALUES // graph.n_nodes, SOME))
    sizes = np.bincount(graph.component_labels)
    found: list[tuple[float, IntArray, FloatArray]] = []  # frequency, rows, values there
    for k in np.argsort(-sizes, kind="stable")[: count + 1]:
        if sizes[k] == 1:
            break  # a row that nothing is linked to: its label says nothing of others
        rows = np.flatnonzero(graph.component_labels == k)
        if found or sizes[k] < graph.n_nodes:
            found.append((0.0, rows, np.ones(rows.size)))
        if sizes[k] >= LARGE * graph.n_nodes:
            part = graph.subgraph(rows) if sizes[k] < graph.n_nodes else graph
            vectors = smooth_functions(csr_array(part.affinity, dtype=np.float64), count)
            frequencies = part.dirichlet(vectors) / (part.degrees @ vectors**2)
            found += [(f, rows, v) for f, v in zip(frequencies, vectors.T, strict=True)]
    found.sort(key=lambda wave: wave[0])
    waves = np.zeros((graph.n_nodes, min(count, len(found))))
    for k, (_, where, values) in enumerate(found[: waves.shape[1]]):
        waves[where, k] = values / (np.sqrt(np.sum(values**2) / graph.n_nodes) * (k + 1))
    return waves


def spectral(problem: Problem, waves: FloatArray) -> MethodResult:
    """Ridge regression with an intercept, each class against the rest, λ/η by leave-one-out.

    min_f  Σ_i (f_i - y_i)² + λ/η Σ_k k² a_k²,  f = b + Σ_k a_k v_k,  v_k the k-th eigenvector

    Parameters
    ----------
    problem : Problem
        With one column a class, c > 1.
    waves : ndarray of shape (N, m)
        Those of `waves`, for the graph.

    Returns
    -------
    MethodResult
        For new points the space has the functions nearest to the solution.
    """
    solution, error = _solution(problem, waves, waves)
    intercept = np.full(problem.n_columns, 1 / problem.n_columns)
    return MethodResult(
        solution=solution,
        status=Status.CONVERGED,
        n_iter=1,
        certificate=0.0,
        coordinates=problem.space.quadratic(lam=NEAR, r=1.0).coordinates(solution - intercept),
        intercept=intercept,
        energy_path=np.array([error]),
    )


def spectral_at(problem: Problem, rows: IntArray, waves: FloatArray) -> FloatArray:
    """The solution of `spectral` at some rows, (n, c), without that of the others."""
    return _solution(problem, waves, waves[rows])[0]


def _solution(
    problem: Problem, waves: FloatArray, somewhere: FloatArray
) -> tuple[FloatArray, float]:
    """Functions where the waves are known, and the mean square by which left out labels miss."""
    features = waves[problem.rows]
    found = [compared(features, y, problem.weights, RATIOS) for y in problem.signs.T]
    errors = np.mean([[each.error for each in by_ratio] for by_ratio in found], axis=0)
    best = int(errors.argmin())
    W = np.column_stack([by_ratio[best].coordinates for by_ratio in found])
    b = np.array([by_ratio[best].intercept for by_ratio in found])
    return simplex_projection(0.5 + 0.5 * (somewhere @ W + b)), float(errors[best])
