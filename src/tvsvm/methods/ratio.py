"""The balanced ratio Σ_k TV(f_k) / B(f_k): Cheeger's cut for one function or for many.

B(f) = Σ_i |f_i - m|_λ with |x|_λ = λx above zero and -x below, m the λ/(λ + 1) quantile of f.
One function: λ = 1, the paper's Σ|f - median|. c > 1 functions: λ = c - 1, so that a class of
N/c rows is balanced (Bresson, Laurent, Uminsky and von Brecht, NIPS 2013).
"""

from collections.abc import Callable

import numpy as np

from tvsvm.graph import Graph
from tvsvm.losses import KernelStep
from tvsvm.problem import Problem
from tvsvm.results import FloatArray
from tvsvm.solvers import graph_tv_prox

KernelMap = Callable[[FloatArray], FloatArray]

STEP = 0.3  # largest move of a row before the prox; ten times as much jumps about
KERNEL_SHARE = 0.5  # how much of a step passes through the kernel: measured best for many classes
PROX_TOL = 1e-2
ROUND_EVERY = 3  # steps between two looks at the partition
LEAST_GAIN, MOST_FAILURES = 1e-4, 3  # when to give up


def balance(F: FloatArray) -> tuple[FloatArray, FloatArray]:
    """B of every column, and a subgradient with zero sum."""
    n, c = F.shape
    lam = max(c - 1, 1)
    m = np.quantile(F, lam / (lam + 1), axis=0, method="inverted_cdf")
    above, below = F - m > 0, F - m < 0
    B = lam * np.where(above, F - m, 0.0).sum(axis=0) + np.where(below, m - F, 0.0).sum(axis=0)
    # At the quantile any value in [-1, λ] is a subgradient: take the one that makes the sum zero.
    level = n - above.sum(axis=0) - below.sum(axis=0)
    middle = (below.sum(axis=0) - lam * above.sum(axis=0)) / np.maximum(level, 1)
    return B, np.where(above, lam, np.where(below, -1.0, middle))


def ratio_energy(graph: Graph, F: FloatArray) -> float:
    """Σ_k TV(f_k) / B(f_k); infinite where a function is constant."""
    B, _ = balance(F)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.asarray(graph.total_variation(F)) / B
    return float(np.where(B > 0, ratios, np.inf).sum())


def best_level(problem: Problem, graph: Graph, f: FloatArray, guess: FloatArray) -> float:
    """Level at which one function, (N, 1), is cut with the lowest ratio, all labels on their side.

    Levels may hardly differ in their ratio, for instance those above and below a group of rows
    that hangs on neither side; therefore each percent of the rows that a level takes from the
    side where the first guess has them counts as a percent of ratio.
    """
    values, place = np.unique(f, return_inverse=True)
    place = place.ravel()
    ends = np.sort(place[graph.edges], axis=1)
    opened, closed = (np.bincount(end, graph.edge_weights, values.size) for end in ends.T)
    cut = np.maximum(np.cumsum(opened - closed)[:-1], 0.0)
    below = np.cumsum(np.bincount(place))[:-1]
    ratio = cut / np.minimum(below, len(f) - below)
    agreement = np.cumsum(np.bincount(place, -np.sign(guess[:, 0])))[:-1] / len(f)
    cost = ratio * (1.0 + agreement.max() - agreement)
    labelled, positive = place[problem.rows], problem.targets[:, 0] > 0
    allowed = np.arange(labelled[~positive].max(), labelled[positive].min())
    best = allowed[np.lexsort((-agreement[allowed], cost[allowed]))[0]]
    return float(0.5 * (values[best] + values[best + 1]))


def one_hot(F: FloatArray) -> FloatArray:
    """The partition of the rows by their largest column."""
    return (F.argmax(axis=1)[:, None] == np.arange(F.shape[1])).astype(np.float64)


def rounded(problem: Problem, F: FloatArray) -> FloatArray:
    """The partition of F with the labelled rows in their classes."""
    partition = one_hot(F)
    partition[problem.rows] = problem.targets
    return partition


def partition_energy(problem: Problem, graph: Graph, F: FloatArray) -> float:
    """Ratio of the rounded partition: what tells a good end from a bad one.

    The relaxed functions can have a lower ratio while one of them shrinks to its label.
    """
    return ratio_energy(graph, rounded(problem, F))


def shares_of(partition: FloatArray) -> FloatArray:
    """Share of the rows in each class of a partition."""
    return np.asarray(partition.mean(axis=0) / partition.mean(axis=0).sum())


class RatioStep:
    """One step down the ratio for c > 1 functions on the simplex, warm-started from the last.

    F moves along the balance's subgradient, half of the way through a kernel step, and is then
    smoothed by the graph-TV prox on the simplex with the labelled rows fixed.
    """

    def __init__(self, problem: Problem, graph: Graph, through_kernel: KernelMap) -> None:
        self.problem, self.graph, self.through_kernel = problem, graph, through_kernel
        self.dual: FloatArray | None = None

    def __call__(self, F: FloatArray, length: float = STEP) -> FloatArray:
        """The next iterate, at most `length` away before the prox."""
        B, V = balance(F)
        B = np.maximum(B, np.finfo(float).tiny)
        ratios = np.asarray(self.graph.total_variation(F)) / B
        s = length / max(float((ratios / B).max()), np.finfo(float).tiny)
        Z = F + (s * ratios / B) * V
        Z = (1 - KERNEL_SHARE) * Z + KERNEL_SHARE * self.through_kernel(Z)
        Z[self.problem.rows] = self.problem.targets
        result = graph_tv_prox(
            self.graph,
            Z,
            s / B,
            simplex=True,
            fixed=self.problem.rows,
            dual=self.dual,
            tol=PROX_TOL,
            max_iter=200,
        )
        self.dual = result.dual
        return result.solution


def refine(
    problem: Problem,
    graph: Graph,
    start: FloatArray,
    step: KernelStep,
    *,
    r: float,
    max_rounds: int = 20,
) -> tuple[FloatArray, list[float], bool]:
    """Lower the energy of a partition; its best version, the falling energies, whether it ended.

    The energy is the ratio and, f being sought in the kernel space, what the partition F is away
    from it, a row: min_e (λ/2 |e|²_K + r/2 |e - F|²) / rN, with the loss of `step`.

    After every few steps the partition is rounded and compared with the best so far. A round
    without a gain is taken back and tried again with half the step, a few times.
    """

    def energy_of(partition: FloatArray) -> float:
        step.values(partition)
        return ratio_energy(graph, partition) + step.energy / (r * len(partition))

    down = RatioStep(problem, graph, lambda F: step.values(F)[0])
    best = rounded(problem, start)
    energies = [energy_of(best)]
    length, failures = STEP, 0
    for _ in range(max_rounds):
        F = best
        for _ in range(ROUND_EVERY):
            F = down(F, length)
        candidate = rounded(problem, F)
        energy = energy_of(candidate)
        if energy < energies[-1] * (1 - LEAST_GAIN):
            best, failures = candidate, 0
            energies.append(energy)
        else:
            length, failures = length / 2, failures + 1
            if failures == MOST_FAILURES:
                return best, energies, True
    return best, energies, False
