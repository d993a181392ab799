"""Loops of the partition search: matching, contraction, union, moves of single nodes.

A level is a graph in compressed rows (indptr, indices, weights, both directions of every edge)
whose nodes stand for `sizes` rows each. A partition is `part`, the class of each node; nodes with
`fixed` stay in theirs. The energy is Σ_k cut_k / B(s_k), B(s) = min((c - 1) s, N - s). indptr and
indices are unsigned, which saves a test on every access (see `_tv_sweeps`).
"""

import numpy as np

from tvsvm._jit import kernel
from tvsvm.results import BoolArray, FloatArray, IntArray

GAIN = 1e-9  # relative gain below which a move is not worth making
INSIDE = 1e-12  # share of its degree that a node may have outside of its class and be inside


@kernel
def balance_of(size: float, total: float, c: int) -> float:
    """B of the indicator of a class of `size` rows."""
    return min((c - 1) * size, total - size)


@kernel
def statistics(
    indptr: IntArray,
    indices: IntArray,
    weights: FloatArray,
    sizes: FloatArray,
    part: IntArray,
    c: int,
) -> tuple[FloatArray, FloatArray]:
    """Cut and size of every class."""
    cut, size = np.zeros(c), np.zeros(c)
    for i in range(part.size):
        size[part[i]] += sizes[i]
        for e in range(indptr[i], indptr[i + 1]):
            if part[indices[e]] != part[i]:
                cut[part[i]] += weights[e]
    return cut, size


@kernel
def borders(
    indptr: IntArray, indices: IntArray, weights: FloatArray, part: IntArray, c: int
) -> FloatArray:
    """Weight of the edges between every two classes, (c, c), zero on the diagonal."""
    border = np.zeros((c, c))
    for i in range(part.size):
        for e in range(indptr[i], indptr[i + 1]):
            if part[indices[e]] != part[i]:
                border[part[i], part[indices[e]]] += weights[e]
    return border


@kernel
def match(
    indptr: IntArray,
    indices: IntArray,
    weights: FloatArray,
    sizes: FloatArray,
    part: IntArray,
    order: IntArray,
    largest: float,
) -> tuple[IntArray, int]:
    """Pair nodes of one class along heavy edges; the coarse node of each, and their number.

    Edges are rated by w² / (s_i s_j), which keeps coarse nodes of like size.
    """
    n = part.size
    partner = np.full(n, -1, dtype=np.int32)
    for i in order:
        if partner[i] >= 0:
            continue
        best, rating = i, 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if partner[j] >= 0 or j == i or part[j] != part[i] or sizes[i] + sizes[j] > largest:
                continue
            rate = np.float64(weights[e]) ** 2 / sizes[j]
            if rate > rating:
                best, rating = j, rate
        partner[i], partner[best] = best, i
    # Numbered as the nodes are: neighbours in memory stay so.
    coarse = np.empty(n, dtype=np.uint32)
    count = 0
    for i in range(n):
        if partner[i] >= i:
            coarse[i] = coarse[partner[i]] = count
            count += 1
    return coarse, count


@kernel
def contract(
    indptr: IntArray, indices: IntArray, weights: FloatArray, coarse: IntArray, count: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """The graph between coarse nodes: weights added up, edges inside a node left out."""
    none, one = np.uint32(0), np.uint32(1)
    # Members and places are counted from one.
    first, second = np.zeros(count, dtype=np.uint32), np.zeros(count, dtype=np.uint32)
    for i in range(coarse.size):
        if first[coarse[i]] == none:
            first[coarse[i]] = i + 1
        else:
            second[coarse[i]] = i + 1
    new_indptr = np.zeros(count + 1, dtype=np.uint64)
    new_indices = np.empty(indices.size, dtype=np.uint32)
    new_weights = np.empty(indices.size, dtype=weights.dtype)
    place = np.zeros(count, dtype=np.uint32)
    filled = none
    for node in range(np.uint32(count)):
        begin = filled
        for member in (first[node], second[node]):
            if member == none:
                continue
            for e in range(indptr[member - one], indptr[member]):
                other = coarse[indices[e]]
                if other == node:
                    continue
                if place[other] <= begin:
                    new_indices[filled], new_weights[filled] = other, weights[e]
                    filled += one
                    place[other] = filled
                else:
                    new_weights[place[other] - one] += weights[e]
        new_indptr[node + one] = filled
    return new_indptr, new_indices[:filled].copy(), new_weights[:filled].copy()


@kernel
def best_move(
    i: int,
    indptr: IntArray,
    indices: IntArray,
    weights: FloatArray,
    sizes: FloatArray,
    part: IntArray,
    cut: FloatArray,
    size: FloatArray,
    total: float,
    linked: FloatArray,
) -> tuple[int, float, float, float]:
    """Class to which node i should go, what the energy changes by, and the two cuts then.

    `linked` is room for c zeros, and is left so. -1 where there is no class to go to.
    """
    c, a = size.size, part[i]
    degree = 0.0
    for e in range(indptr[i], indptr[i + 1]):
        linked[part[indices[e]]] += weights[e]
        degree += weights[e]
    own = linked[a]
    linked[a] = 0.0
    choice, change = -1, np.inf
    rest = size[a] - sizes[i]
    cut_a = cut[a] + 2 * own - degree
    cut_b = 0.0
    if rest > 0:
        leave = cut_a / balance_of(rest, total, c) - cut[a] / balance_of(size[a], total, c)
    else:
        leave = np.inf
    for e in range(indptr[i], indptr[i + 1]):
        b = part[indices[e]]
        if linked[b] == 0.0:
            continue
        after = cut[b] + degree - 2 * linked[b]
        linked[b] = 0.0
        if size[b] + sizes[i] >= total:
            continue
        delta = (
            leave
            + after / balance_of(size[b] + sizes[i], total, c)
            - cut[b] / balance_of(size[b], total, c)
        )
        if delta < change:
            choice, change, cut_b = b, delta, after
    return choice, change, cut_a, cut_b


@kernel
def descend(
    indptr: IntArray,
    indices: IntArray,
    weights: FloatArray,
    sizes: FloatArray,
    part: IntArray,
    fixed: BoolArray,
    c: int,
    passes: int,
) -> float:
    """Move single nodes as long as the energy falls, in place; the energy at the end."""
    cut, size = np.zeros(c), np.zeros(c)
    foreign = np.zeros(part.size, dtype=np.int64)  # neighbours in other classes: most have none
    for i in range(part.size):
        size[part[i]] += sizes[i]
        for e in range(indptr[i], indptr[i + 1]):
            if part[indices[e]] != part[i]:
                cut[part[i]] += weights[e]
                foreign[i] += 1
    total = size.sum()
    linked = np.zeros(c)
    energy = 0.0
    for k in range(c):
        energy += cut[k] / balance_of(size[k], total, c)
    for _ in range(passes):
        moves = 0
        for i in range(part.size):
            if foreign[i] == 0 or fixed[i]:
                continue
            b, change, cut_a, cut_b = best_move(
                i, indptr, indices, weights, sizes, part, cut, size, total, linked
            )
            if b >= 0 and change < -GAIN * energy:
                a = part[i]
                part[i], cut[a], cut[b] = b, cut_a, cut_b
                size[a] -= sizes[i]
                size[b] += sizes[i]
                energy += change
                moves += 1
                for e in range(indptr[i], indptr[i + 1]):
                    j = indices[e]
                    if part[j] == a:
                        foreign[j] += 1
                        foreign[i] += 1
                    elif part[j] == b:
                        foreign[j] -= 1
                        foreign[i] -= 1
        if moves == 0:
            break
    return energy


@kernel
def links(
    indptr: IntArray, indices: IntArray, weights: FloatArray, part: IntArray, c: int
) -> tuple[FloatArray, FloatArray]:
    """Weight of the edges of each node to each class, (n, c), and to all."""
    linked, degree = np.zeros((part.size, c)), np.zeros(part.size)
    for i in range(part.size):
        for e in range(indptr[i], indptr[i + 1]):
            linked[i, part[indices[e]]] += weights[e]
            degree[i] += weights[e]
    return linked, degree


@kernel
def climb(
    indptr: IntArray,
    indices: IntArray,
    weights: FloatArray,
    sizes: FloatArray,
    part: IntArray,
    fixed: BoolArray,
    c: int,
    patience: int,
) -> None:
    """Move nodes once, the best first, uphill too, and go back to the lowest energy met; in place.

    It ends after `patience` moves without a new low. For few nodes: each move looks at all of them,
    and `links` are kept.
    """
    n = part.size
    linked, degree = links(indptr, indices, weights, part, c)
    cut, size = np.zeros(c), np.zeros(c)
    for i in range(n):
        size[part[i]] += sizes[i]
        cut[part[i]] += degree[i] - linked[i, part[i]]
    total = size.sum()
    ratio = np.empty(c)
    for k in range(c):
        ratio[k] = cut[k] / balance_of(size[k], total, c)
    two = np.full(2, -1, dtype=np.int64)
    settled = fixed.copy()
    # Of each node the best move. A move changes what those to and from its two classes are worth,
    # and those of its node's neighbours; other nodes may only find one of the two classes better.
    stale = np.ones(n, dtype=np.bool_)
    target, change = np.empty(n, dtype=np.int64), np.empty(n)
    moved = np.empty(n, dtype=np.int64)
    origin = np.empty(n, dtype=np.int64)
    height, lowest, kept, count = 0.0, 0.0, 0, 0
    while count < n:
        node, least = -1, np.inf
        for i in range(n):
            if settled[i]:
                continue
            a, old = part[i], target[i]
            own, rest = linked[i, a], size[a] - sizes[i]
            again = stale[i] or a == two[0] or a == two[1] or old == two[0] or old == two[1]
            if again:
                target[i], change[i], stale[i] = -1, np.inf, False
            # Within its class a node has nowhere to go, up to rounding.
            if rest <= 0 or degree[i] - own <= INSIDE * degree[i]:
                continue
            leave = (cut[a] + 2 * own - degree[i]) / balance_of(rest, total, c) - ratio[a]
            for place in range(c if again else 2):
                b = place if again else int(two[place])
                grown = size[b] + sizes[i]
                if b == a or linked[i, b] <= INSIDE * degree[i] or grown >= total:
                    continue
                after = cut[b] + degree[i] - 2 * linked[i, b]
                delta = leave + after / balance_of(grown, total, c) - ratio[b]
                if delta < change[i]:
                    target[i], change[i] = b, delta
            if change[i] < least:
                node, least = i, change[i]
        if node < 0:
            break
        a, b = part[node], target[node]
        cut[a] += 2 * linked[node, a] - degree[node]
        cut[b] += degree[node] - 2 * linked[node, b]
        size[a] -= sizes[node]
        size[b] += sizes[node]
        part[node] = b
        two[0], two[1] = a, b
        for changed in two:
            ratio[changed] = cut[changed] / balance_of(size[changed], total, c)
        for e in range(indptr[node], indptr[node + 1]):
            j = indices[e]
            linked[j, a] -= weights[e]
            linked[j, b] += weights[e]
            stale[j] = True
        settled[node] = True
        moved[count], origin[count] = node, a
        count += 1
        height += least
        if height < lowest:
            lowest, kept = height, count
        elif count - kept == patience:
            break
    for step in range(kept, count):
        part[moved[step]] = origin[step]


@kernel
def agglomerated(
    indptr: IntArray, indices: IntArray, weights: FloatArray, sizes: FloatArray, c: int
) -> IntArray:
    """A partition of few nodes: united pair by pair, those with the largest w / (s t)^¾ first.

    What no edge links in the end is united by size, the two smallest first.
    """
    n = sizes.size
    between, size = np.zeros((n, n)), sizes.copy()
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            between[i, indices[e]] += weights[e]
    group = np.arange(n)
    alive = np.ones(n, dtype=np.bool_)
    # The best partner before each group; it is looked for again where it may have changed.
    partner, rating = np.full(n, -1), np.zeros(n)
    stale = np.ones(n, dtype=np.bool_)
    for _ in range(n - c):
        into, gone, best = -1, -1, 0.0
        for i in range(1, n):
            if not alive[i]:
                continue
            if stale[i]:
                partner[i], rating[i], stale[i] = -1, 0.0, False
                for j in range(i):
                    if alive[j]:
                        rate = between[i, j] / (size[i] * size[j]) ** 0.75
                        if rate > rating[i]:
                            partner[i], rating[i] = j, rate
            if rating[i] > best:
                into, gone, best = partner[i], i, rating[i]
        if gone < 0:
            for i in range(n):
                if alive[i] and (gone < 0 or size[i] < size[gone]):
                    into, gone = gone, i
                elif alive[i] and (into < 0 or size[i] < size[into]):
                    into = i
            if into > gone:  # the one before keeps its number
                into, gone = gone, into
        size[into] += size[gone]
        alive[gone] = False
        for j in range(n):
            between[into, j] += between[gone, j]
            between[j, into] = between[into, j]
            if group[j] == gone:
                group[j] = into
            if j > into and (partner[j] == into or partner[j] == gone or between[into, j] > 0):
                stale[j] = True
        stale[into] = True
    number = np.full(n, -1)
    part = np.empty(n, dtype=np.int32)
    count = 0
    for i in range(n):
        if number[group[i]] < 0:
            number[group[i]] = count
            count += 1
        part[i] = number[group[i]]
    return part
