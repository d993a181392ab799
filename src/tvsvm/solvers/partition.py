"""Partitions of low balanced ratio, by moves of nodes on a hierarchy of coarser graphs."""

from collections import defaultdict
from collections.abc import Iterator
from functools import reduce
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
SETTLED, WORTHWHILE = 2, 1e-3  # the search ends after so many cycles that gain less than this share
LEAST_GAIN = 1e-4
SMALL_SIDE = 0.15  # of two classes' union, what is less is not worth a new split
HOPELESS = 1.1  # times the energy, from where moves never led below it (measured: 1.03 did, once)
ATTEMPTS = 2  # at splitting two classes, on differently merged nodes
CHANGED = 0.05  # relative change of a class's size after which it is worth another split
MODES = 5  # eigenvectors of two classes' union along which it is split anew
PATIENCE = 20  # uphill moves in a row
LARGEST = 2  # classes that are split for one that has lost its place
RIVALS = 2  # classes next to each class with which it is split anew


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
    guess: IntArray | None = None,
    loyalty: float = 0.0,
    split: bool = True,
    max_cycles: int = 20,
) -> tuple[IntArray, FloatArray]:
    """Lower (1 + loyalty d) Σ_k cut_k / B(s_k) over partitions that keep fixed nodes' classes.

    B(s) = min((c - 1) s, N - s) for a class of s of the N nodes, d the share of the nodes that are
    not where the guess has them. In a cycle, nodes of one class are merged in pairs along heavy
    edges, again and again, until few are left. There classes that share a long border are split
    anew along eigenvectors of their union. Then the hierarchy is unfolded, and on each level nodes
    move to where the ratio falls. Merged nodes move together, which is how a whole group changes
    sides; cycles differ by the order of merging, which is random but the same for the same graph.

    Parameters
    ----------
    affinity : sparse array of shape (N, N)
        Symmetric weights.
    part : ndarray of shape (N,)
        Class of each node at the start, every class from 0 to the largest occurring.
    fixed : boolean array of shape (N,)
        Nodes that do not move.
    guess : ndarray of shape (N,), optional
        Where the nodes are supposed to be; by default `part`.
    loyalty : float
        Share of the ratio that it must be worth to move all nodes away from the guess.
    split : bool
        Whether classes are split anew; without, the end stays closer to the start.
    max_cycles : int
        Most cycles; they also end when two in a row have gained next to nothing.

    Returns
    -------
    part : ndarray of shape (N,)
        The partition of lowest energy.
    energies : ndarray
        At the start and after every cycle, never rising.
    """
    finest = Level(
        affinity.indptr.astype(np.uint64),
        affinity.indices.astype(np.uint32),
        affinity.data.astype(np.float64),
        np.ones(part.size),
    )
    best: IntArray = part.astype(np.int32)
    c = int(best.max()) + 1
    random = np.random.RandomState(0)
    splitting = _Splitting(best if guess is None else guess, c, loyalty, random)
    energies = [splitting.energy(finest, best)]
    idle = 0
    for _ in range(max_cycles):
        found = _cycle(finest, best, fixed, c, splitting if split else None, random)
        energy = splitting.energy(finest, found)
        idle = 0 if energy < energies[-1] * (1 - WORTHWHILE) else idle + 1
        if energy < energies[-1]:
            best = found
        energies.append(min(energy, energies[-1]))
        if idle == SETTLED:
            if not split:
                break
            found = splitting.resettle(finest, best, fixed)
            energy = splitting.energy(finest, found)
            if energy >= energies[-1]:
                break
            best, idle = found, 0
            energies.append(energy)
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
    splitting: "_Splitting | None",
    random: np.random.RandomState,
) -> IntArray:
    """Coarsen, search on the coarsest level, unfold."""
    levels, fixings = [finest], [fixed]
    maps: list[IntArray] = [np.arange(part.size)]
    part = part.copy()
    descend(*finest, part, fixed, c, PASSES)
    target = COARSEST * c
    largest = 2.0 * float(finest.sizes.sum()) / target
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
        coarse_part = np.empty(count, dtype=np.int32)
        coarse_part[coarse] = part
        part = coarse_part
    for depth in reversed(range(len(levels))):
        level, held = levels[depth], fixings[depth]
        descend(*level, part, held, c, PASSES)
        if part.size <= FEW * c:
            _climb(level, part, held, c)
        if splitting is not None and part.size >= min(SPLIT_AT * c, finest.sizes.size):
            rows = reduce(lambda node, coarse: coarse[node], maps[: depth + 1])
            part, splitting = splitting.search(level, part, held, rows), None
        part = part[maps[depth]]
    return part


class _Splitting:
    """The search for better partitions by splitting classes and pairs of classes anew.

    It remembers from cycle to cycle where that was no use.
    """

    def __init__(
        self, guess: IntArray, c: int, loyalty: float, random: np.random.RandomState
    ) -> None:
        self.guess, self.c, self.loyalty, self.random = guess, c, loyalty, random
        # Sizes of one class or two whenever splitting them anew brought nothing.
        self.tried: defaultdict[tuple[int, ...], list[FloatArray]] = defaultdict(list)

    def energy(self, finest: Level, part: IntArray) -> float:
        """Energy of a partition of the rows."""
        left = float(np.mean(part != self.guess))
        return (1 + self.loyalty * left) * partition_ratio(finest, part, self.c)

    def search(self, level: Level, part: IntArray, fixed: BoolArray, rows: IntArray) -> IntArray:
        """A better partition of a level, whose nodes stand for the given rows."""
        c, n = self.c, part.size
        votes = np.bincount(rows * np.int64(c) + self.guess, minlength=n * c)
        share = votes.reshape(n, c) / rows.size

        def price(partition: IntArray) -> float:
            return 1 + self.loyalty * float(1 - share[np.arange(n), partition].sum())

        best, energy = part, price(part) * partition_ratio(level, part, c)
        graph = _as_matrix(level)
        for group in [*((a,) for a in range(c)), *_rivals(level, part, c)]:
            if self._is_hopeless(group, statistics(*level, best, c)[1]):
                continue
            propose = _given_away if len(group) == 1 else _exchanged
            for trial in propose(level, graph, best, fixed, group, c):
                trial[fixed] = part[fixed]
                lower = descend(*level, trial, fixed, c, PASSES) * price(trial)
                if lower < energy * (1 - LEAST_GAIN):
                    best, energy = trial, lower
                    self.tried[group].clear()
        return best

    def resettle(self, finest: Level, part: IntArray, fixed: BoolArray) -> IntArray:
        """Bring classes back to their fixed nodes; on the rows, as merged ones are too coarse."""
        best, energy = part, self.energy(finest, part)
        for trial in _resettled(finest, _as_matrix(finest), part, fixed, self.c):
            trial[fixed] = part[fixed]
            if self.energy(finest, trial) > HOPELESS * energy:
                continue
            found = _cycle(finest, trial, fixed, self.c, None, self.random)
            lower = self.energy(finest, found)
            if lower < energy:
                best, energy = found, lower
        return best

    def _is_hopeless(self, group: tuple[int, ...], sizes: FloatArray) -> bool:
        """Whether the classes were split often enough when they had these sizes; else noted."""
        now = sizes[list(group)]
        failures = sum(np.abs(now / then - 1).max() < CHANGED for then in self.tried[group])
        if failures < ATTEMPTS:
            self.tried[group].append(now)
        return failures >= ATTEMPTS


def _as_matrix(level: Level) -> csr_array:
    index = level.indices.view(np.int32), level.indptr.astype(np.int32)  # what scipy wants
    return csr_array((level.weights, *index), shape=(level.sizes.size,) * 2)


class _Line(NamedTuple):
    """Nodes in a row, and for every place to cut it what is left and what is right of it."""

    nodes: IntArray
    sizes: tuple[FloatArray, FloatArray]  # (n - 1,) each
    inner: FloatArray  # weight of the edges from left to right, (n - 1,)
    outer: tuple[FloatArray, FloatArray]  # weight of the edges to other classes, (n - 1, c) each

    def sides(self, place: int) -> tuple[IntArray, IntArray]:
        """The nodes left and right of a cut."""
        return self.nodes[: place + 1], self.nodes[place + 1 :]


def _lines(
    level: Level, graph: csr_array, part: IntArray, group: tuple[int, ...], c: int
) -> Iterator[_Line]:
    """The nodes of some classes ordered along each of their leading eigenvectors."""
    nodes = np.flatnonzero(np.isin(part, group))
    rows = graph[nodes]
    inside = rows[:, nodes]
    classes = csr_array((np.ones(part.size), (np.arange(part.size), part)), shape=(part.size, c))
    outer = (rows @ classes).toarray()
    outer[:, list(group)] = 0.0
    edges = inside.tocoo()
    for vector in _eigenvectors(inside):
        order = np.argsort(vector, kind="stable")
        place = np.empty(order.size, dtype=np.int64)
        place[order] = np.arange(order.size)
        tails, heads = (place[end] for end in edges.coords)
        # An edge is cut from its first node up to its last.
        signed = np.where(tails < heads, edges.data, -edges.data)
        crossing: FloatArray = np.bincount(tails, signed, order.size).astype(np.float64)
        yield _Line(
            nodes[order],
            _left_and_right(level.sizes[nodes[order]]),
            np.cumsum(crossing)[:-1],
            _left_and_right(outer[order]),
        )


def _left_and_right(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sums of the rows up to each place but the last, and of those behind it."""
    sums = np.cumsum(values, axis=0)
    return sums[:-1], sums[-1] - sums[:-1]


def _given_away(
    level: Level,
    graph: csr_array,
    part: IntArray,
    fixed: BoolArray,
    group: tuple[int, ...],
    c: int,
) -> Iterator[IntArray]:
    """One end of a class goes to another class, where this raises the energy least.

    Most fixed nodes are at the other end: otherwise a class could end up far from its own.
    """
    (a,) = group
    cut, size = statistics(*level, part, c)
    total = float(size.sum())
    ratio = cut / _balance(size, total, c)
    for line in _lines(level, graph, part, group, c):
        held = _left_and_right(fixed[line.nodes].astype(float))
        for side, (moved, links) in enumerate(zip(line.sizes, line.outer, strict=True)):
            border = links.sum(axis=1) + line.inner
            rest = (cut[a] - border + 2 * line.inner) / _balance(size[a] - moved, total, c)
            others = np.where(np.arange(c) == a, 0.5 * total, size + moved[:, None])
            taken = (cut + border[:, None] - 2 * links) / _balance(others, total, c)
            change = rest[:, None] + taken - ratio
            change[:, a] = np.inf
            change[np.minimum(moved, size[a] - moved) < SMALL_SIDE * size[a]] = np.inf
            change[held[side] > held[1 - side]] = np.inf
            place, b = np.unravel_index(change.argmin(), change.shape)
            if change[place, b] - ratio[a] <= (HOPELESS - 1) * ratio.sum():
                trial = part.copy()
                trial[line.sides(int(place))[side]] = b
                yield trial


def _exchanged(
    level: Level,
    graph: csr_array,
    part: IntArray,
    fixed: BoolArray,
    group: tuple[int, ...],
    c: int,
) -> Iterator[IntArray]:
    """The union of two classes is divided where the energy is lowest, most fixed nodes at home."""
    a, b = group
    cut, size = statistics(*level, part, c)
    ratio = cut / _balance(size, float(size.sum()), c)
    home = np.where(part == a, 1, -1) * fixed
    for line in _lines(level, graph, part, group, c):
        left, right, energy = _two_classes(level, line, c)
        if energy - ratio[a] - ratio[b] > (HOPELESS - 1) * ratio.sum():
            continue
        surplus = home[left].sum() - home[right].sum()
        for low, high, fits in ((a, b, surplus >= 0), (b, a, surplus <= 0)):
            if fits:
                trial = part.copy()
                trial[left], trial[right] = low, high
                yield trial


def _resettled(
    level: Level, graph: csr_array, part: IntArray, fixed: BoolArray, c: int
) -> Iterator[IntArray]:
    """A class whose fixed nodes are surrounded by another one gets one end of a class.

    Of the one around them, or of one of the largest, where they are untypical; what it had goes to
    the class next to it. This is the way out where two classes share one cluster and a third one
    covers two.
    """
    border = _borders(level, part, c)
    sizes = statistics(*level, part, c)[1]
    for k in range(c):
        own = np.flatnonzero(fixed & (part == k))
        pull = np.asarray(graph[own].sum(axis=0)).ravel()
        around = np.bincount(part, pull, c)
        if around.max() <= 2 * around[k]:
            continue
        for a in {int(around.argmax()), *np.argsort(-sizes)[:LARGEST].tolist()} - {k}:
            for line in _lines(level, graph, part, (a,), c):
                *ends, _ = _two_classes(level, line, c)
                for new, old in (ends, ends[::-1]):
                    # Its own fixed nodes stay with the class, and the others' pull decides.
                    if fixed[new].sum() <= fixed[old].sum() and pull[new].sum() >= pull[old].sum():
                        trial = part.copy()
                        trial[part == k] = border[k].argmax()
                        trial[new] = k
                        yield trial


def _two_classes(level: Level, line: _Line, c: int) -> tuple[IntArray, IntArray, float]:
    """The two ends of a line that as classes have the lowest energy, neither small; the energy."""
    total = float(level.sizes.sum())
    energy = sum(
        (line.inner + links.sum(axis=1)) / _balance(sizes, total, c)
        for sizes, links in zip(line.sizes, line.outer, strict=True)
    )
    smaller = np.minimum(*line.sizes)
    energy[smaller < SMALL_SIDE * (line.sizes[0] + line.sizes[1])] = np.inf
    place = int(energy.argmin())
    return *line.sides(place), float(energy[place])


def _climb(level: Level, part: IntArray, fixed: BoolArray, c: int) -> None:
    while climb(*level, part, fixed, c, PATIENCE) < -LEAST_GAIN * partition_ratio(level, part, c):
        pass


def _borders(level: Level, part: IntArray, c: int) -> FloatArray:
    """Weight of the edges between every two classes, (c, c), zero on the diagonal."""
    degrees = (level.indptr[1:] - level.indptr[:-1]).astype(np.int64)
    tails = np.repeat(np.arange(part.size), degrees)
    pairs = part[tails].astype(np.int64) * c + part[level.indices]
    border: FloatArray = np.bincount(pairs, level.weights, c * c).astype(np.float64).reshape(c, c)
    np.fill_diagonal(border, 0.0)
    return border


def _rivals(level: Level, part: IntArray, c: int) -> list[tuple[int, int]]:
    """Pairs of classes with the longest common borders."""
    border = _borders(level, part, c)
    pairs = {
        (min(a, b), max(a, b))
        for a in range(c)
        for b in np.argsort(-border[a], kind="stable")[:RIVALS].tolist()
        if border[a, b] > 0
    }
    return sorted(pairs, key=lambda pair: -border[pair])


def _eigenvectors(W: csr_array) -> FloatArray:
    """Leading eigenvectors of a graph, one a row, without the constant; none for few nodes."""
    degree = W.sum(axis=1)
    if degree.size <= 2 * MODES or (degree <= 0).any():
        return np.empty((0, degree.size))
    scale = diags_array(1 / np.sqrt(degree))
    start = 1.0 + 0.5 * np.cos(np.arange(degree.size))  # neither random nor an eigenvector
    try:
        _, vectors = eigsh(scale @ W @ scale, k=MODES + 1, which="LA", tol=1e-2, v0=start)
    except ArpackNoConvergence as stopped:
        vectors = stopped.eigenvectors
    return np.asarray((scale @ vectors).T[:-1])


def _balance(size: FloatArray, total: float, c: int) -> FloatArray:
    """`balance_of` for arrays."""
    return np.minimum((c - 1) * size, total - size)
