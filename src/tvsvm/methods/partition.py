"""The search for a partition of low balanced ratio that the labels agree with, for c > 1 classes.

The energy that is lowered is the ratio, and more the fewer random walks from the labels end in
their own class. For two classes not walks but functions of the kernel space say, where they can,
how much labels are at home in their class; what is said of walks below then holds for these.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

from tvsvm._telling import tell
from tvsvm.graph import Graph
from tvsvm.methods.ratio import ratio_energy, rounded, shares_of
from tvsvm.problem import Problem
from tvsvm.results import FloatArray, IntArray
from tvsvm.solvers import ratio_partition
from tvsvm.solvers.partition import clear_partition, homeless

WALK = 16  # steps of a random walk from a label
TIE, CLEARLY = 0.01, 0.05  # share of the energy that says nothing; of energy or walks, something
INSISTENT = 0.3  # classes whose walks would end at home by other names: search once more
# Walks of two classes, of 2, that may be lost by giving each the other's part; that are hardly any.
SWAPPED, UNDECIDED = 1.0, 0.6
FAR_OFF = 0.2  # more energy, in shares of a class, from where moves alone seldom lead below it
LESS_EVEN = 0.05  # loss of evenness of the classes that gives a collapsing partition away
NOTHING = 0.05  # share of the rows in one of two classes that gives it away as well
SAME = 0.01  # share of the rows by which partitions may differ and count as the same
# Times the lowest ratio: a function of several steps can have less variation than any of two, as
# along moons, and its sign is a bad cut. USPS {4, 9} has the same errors with 1.5, 2 and none.
BAD_CUT = 1.5
CUT_LIMIT = 0.05  # share of the edge weight: a cut longer than this divides no clusters
LOYALTY = 0.5  # share of the ratio that it must be worth if no walk ends in its class
FAR_OUT = 2.0  # times the usual k(x, x): beyond, functions of the kernel space extrapolate
HEARD = 500  # labels up to which the kernel is asked which side is which; more leave no doubt
ROUNDING = 1e-6  # of energies, which the search finds in single precision
HASTY = 3  # idle cycles after which a search that is not the last one ends
EVEN = 0.9  # evenness from which on classes are even enough for a cut found without labels
CERTAIN = 0.4  # classes whose walks tell the names of parts from the next best ones
FEW_CYCLES = 3  # from a partition that is next to the lowest one


class PartitionSearch:
    """Partitions of the rows of a problem as one-hot functions, near to others and anywhere.

    `clear` is one found without labels that is known to be low, see `clear_partition`.
    """

    _insistent = INSISTENT

    def __init__(self, problem: Problem, graph: Graph, clear: IntArray | None = None) -> None:
        self.problem, self._graph, self._clear = problem, graph, clear
        self._W = csr_array(graph.affinity)
        self._home = _walks(problem, self._W) / problem.n_columns
        self._labelled = np.zeros(self._W.shape[0], dtype=bool)
        self._labelled[problem.rows] = True

    def search(self, start: FloatArray) -> tuple[FloatArray, list[float]]:
        """Partition of low energy from the one that functions suggest, and the falling energies.

        If there is a clear partition, and it suits the labels, they need not suggest any.
        """
        placed = self.placed()
        if placed is not None:
            return placed
        near, to_near = self.nearby(start, hasty=True)
        best, to_best = self.everywhere(near)
        return best, to_near + to_best[1:]

    def nearby(self, start: FloatArray, *, hasty: bool = False) -> tuple[FloatArray, list[float]]:
        """The partition that functions suggest, lowered by moves alone, and its energies.

        `hasty` if a longer search follows, which takes over where this one would need long.
        """
        patience = {"patience": HASTY} if hasty else {}
        return self._lowered(rounded(self.problem, start), split=False, **patience)

    def placed(self) -> tuple[FloatArray, list[float]] | None:
        """The clear partition with the labels in their classes, and its falling energies.

        None if there is none, or if the walks leave doubt which part is which class, so that
        another one may suit the labels better.
        """
        if self._clear is None:
            return None
        named, _ = self._named(self._clear)
        if self._certainty(named) < CERTAIN:
            return None
        return self._lowered(named, split=False, patience=1, max_cycles=FEW_CYCLES)

    def _certainty(self, named: FloatArray) -> float:
        """How many classes' walks fewer would end at home if the parts had the next best names."""
        ends = self._ends(named.argmax(axis=1))
        own, best = float(np.trace(ends)), -np.inf
        for k in range(len(ends)):
            other = ends.copy()
            other[k, k] = -len(ends)  # another part
            label, name = linear_sum_assignment(-other)
            best = max(best, float(other[label, name].sum()))
        return own - best

    def everywhere(self, near: FloatArray) -> tuple[FloatArray, list[float]]:
        """A partition that may be far away, and the falling energies.

        An untypical label can hold a class in the wrong place; therefore the partition is first
        improved regardless of labels, and its parts are named by where the walks end. If that is
        better, and suits the labels, it is near the lowest there is. If not, classes are split
        anew with the labels in their places, and the better of the two is kept.
        """
        best, energies = near, [self.energy(near)]
        other, lowest = self._without_labels(near)
        found = self.energy(other)
        suits = 1 + LOYALTY / 2  # times the lowest ratio: more than half of the walks at home
        if found >= min(energies[0], suits * lowest):
            best, path = self._lowered(near)
            energies += path[1:]
        if found < energies[-1] and not self._less_even(other, best):
            best = other
            energies.append(found)
        # The ratio hardly sees which of two labels in one part is the misplaced one.
        other, gain = self._named(best.argmax(axis=1))
        if gain > CLEARLY:
            other, path = self._lowered(other, split=False)
            rest = self._among_the_rest(other)
            fair = rest < np.inf and rest <= self._among_the_rest(best) * (1 + TIE)
            if fair and not self._less_even(other, best):
                best = other
                energies.append(min(path[-1], energies[-1]))
        # To be beaten by other names: the energy before these, else they would be taken back.
        limit = energies[-1] * (1 + FAR_OFF / self.problem.n_columns)
        for other, pair in self._swapped(best):
            other, path = self._lowered(
                other, split=pair, max_cycles=1, limit=np.inf if pair else limit
            )
            if path[-1] < energies[-1] * (1 - ROUNDING):
                best, path = self._lowered(other, split=False)
                energies.append(path[-1])
                break
        return best, np.minimum.accumulate(energies).tolist()

    def _without_labels(self, near: FloatArray) -> tuple[FloatArray, float]:
        """A partition sought regardless of labels that then got theirs, and its ratio before.

        The one that it began with if it is no other, or if its classes are clearly less even.
        """
        free = self._clear
        if free is None:
            no_labels = np.zeros_like(self._labelled)
            free, _ = ratio_partition(self._W, near.argmax(axis=1), no_labels, patience=HASTY)
        lowest = ratio_energy(self._graph, self._one_hot(free))
        other, _ = self._named(free)
        if self._differ(other, near) and not self._less_even(other, near):
            other, _ = self._lowered(other, split=False, regroup=True, patience=HASTY)
            if not self._less_even(other, near):
                return other, lowest
        return near, lowest

    def _swapped(self, partition: FloatArray) -> Iterator[tuple[FloatArray, set[int]]]:
        """Two parts with each other's names, where the walks do not clearly speak against it.

        With each the two, if the walks hardly do: by its new name a part may have to give a group
        of rows away, which is then worth the time.
        """
        loss = self._loss_by_exchange(partition)
        pairs = [(a, b) for a, b in combinations(range(len(loss)), 2) if loss[a, b] <= SWAPPED]
        for a, b in sorted(pairs, key=lambda pair: loss[pair]):
            other = partition.copy()
            other[:, [a, b]] = partition[:, [b, a]]
            yield rounded(self.problem, other), {a, b} if loss[a, b] <= UNDECIDED else set()

    def _loss_by_exchange(self, partition: FloatArray) -> FloatArray:
        """Classes' walks, of 2, that would end elsewhere if two parts exchanged names, (c, c)."""
        ends = self._ends(partition.argmax(axis=1))
        own = np.diag(ends)
        return np.asarray(own[:, None] + own - ends - ends.T)

    def names_in_doubt(self, partition: FloatArray) -> FloatArray:
        """How likely two parts should rather have each other's names, from 0 to a half, (c, c).

        A half where the walks from their labels say nothing, as if one of these lies in the other's
        part; nothing from where it is no more worth while to split both parts anew for it. If there
        is a clear partition its parts are asked: a label far out has but an island around itself.
        """
        if self._clear is not None:
            c = self.problem.n_columns
            part = partition.argmax(axis=1)
            both = np.bincount(self._clear * c + part, minlength=c * c).reshape(c, c)
            partition = self._one_hot(linear_sum_assignment(-both)[1][self._clear])
        doubt = np.clip(1 - self._loss_by_exchange(partition) / UNDECIDED, 0.0, 1.0) / 2
        np.fill_diagonal(doubt, 0.0)
        return doubt

    def again(self, last: FloatArray) -> tuple[FloatArray, list[float]]:
        """From the end of a search with other labels: a new one only if the walks insist.

        Labels that correct errors are untypical rows, whose walks end in other classes; a search
        with nothing but such labels would follow them.
        """
        near, energies = self.nearby(last)
        if self._named(near.argmax(axis=1))[1] <= self._insistent:
            return near, energies
        best, path = self.everywhere(near)
        return best, energies + path[1:]

    def energy(self, partition: FloatArray) -> float:
        """Ratio of a partition, raised for labels that are not at home in their classes."""
        return ratio_energy(self._graph, partition) * self.price(partition)

    def _among_the_rest(self, partition: FloatArray) -> float:
        """The energy among rows without a label; infinite if a class has no other rows.

        How many and how heavy edges a misplaced label has says nothing about its class.
        """
        free = ~self._labelled
        if not free.any():
            return self.energy(partition)
        return ratio_energy(self._graph.subgraph(free), partition[free]) * self.price(partition)

    def price(self, partition: FloatArray) -> float:
        """How many times its ratio the energy is, 1 to 1.5, for labels that are not at home."""
        return 1 + LOYALTY * (1 - self.at_home(partition))

    def at_home(self, partition: FloatArray) -> float:
        """Share of the walks from the labels that end in their class."""
        return float(np.clip(np.sum(self._home * partition), 0.0, 1.0))

    def homeless(self, partition: FloatArray) -> int:
        """How many classes have most of their walks end in another one."""
        return len(homeless(self._ends(partition.argmax(axis=1))))

    def _lowered(self, partition: FloatArray, **options: Any) -> tuple[FloatArray, list[float]]:
        tell("searching a partition")
        part, path = ratio_partition(
            self._W,
            partition.argmax(axis=1),
            self._labelled,
            home=self._home,
            loyalty=LOYALTY,
            **options,
        )
        return self._one_hot(part), path.tolist()

    def _named(self, part: IntArray) -> tuple[FloatArray, float]:
        """The parts with other names, and how many more classes' walks then end at home."""
        ends = self._ends(part)
        label, name = linear_sum_assignment(-ends)
        gain = float(ends[label, name].sum() - np.trace(ends))
        return rounded(self.problem, self._one_hot(label[np.argsort(name)][part])), gain

    def _ends(self, part: IntArray) -> FloatArray:
        """Share of the walks from the labels of each class that end in each part, (c, c)."""
        c = self.problem.n_columns
        return np.array([c * np.bincount(part, column, c) for column in self._home.T])

    def _one_hot(self, part: IntArray) -> FloatArray:
        return np.eye(self.problem.n_columns)[part]

    @staticmethod
    def _differ(partition: FloatArray, other: FloatArray) -> bool:
        return bool(np.mean(partition.argmax(axis=1) != other.argmax(axis=1)) > SAME)

    @staticmethod
    def _less_even(partition: FloatArray, other: FloatArray) -> bool:
        return less_even(shares_of(partition), shares_of(other))


class TwoSided(PartitionSearch):
    """The same for one function with targets ±1, whose two sides are the classes."""

    # Corrections are often more than other labels: with 0.3 eight of them exchanged the classes of
    # USPS {4, 9} in one of two sequences.
    _insistent = SWAPPED

    def __init__(self, problem: Problem, graph: Graph) -> None:
        super().__init__(replace(problem, targets=both_sides(problem.targets)), graph)
        if problem.rows.size <= HEARD:
            self._home = _as_the_kernel_sees(self.problem, 2 * self._home) / 2

    def _among_the_rest(self, partition: FloatArray) -> float:
        """The energy itself, by which the cut will be compared with others, see `elsewhere`."""
        return self.energy(partition)

    def price_of(self, f: FloatArray) -> float:
        """How many times its ratio the energy of the sides of f, (N, 1), is."""
        return self.price(both_sides(f))

    def suits(self, f: FloatArray) -> bool:
        """Whether labels are at home on the sides of f, (N, 1), rather than on the others."""
        return self.at_home(both_sides(f)) >= 0.5

    def elsewhere(self, start: FloatArray, found: FloatArray) -> FloatArray | None:
        """±1 on the sides that a search from a start ends with, if clearly better than those found.

        If the cut found is long, there is no search: where classes overlap, lower ratios are noise
        of the graph.
        """
        sides = both_sides(found)
        if cut_share(self._graph, sides) > CUT_LIMIT:
            return None
        other, _ = self.search(both_sides(start))
        if self.energy(other) >= (1 - CLEARLY) * self.energy(sides):
            return None
        return one_function(other)


def both_sides(f: FloatArray) -> FloatArray:
    """Indicators of the two sides of a function, (N, 1) to (N, 2)."""
    return np.hstack([f <= 0, f > 0]).astype(np.float64)


def signs(problem: Problem, f: FloatArray) -> FloatArray:
    """The two sides of a function as ±1, (N, 1), with the labels."""
    cut = np.where(f > 0, 1.0, -1.0)
    cut[problem.rows] = problem.targets
    return cut


def one_function(partition: FloatArray) -> FloatArray:
    """±1 on the two sides of a partition, (N, 2) to (N, 1)."""
    return partition @ np.array([[-1.0], [1.0]])


def clear_cut(graph: Graph, sought_on: Graph, c: int) -> IntArray | None:
    """A partition found without labels on one of two graphs, if there is one of even clusters.

    The other graph tells whether it is a cut between clusters.
    """
    tell("searching a partition")
    found = clear_partition(csr_array(sought_on.affinity), c)
    if found is None:
        return None
    partition = np.eye(c)[found]
    between = cut_share(graph, partition) <= CUT_LIMIT
    return found if between and evenness(shares_of(partition)) >= EVEN else None


def cut_share(graph: Graph, partition: FloatArray) -> float:
    """Share of the edge weight between the classes of a partition, (N, c) and one-hot."""
    weight = float(graph.edge_weights.sum())
    return float(np.sum(graph.total_variation(partition))) / 2 / weight if weight > 0 else 0.0


def less_even(shares: FloatArray, others: FloatArray) -> bool:
    """Whether the classes of one partition are clearly less equal in size than those of another.

    Of two classes one has to be next to nothing: a cut between them finds unequal ones, too.
    """
    if shares.size == 2:
        return bool(shares.min() < NOTHING <= others.min())
    return loss_of_evenness(shares, others) > LESS_EVEN


def loss_of_evenness(shares: FloatArray, others: FloatArray) -> float:
    """By how much the classes of one partition are less equal in size than those of another."""
    return max(evenness(others) - evenness(shares), 0.0)


def evenness(shares: FloatArray) -> float:
    """Effective number of classes over their number: 1 for equal classes."""
    some = shares[shares > 0]
    return float(np.exp(-np.sum(some * np.log(some))) / shares.size)


def _walks(problem: Problem, W: csr_array) -> FloatArray:
    """Where short random walks from the labels of each class end, (N, c), as precise as W."""
    degree = W.sum(axis=1)
    # Rows without neighbours lead nowhere.
    leaving = (1.0 / np.where(degree > 0, degree, 1.0))[:, None].astype(W.dtype)
    mass = np.zeros((W.shape[0], problem.n_columns), W.dtype)
    mass[problem.rows] = problem.targets / problem.targets.sum(axis=0)
    for _ in range(WALK):
        mass = W @ (mass * leaving)
    return mass


def _as_the_kernel_sees(problem: Problem, walks: FloatArray) -> FloatArray:
    """What each row says about where the labels of each of two classes belong, (N, 2).

    A function of the kernel space that is fitted to the sides of a cut without the labelled rows,
    argmin_f λ/2 |f|²_K + ½ Σ_j (f_j - s_j)² over the other rows j, has values at the labelled ones
    that are linear in s; this sums up to how much those of one class differ from those of the
    other, from 0, wrong by 2, over a half, no difference, to 1. It tells rows on the far side of a
    cut from rows near it, which walks do not: given the true cut of pairs of USPS digits and one
    label a class, it gives the sides the wrong names in 0.1 % of all draws, walks in 0.2 to 1.1 %.
    As far as it says the same about both classes, as where the kernel is constant or the identity,
    walks are heard; also where a label is far from all rows, as kernels without a bound have it.
    """
    space, rows = problem.space, problem.rows
    sizes = np.einsum("ij,ij->i", space.features, space.features) + space.residual  # k(x, x)
    if sizes[rows].max() > FAR_OUT * np.median(sizes):
        return walks
    smooth = space.quadratic(lam=1.0, r=1.0)
    # With H = K(λI + K)⁻¹ and labels l, the coefficients are (I - H_ll)⁻¹ H_lj.
    left_out = np.eye(rows.size) - smooth.block(rows)
    weights = np.zeros((space.n_points, 2))
    try:
        weights[rows] = np.linalg.solve(left_out, problem.targets / problem.targets.sum(axis=0))
    except np.linalg.LinAlgError:  # labels that no other row tells anything about, up to rounding
        return walks
    home: FloatArray = smooth.solve(weights).astype(np.float64, copy=False)
    home[rows] = 0.0
    apart = home - home[:, ::-1]
    told = min(0.5 * float(np.abs(apart[:, 0]).sum()), 1.0)
    if not np.isfinite(told):
        return walks
    return apart / 2 + told / len(home) + (1 - told) * walks
