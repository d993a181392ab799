"""Two classes by one function, for a caller that wants one function a class."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tvsvm.losses import Loss
from tvsvm.methods.cheeger import cheeger
from tvsvm.methods.doubt import softened
from tvsvm.methods.partition import (
    CLEARLY,
    CUT_LIMIT,
    LOYALTY,
    TwoSided,
    both_sides,
    cut_share,
    one_function,
    signs,
)
from tvsvm.methods.ratio import rounded
from tvsvm.problem import MethodResult, Problem
from tvsvm.results import FloatArray
from tvsvm.solvers import simplex_projection
from tvsvm.start import first_guesses, poisson

# Gain in the ratio for which the last cut is left. Total variation and kernel hold cuts of USPS
# up to a tenth above the lowest ratio nearby, and are right; wrong ones of moons 1.3 to 4 times.
MUCH = 0.2
# Of the residual of a guess from which moves of groups start: 10,000 moons take 0.10 instead of
# 0.25 s, and 0.03 % of the rows are on the other side before these moves.
GUESS_TOL = 1e-2

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
) -> MethodResult:
    """Cheeger's cut, one function with targets ±1, from several starts.

    From Poisson learning, and from others if these lead to a short cut with labels on their sides
    whose ratio, raised for those that lie among rows of the other side, is clearly lower: the
    graph's first eigenvector, a partition search, and the cut found with exchanged names. If no
    cut is short, that from Poisson learning is the answer: where classes overlap, lower ratios are
    noise of the graph. From a `last` cut, found for somewhat other labels, the way is short, see
    `followed`.
    """
    graph = problem.graph
    assert graph is not None

    def cut_from(start: FloatArray) -> MethodResult:
        return cheeger(problem, loss, [start], lam=lam, r=r, tol=tol)

    if last is not None:
        starts = followed(problem, last)
        found = cheeger(problem, loss, starts, lam=lam, r=r, tol=tol, searched=True)
        return softened(problem, found)
    sides = TwoSided(problem, graph)

    def energy(f: FloatArray) -> float:
        return sides.energy(both_sides(f))

    def is_short(found: MethodResult) -> bool:
        return cut_share(graph, both_sides(found.solution)) <= CUT_LIMIT

    def better(found: MethodResult, start: FloatArray, margin: float = CLEARLY) -> MethodResult:
        other = cut_from(start)
        lower = energy(other.solution) < (1 - margin) * energy(found.solution)
        # By the wrong names the best cut is the worst answer.
        return other if lower and is_short(other) and sides.suits(other.solution) else found

    guess, *others = first_guesses(problem, graph, 3, np.random.RandomState(0))
    best = cut_from(guess)
    if others:
        best = better(best, min((signs(problem, f) for f in others), key=energy))
    if is_short(best):
        best = better(best, one_function(sides.search(both_sides(guess))[0]))
        exchanged = signs(problem, -best.solution)
        if energy(exchanged) < energy(best.solution):
            best = better(best, exchanged, margin=0.0)
    return softened(problem, best)


def followed(problem: Problem, last: FloatArray) -> list[FloatArray]:
    """Where to begin for labels that contradict one function, (N, 1), found for other labels.

    With that function, unless moves of groups of rows from its cut, or from the cut that the labels
    alone suggest, end with a ratio that is much lower; the lower the more rows change sides.
    Somebody who corrects errors labels untypical rows, and a few of these must not turn everything
    around. If the cut is long, lower ratios are noise of the graph; then what the labels suggest
    competes only if the function denies most of them.
    """
    graph = problem.graph
    assert graph is not None
    long = cut_share(graph, both_sides(last)) > CUT_LIMIT
    if long and np.mean(last[problem.rows] * problem.targets > 0) >= 0.5:
        return [last]
    guess = poisson(problem, graph, tol=GUESS_TOL)
    if long:
        return [last, guess]
    partitions = TwoSided(problem, graph)
    kept = rounded(partitions.problem, both_sides(last))

    def price(partition: FloatArray) -> float:
        moved = float(np.mean(partition[:, 0] != kept[:, 0]))
        return partitions.energy(partition) * (1 + LOYALTY * moved)

    near, far = partitions.again(kept)[0], partitions.nearby(both_sides(guess))[0]
    if price(far) < (1 - MUCH) * price(near):
        return [one_function(far)]
    return [one_function(near)] if price(near) < (1 - MUCH) * price(kept) else [last]
