"""Partitions of low balanced ratio, by moves of nodes on a hierarchy of coarser graphs."""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from tvsvm.results import BoolArray, FloatArray, IntArray
from tvsvm.solvers._partition_kernels import balance_of, climb, contract, descend, match, statistics

COARSEST = 5  # nodes for each class at which coarsening ends
FEW = 100  # nodes for each class up to which moves go uphill, too
SPLIT_AT = 1500  # nodes for each class from which on classes are split anew
PASSES = 10  # over all nodes of a level, at most
SHRINKS = 0.95  # coarsening ends when a level keeps more than this share of its nodes
SETTLED = 3  # cycles without a gain after which the search ends
LEAST_GAIN = 1e-4
SMALL_SIDE = 0.15  # of two classes' union, what is less is not worth a new split
ATTEMPTS = 2  # at splitting two classes, on differently merged nodes
CHANGED = 0.05  # relative change of a class's size after which it is worth another split
MODES = 5  # eigenvectors of two classes' union along which it is split anew
PATIENCE = 20  # uphill moves in a row
RIVALS = 2  # classes next to each class with which it is split anew


# Sizes of one class or two whenever splitting them anew brought nothing.
Tried = defaultdict[tuple[int, ...], list[FloatArray]]


class Level(NamedTuple):
    """A graph of nodes that stand for `sizes` rows each; `_partition_kernels` says how."""

    indptr: IntArray
    indices: IntArray
    weights: FloatArray
    sizes: FloatArray


def ratio_partition(
    affinity: csr_array,
    part: IntArray,
    fixed: BoolArray,
    *,
    split: bool = True,
    max_cycles: int = 20,
) -> tuple[IntArray, FloatArray]:
    """Lower Σ_k cut_k / B(s_k) over partitions in which fixed nodes stay in their class.

    B(s) = min((c - 1) s, N - s) for a class of s of the N nodes. In a cycle, nodes of one class
    are merged in pairs along heavy edges, again and again, until few are left. There classes that
    share a long border are split anew along eigenvectors of their union. Then the hierarchy is
    unfolded, and on each level nodes move to where the energy falls. Merged nodes move together,
    which is how a whole group changes sides; cycles differ by the order of merging, which is
    random but the same for the same graph.

    Parameters
    ----------
    affinity : sparse array of shape (N, N)
        Symmetric weights.
    part : ndarray of shape (N,)
        Class of each node at the start, every class from 0 to the largest occurring.
    fixed : boolean array of shape (N,)
        Nodes that do not move.
    split : bool
        Whether classes are split anew; without, the end stays closer to the start.
    max_cycles : int
        Most cycles; they also end when three in a row have gained nothing.

    Returns
    -------
    part : ndarray of shape (N,)
        The partition of lowest energy.
    energies : ndarray
        At the start and after every cycle, never rising.
    """
    finest = Level(
        affinity.indptr.astype(np.int64),
        affinity.indices.astype(np.int64),
        affinity.data.astype(np.float64),
        np.ones(part.size),
    )
    best: IntArray = part.astype(np.int64)
    c = int(best.max()) + 1
    energies = [partition_ratio(finest, best, c)]
    idle, tried = 0, Tried(list)
    random = np.random.RandomState(0)
    for _ in range(max_cycles):
        found = _cycle(finest, best, fixed, c, tried if split else None, random)
        energy = partition_ratio(finest, found, c)
        idle = 0 if energy < energies[-1] * (1 - LEAST_GAIN) else idle + 1
        if energy < energies[-1]:
            best = found
        energies.append(min(energy, energies[-1]))
        if idle == SETTLED:
            break
    return best, np.array(energies)


def partition_ratio(level: Level, part: IntArray, c: int) -> float:
    """Energy of a partition; infinite if a class is empty."""
    cut, size = statistics(*level, part, c)
    if (size == 0).any():
        return np.inf
    total = float(size.sum())
    return float(sum(cut[k] / balance_of(size[k], total, c) for k in range(c)))


def _cycle(
    finest: Level,
    part: IntArray,
    fixed: BoolArray,
    c: int,
    tried: Tried | None,
    random: np.random.RandomState,
) -> IntArray:
    """Coarsen, search on the coarsest level, unfold."""
    levels, fixings = [finest], [fixed]
    maps: list[IntArray] = [np.arange(part.size)]
    part = part.copy()
    descend(*finest, part, fixed, c, PASSES)
    target = COARSEST * c
    largest = 2.0 * part.size / target
    while part.size > target:
        level = levels[-1]
        order = random.permutation(part.size)
        coarse, count = match(*level, part, order, largest)
        if count > SHRINKS * part.size:
            break
        sizes: FloatArray = np.bincount(coarse, level.sizes, count).astype(np.float64)
        edges = contract(level.indptr, level.indices, level.weights, coarse, count)
        levels.append(Level(*edges, sizes))
        maps.append(coarse)
        fixings.append(np.bincount(coarse, fixings[-1], count) > 0)
        coarse_part = np.empty(count, dtype=np.int64)
        coarse_part[coarse] = part
        part = coarse_part
    for level, coarse, held in zip(levels[::-1], maps[::-1], fixings[::-1], strict=True):
        descend(*level, part, held, c, PASSES)
        if part.size <= FEW * c:
            _climb(level, part, held, c)
        if tried is not None and part.size >= min(SPLIT_AT * c, finest.sizes.size):
            part, tried = _search(level, part, held, c, tried), None
        part = part[coarse]
    return part


def _search(level: Level, part: IntArray, fixed: BoolArray, c: int, tried: Tried) -> IntArray:
    """Split classes and neighbouring pairs of them anew; `tried` remembers where it was no use."""
    best, energy = part, partition_ratio(level, part, c)
    graph = csr_array((level.weights, level.indices, level.indptr), shape=(part.size,) * 2)
    for group in [*((a,) for a in range(c)), *_rivals(level, part, c)]:
        sizes = np.bincount(best, level.sizes, c)[list(group)].astype(np.float64)
        failures = [np.abs(sizes / then - 1).max() < CHANGED for then in tried[group]]
        if sum(failures) == ATTEMPTS:
            continue
        tried[group].append(sizes)
        inside = np.flatnonzero(np.isin(best, group))
        cuts = _cuts(graph[inside][:, inside], level.sizes[inside])
        trials = _given_away if len(group) == 1 else _exchanged
        for trial in trials(graph, best, inside, cuts, c):
            trial[fixed] = part[fixed]
            lower = descend(*level, trial, fixed, c, PASSES)
            if lower < energy * (1 - LEAST_GAIN):
                best, energy = trial, lower
                tried[group].clear()
    return best


def _given_away(
    graph: csr_array, part: IntArray, inside: IntArray, cuts: list[BoolArray], c: int
) -> Iterator[IntArray]:
    """One side of a class goes to the other class it is linked to most."""
    for cut in cuts:
        for side in (inside[cut], inside[~cut]):
            linked = np.bincount(part, graph[side].sum(axis=0), c)
            linked[part[inside[0]]] = 0.0
            trial = part.copy()
            trial[side] = linked.argmax()
            yield trial


def _exchanged(
    graph: csr_array, part: IntArray, inside: IntArray, cuts: list[BoolArray], c: int
) -> Iterator[IntArray]:
    """The union of two classes is divided along a cut, or the two change places.

    The latter, because untypical labels can lead each class to where the other belongs.
    """
    a, b = np.unique(part[inside])
    for upper in (part[inside] == a, *cuts):
        for low, high in ((a, b), (b, a)):
            trial = part.copy()
            trial[inside] = np.where(upper, high, low)
            yield trial


def _climb(level: Level, part: IntArray, fixed: BoolArray, c: int) -> None:
    while climb(*level, part, fixed, c, PATIENCE) < -LEAST_GAIN * partition_ratio(level, part, c):
        pass


def _rivals(level: Level, part: IntArray, c: int) -> list[tuple[int, int]]:
    """Pairs of classes with the longest common borders."""
    tails = np.repeat(np.arange(part.size), np.diff(level.indptr))
    border = np.bincount(part[tails] * c + part[level.indices], level.weights, c * c).reshape(c, c)
    np.fill_diagonal(border, 0.0)
    pairs = {
        (min(a, b), max(a, b))
        for a in range(c)
        for b in np.argsort(-border[a], kind="stable")[:RIVALS].tolist()
        if border[a, b] > 0
    }
    return sorted(pairs, key=lambda pair: -border[pair])


def _cuts(W: csr_array, sizes: FloatArray) -> list[BoolArray]:
    """Cut a graph along each of its leading eigenvectors."""
    degree = W.sum(axis=1)
    if degree.size <= 2 * MODES or (degree <= 0).any():
        return []
    scale = diags_array(1 / np.sqrt(degree))
    start = 1.0 + 0.5 * np.cos(np.arange(degree.size))  # neither random nor an eigenvector
    try:
        _, vectors = eigsh(scale @ W @ scale, k=MODES + 1, which="LA", tol=1e-2, v0=start)
    except ArpackNoConvergence as stopped:
        vectors = stopped.eigenvectors
    return [_best_cut(W, sizes, vector) for vector in (scale @ vectors).T[:-1]]


def _best_cut(W: csr_array, sizes: FloatArray, vector: FloatArray) -> BoolArray:
    """Side of each node if it is cut where the ratio is lowest, neither side being small."""
    order = np.argsort(vector, kind="stable")
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size)
    edges = W.tocoo()
    tails, heads = (place[end] for end in edges.coords)
    forward = tails < heads
    opened = np.bincount(tails[forward], edges.data[forward], order.size)
    closed = np.bincount(heads[forward], edges.data[forward], order.size)
    below = np.cumsum(sizes[order])[:-1]
    side = np.minimum(below, sizes.sum() - below)
    ratio = np.cumsum(opened - closed)[:-1] / side
    ratio[side < SMALL_SIDE * sizes.sum()] = np.inf
    return np.asarray(place > int(ratio.argmin()))
