"""CheegerRLS and CheegerSVM: the ratio of cut and balance, with the labels clamped."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from tvsvm._telling import each, tell
from tvsvm.graph import Graph
from tvsvm.losses import KernelStep, Loss
from tvsvm.methods.candidates import PATIENCE, PATIENCE_NEARBY, Candidate, Progress, lowest
from tvsvm.methods.partition import BAD_CUT, PartitionSearch, TwoSided, signs
from tvsvm.methods.ratio import best_level, partition_energy, ratio_energy, refine
from tvsvm.methods.total_variation import TVStrengths, many_classes
from tvsvm.problem import MethodResult, Problem
from tvsvm.results import FloatArray, Status
from tvsvm.solvers import graph_tv_prox, simplex_projection

# From a start that is nearly the end a rougher prox will do: two classes of 10,000 moons refit in
# at most 0.6 instead of 1 s; with noise 0.2 errors differ by up to 1.7 points, either way.
PROX_TOL, PROX_TOL_NEARBY = 1e-3, 1e-2
SMOOTHING = 1.2  # γ/r of the total-variation iteration before the steps down the ratio
NO_CUT = 1e-6  # ratio that counts as zero, on a graph of mean degree 1


def cheeger(
    problem: Problem,
    loss: Loss,
    starts: Sequence[FloatArray],
    *,
    lam: float,
    r: float,
    step: float = 0.1,
    prior: Callable[[FloatArray], FloatArray] = lambda shares: shares,
    searched: bool = False,
    search: bool = False,
    paper: bool = False,
    tol: float = 1e-3,
    max_iter: int = 60,
    n_jobs: int | None = None,
) -> MethodResult:
    """Minimise Σ_k TV(f_k) / B(f_k) with f = y on the labelled rows, steps through the kernel.

    Two classes: g = f + c sign(f); e = argmin loss(e) + λ/2 |e|²_K + r/2 |e - g|²;
    h = argmin TV(h) + E/(2c) |h - e|², E the ratio of f; h minus its median, labels put back,
    norm √N. More: the balanced ratio, see `ratio`, for c functions on the simplex. An iterate
    is kept only if the ratio falls.

    Parameters
    ----------
    problem : Problem
        What is labelled.
    loss : Loss
        `Squared` is CheegerRLS, whose e-step the paper writes without the loss: there the labels
        come in by the clamping alone. `Hinge` is CheegerSVM.
    starts : sequence of arrays of shape (N, c)
        First guesses. The end with the lowest energy is kept: for c > 1 the ratio and the way to
        the kernel space, see `refine`; for c = 1 the ratio, raised for labels that lie among rows
        of the other side.
    lam, r : float
        λ, r > 0 of the kernel step.
    step : float
        c, for two classes.
    prior : callable
        Corrects the class shares in the total-variation iteration before the steps, for c > 1.
    searched : bool
        The starts are ends of the same search for slightly other labels: near to the new ones.
    search : bool
        For c = 1: if a search from the first start finds a clearly better cut, start there, too.
    paper : bool
        The paper's iteration as it is printed, whether the ratio falls or not; for c > 1 column by
        column, then the simplex.
    tol : float
        Stop when f moves by less than this relative to its norm, or the ratio stops falling.
    max_iter : int
        Most iterations from each start.
    n_jobs : int, optional
        Threads of the prox.

    Returns
    -------
    MethodResult
        `solution` is the best f; `energy_path` its ratios, for c > 1 its energies, falling unless
        `paper`.
    """
    graph = problem.graph
    assert graph is not None
    offset = 0.0 if problem.n_columns == 1 else 1 / problem.n_columns
    through = partial(loss.clamped_step, problem, lam=lam, r=r, offset=offset)
    if problem.n_columns > 1 and searched:
        ends = [_searched(problem, graph, start) for start in starts]
    elif problem.n_columns > 1 and not paper:
        # Total variation first: its end has a low ratio and follows the kernel.
        strengths = TVStrengths(lam, SMOOTHING * r, r)
        smooth = partial(many_classes, prior=prior, tol=tol, max_iter=max_iter, n_jobs=n_jobs)
        smoothed = [smooth(problem, loss, start, strengths).solution for start in starts]
        # Not before: the kernel space is made beside the search for a partition.
        through_kernel = through()
        ends = [_partition(problem, graph, through_kernel, start, r) for start in smoothed]
    else:
        run = partial(_iterate, problem, graph, through(), c=step, paper=paper)
        progress = partial(Progress, tol, patience=PATIENCE_NEARBY if searched else PATIENCE)
        prox_tol = PROX_TOL_NEARBY if searched else PROX_TOL

        def end_from(start: FloatArray, guess: FloatArray) -> Candidate:
            return run(start, guess, progress=progress(), prox_tol=prox_tol, max_iter=max_iter)

        ends = [end_from(start, starts[0]) for start in each(starts, "Cheeger cut")]
        if problem.n_columns == 1 and (len(ends) > 1 or search):
            ends = _by_sides(problem, graph, ends, starts[0] if search else None, end_from)
    return lowest(problem, ends, lam / r)


def _by_sides(
    problem: Problem,
    graph: Graph,
    ends: Sequence[Candidate],
    start: FloatArray | None,
    end_from: Callable[[FloatArray, FloatArray], Candidate],
) -> list[Candidate]:
    """The best of the ends, for c = 1, and that of a search from a start if clearly better.

    Which side is which class hardly shows in the ratio if a label is untypical: therefore the
    energies also count how far labels lie among rows of the other side.
    """
    sides = TwoSided(problem, graph)

    def priced(end: Candidate) -> Candidate:
        return replace(end, energy=end.energy * sides.price_of(end.solution))

    best = min(map(priced, ends), key=lambda end: end.energy)
    far = None if start is None else sides.elsewhere(start, best.solution)
    return [best] if far is None else [best, priced(end_from(far, far))]


def _searched(problem: Problem, graph: Graph, start: FloatArray) -> Candidate:
    """The partition next to one that steps down the ratio had found: they gained no more there."""
    best, path = PartitionSearch(problem, graph).again(start)
    energy = ratio_energy(graph, best)
    return Candidate(best, energy, 0.0, len(path), Status.CONVERGED, [energy])


def _partition(
    problem: Problem,
    graph: Graph,
    through_kernel: KernelStep,
    start: FloatArray,
    r: float,
) -> Candidate:
    tell("Cheeger cut")
    best, energies, ended = refine(problem, graph, start, through_kernel, r=r)
    return Candidate(
        best,
        energies[-1],
        change=0.0 if ended else 1.0,
        n_iter=len(energies),
        status=Status.CONVERGED if ended else Status.MAX_ITER,
        energies=energies,
    )


def _iterate(
    problem: Problem,
    graph: Graph,
    through_kernel: KernelStep,
    start: FloatArray,
    guess: FloatArray,
    *,
    c: float,
    paper: bool,
    progress: Progress,
    prox_tol: float,
    max_iter: int,
) -> Candidate:
    """The paper's steps; unless `paper`, with the labels fixed also inside the prox.

    The energies are then those of the best iterate so far, which is the one that is returned; or
    the cut of the start, if that of the iterate is far worse: its own levels were.
    """
    rows, many = problem.rows, problem.n_columns > 1
    f = _clamped(problem, start - np.median(start, axis=0))
    dual = None
    progress.add(f, ratio_energy(graph, f), np.inf)
    fixed = None if paper else rows
    for _ in range(max_iter):
        e, b = through_kernel.values(f + c * np.sign(f))
        e = e + b
        if fixed is not None:
            e[rows] = problem.targets
        result = graph_tv_prox(
            graph, e, c / _ratios(graph, f), fixed=fixed, dual=dual, tol=prox_tol
        )
        dual = result.dual
        before, f = f, _clamped(problem, result.solution - np.median(result.solution, axis=0))
        energy = partition_energy(problem, graph, f) if many else ratio_energy(graph, f)
        change = float(np.linalg.norm(f - before) / np.linalg.norm(f))
        if progress.add(simplex_projection(f) if many else f, energy, change):
            break
    end = progress.candidate()
    if paper:
        return end
    end = replace(end, energies=np.minimum.accumulate(end.energies).tolist())
    solution = end.solution - best_level(problem, graph, end.solution, guess)
    cut = signs(problem, start)
    at_end, at_start = (ratio_energy(graph, signs(problem, g)) for g in (solution, cut))
    if at_end > BAD_CUT * at_start:
        return replace(end, solution=cut, energy=at_start, change=0.0, status=Status.CONVERGED)
    return replace(end, solution=solution, energy=at_end)


def _ratios(graph: Graph, f: FloatArray) -> FloatArray:
    """Ratio of every column, never zero: its inverse is the strength of the prox."""
    spread = np.abs(f - np.median(f, axis=0)).sum(axis=0)
    variation = np.asarray(graph.total_variation(f))
    return np.maximum(variation / np.where(spread > 0, spread, 1.0), NO_CUT)


def _clamped(problem: Problem, t: FloatArray) -> FloatArray:
    """Labels put back, rows on the simplex for c > 1, columns with norm √N."""
    s = t.copy()
    s[problem.rows] = problem.targets
    if problem.n_columns > 1:
        s = simplex_projection(s)
    norm = np.linalg.norm(s, axis=0)
    return s * (np.sqrt(len(s)) / np.where(norm > 0, norm, 1.0))
