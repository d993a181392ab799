"""Partitions of low balanced ratio, by moves of nodes on a hierarchy of coarser graphs."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from functools import reduce

import numpy as np
from scipy.sparse import csr_array

from tvsvm._threads import map_batches
from tvsvm.results import BoolArray, FloatArray, IntArray
from tvsvm.solvers._partition_anew import found_twice
from tvsvm.solvers._partition_kernels import descend, statistics
from tvsvm.solvers._partition_levels import (
    LEAST_GAIN,
    PASSES,
    Level,
    finest_level,
    lowered,
    merged_in_pairs,
    partition_ratio,
)
from tvsvm.solvers._partition_proposals import (
    exchanged,
    given_away,
    regrouped,
    resettled,
    rivals,
)

COARSEST = 5  # nodes for each class at which coarsening ends
SPLIT_AT = 1500  # nodes for each class from which on classes are split anew
# Cycles end after so many in a row, without or with splits, that gain less than this share.
SETTLED, SETTLED_SPLIT, WORTHWHILE = 6, 2, 1e-3
ATTEMPTS = 2  # at splitting two classes, on differently merged nodes
MOST_ROUNDS = 4  # of settling classes elsewhere; usual are one or two
# Classes are united and divided up to so much more than the energy, in shares of a class, and
# followed further if after a cycle, and after all with splits, it is at most so much more.
BOLD, PROMISING, CLOSE = 2.0, 0.3, 0.05
STRANGER = 2  # times as much of a class's home in another class as in it: it has no place
CHANGED = 0.05  # relative change of a class's size after which it is worth another split
AT_ONCE = 2  # trials from the same partition, in threads if there are: the result is the same
ONE_BY_ONE = 10_000_000  # entries of the affinity from which on levels of one cycle are enough


def ratio_partition(
    affinity: csr_array,
    part: IntArray,
    fixed: BoolArray,
    *,
    home: FloatArray | None = None,
    loyalty: float = 0.0,
    split: bool | Collection[int] = True,
    regroup: bool | None = None,
    max_cycles: int = 20,
    patience: int = SETTLED,
    limit: float = np.inf,
) -> tuple[IntArray, FloatArray]:
    """Lower (1 + loyalty d) Σ_k cut_k / B(s_k) over partitions that keep fixed nodes' classes.

    B(s) = min((c - 1) s, N - s) for a class of s of the N nodes, d the share that is not at home.
    In a cycle, nodes of one class are merged in pairs along heavy edges, again and again, until few
    are left. There classes that share a long border are split anew along eigenvectors of their
    union. Then the hierarchy is unfolded, and on each level nodes move to where the ratio falls.
    Merged nodes move together, which is how a whole group changes sides; cycles differ by the order
    of merging, which is random but the same for the same graph. In the end classes that lost their
    place are settled anew near their fixed nodes; or, if there are none, two classes are united and
    a third one divided.

    Parameters
    ----------
    affinity : sparse array of shape (N, N)
        Symmetric weights.
    part : ndarray of shape (N,)
        Class of each node at the start, every class from 0 to the largest occurring.
    fixed : boolean array of shape (N,)
        Nodes that do not move.
    home : ndarray of shape (N, c), optional
        How much each node belongs to each class, or less than nothing; by default nowhere. What
        is at home counts between 0 and 1.
    loyalty : float
        Share of the ratio that it must be worth to move all that is at home away.
    split : bool or collection of int
        Whether classes are split anew, or which; without, the end stays closer to the start.
    regroup : bool, optional
        Whether classes are settled anew; by default if all are split.
    max_cycles : int
        Most cycles in a row; they also end when several have gained next to nothing.
    patience : int
        So many of those without splits.
    limit : float
        There are no cycles if moves of single nodes do not lead below this energy.

    Returns
    -------
    part : ndarray of shape (N,)
        The partition of lowest energy.
    energies : ndarray
        At the start and after every cycle, never rising; of weights in single precision,
        where edges 1e45 times lighter than the heaviest are none.
    """
    finest, unit = finest_level(affinity)
    best: IntArray = part.astype(np.int32)
    c = int(best.max()) + 1
    home = np.zeros((part.size, c)) if home is None else home
    search = _Search(finest, fixed, home, loyalty, patience)
    energies = [search.energy(best)]
    if limit < np.inf:
        best = best.copy()
        descend(*finest, best, fixed, c, PASSES)
        energies.append(min(search.energy(best), energies[0]))
        if energies[-1] * unit > limit:
            return best, unit * np.array(energies)
    classes = split if not isinstance(split, bool) else range(c if split else 0)
    for _ in range(MOST_ROUNDS):
        best, found = search.settle(best, classes, max_cycles)
        energies += found
        if not (split is True if regroup is None else regroup):
            break
        other = (search.resettle if fixed.any() else search.regroup)(best, max_cycles)
        if other is None:
            break
        best = other
        energies.append(search.energy(best))
    return best, unit * np.array(energies)


def clear_partition(affinity: csr_array, c: int) -> IntArray | None:
    """The partition in c classes of low ratio Σ_k cut_k / B(s_k), where there is a clear one.

    It is sought from nothing, without fixed nodes, as `_partition_anew` says, in a fraction of the
    time that `ratio_partition` takes from a start; which class is which is arbitrary. None if
    independent searches end at different ones, as they do where classes overlap.
    """
    return found_twice(finest_level(affinity)[0], c)


def homeless(ends: FloatArray) -> list[int]:
    """Classes with most of their home, row k of `ends` by classes, in one other; worst first."""
    own = np.diag(ends)
    elsewhere = np.where(np.eye(len(ends), dtype=bool), 0.0, ends).max(axis=1)
    order = np.argsort(own, kind="stable")
    chosen: list[int] = order[elsewhere[order] > STRANGER * own[order]].tolist()
    return chosen


class _Search:
    """Cycles of merging, splitting and moving on one graph."""

    def __init__(
        self, finest: Level, fixed: BoolArray, home: FloatArray, loyalty: float, patience: int
    ) -> None:
        self.finest, self.fixed, self.home, self.loyalty = finest, fixed, home, loyalty
        self.patience = patience
        self.c = home.shape[1]
        self.random = np.random.RandomState(0)
        # Sizes of one class or two whenever splitting them anew brought nothing.
        self.tried: defaultdict[tuple[int, ...], list[FloatArray]] = defaultdict(list)

    def energy(self, part: IntArray) -> float:
        """Energy of a partition of the rows."""
        return self._price(self.home, part) * partition_ratio(self.finest, part, self.c)

    def _price(self, home: FloatArray, part: IntArray) -> float:
        at_home = float(home[np.arange(part.size), part].sum())
        return 1 + self.loyalty * (1 - min(max(at_home, 0.0), 1.0))

    def settle(
        self,
        part: IntArray,
        split: Collection[int],
        max_cycles: int,
        limit: float = np.inf,
        limit_unsplit: float = np.inf,
    ) -> tuple[IntArray, list[float]]:
        """Cycles until they gain nothing, or the first one does not lead below a limit.

        In each of them some classes are split anew, by themselves and with their neighbours; then,
        if this led below another limit, in none.
        """
        best, energies, idle = part, [self.energy(part)], 0
        for _ in range(max_cycles):
            # Cycles that will hardly gain anything need not wait for each other.
            at_once = AT_ONCE if idle and not split else 1
            found, energy = self._lowest_cycle(best, split, at_once)
            idle = 0 if energy < energies[-1] * (1 - WORTHWHILE) else idle + at_once
            if energy < energies[-1]:
                best = found
            energies.append(min(energy, energies[-1]))
            if energies[1] > limit:
                return best, energies[1:]
            if idle >= (SETTLED_SPLIT if split else self.patience):
                break
        # Cycles without splits find what these are too coarse for.
        if split and energies[-1] <= limit_unsplit:
            best, path = self.settle(best, (), max_cycles)
            energies += path
        return best, energies[1:]

    def resettle(self, part: IntArray, max_cycles: int) -> IntArray | None:
        """A better partition with classes brought back to where they are at home."""
        ends = np.array([np.bincount(part, column, self.c) for column in self.home.T])
        trials = resettled(self.finest, part, self.home, ends, homeless(ends))
        return self._better(part, trials, max_cycles)

    def regroup(self, part: IntArray, max_cycles: int) -> IntArray | None:
        """A better partition with two classes united and another one divided."""
        limit = 1 + BOLD / self.c
        return self._better(part, regrouped(self.finest, part, self.c, limit), max_cycles)

    def _better(
        self, part: IntArray, trials: Iterable[tuple[IntArray, set[int]]], max_cycles: int
    ) -> IntArray | None:
        """The end of lowest energy from some partitions, which come with what classes are new."""
        energy = self.energy(part)
        best, lowest = None, energy * (1 - WORTHWHILE)
        bold, promising, close = (1 + share / self.c for share in (BOLD, PROMISING, CLOSE))
        for trial, classes in trials:
            trial[self.fixed] = part[self.fixed]
            if self.energy(trial) > bold * energy:
                continue
            found, energies = self.settle(
                trial, classes, max_cycles, limit=promising * energy, limit_unsplit=close * energy
            )
            if energies[-1] < lowest:
                best, lowest = found, energies[-1]
        return best

    def _lowest_cycle(
        self, part: IntArray, split: Collection[int], count: int
    ) -> tuple[IntArray, float]:
        """The best end of several cycles that differ by chance, and its energy."""

        def end(seed: int) -> tuple[IntArray, float]:
            found = self._cycle(part, split, np.random.RandomState(seed))
            return found, self.energy(found)

        seeds = self.random.randint(2**31, size=count).tolist()
        ends = map if self.finest.indices.size >= ONE_BY_ONE else map_batches
        return min(ends(end, seeds), key=lambda found: found[1])

    def _cycle(
        self, part: IntArray, split: Collection[int], random: np.random.RandomState
    ) -> IntArray:
        """Coarsen, search on the coarsest level, unfold."""
        finest, c = self.finest, self.c
        levels, fixings = [finest], [self.fixed]
        maps: list[IntArray] = [np.arange(part.size)]
        part = part.copy()
        descend(*finest, part, self.fixed, c, PASSES)
        target = COARSEST * c
        largest = 2.0 * float(finest.sizes.sum()) / target
        while part.size > target:
            merged = merged_in_pairs(levels[-1], part, random, largest)
            if merged is None:
                break
            level, coarse = merged
            count = level.sizes.size
            levels.append(level)
            maps.append(coarse)
            fixings.append(np.bincount(coarse, fixings[-1], count) > 0)
            coarse_part = np.empty(count, dtype=np.int32)
            coarse_part[coarse] = part
            part = coarse_part
        for depth in reversed(range(len(levels))):
            level, held = levels[depth], fixings[depth]
            lowered(level, part, held, c)
            if split and part.size >= min(SPLIT_AT * c, finest.sizes.size):
                rows = reduce(lambda node, coarse: coarse[node], maps[: depth + 1])
                part, split = self._split_anew(level, part, held, rows, split), ()
            part = part[maps[depth]]
        return part

    def _split_anew(
        self,
        level: Level,
        part: IntArray,
        fixed: BoolArray,
        rows: IntArray,
        classes: Collection[int],
    ) -> IntArray:
        """A better partition of a level, whose nodes stand for the given rows."""
        c, n = self.c, part.size
        home: FloatArray = np.stack(
            [np.bincount(rows, column, n).astype(np.float64) for column in self.home.T], axis=1
        )
        best, energy = part, self._price(home, part) * partition_ratio(level, part, c)

        def lowest(group: tuple[int, ...]) -> tuple[float, IntArray]:
            found = energy, best
            propose = given_away if len(group) == 1 else exchanged
            for trial in propose(level, best, fixed, group, c):
                trial[fixed] = part[fixed]
                lower = descend(*level, trial, fixed, c, PASSES) * self._price(home, trial)
                if lower < found[0] * (1 - LEAST_GAIN):
                    found = lower, trial
            return found

        groups = [*((a,) for a in range(c)), *rivals(level, part, c)]
        groups = [group for group in groups if set(group) & set(classes)]
        while groups:
            sizes = statistics(*level, best, c)[1]
            batch, groups = groups[:AT_ONCE], groups[AT_ONCE:]
            batch = [group for group in batch if not self._is_hopeless(group, sizes)]
            found = list(map_batches(lowest, batch))
            better = [k for k, (lower, _) in enumerate(found) if lower < energy]
            if better:
                winner = min(better, key=lambda k: found[k][0])
                energy, best = found[winner]
                self.tried[batch[winner]].clear()
                # What was better, too, has to begin again with the new partition.
                again = [batch[k] for k in better if k != winner]
                for group in again:
                    self.tried[group].pop()
                groups = again + groups
        return best

    def _is_hopeless(self, group: tuple[int, ...], sizes: FloatArray) -> bool:
        """Whether the classes were split often enough when they had these sizes; else noted."""
        now = sizes[list(group)]
        failures = sum(np.abs(now / then - 1).max() < CHANGED for then in self.tried[group])
        if failures < ATTEMPTS:
            self.tried[group].append(now)
        return failures >= ATTEMPTS
