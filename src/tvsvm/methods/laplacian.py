"""LapRLS and LapSVM: smoothness on the graph, and the simplex for more than two classes."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import norm

from tvsvm._telling import tell
from tvsvm.losses import Loss
from tvsvm.methods.supervised import energy, solve_columns
from tvsvm.problem import MethodResult, Problem
from tvsvm.results import FloatArray, Status
from tvsvm.solvers import simplex_projection
from tvsvm.solvers._anderson import Anderson

# Iterations after which r may change: ever more seldom, since each change costs a factorisation,
# and finitely often, so that the convergence of a fixed r holds. For the same reason the iteration
# is accelerated until the last of them only.
BALANCE_AT = (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024)
BALANCED = 2.0  # up to this ratio of the residuals r is left alone
FEEBLE = 1e-3  # γ/λ at which the graph has half a say about the level of the functions
FLAT = 1e-9  # spread, beside the largest, of a function that tells nothing
FARTHEST = 1e6  # beyond this ratio one of them is taken for zero


@dataclass(frozen=True)
class SimplexState:
    """Where the iteration for c > 1 is: g and l, (N, c), and r."""

    G: FloatArray
    multiplier: FloatArray
    r: float


@dataclass(frozen=True)
class SimplexResult(MethodResult):
    """The result for c > 1, with the state from which other labels can be followed."""

    state: SimplexState


def laplacian(
    problem: Problem,
    loss: Loss,
    *,
    lam: float,
    gamma: float,
    paper: bool = False,
    start: SimplexState | None = None,
    r: float | None = None,
    tol: float = 1e-4,
    max_iter: int = 1000,
) -> MethodResult:
    """Minimise loss(f + b) + λ/2 |f|²_K + γ/2 fᵀLf; for c > 1 with rows of f on the simplex.

    L is that of the squared weights: fᵀLf is then, but for a factor, the sum of squares of the same
    weighted differences w_jk (f_j - f_k) whose absolute values are summed by total variation. With
    the weights themselves, the paper's, the many light edges of a row carry too much from class to
    class.

    One column is one linear system or one QP. Several are tied by the simplex and found by the
    paper's augmented Lagrangian: f by the loss' kernel step with E = g - l/r, g the projection of
    f + l/r on the simplex, l ← l + r(f - g). All of that is z ← T(z) for z = f + l/r, since
    g and l are functions of z, and Anderson's acceleration halves the number of iterations. Two
    readings:

    - The columns are f_k = 1/c + Φw_k with |w_k| as norm. Where the space holds the constants on
      the rows (the paper's case, an invertible K) Σ_k f_k = 1 makes both norms differ by a
      constant only, hence the minimiser is the paper's, on the rows and by class everywhere; and
      where it does not, as in Nyström spaces, the constraint can still be met.
    - The constraint is on f, as the paper has it, and a row is labelled by f + b, as the hinge
      means it: see `Hinge` for the coding in which 0 and 1 are on the margins.

    With few labels f is a constant with spikes at the labels, and the height of that constant is
    an accident of where they are. Therefore f is moved at the end, see `_levelled`.

    A component of the graph without a label is left to the kernel.

    Parameters
    ----------
    problem : Problem
        With a graph, unless γ = 0.
    loss : Loss
        `Squared` is LapRLS, `Hinge` is LapSVM.
    lam, gamma : float
        λ > 0, γ ≥ 0.
    paper : bool
        Take the weights as they are, iterate as the paper does, and leave f where the objective
        has it.
    start : SimplexState, optional
        For c > 1, the `state` of a result for the same rows. By default g = 1/c and l = 0.
    r : float, optional
        Strength r > 0 of the splitting, which changes the path and not its end. By default that
        of `start`, or the mean curvature of kernel and graph term, and then whatever balances the
        residuals.
    tol : float
        Of the certificate, for c > 1: the larger of |f - g| / |g - 1/c| and
        r |g - g_before| / max(|l|, κ|g - 1/c|), κ the mean curvature above. With few labels
        functions are nearly flat, and by |g| itself they would seem to be found at once.
    max_iter : int
        Most iterations, for c > 1.

    Returns
    -------
    MethodResult
        `solution` is f + b, for c > 1 projected on the simplex, which keeps the order of the
        columns. Of all iterates it is the one with the smallest certificate. `energy_path` is the
        objective at f, before f is moved. For c > 1 it is a `SimplexResult`.
    """
    tell("Laplacian")
    if not paper and problem.graph is not None:
        problem = replace(problem, graph=problem.graph.squared)
    if problem.n_columns == 1:
        found = solve_columns(problem, loss, lam=lam, gamma=gamma)
    else:
        found = _on_simplex(
            problem,
            loss,
            lam=lam,
            gamma=gamma,
            start=start,
            r=r,
            accelerated=not paper,
            tol=tol,
            max_iter=max_iter,
        )
    return found if paper else _levelled(problem, loss, found, lam=lam, gamma=gamma)


def _levelled(
    problem: Problem, loss: Loss, found: MethodResult, *, lam: float, gamma: float
) -> MethodResult:
    """Move the functions so that their mean, by degree, says what the labels' mean says.

    That is (ȳ_k - m) s + m, m the mean and s the spread of the functions relative to those of
    targets of equal classes. Of several functions each is also brought to the spread that
    targets with its mean have, √(ȳ_k (1 - ȳ_k)), relative to the others: how high it rises is an
    accident of where its labels are, too. The better the functions separate the classes by
    themselves, s → 1, the less is done, and nothing without a graph, γ → 0.
    """
    c = problem.n_columns
    F = problem.space.values(found.coordinates) + found.intercept
    middle, deviation = (0.0, 1.0) if c == 1 else (1 / c, np.sqrt((c - 1) / c**2))
    say = _say(problem)
    spreads = np.sqrt(say @ (F - say @ F) ** 2)
    spread = float(np.sqrt(np.mean(spreads**2))) / deviation
    share = max(1 - spread**2, 0.0) * gamma / (gamma + FEEBLE * lam)
    labels = np.average(problem.targets, axis=0, weights=problem.weights)
    if share == 0.0:
        return found
    mean = say @ F
    mean += share * ((labels - middle) * spread + middle - mean)
    W, intercept = found.coordinates, found.intercept
    if c > 1 and spreads.min() > FLAT * spreads.max():
        alike = np.sqrt(labels * (1 - labels))
        scale = (alike / alike.mean() * spreads.mean() / spreads) ** share
        W, F = W * scale, intercept + scale * (F - intercept)
    more, shift, higher = loss.shift(problem, mean - say @ F, say, lam=lam, gamma=gamma)
    F += shift + higher
    return replace(
        found,
        solution=F if c == 1 else simplex_projection(F),
        coordinates=W + more,
        intercept=intercept + higher,
    )


def _say(problem: Problem) -> FloatArray:
    """What each row counts in a mean: its mass, since rows with few neighbours are often stray.

    All the same without a graph, or without masses.
    """
    graph = problem.graph
    if graph is None or not graph.n_edges or not graph.masses.any():
        return np.full(problem.space.n_points, 1 / problem.space.n_points)
    return graph.masses / graph.masses.sum()


def _on_simplex(
    problem: Problem,
    loss: Loss,
    *,
    lam: float,
    gamma: float,
    start: SimplexState | None,
    r: float | None,
    accelerated: bool,
    tol: float,
    max_iter: int,
) -> SimplexResult:
    shape = (problem.space.n_points, problem.n_columns)
    offset = 1 / problem.n_columns
    curvature = lam * problem.space.n_points / problem.space.trace + gamma
    balance_at = BALANCE_AT if r is None else ()
    if start is None:
        start = SimplexState(np.full(shape, offset), np.zeros(shape), curvature)
    G, multiplier = start.G, start.multiplier
    r = start.r if r is None else r
    step = loss.kernel_step(problem, lam=lam, r=r, gamma=gamma, offset=offset)
    certificate, energies, past = np.inf, [], Anderson()
    for n_iter in range(1, max_iter + 1):
        W, F, b = step(G - multiplier / r)
        z, end = G + multiplier / r, F + multiplier / r
        before, G = G, simplex_projection(end)
        multiplier = r * (end - G)
        # How far it is from saying nothing, but where that is nothing but rounding.
        size = max(norm(G - offset), FLAT * norm(G))
        primal = norm(F - G) / size
        dual = r * norm(G - before) / max(norm(multiplier), curvature * size)
        energies.append(energy(problem, loss, W, F, b, lam=lam, gamma=gamma))
        if max(primal, dual) < certificate:
            certificate, best = max(primal, dual), (W, F, b)
        if certificate <= tol:
            break
        ratio = _ratio(primal, dual)
        if n_iter in balance_at and not 1 / BALANCED < ratio < BALANCED:
            r *= ratio**0.5
            step = loss.kernel_step(problem, lam=lam, r=r, gamma=gamma, offset=offset)
            past.forget()
        elif accelerated and n_iter < BALANCE_AT[-1]:
            z = past.next(z, end)
            G = simplex_projection(z)
            multiplier = r * (z - G)
    W, F, b = best
    return SimplexResult(
        solution=simplex_projection(F + b),
        status=Status.CONVERGED if certificate <= tol else Status.MAX_ITER,
        n_iter=n_iter,
        certificate=certificate,
        coordinates=W,
        intercept=offset + b,
        energy_path=np.array(energies),
        state=SimplexState(G, multiplier, r),
    )


def _ratio(primal: float, dual: float) -> float:
    floor = max(primal, dual) / FARTHEST
    return max(primal, floor) / max(dual, floor)
