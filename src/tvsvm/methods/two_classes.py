"""Two classes by one function, for a caller that wants one function a class."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tvsvm.graph import Graph
from tvsvm.losses import Loss
from tvsvm.methods.cheeger import cheeger, softened
from tvsvm.methods.partition import CLEARLY, search
from tvsvm.methods.problem import MethodResult, Problem
from tvsvm.methods.ratio import ratio_energy
from tvsvm.results import FloatArray
from tvsvm.solvers import simplex_projection
from tvsvm.start import first_guesses

N_STARTS = 3
CUT_LIMIT = 0.05  # share of the edge weight: a cut longer than this divides no clusters

Method = Callable[[Problem], MethodResult]


def by_one_function(problem: Problem, method: Method) -> MethodResult:
    """What a method finds with targets ±1, given back as two functions on the simplex."""
    found = method(replace(problem, targets=problem.targets[:, [1]] - problem.targets[:, [0]]))
    half = np.array([[-0.5, 0.5]])
    return replace(
        found,
        solution=simplex_projection(0.5 + found.solution @ half),
        coordinates=found.coordinates @ half,
        intercept=0.5 + found.intercept @ half,
    )


def balanced_cut(
    problem: Problem, loss: Loss, *, lam: float, r: float, tol: float, quick: bool = False
) -> MethodResult:
    """Cheeger's cut, one function with targets ±1, from the usual starts and a partition search.

    The end that follows from the search is taken if its ratio is clearly lower although each
    percent of the rows that it has elsewhere than Poisson learning counts as a percent of ratio.
    If the cut that follows from Poisson learning is long, that one is the answer: where classes
    overlap, lower ratios are noise of the graph. It is also the answer if it is to be `quick`.
    """
    graph = problem.graph
    assert graph is not None

    def cut_from(start: FloatArray) -> MethodResult:
        return cheeger(problem, loss, [start], lam=lam, r=r, tol=tol)

    def ratio(found: MethodResult) -> float:
        return ratio_energy(graph, _sides(found))

    def cost(found: MethodResult) -> float:
        return ratio(found) * (1 + float(np.mean((found.solution > 0) != (guesses[0] > 0))))

    guesses = first_guesses(problem, graph, 1 if quick else N_STARTS, np.random.RandomState(0))
    best = cut_from(guesses[0])
    if not quick and cut_share(graph, _sides(best) / 2) <= CUT_LIMIT:
        best = min([best, *map(cut_from, guesses[1:])], key=ratio)
        one_a_class = replace(problem, targets=one_function_a_class(problem.targets))
        partition, _ = search(one_a_class, graph, one_function_a_class(guesses[0]))
        other = cut_from(partition @ [[-1.0], [1.0]])
        if cost(other) < (1 - CLEARLY) * cost(best):
            best = other
    return softened(problem, best)


def one_function_a_class(f: FloatArray) -> FloatArray:
    """Indicators of the two sides of a function, (N, 1) to (N, 2)."""
    return np.hstack([f <= 0, f > 0]).astype(np.float64)


def cut_share(graph: Graph, F: FloatArray) -> float:
    """Share of the edge weight that functions of 0 and 1, or ±½, cut."""
    weight = float(graph.edge_weights.sum())
    variation = float(np.sum(graph.total_variation(F))) / min(F.shape[1], 2)
    return variation / weight if weight > 0 else 0.0


def _sides(found: MethodResult) -> FloatArray:
    return np.where(found.solution > 0, 1.0, -1.0)
