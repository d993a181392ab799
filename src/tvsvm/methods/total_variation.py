"""TVRLS and TVSVM: total variation on the graph, with the balance that keeps it from vanishing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tvsvm._telling import each, tell
from tvsvm.graph import Graph
from tvsvm.losses import Loss
from tvsvm.methods.candidates import PATIENCE_NEARBY, Candidate, Progress, lowest
from tvsvm.methods.partition import (
    BAD_CUT,
    PartitionSearch,
    TwoSided,
    both_sides,
    clear_cut,
    signs,
)
from tvsvm.methods.ratio import partition_energy, ratio_energy, shares_of
from tvsvm.problem import MethodResult, Problem
from tvsvm.results import FloatArray, Status
from tvsvm.solvers import graph_tv_prox, simplex_projection

# Relative gap of the inner prox: what is left is far below an iteration's step. Where many classes
# may move by more than that in the end, `tol`, so may the gap be.
PROX_TOL, PROX_TOL_MOST = 1e-3, 1e-2
COLLAPSE = 1.1  # times the lowest ratio before: beyond, a class is about to shrink to its labels
# Times `tol`: functions that are followed to other labels have converged before. USPS refits in 4
# instead of 8 iterations with 2, and with the same errors.
NEARBY = 5
FLAT = 1e-9  # spread, against values around 1, below which a function is a constant


@dataclass(frozen=True)
class TVStrengths:
    """λ, γ and r of the energy loss(h) + λ/2 |f|²_K + γ TV(g) with f = g, h = g tied by r."""

    lam: float
    gamma: float
    r: float


def total_variation(
    problem: Problem,
    loss: Loss,
    starts: Sequence[FloatArray],
    *,
    strengths: TVStrengths,
    prior: Callable[[FloatArray], FloatArray] = lambda shares: shares,
    last: MethodResult | None = None,
    search: bool = False,
    paper: bool = False,
    tol: float = 1e-3,
    max_iter: int = 100,
    n_jobs: int | None = None,
) -> MethodResult:
    """Minimise loss(g) + λ/2 |f|²_K + r/2 |f - g|² + γ TV(g) over balanced g.

    Two classes: g has mean zero and norm √N, and the paper's two splittings f = g, h = g with
    multipliers are iterated: f by the kernel, h by the loss' prox, g by the graph-TV prox, then
    centred and scaled. More: the loss is inside the f-step, there are no multipliers (with them
    the rescaling oscillates), and g has its columns on the simplex, rescaled to the norm that a
    class of its share of the rows has.

    Parameters
    ----------
    problem : Problem
        What is labelled.
    loss : Loss
        `Squared` is TVRLS, `Hinge` is TVSVM.
    starts : sequence of arrays of shape (N, c)
        First guesses. Each is followed to its end, and the end with the lowest energy is kept.
    strengths : TVStrengths
        λ, γ, r > 0.
    prior : callable
        Corrects the class shares, (c,), that the partition at the start has, for c > 1. The end
        without a correction competes too.
    last : MethodResult, optional
        What was found for slightly other labels: near to what is sought, and the only start.
    search : bool
        For c = 1: if a search from the first start finds a clearly better cut, start there, too.
    paper : bool
        The paper's iteration as it is printed: for c > 1 the guesses are taken as they are and
        all columns get the same norm.
    tol : float
        Stop when g moves by less than this, relative to its norm.
    max_iter : int
        Most iterations from each start, and from each cut that the iteration begins anew from.
    n_jobs : int, optional
        Threads of the prox.

    Returns
    -------
    MethodResult
        `solution` is the best g: for c > 1 projected on the simplex. `certificate` is its last
        relative change; 0 if it was left where it was, for the next one was to lose a class, or to
        have a far worse cut.
    """
    if problem.n_columns == 1:
        ends = _two_classes(
            problem,
            loss,
            starts,
            strengths,
            last=last,
            search=search,
            paper=paper,
            tol=tol,
            max_iter=max_iter,
        )
    else:
        ends = [
            many_classes(
                problem,
                loss,
                start,
                strengths,
                prior=prior,
                last=last,
                paper=paper,
                tol=tol,
                max_iter=max_iter,
                n_jobs=n_jobs,
            )
            for start in starts
        ]
    return lowest(problem, ends, strengths.lam / strengths.r)


def _two_classes(
    problem: Problem,
    loss: Loss,
    starts: Sequence[FloatArray],
    strengths: TVStrengths,
    *,
    last: MethodResult | None,
    search: bool,
    paper: bool,
    tol: float,
    max_iter: int,
) -> list[Candidate]:
    """The ends of the iteration for c = 1 of which the lowest is the answer."""
    graph = problem.graph
    assert graph is not None
    sides = TwoSided(problem, graph)

    def end_from(start: FloatArray) -> Candidate:
        if last is None:
            progress, most = Progress(tol), np.inf if paper else BAD_CUT
        else:
            progress, most = Progress(tol, PATIENCE_NEARBY), COLLAPSE
        end = _iterate_two(
            problem,
            loss,
            start,
            strengths,
            progress,
            max_iter=max_iter,
            most=most,
            start_counts=last is not None,
        )
        # Which side is which class hardly shows in the energy if a label is untypical.
        return replace(end, energy=end.energy * sides.price_of(end.solution))

    def last_cut(end: Candidate) -> FloatArray:
        assert end.last is not None
        return signs(problem, end.last)

    def lowest_from(ends: list[Candidate]) -> Candidate:
        # The iteration goes on to better cuts at functions of higher energy, as multipliers
        # and balance pull at them. From its last cut it soon meets the low energy nearby.
        best = min(ends, key=lambda end: end.energy)
        other = end_from(last_cut(best))
        while other.energy < best.energy * (1 - tol):
            best, other = other, end_from(last_cut(other))
        return min(best, other, key=lambda end: end.energy)

    def cost(end: Candidate) -> float:
        return sides.energy(both_sides(signs(problem, end.solution)))

    def by_its_name(end: Candidate) -> Candidate:
        # Nor does the loss see it: an untypical label is easily met, by the wrong names, too.
        other = signs(problem, -end.solution)
        if not sides.suits(other) or sides.energy(both_sides(other)) >= cost(end):
            return end
        return min(end, lowest_from([end_from(other)]), key=cost)

    ends = [end_from(start) for start in each(starts, "total variation")]
    if paper:
        return ends
    if last is None:
        ends = [by_its_name(lowest_from(ends))]
    if search:
        far = sides.elsewhere(starts[0], ends[0].solution)
        ends += [] if far is None else [lowest_from([end_from(far)])]
    most = BAD_CUT * min(map(cost, ends))
    return [end for end in ends if cost(end) <= most]


def many_classes(
    problem: Problem,
    loss: Loss,
    start: FloatArray,
    strengths: TVStrengths,
    *,
    prior: Callable[[FloatArray], FloatArray] = lambda shares: shares,
    last: MethodResult | None = None,
    paper: bool = False,
    tol: float = 1e-3,
    max_iter: int = 100,
    n_jobs: int | None = None,
) -> Candidate:
    """The end of the iteration for c > 1 from one start, see `total_variation`."""
    graph = problem.graph
    assert graph is not None
    if paper:
        partition, sizes = None, [np.full(problem.n_columns, 1 / problem.n_columns)]
    else:
        # Neighbours and first guesses keep all processors busy, and take memory; a search does not.
        problem.space.begin()
        if last is None or last.partition is None:
            partitions = PartitionSearch(problem, graph, clear_cut(graph, graph, problem.n_columns))
            start = partition = partitions.search(start)[0]
        else:
            partitions = PartitionSearch(problem, graph)
            # The search goes on from where it ended, and the functions where it is still the same.
            partition = partitions.again(np.eye(problem.n_columns)[last.partition])[0]
            same = partition.argmax(axis=1) == last.partition
            start = np.where(same[:, None], last.solution, partition)
        found = shares_of(partition)
        corrected = prior(found)
        sizes = [found] if np.allclose(found, corrected) else [found, corrected]
    ends = [
        _iterate(
            problem,
            loss,
            start,
            strengths,
            shares,
            tol=tol if last is None else NEARBY * tol,
            max_iter=max_iter,
            n_jobs=n_jobs,
            most=np.inf if paper else COLLAPSE,
        )
        for shares in sizes
    ]
    best = min(ends, key=lambda end: end.energy)
    return best if partition is None else replace(best, partition=partition.argmax(axis=1))


def from_partition(
    problem: Problem,
    loss: Loss,
    partition: FloatArray,
    strengths: TVStrengths,
    *,
    tol: float,
    max_iter: int,
    n_jobs: int | None = None,
) -> MethodResult:
    """The iteration for c > 1 from a partition that is taken as it is, with its class sizes.

    It keeps the iterate whose partition has the lowest ratio, and soon gives up: from a first guess
    the ratio falls, and rises again when a class gives way to others. Rows have no part of the
    functions to themselves: where a cut is not to be trusted, the kernel is.
    """
    end = _iterate(
        problem,
        loss,
        partition,
        strengths,
        shares_of(partition),
        tol=tol,
        max_iter=max_iter,
        n_jobs=n_jobs,
        by_ratio=True,
    )
    solution = end.solution.copy()
    solution[problem.rows] = problem.targets  # with few rows the labels are most of what is known
    return lowest(problem, [replace(end, solution=solution)], strengths.lam / strengths.r)


def _iterate_two(
    problem: Problem,
    loss: Loss,
    start: FloatArray,
    strengths: TVStrengths,
    progress: Progress,
    *,
    max_iter: int,
    most: float,
    start_counts: bool,
) -> Candidate:
    """The paper's augmented Lagrangian with two splittings, r₁ = r₂ = r.

    It ends where the ratio of the cut is `most` times the lowest one before: where labels are
    strays the energy falls on and on as islands grow around them, and the cut gets worse. The start
    is a candidate itself if it counts.
    """
    graph = problem.graph
    assert graph is not None
    lam, gamma, r = strengths.lam, strengths.gamma, strengths.r
    rows = problem.rows
    smooth = problem.space.quadratic(lam=lam, r=r, residual=True)

    def energy_of(g: FloatArray, intercept: FloatArray) -> float:
        # min λ/2 |f|²_K + r/2 |f - g|²
        tied = r / 2 * float(np.vdot(g, g - smooth.solve(r * g)))
        return loss.value(g[rows], intercept, problem) + tied + gamma * _variation(graph, g)

    g = _centred(start)
    l1, l2 = np.zeros_like(g), np.zeros_like(g)
    dual = None
    lowest_ratio = ratio_energy(graph, signs(problem, g)) if np.isfinite(most) else np.inf
    if start_counts:
        progress.add(g, energy_of(g, loss.prox(g[rows], problem, r)[1]), np.inf)
    for _ in range(max_iter):
        f = smooth.solve(r * g - l1)
        h = g - l2 / r
        h[rows], intercept = loss.prox(h[rows], problem, r)
        result = graph_tv_prox(
            graph, 0.5 * (f + h + (l1 + l2) / r), gamma / (2 * r), dual=dual, tol=PROX_TOL
        )
        dual = result.dual
        # A prox that leaves only a constant has nothing to scale: the iteration ends where it is.
        flat = np.ptp(result.solution) <= FLAT
        before, g = g, g if flat else _centred(result.solution)
        if np.isfinite(most):
            ratio = ratio_energy(graph, signs(problem, g))
            if ratio > most * lowest_ratio:
                if not progress.energies:  # there is nothing but the start
                    progress.add(before, energy_of(before, intercept), np.inf)
                return replace(progress.candidate(), change=0.0, status=Status.CONVERGED)
            lowest_ratio = min(ratio, lowest_ratio)
        l1 += r * (f - g)
        l2 += r * (h - g)
        change = float(np.linalg.norm(g - before) / np.sqrt(len(g)))
        if progress.add(g, energy_of(g, intercept), change):
            break
    return progress.candidate()


def _iterate(
    problem: Problem,
    loss: Loss,
    start: FloatArray,
    strengths: TVStrengths,
    shares: FloatArray,
    *,
    tol: float,
    max_iter: int,
    n_jobs: int | None,
    most: float = COLLAPSE,
    by_ratio: bool = False,
) -> Candidate:
    """The paper's iteration for many classes, columns rescaled to their share of the rows.

    Total variation alone is lowest where a class has shrunk to its labels, and with overlapping
    classes the balance does not prevent that for ever: it ends where the ratio of the partition is
    `most` times the lowest one before. Ends are compared by that ratio: it knows all balances.
    """
    tell("total variation")
    graph = problem.graph
    assert graph is not None
    r = strengths.r
    step = loss.kernel_step(
        problem, lam=strengths.lam, r=r, offset=1 / problem.n_columns, residual=not by_ratio
    )
    ratio = lowest_ratio = partition_energy(problem, graph, start)
    progress = Progress(tol, PATIENCE_NEARBY if by_ratio else max_iter + 1)
    g, dual = start, None
    prox_tol = min(max(tol, PROX_TOL), PROX_TOL_MOST)
    f, _ = step.values(g)
    if np.isfinite(most) and not by_ratio:  # it has the norms of all iterates, or nearly so
        progress.add(g, step.energy + strengths.gamma * _variation(graph, g), np.inf)
    for _ in range(max_iter):
        result = graph_tv_prox(
            graph, f, strengths.gamma / r, dual=dual, tol=prox_tol, n_jobs=n_jobs
        )
        dual = result.dual
        before, g = g, _rescaled(simplex_projection(result.solution), shares)
        ratio = partition_energy(problem, graph, g)
        if not by_ratio and ratio > most * lowest_ratio:
            break
        lowest_ratio = min(ratio, lowest_ratio)
        f, _ = step.values(g)
        energy = ratio if by_ratio else step.energy + strengths.gamma * _variation(graph, g)
        change = float(np.linalg.norm(g - before) / np.linalg.norm(g))
        if progress.add(simplex_projection(g), energy, change):
            break
    end = progress.candidate()
    end = replace(end, energy=partition_energy(problem, graph, end.solution))
    collapsing = not by_ratio and ratio > most * lowest_ratio
    return replace(end, change=0.0, status=Status.CONVERGED) if collapsing else end


def _variation(graph: Graph, g: FloatArray) -> float:
    """Total variation of all columns."""
    return float(np.sum(graph.total_variation(g)))


def _centred(g: FloatArray) -> FloatArray:
    """Mean zero and norm √N; what is constant stays so."""
    g = g - g.mean(axis=0)
    norm = np.linalg.norm(g, axis=0)
    return g * (np.sqrt(len(g)) / np.where(norm > 0, norm, 1.0))


def _rescaled(g: FloatArray, shares: FloatArray) -> FloatArray:
    """Every column with the norm of an indicator of its share of the rows."""
    norm = np.linalg.norm(g, axis=0)
    return g * (np.sqrt(shares * len(g)) / np.where(norm > 0, norm, 1.0))
