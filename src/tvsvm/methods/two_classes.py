"""Two classes by one function, for a caller that wants one function a class."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tvsvm.losses import Loss
from tvsvm.methods.cheeger import cheeger, softened
from tvsvm.methods.partition import (
    CLEARLY,
    CUT_LIMIT,
    TwoSided,
    after_walks,
    both_sides,
    cut_share,
)
from tvsvm.problem import MethodResult, Problem
from tvsvm.results import FloatArray
from tvsvm.solvers import simplex_projection
from tvsvm.start import poisson

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
    problem: Problem,
    loss: Loss,
    last: FloatArray | None = None,
    *,
    lam: float,
    r: float,
    tol: float,
    quick: bool = False,
) -> MethodResult:
    """Cheeger's cut, one function with targets ±1, from Poisson learning or a partition search.

    The end that follows from the search is taken if its ratio, raised for random walks from the
    labels that end on the other side, is clearly lower. If the cut that follows from Poisson
    learning is long, that one is the answer: where classes overlap, lower ratios are noise of the
    graph. It is also the answer if it is to be `quick`. From the `last` cut, found for somewhat
    other labels, the way is short if it still suits the labels; otherwise it competes.
    """
    graph = problem.graph
    assert graph is not None

    def cut_from(start: FloatArray, *, searched: bool = False) -> MethodResult:
        return cheeger(problem, loss, [start], lam=lam, r=r, tol=tol, searched=searched)

    guess = poisson(problem, graph)
    if last is not None and suits_labels(problem, last, guess):
        return softened(problem, cut_from(last, searched=True))
    best = cut_from(guess)
    if quick:
        return softened(problem, best)
    partitions = TwoSided(problem, graph)

    def cost(found: MethodResult) -> float:
        return partitions.energy(both_sides(found.solution))

    if cut_share(graph, both_sides(best.solution)) <= CUT_LIMIT:
        partition, _ = partitions.search(both_sides(guess))
        other = cut_from(partition @ [[-1.0], [1.0]])
        if cost(other) < (1 - CLEARLY) * cost(best):
            best = other
    if last is not None:
        # A label that corrects an error may be an untypical row, and mislead all that starts anew.
        other = cut_from(last, searched=True)
        if cost(other) < cost(best):
            best = other
    return softened(problem, best)


def suits_labels(problem: Problem, last: FloatArray, guess: FloatArray) -> bool:
    """Whether one function that was found for other labels suits these as a first guess does.

    It does not if random walks from some label end at home by the guess, but not by that function.
    """
    graph = problem.graph
    assert graph is not None
    sides = np.where(np.hstack([last, guess]) > 0, 1.0, -1.0)
    home = after_walks(graph, sides)[problem.rows] * problem.targets
    return not bool(np.any((home[:, 0] < 0) & (home[:, 1] > 0)))
