"""First guesses: functions on the graph that the labels suggest, before any method is run.

The methods with a balance are not convex, and where they start decides where they end. From the
bare labels they end in noise: the first smoothing wipes single labelled rows out.
"""

import numpy as np
from scipy.sparse import csr_array, diags_array

from tvsvm._telling import tell
from tvsvm.graph import Graph
from tvsvm.losses import Squared
from tvsvm.problem import Problem
from tvsvm.results import FloatArray
from tvsvm.solvers import laplacian_solve, leading_eigenvectors

TINY = np.finfo(np.float64).tiny
# How little the number of labels of a class says about its size: nothing is 1. It says little where
# somebody chose the rows, and with few labels also where chance did.
EVEN = 0.75
TOL = 1e-4  # of the residual: on MNIST one row in ten thousand changes its class if it is zero


def first_guesses(
    problem: Problem, graph: Graph, n_init: int, random: np.random.RandomState
) -> list[FloatArray]:
    """Up to `n_init` guesses of shape (N, c), the most reliable first.

    Poisson learning; then the leading eigenvectors of the graph, with both signs for two classes
    (labels that are untypical for their class lead Poisson learning astray, but not these); then
    Poisson learning on graphs with randomly changed weights.
    """
    guesses = [poisson(problem, graph)]
    if n_init > 1:
        guesses += _spectral(problem, graph, n_init - 1)
    while len(guesses) < n_init:
        guesses.append(poisson(problem, _shaken(graph, random)))
    return guesses[:n_init]


def poisson(problem: Problem, graph: Graph, *, tol: float = TOL) -> FloatArray:
    """Solve L u = Σ_i (y_i - ȳ) δ_i with Σ_i d_i u_i = 0, d the masses, in every component.

    Of c > 1 functions each is divided by (c times the share of the labels that are of its class) to
    the power EVEN: a class gains little by having more labels than another. For one function that
    is so anyway. In a component all of whose labels are of one class, every row is of that class.
    Rows that no label reaches are left to the kernel. `tol` is that of the residual.
    """
    tell("first guess")
    components = graph.component_labels
    here = components[problem.rows]
    sources = np.zeros((graph.n_nodes, problem.n_columns))
    sources[problem.rows] = problem.targets * problem.weights[:, None]
    totals = np.zeros((graph.n_components, problem.n_columns))
    np.add.at(totals, here, sources[problem.rows])
    weight = np.bincount(here, problem.weights, minlength=graph.n_components)
    mean = totals / np.where(weight > 0, weight, 1.0)[:, None]
    sources[problem.rows] -= mean[here] * problem.weights[:, None]
    if problem.n_columns > 1:
        present = mean > 0
        shares = np.where(present, mean * present.sum(axis=1, keepdims=True), np.inf)
        sources[problem.rows] /= shares[here] ** EVEN
    guess = laplacian_solve(graph.affinity, sources, tol=tol, components=components).solution
    # Of the solutions, which differ by a constant, the one to which a random walk converges
    # (Calder, Cook, Thorpe and Slepčev, ICML 2020): a mean over rows instead gives those with few
    # neighbours, which are often the stray ones, too much of a say.
    share = graph.masses / np.maximum(np.bincount(components, graph.masses), TINY)[components]
    level = np.zeros_like(totals)
    np.add.at(level, components, share[:, None] * guess)
    guess -= level[components]
    pure = np.abs(mean).max(axis=1) >= 1.0 - 1e-9
    guess = np.where(pure[components][:, None], mean[components], guess)
    unreached = (weight == 0)[components]
    if unreached.any():
        guess[unreached] = Squared(1.0).kernel_step(problem, lam=1e-3)(None)[1][unreached]
    return guess


def eigenvectors(graph: Graph, count: int) -> FloatArray:
    """Leading non-constant generalised eigenvectors of L v = μ D v, largest component, (N, ≤count).

    Zero on the other components. Their sign is arbitrary but always the same.
    """
    sizes = np.bincount(graph.component_labels)
    inside = np.flatnonzero(graph.component_labels == sizes.argmax())
    count = min(count, inside.size - 2)
    if count < 1:
        return np.empty((graph.n_nodes, 0))
    W = csr_array(graph.affinity, dtype=np.float64)[inside][:, inside]
    scale = 1.0 / np.sqrt(W.sum(axis=1))
    A = diags_array(scale) @ W @ diags_array(scale)
    _, vectors = leading_eigenvectors(A, count + 1, tol=1e-4, max_iter=3000)
    vectors = vectors[:, 1:] * scale[:, None]
    full = np.zeros((graph.n_nodes, vectors.shape[1]))
    full[inside] = vectors
    return full


def _spectral(problem: Problem, graph: Graph, count: int) -> list[FloatArray]:
    if problem.n_columns == 1:
        vectors = eigenvectors(graph, (count + 1) // 2)
        return [sign * vectors[:, [k]] for k in range(vectors.shape[1]) for sign in (1.0, -1.0)]
    guesses = []
    for dimension in (problem.n_columns, 2 * problem.n_columns)[:count]:
        vectors = eigenvectors(graph, dimension)
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = np.divide(vectors, length, out=vectors, where=length > 0)
        nearest = (vectors @ vectors[problem.rows].T).argmax(axis=1)
        guesses.append(problem.targets[nearest])
    return guesses


def _shaken(graph: Graph, random: np.random.RandomState) -> Graph:
    """The graph with every weight multiplied by a random number of mean one."""
    weights = graph.edge_weights * random.exponential(size=graph.n_edges)
    i, j = graph.edges.T
    upper = csr_array((weights, (i, j)), shape=(graph.n_nodes, graph.n_nodes))
    return Graph(upper + upper.T, masses=graph.masses)
