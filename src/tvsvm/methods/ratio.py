"""The balanced ratio Σ_k TV(f_k) / B(f_k): Cheeger's cut for one function or for many.

B(f) = Σ_i |f_i - m|_λ with |x|_λ = λx above zero and -x below, m the λ/(λ + 1) quantile of f.
One function: λ = 1, the paper's Σ|f - median|. c > 1 functions: λ = c - 1, so that a class of
N/c rows is balanced (Bresson, Laurent, Uminsky and von Brecht, NIPS 2013).
"""

from collections.abc import Callable

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array, diags_array

from tvsvm._telling import tell
from tvsvm.graph import Graph
from tvsvm.methods.problem import Problem
from tvsvm.results import FloatArray, IntArray
from tvsvm.solvers import graph_tv_prox, ratio_partition

KernelMap = Callable[[FloatArray], FloatArray]

STEP = 0.3  # largest move of a row before the prox; ten times as much jumps about
KERNEL_SHARE = 0.5  # how much of a step passes through the kernel: measured best for many classes
PROX_TOL = 1e-2
ROUND_EVERY = 3  # steps between two looks at the partition
LEAST_GAIN, MOST_FAILURES = 1e-4, 3  # when to give up
WALK = 16  # steps of a random walk from a label
TIE, CLEARLY = 0.01, 0.05  # share of the energy that says nothing; of energy or walks, something
LESS_EVEN = 0.05  # loss of evenness of the classes that gives a collapsing partition away
NOTHING = 0.05  # share of the rows in one of two classes that gives it away as well
SAME = 0.01  # share of the rows by which partitions may differ and count as the same
LOYALTY = 0.5  # share of the ratio that it must be worth if no walk ends in its class


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


class PartitionSearch:
    """Partitions of low ratio with the labelled rows in their classes, for c > 1 functions.

    The energy that is lowered is the ratio, and more the fewer random walks from the labels end in
    their own class.
    """

    def __init__(self, problem: Problem, graph: Graph) -> None:
        self.problem = problem
        self.W = csr_array(graph.affinity)
        self.home = _walks(problem, self.W) / problem.n_columns
        self.labelled = np.zeros(self.W.shape[0], dtype=bool)
        self.labelled[problem.rows] = True
        self.eye = np.eye(problem.n_columns)

    def nearby(self, start: FloatArray) -> tuple[FloatArray, list[float]]:
        """The partition that functions suggest, lowered by moves alone, and its energies."""
        part, path = self._lowered(rounded(self.problem, start).argmax(axis=1), split=False)
        return self.eye[part], path

    def everywhere(self, near: FloatArray) -> tuple[FloatArray, list[float]]:
        """A partition that may be far away, and the falling energies.

        First classes are split anew. An untypical label can hold a class in the wrong place;
        therefore the partition is then improved regardless of labels, and its parts are named by
        where the walks end. That one is kept if its energy is lower, too.
        """
        best, energies = self._lowered(near.argmax(axis=1))
        free, _ = ratio_partition(self.W, best, np.zeros_like(self.labelled))
        other, _ = self._named(free)
        differs = np.mean(other != best) > SAME
        if differs and not less_even(self.eye[other], self.eye[best]):
            other, path = self._lowered(other)
            if path[-1] < energies[-1] and not less_even(self.eye[other], self.eye[best]):
                best = other
                energies.append(path[-1])
        # The ratio hardly sees which of two labels in one part is the misplaced one.
        other, gain = self._named(best)
        if gain > CLEARLY:
            other, path = self._lowered(other, split=False)
            if path[-1] < energies[-1] * (1 + TIE):
                best = other
                energies.append(min(path[-1], energies[-1]))
        return self.eye[best], energies

    def again(self, last: FloatArray) -> tuple[FloatArray, list[float]]:
        """From the end of a search with other labels: a new one only if the walks say so."""
        near, energies = self.nearby(last)
        if self._named(near.argmax(axis=1))[1] <= CLEARLY:
            return near, energies
        best, path = self.everywhere(near)
        return best, energies + path[1:]

    def _lowered(self, part: IntArray, *, split: bool = True) -> tuple[IntArray, list[float]]:
        tell("searching a partition")
        found, path = ratio_partition(
            self.W, part, self.labelled, home=self.home, loyalty=LOYALTY, split=split
        )
        return found, path.tolist()

    def _named(self, part: IntArray) -> tuple[IntArray, float]:
        """The parts with other names, and how many more classes' walks then end at home."""
        c = len(self.eye)
        ends = np.array([c * np.bincount(part, column, c) for column in self.home.T])
        label, name = linear_sum_assignment(-ends)
        renamed = label[np.argsort(name)][part]
        gain = float(ends[label, name].sum() - np.trace(ends))
        return rounded(self.problem, self.eye[renamed]).argmax(axis=1), gain


def search(
    problem: Problem, graph: Graph, start: FloatArray, *, searched: bool = False
) -> tuple[FloatArray, list[float]]:
    """Partition of low ratio from the one c > 1 functions suggest, and the falling energies.

    `searched` tells that the functions are the end of a search with slightly other labels.
    """
    partitions = PartitionSearch(problem, graph)
    if searched:
        return partitions.again(start)
    near, to_near = partitions.nearby(start)
    best, to_best = partitions.everywhere(near)
    return best, to_near + to_best[1:]


def less_even(partition: FloatArray, other: FloatArray) -> bool:
    """Whether the classes of one partition are clearly less equal in size than those of another.

    Of two classes one has to be next to nothing: a cut between them finds unequal ones, too.
    """
    if partition.shape[1] == 2:
        return bool(partition.mean(axis=0).min() < NOTHING <= other.mean(axis=0).min())
    return _evenness(other) - _evenness(partition) > LESS_EVEN


def _evenness(partition: FloatArray) -> float:
    """Effective number of classes over their number: 1 for equal classes."""
    shares = partition.mean(axis=0)
    shares = shares[shares > 0]
    return float(np.exp(-np.sum(shares * np.log(shares))) / partition.shape[1])


def _walks(problem: Problem, W: csr_array) -> FloatArray:
    """Where short random walks from the labels of each class end, (N, c)."""
    degree = W.sum(axis=1)
    walk = (diags_array(1.0 / np.where(degree > 0, degree, 1.0)) @ W).T.tocsr()
    mass = np.zeros((W.shape[0], problem.n_columns))
    mass[problem.rows] = problem.targets / problem.targets.sum(axis=0)
    for _ in range(WALK):
        mass = walk @ mass
    return mass


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
    through_kernel: KernelMap,
    *,
    max_rounds: int = 20,
) -> tuple[FloatArray, list[float], bool]:
    """Lower the ratio of a partition; its best version, the falling energies, and whether it ended.

    After every few steps the partition is rounded and compared with the best so far. A round
    without a gain is taken back and tried again with half the step, a few times.
    """
    step = RatioStep(problem, graph, through_kernel)
    best = rounded(problem, start)
    energies = [ratio_energy(graph, best)]
    length, failures = STEP, 0
    for _ in range(max_rounds):
        F = best
        for _ in range(ROUND_EVERY):
            F = step(F, length)
        candidate = rounded(problem, F)
        energy = ratio_energy(graph, candidate)
        if energy < energies[-1] * (1 - LEAST_GAIN):
            best, failures = candidate, 0
            energies.append(energy)
        else:
            length, failures = length / 2, failures + 1
            if failures == MOST_FAILURES:
                return best, energies, True
    return best, energies, False
