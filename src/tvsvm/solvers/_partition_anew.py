"""A partition of low ratio from nothing: many rough ones, and what they have in common.

Nodes merged in pairs, in a random order, until a few are left for each class are united to as many
classes as there should be, and unfolded again. What comes out is right about most classes and
wrong about some, each time about others. So nodes that several of these leave together become one:
of the parts that are left, a few for each class, the best partition is easily found. It has the
good classes of each. If it is found again from others, it is not chance.
"""

from functools import partial

import numpy as np
from scipy.optimize import linear_sum_assignment

from tvsvm._threads import map_batches
from tvsvm.results import BoolArray, FloatArray, IntArray
from tvsvm.solvers._partition_kernels import agglomerated, borders
from tvsvm.solvers._partition_levels import (
    Level,
    lowered,
    merged_in_pairs,
    partition_ratio,
)

BASE = 1000  # nodes for each class that rough partitions are made of
ROUGH = 60  # nodes for each class on which they begin
SEEDS = 4  # nodes for each class that are united one by one
LARGEST = 4.0  # times the mean size of the nodes in the end: none is larger
MOST_PIECES = 12  # of nodes for each class in place of these: those that cannot be merged
ENDS = 6  # rough partitions that are overlaid
TRIALS, TRIALS_OF_PARTS = 2, 16  # best of so many
# Parts for each class that two, or all of those, have in common: more are noise.
MOST_PARTS_OF_TWO, MOST_PARTS = 8, 30
MOST_ROUNDS = 2  # of two ends each
# Difference of energies, and share of rows in other classes, of ends that are the same.
SAME_ENERGY, SAME = 1e-2, 1e-2
MOST_CLASSES = 40  # with more, no end is ever found twice


def found_twice(finest: Level, c: int) -> IntArray | None:
    """A partition in c classes at which independent searches end, classes in any order.

    None if they end at different ones: then the lowest is not known.
    """
    if not 1 < c <= MOST_CLASSES or finest.sizes.size < ROUGH * c:
        return None
    levels, maps = _merged(finest, BASE * c, np.random.RandomState(0))
    base = levels[-1]
    rough: list[IntArray] = []

    def draw(count: int) -> bool:
        """Have so many rough partitions, if nodes hang together so that there are any."""
        seeds = range(len(rough), count)
        ends = list(map_batches(partial(_rough, base, c), seeds))
        rough.extend(end for end in ends if end is not None)
        return len(rough) == count

    if not draw(2) or _in_common(rough, c).max() >= MOST_PARTS_OF_TWO * c:
        return None
    found: list[tuple[float, IntArray]] = []
    for _ in range(MOST_ROUNDS):
        first = len(found) * ENDS
        if not draw(first + 2 * ENDS):
            return None
        for ends in (rough[first : first + ENDS], rough[first + ENDS :]):
            end = _overlaid(base, ends, c)
            if end is None:
                return None
            found.append(end)
        energy, best = min(found, key=lambda end: end[0])
        others = (other for value, other in found if value <= energy * (1 + SAME_ENERGY))
        if sum(_differ(base, best, other, c) <= SAME for other in others) > 1:  # with itself
            return _unfolded(levels, maps, best, c)
    return None


def _merged(
    finest: Level, target: float, random: np.random.RandomState
) -> tuple[list[Level], list[IntArray]]:
    """Levels of fewer and fewer nodes, down to a number, and the node of each in the next."""
    levels, maps = [finest], []
    largest = LARGEST * float(finest.sizes.sum()) / target
    while levels[-1].sizes.size > target:
        one_class = np.zeros(levels[-1].sizes.size, dtype=np.int32)
        merged = merged_in_pairs(levels[-1], one_class, random, largest)
        if merged is None:
            break
        levels.append(merged[0])
        maps.append(merged[1])
    return levels, maps


def _unfolded(levels: list[Level], maps: list[IntArray], part: IntArray, c: int) -> IntArray:
    """The partition of the finest level that one of the coarsest becomes by moves on each."""
    part = part.copy()
    for depth in reversed(range(len(levels))):
        lowered(levels[depth], part, _free(part.size), c)
        if depth:
            part = part[maps[depth - 1]]
    return part


def _rough(base: Level, c: int, seed: int) -> IntArray | None:
    """A partition of low ratio, if nodes hang together so that there is one."""
    random = np.random.RandomState(seed)
    levels, maps = _merged(base, ROUGH * c, random)
    end = _best_union(levels[-1], c, random, TRIALS)
    return None if end is None else _unfolded(levels, maps, end[1], c)


def _in_common(ends: list[IntArray], c: int) -> IntArray:
    """Number of the part of each node: nodes that are in one class in each partition."""
    parts: IntArray = np.zeros(ends[0].size, dtype=np.int64)
    for end in ends:
        parts = np.unique(parts * c + end, return_inverse=True)[1].ravel()
    return parts


def _overlaid(base: Level, ends: list[IntArray], c: int) -> tuple[float, IntArray] | None:
    """The best partition of the parts that ends have in common, and its energy."""
    parts = _in_common(ends, c)
    count = int(parts.max()) + 1
    if count > MOST_PARTS * c:
        return None  # they have next to nothing in common
    few = _level_of(
        borders(base.indptr, base.indices, base.weights, parts, count),
        np.bincount(parts, base.sizes, count).astype(np.float64),
    )
    union = _best_union(few, c, np.random.RandomState(0), TRIALS_OF_PARTS)
    best = min(ends, key=lambda end: partition_ratio(base, end, c))
    tries = [best if union is None else union[1][parts], best]
    for part in tries:
        lowered(base, part, _free(part.size), c)
    return min(((partition_ratio(base, part, c), part) for part in tries), key=lambda end: end[0])


def _best_union(
    level: Level, c: int, random: np.random.RandomState, trials: int
) -> tuple[float, IntArray] | None:
    """The lowest of several partitions by uniting nodes, and its energy."""
    best: tuple[float, IntArray] | None = None
    for _ in range(trials):
        levels, maps = _merged(level, SEEDS * c, random)
        if not c <= levels[-1].sizes.size <= MOST_PIECES * c:
            return None  # hardly any nodes, or many that no edge links
        part = _unfolded(levels, maps, agglomerated(*levels[-1], c), c)
        energy = partition_ratio(level, part, c)
        if best is None or energy < best[0]:
            best = energy, part
    return best


def _level_of(between: FloatArray, sizes: FloatArray) -> Level:
    """Few nodes, by the weights between every two of them."""
    rows, columns = np.nonzero(between)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=sizes.size))])
    weights = between[rows, columns].astype(np.float32)
    return Level(indptr.astype(np.uint64), columns.astype(np.uint32), weights, sizes)


def _differ(level: Level, part: IntArray, other: IntArray, c: int) -> float:
    """Share of the rows in other classes, whatever these are called."""
    both = np.bincount(part * c + other, level.sizes, c * c).reshape(c, c)
    return 1.0 - float(both[linear_sum_assignment(-both)].sum()) / float(level.sizes.sum())


def _free(n_nodes: int) -> BoolArray:
    return np.zeros(n_nodes, dtype=bool)
