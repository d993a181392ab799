"""Other partitions worth a try: classes, and pairs of classes, split along eigenvectors."""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.sparse import csr_array

from tvsvm.graph import Graph
from tvsvm.results import BoolArray, FloatArray, IntArray
from tvsvm.solvers._partition_kernels import borders, statistics
from tvsvm.solvers._partition_levels import Level
from tvsvm.solvers._partition_lines import (
    best_division,
    best_gifts,
    inside_of,
    lanczos,
    normalised,
)
from tvsvm.solvers.total_variation import graph_tv_prox

SMALL_SIDE = 0.1  # of what is split, what is less is not worth it
HOPELESS = 0.5  # more energy, in shares of a class, from where moves seldom lead below it
MODES = 5  # eigenvectors along which classes are split
# Steps between two looks at the residuals of eigenvectors, the most there are, and their accuracy.
STEPS, MOST_STEPS, EIGEN_TOL = 16, 100, 3e-2
REGROUPED = 3  # trials of making two classes one and a third one two
SHARPENINGS, STEP = 12, 0.1  # steps down the ratio of a cut, and their length
FLAT = 1e-9  # mean distance from the median, against functions of ±1, of a constant
NOTHING = 1e-3  # of a class's home
LARGEST = 2  # classes that are divided for one that has no place
RIVALS = 2  # classes next to each class with which it is split anew


class _Inside(NamedTuple):
    """Some classes as a graph of their own; `_partition_lines` says how."""

    nodes: IntArray
    indptr: IntArray
    indices: IntArray
    weights: FloatArray
    outer: FloatArray

    def lines(self) -> Iterator[IntArray]:
        """Its nodes ordered along each of its leading eigenvectors."""
        for vector in _eigenvectors(self):
            yield np.argsort(vector, kind="stable")


class _Division(NamedTuple):
    """A class, or the union of two, divided in two classes, and their energy."""

    left: IntArray
    right: IntArray
    energy: float


def as_matrix(graph: Level | _Inside) -> csr_array:
    index = graph.indices.view(np.int32), graph.indptr.astype(np.int32)  # what scipy wants
    return csr_array((graph.weights, *index), shape=(graph.indptr.size - 1,) * 2)


def rivals(level: Level, part: IntArray, c: int) -> list[tuple[int, int]]:
    """Pairs of classes with the longest common borders."""
    border = borders(*level[:3], part, c)
    pairs = {
        (min(a, b), max(a, b))
        for a in range(c)
        for b in np.argsort(-border[a], kind="stable")[:RIVALS].tolist()
        if border[a, b] > 0
    }
    return sorted(pairs, key=lambda pair: -border[pair])


def given_away(
    level: Level,
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
    limit = HOPELESS * float(np.mean(cut / _balance(size, float(size.sum()), c)))
    inside = _inside(level, part, group, c)
    sizes, held = level.sizes[inside.nodes], fixed[inside.nodes].astype(np.float64)
    for order in inside.lines():
        places, takers, changes = best_gifts(
            order, *inside[1:4], sizes, inside.outer, held, cut, size, a, SMALL_SIDE
        )
        for side, (place, b, change) in enumerate(zip(places, takers, changes, strict=True)):
            if change <= limit:
                trial = part.copy()
                end = order[place + 1 :] if side else order[: place + 1]
                trial[inside.nodes[end]] = b
                yield trial


def exchanged(
    level: Level,
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
    for left, right, energy in _divisions(level, part, group, c):
        if energy - ratio[a] - ratio[b] > HOPELESS * ratio.mean():
            continue
        surplus = home[left].sum() - home[right].sum()
        for low, high, fits in ((a, b, surplus >= 0), (b, a, surplus <= 0)):
            if fits:
                trial = part.copy()
                trial[left], trial[right] = low, high
                yield trial


def resettled(
    level: Level, part: IntArray, home: FloatArray, ends: FloatArray, homeless: list[int]
) -> Iterator[tuple[IntArray, set[int]]]:
    """A class whose home is in another one gets one end of that, and gives away what it had.

    Of that, or of one of the largest, if its home is untypical. This is the way out where two
    classes share one cluster and a third one covers two. `ends` is how much of the home of each
    class is in each. With each partition come the classes concerned.
    """
    c = len(ends)
    border, sizes = borders(*level[:3], part, c), statistics(*level, part, c)[1]
    largest = np.argsort(-sizes, kind="stable")[:LARGEST].tolist()
    divided: dict[int, list[_Division]] = {}
    for k in homeless:
        trials: list[tuple[float, int, IntArray]] = []
        for a in {int(ends[k].argmax()), *largest} - {k}:
            if a not in divided:
                divided[a] = list(_divisions(level, part, (a,), c))
            for left, right, energy in divided[a]:
                for end in (left, right):
                    mine, theirs = (_share(home[:, j], end, ends[j, a]) for j in (k, a))
                    if mine >= theirs:
                        trials.append((energy, a, end))
        for _, a, end in sorted(trials, key=lambda trial: trial[0])[:REGROUPED]:
            b = int(np.where(np.arange(c) == a, -1.0, border[k]).argmax())
            trial = part.copy()
            trial[part == k] = b
            trial[_sharpened(level, part, a, end, c)] = k
            yield trial, {a, b, k}


def _share(home: FloatArray, nodes: IntArray, whole: float) -> float:
    """How much of what is at home in a class is so at some of its nodes; half if nothing is."""
    return float(home[nodes].sum()) / whole if whole > NOTHING else 0.5


def regrouped(
    level: Level, part: IntArray, c: int, limit: float
) -> Iterator[tuple[IntArray, set[int]]]:
    """Two classes become one and a third one two: the lowest energies, up to a limit, first.

    With each partition come the three classes.
    """
    cut, size = statistics(*level, part, c)
    total = float(size.sum())
    ratio = cut / _balance(size, total, c)
    both = cut[:, None] + cut - 2 * borders(*level[:3], part, c)
    sizes = np.minimum(size[:, None] + size, total - 1)  # only two classes, alone, are everything
    united = both / _balance(sizes, total, c) - ratio[:, None] - ratio
    divided = {
        a: min(found, key=lambda division: division.energy)
        for a in range(c)
        if (found := list(_divisions(level, part, (a,), c)))
    }
    pairs = [(k, b) for k in range(c) for b in range(k)]
    pairs.sort(key=lambda pair: united[pair])
    trials: list[tuple[float, int, int, int]] = []
    for a, (_, _, energy) in divided.items():
        others = ((k, b) for k, b in pairs if a not in (k, b))
        trials += [
            (united[k, b] + energy - ratio[a], a, b, k) for k, b in islice(others, REGROUPED)
        ]
    for change, a, b, k in sorted(trials)[:REGROUPED]:
        if change > (limit - 1) * ratio.sum():
            return
        trial = part.copy()
        trial[part == k] = b
        trial[_sharpened(level, part, a, divided[a].left, c)] = k
        yield trial, {a, b, k}


def _sharpened(level: Level, part: IntArray, a: int, end: IntArray, c: int) -> IntArray:
    """One end of a class, moved to where the ratio of the cut through the class is lower.

    By steps of Cheeger's cut. Moves of nodes alone get stuck in cuts along eigenvectors.
    """
    inside = _inside(level, part, (a,), c)
    graph = Graph(as_matrix(inside))
    f = np.where(np.isin(inside.nodes, end), 1.0, -1.0)[:, None]
    dual = None
    for _ in range(SHARPENINGS):
        f -= np.median(f)
        spread, variation = np.abs(f).sum(), float(np.sum(graph.total_variation(f)))
        if not 0 < variation < np.inf or spread <= FLAT * f.size:
            return end  # there is nothing to cut, or nothing left of the cut
        f *= f.size / spread
        strength = STEP * spread / variation
        found = graph_tv_prox(graph, f + STEP * np.sign(f), strength, dual=dual, tol=1e-3)
        f, dual = found.solution, found.dual
    return _divided(level, inside, np.argsort(-f[:, 0], kind="stable"), c).left


def _divisions(level: Level, part: IntArray, group: tuple[int, ...], c: int) -> Iterator[_Division]:
    """Some classes divided in two along each of their eigenvectors."""
    inside = _inside(level, part, group, c)
    for order in inside.lines():
        yield _divided(level, inside, order, c)


def _divided(level: Level, inside: _Inside, order: IntArray, c: int) -> _Division:
    """The two ends of a line that as classes have the lowest energy, neither small."""
    sizes, total = level.sizes[inside.nodes], float(level.sizes.sum())
    place, energy = best_division(order, *inside[1:4], sizes, inside.outer, total, c, SMALL_SIDE)
    nodes = inside.nodes[order]
    return _Division(nodes[: place + 1], nodes[place + 1 :], energy)


def _inside(level: Level, part: IntArray, group: tuple[int, ...], c: int) -> _Inside:
    return _Inside(*inside_of(*level[:3], part, np.isin(np.arange(c), group)))


def _eigenvectors(graph: _Inside) -> FloatArray:
    """Leading eigenvectors of a graph, one a row, without the constant; none for few nodes.

    By Lanczos: they only order nodes, for which two digits are enough.
    """
    n = graph.nodes.size
    if n <= 2 * MODES:
        return np.empty((0, n))
    weights, scale = normalised(graph.indptr, graph.indices, graph.weights)
    most = min(MOST_STEPS, n - 1)
    Q = np.empty((most + 1, n))
    alpha, beta = np.zeros(most), np.zeros(most)
    Q[0] = 1.0 + 0.5 * np.cos(np.arange(n))  # neither random nor an eigenvector
    Q[0] /= np.linalg.norm(Q[0])
    done, count = 0, 1
    while count == done + 1:
        upto = min(done + STEPS, most)
        count = lanczos(graph.indptr, graph.indices, weights, Q, alpha, beta, done, upto)
        done = upto
        k = min(count, upto)
        _, vectors = eigh_tridiagonal(alpha[:k], beta[: k - 1])
        leading = vectors[:, : -MODES - 2 : -1]
        if done == most or (np.abs(beta[k - 1] * leading[-1]) <= EIGEN_TOL).all():
            break
    return (leading.T[1:] @ Q[:k]) * scale


def _balance(size: FloatArray, total: float, c: int) -> FloatArray:
    """`balance_of` for arrays."""
    return np.minimum((c - 1) * size, total - size)
