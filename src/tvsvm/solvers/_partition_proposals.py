"""Other partitions worth a try: classes, and pairs of classes, split along eigenvectors."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, diags_array

from tvsvm.graph import Graph
from tvsvm.results import BoolArray, FloatArray, IntArray
from tvsvm.solvers._partition_kernels import balance_of, statistics
from tvsvm.solvers.eigen import leading_eigenvectors
from tvsvm.solvers.total_variation import graph_tv_prox

SMALL_SIDE = 0.1  # of what is split, what is less is not worth it
HOPELESS = 0.5  # more energy, in shares of a class, from where moves seldom lead below it
MODES = 5  # eigenvectors along which classes are split
LARGEST = 2  # classes that are split for one that has lost its place
REGROUPED = 3  # trials of making two classes one and a third one two
SHARPENINGS, STEP = 12, 0.1  # steps down the ratio of a cut, and their length
FLAT = 1e-9  # mean distance from the median, against functions of ±1, of a constant
RIVALS = 2  # classes next to each class with which it is split anew


class Level(NamedTuple):
    """A graph of nodes that stand for `sizes` rows each; `_partition_kernels` says how."""

    indptr: IntArray
    indices: IntArray
    weights: FloatArray
    sizes: FloatArray


class _Line(NamedTuple):
    """Nodes in a row, and for every place to cut it what is left and what is right of it."""

    nodes: IntArray
    sizes: tuple[FloatArray, FloatArray]  # (n - 1,) each
    inner: FloatArray  # weight of the edges from left to right, (n - 1,)
    outer: tuple[FloatArray, FloatArray]  # weight of the edges to other classes, (n - 1, c) each

    def sides(self, place: int) -> tuple[IntArray, IntArray]:
        """The nodes left and right of a cut."""
        return self.nodes[: place + 1], self.nodes[place + 1 :]


def partition_ratio(level: Level, part: IntArray, c: int) -> float:
    """Energy of a partition; infinite if a class is empty."""
    cut, size = statistics(*level, part, c)
    if (size == 0).any():
        return np.inf
    total = float(size.sum())
    return float(sum(cut[k] / balance_of(size[k], total, c) for k in range(c)))


def as_matrix(level: Level) -> csr_array:
    index = level.indices.view(np.int32), level.indptr.astype(np.int32)  # what scipy wants
    return csr_array((level.weights, *index), shape=(level.sizes.size,) * 2)


def rivals(level: Level, part: IntArray, c: int) -> list[tuple[int, int]]:
    """Pairs of classes with the longest common borders."""
    border = _borders(level, part, c)
    pairs = {
        (min(a, b), max(a, b))
        for a in range(c)
        for b in np.argsort(-border[a], kind="stable")[:RIVALS].tolist()
        if border[a, b] > 0
    }
    return sorted(pairs, key=lambda pair: -border[pair])


def given_away(
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
            if change[place, b] - ratio[a] <= HOPELESS * ratio.mean():
                trial = part.copy()
                trial[line.sides(int(place))[side]] = b
                yield trial


def exchanged(
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
        if energy - ratio[a] - ratio[b] > HOPELESS * ratio.mean():
            continue
        surplus = home[left].sum() - home[right].sum()
        for low, high, fits in ((a, b, surplus >= 0), (b, a, surplus <= 0)):
            if fits:
                trial = part.copy()
                trial[left], trial[right] = low, high
                yield trial


def resettled(
    level: Level, graph: csr_array, part: IntArray, fixed: BoolArray, c: int
) -> Iterator[IntArray]:
    """A class whose fixed nodes are surrounded by another one gets one end of a class.

    Of the one around them, or of one of the largest, where they are untypical; what it had goes to
    the class next to it. This is the way out where two classes share one cluster and a third one
    covers two.
    """
    border = _borders(level, part, c)
    sizes = statistics(*level, part, c)[1]
    halves: dict[int, list[tuple[IntArray, IntArray]]] = {}
    for k in range(c):
        own = np.flatnonzero(fixed & (part == k))
        pull = np.asarray(graph[own].sum(axis=0)).ravel()
        around = np.bincount(part, pull, c)
        if around.max() <= 2 * around[k]:
            continue
        for a in {int(around.argmax()), *np.argsort(-sizes)[:LARGEST].tolist()} - {k}:
            if a not in halves:
                lines = _lines(level, graph, part, (a,), c)
                halves[a] = [_two_classes(level, line, c)[:2] for line in lines]
            for ends in halves[a]:
                for new, old in (ends, ends[::-1]):
                    # Its own fixed nodes stay with the class, and the others' pull decides.
                    if fixed[new].sum() <= fixed[old].sum() and pull[new].sum() >= pull[old].sum():
                        trial = part.copy()
                        trial[part == k] = border[k].argmax()
                        trial[new] = k
                        yield trial


def regrouped(
    level: Level, graph: csr_array, part: IntArray, c: int, limit: float
) -> Iterator[tuple[IntArray, set[int]]]:
    """Two classes become one and a third one two: the lowest energies, up to a limit, first.

    With each partition come the three classes.
    """
    cut, size = statistics(*level, part, c)
    total = float(size.sum())
    ratio = cut / _balance(size, total, c)
    both = cut[:, None] + cut - 2 * _borders(level, part, c)
    sizes = np.minimum(size[:, None] + size, total - 1)  # only two classes, alone, are everything
    united = both / _balance(sizes, total, c) - ratio[:, None] - ratio
    divided = {
        a: min(found, key=lambda ends: ends[2])
        for a in range(c)
        if (found := [_two_classes(level, line, c) for line in _lines(level, graph, part, (a,), c)])
    }
    pairs = [(k, b) for k in range(c) for b in range(k)]
    pairs.sort(key=lambda pair: united[pair])
    trials: list[tuple[float, int, int, int]] = []
    for a, (*_, energy) in divided.items():
        others = ((k, b) for k, b in pairs if a not in (k, b))
        trials += [
            (united[k, b] + energy - ratio[a], a, b, k) for k, b in islice(others, REGROUPED)
        ]
    for change, a, b, k in sorted(trials)[:REGROUPED]:
        if change > (limit - 1) * ratio.sum():
            return
        trial = part.copy()
        trial[part == k] = b
        trial[_sharpened(level, graph, part, a, divided[a][0], c)] = k
        yield trial, {a, b, k}


def _sharpened(
    level: Level, graph: csr_array, part: IntArray, a: int, end: IntArray, c: int
) -> IntArray:
    """One end of a class, moved to where the ratio of the cut through the class is lower.

    By steps of Cheeger's cut. Moves of nodes alone get stuck in cuts along eigenvectors.
    """
    nodes = np.flatnonzero(part == a)
    inside = Graph(graph[nodes][:, nodes])
    f = np.where(np.isin(nodes, end), 1.0, -1.0)[:, None]
    dual = None
    for _ in range(SHARPENINGS):
        f -= np.median(f)
        spread, variation = np.abs(f).sum(), float(np.sum(inside.total_variation(f)))
        if not 0 < variation < np.inf or spread <= FLAT * f.size:
            return end  # there is nothing to cut, or nothing left of the cut
        f *= f.size / spread
        strength = STEP * spread / variation
        found = graph_tv_prox(inside, f + STEP * np.sign(f), strength, dual=dual, tol=1e-3)
        f, dual = found.solution, found.dual
    line = next(_lines(level, graph, part, (a,), c, [-f[:, 0]]))
    return _two_classes(level, line, c)[0]


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


def _lines(
    level: Level,
    graph: csr_array,
    part: IntArray,
    group: tuple[int, ...],
    c: int,
    vectors: Sequence[FloatArray] | None = None,
) -> Iterator[_Line]:
    """The nodes of some classes ordered along each of their leading eigenvectors."""
    nodes = np.flatnonzero(np.isin(part, group))
    rows = graph[nodes]
    inside = rows[:, nodes]
    classes = csr_array((np.ones(part.size), (np.arange(part.size), part)), shape=(part.size, c))
    outer = (rows @ classes).toarray()
    outer[:, list(group)] = 0.0
    edges = inside.tocoo()
    for vector in _eigenvectors(inside) if vectors is None else vectors:
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


def _eigenvectors(W: csr_array) -> FloatArray:
    """Leading eigenvectors of a graph, one a row, without the constant; none for few nodes."""
    degree = W.sum(axis=1)
    if degree.size <= 2 * MODES:
        return np.empty((0, degree.size))
    scale = diags_array(1 / np.sqrt(np.where(degree > 0, degree, 1.0)))  # stray nodes stay at zero
    _, vectors = leading_eigenvectors(scale @ W @ scale, MODES + 1, tol=1e-2)
    return np.asarray((scale @ vectors).T[:0:-1])


def _borders(level: Level, part: IntArray, c: int) -> FloatArray:
    """Weight of the edges between every two classes, (c, c), zero on the diagonal."""
    degrees = (level.indptr[1:] - level.indptr[:-1]).astype(np.int64)
    tails = np.repeat(np.arange(part.size), degrees)
    pairs = part[tails].astype(np.int64) * c + part[level.indices]
    border: FloatArray = np.bincount(pairs, level.weights, c * c).astype(np.float64).reshape(c, c)
    np.fill_diagonal(border, 0.0)
    return border


def _balance(size: FloatArray, total: float, c: int) -> FloatArray:
    """`balance_of` for arrays."""
    return np.minimum((c - 1) * size, total - size)
