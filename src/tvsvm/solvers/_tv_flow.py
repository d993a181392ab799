"""Exact graph-TV prox of one column: divide and conquer by maximum flow.

A piece of the graph is split by asking a flow to level g at the piece's mean v: nodes above v
push their excess along edges with room to nodes below. If all of it arrives, the piece is
constant in the solution. If not, the nodes that can reach no hole any more lie above v in the
solution, the others below, the edges between are at their bounds, and both sides are solved on
their own. The flow *is* the dual, so a warm dual is a head start and every stop is feasible.

A piece that is level but for its share of the gap allowed, ½|g - v|², is left as it is: edges
between pieces are at their bounds, so these shares are all the gap there is.

Nodes have a mass m: what is minimised is Σ_i m_i/2 (x_i - z_i)² and the total variation. A flow of
δ changes g_i by δ/m_i, and a very heavy node stays where it is.
"""

import numpy as np

from tvsvm._jit import kernel
from tvsvm.results import BoolArray, FloatArray, IntArray
from tvsvm.solvers._helper import Helper

FAR, OUT = np.int32(2**31 - 1), np.int32(-1)  # heights: no hole in reach; not in this piece
NEXT = np.uint64(1)  # unsigned like the index it is added to, see _tv_sweeps


@kernel
def arcs(indptr: IntArray, heads: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Both directions of every edge by node: start of its arcs, neighbour, edge, reverse arc."""
    n = indptr.size - 1
    count = np.zeros(n, dtype=np.int64)
    for i in range(n):
        count[i] += np.int64(indptr[i + 1]) - np.int64(indptr[i])
        for e in range(indptr[i], indptr[i + 1]):
            count[heads[e]] += 1
    start = np.zeros(n + 1, dtype=np.uint64)
    start[1:] = np.cumsum(count)
    fill = start[:-1].copy()
    neighbor = np.empty(2 * heads.size, dtype=np.uint32)
    edge = np.empty(2 * heads.size, dtype=np.uint32)
    reverse = np.empty(2 * heads.size, dtype=np.uint32)
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            j = heads[e]
            neighbor[fill[i]], edge[fill[i]], reverse[fill[i]] = j, e, fill[j]
            neighbor[fill[j]], edge[fill[j]], reverse[fill[j]] = i, e, fill[i]
            fill[i] += NEXT
            fill[j] += NEXT
    return start, neighbor, edge, reverse


# What follows has bound and flow by arc instead of by edge, so that the loops over a node's arcs
# read both in a row; the flow of an arc is that of its reverse with the other sign. More can flow
# along arc a by bound[a] - flow[a], and along its reverse by bound[a] + flow[a].


@kernel
def _measure(
    start: IntArray,
    neighbor: IntArray,
    bound: FloatArray,
    flow: FloatArray,
    g: FloatArray,
    v: float,
    eps: float,
    nodes: IntArray,
    height: IntArray,
    queue: IntArray,
) -> int:
    """Height = number of edges with room to the nearest hole, FAR if none; breadth first."""
    size = 0
    for t in range(nodes.size):
        i = nodes[t]
        if g[i] < v - eps:
            height[i] = 0
            queue[size] = i
            size += 1
        else:
            height[i] = FAR
    done = 0
    work = 0
    while done < size:
        j = queue[done]
        done += 1
        above = height[j] + np.int32(1)
        work += int(start[j + NEXT] - start[j])
        for a in range(start[j], start[j + NEXT]):
            i = neighbor[a]
            if height[i] == FAR and bound[a] + flow[a] > 0.0:
                height[i] = above
                queue[size] = i
                size += 1
    return work


@kernel
def _discharge(
    i: int,
    start: IntArray,
    neighbor: IntArray,
    reverse: IntArray,
    bound: FloatArray,
    mass: FloatArray,
    flow: FloatArray,
    g: FloatArray,
    v: float,
    eps: float,
    height: IntArray,
    queue: IntArray,
    tail: int,
    queued: BoolArray,
) -> tuple[int, int, int]:
    """Push the excess of node i downhill, raising i when it must.

    Nodes that get an excess by it join the ring `queue`; returns work, the ring's end and how
    many joined.
    """
    work = added = 0
    while g[i] > v + eps and height[i] != FAR:
        lowest = FAR
        for a in range(start[i], start[i + NEXT]):
            j = neighbor[a]
            if height[j] == FAR or height[j] == OUT:
                continue
            room = bound[a] - flow[a]
            if room <= 0.0:
                continue
            if height[j] >= height[i]:
                lowest = min(lowest, height[j])
                continue
            amount = min(mass[i] * (g[i] - v), room)
            flow[a] = bound[a] if amount == room else flow[a] + amount
            flow[reverse[a]] = -flow[a]
            g[i] -= amount / mass[i]
            g[j] += amount / mass[j]
            if g[j] > v + eps and not queued[j]:
                queued[j] = True
                queue[tail] = j
                tail = tail + 1 if tail + 1 < queue.size else 0
                added += 1
            if g[i] <= v + eps:
                break
            if amount < room:
                lowest = min(lowest, height[j])
        work += int(start[i + NEXT] - start[i])
        if g[i] > v + eps:
            height[i] = FAR if lowest == FAR else lowest + 1
    return work, tail, added


@kernel
def _level(
    start: IntArray,
    neighbor: IntArray,
    reverse: IntArray,
    bound: FloatArray,
    mass: FloatArray,
    flow: FloatArray,
    g: FloatArray,
    v: float,
    eps: float,
    allowed: float,
    nodes: IntArray,
    height: IntArray,
    queue: IntArray,
    queued: BoolArray,
    limit: int,
) -> tuple[int, bool]:
    """Move as much as the edges carry from nodes above v to nodes below, within one piece.

    Returns the work done and whether the piece is level, up to `allowed` a node.
    """
    arcs_here = 0
    for t in range(nodes.size):
        arcs_here += int(start[nodes[t] + NEXT] - start[nodes[t]])
    total = 0
    while total <= limit:
        total += _measure(start, neighbor, bound, flow, g, v, eps, nodes, height, queue)
        waiting = 0
        uneven = 0.0
        cut = False
        for t in range(nodes.size):
            i = nodes[t]
            uneven += 0.5 * mass[i] * (g[i] - v) ** 2
            above = g[i] > v + eps
            cut = cut or (above and height[i] == FAR)
            queued[i] = above and height[i] != FAR
            if queued[i]:
                queue[waiting] = i
                waiting += 1
        if uneven <= allowed * nodes.size:
            return total, True
        if waiting == 0:
            return total, not cut
        # Heights go stale as holes fill up; measuring again after about one pass' work pays.
        head, tail = 0, waiting if waiting < queue.size else 0
        spent = 0
        while waiting > 0 and spent <= arcs_here:
            i = queue[head]
            head = head + 1 if head + 1 < queue.size else 0
            queued[i] = False
            work, tail, added = _discharge(
                i, start, neighbor, reverse, bound, mass, flow, g, v, eps, height, queue, tail,
                queued,
            )  # fmt: skip
            waiting += added - 1
            spent += work
        total += spent
    return total, False


@kernel
def _by_arcs(
    start: IntArray, neighbor: IntArray, edge: IntArray, bounds: FloatArray, p: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Bound and flow of every arc."""
    bound, flow = np.empty(edge.size), np.empty(edge.size)
    for i in range(start.size - 1):
        for a in range(start[i], start[i + 1]):
            bound[a] = bounds[edge[a]]
            flow[a] = p[edge[a]] if i < neighbor[a] else -p[edge[a]]
    return bound, flow


@kernel
def _by_edges(
    start: IntArray, neighbor: IntArray, edge: IntArray, flow: FloatArray, p: FloatArray
) -> None:
    """Write the flow to the dual."""
    for i in range(start.size - 1):
        for a in range(start[i], start[i + 1]):
            if i < neighbor[a]:
                p[edge[a]] = flow[a]


@kernel
def _solve_piece(
    start: IntArray,
    neighbor: IntArray,
    reverse: IntArray,
    bound: FloatArray,
    mass: FloatArray,
    flow: FloatArray,
    g: FloatArray,
    x: FloatArray,
    nodes: IntArray,
    allowed: float,
    work_limit: int,
    once: bool,
) -> tuple[int, int]:
    """Solve for a piece, whose nodes are put in another order; `once`: only split it if necessary.

    Returns the work done and, if it was split once, how many nodes come first that are one side.
    """
    height = np.full(g.size, OUT)
    queue = np.empty(nodes.size, dtype=np.uint32)
    queued = np.zeros(g.size, dtype=np.bool_)
    pending = [(0, nodes.size)]
    work = 0
    while len(pending) > 0:
        low, high = pending.pop()
        mine = nodes[low:high]
        v, heavy = 0.0, 0.0
        for t in range(mine.size):
            v += mass[mine[t]] * g[mine[t]]
            heavy += mass[mine[t]]
        v /= heavy
        farthest = 0.0
        for t in range(mine.size):
            farthest = max(farthest, abs(g[mine[t]] - v))
            x[mine[t]] = v
        if mine.size == 1 or work > work_limit:
            continue
        # Below eps an excess is rounding; leave it, or two nodes hand it to each other for ever.
        eps = 1e-13 * farthest + 1e-15 * abs(v)
        if farthest <= eps:
            continue
        spent, level = _level(
            start, neighbor, reverse, bound, mass, flow, g, v, eps, allowed, mine, height, queue,
            queued, work_limit - work,
        )  # fmt: skip
        work += spent
        if not level and work <= work_limit:
            # Upper side (no hole in reach) to the front.
            border = low
            for t in range(low, high):
                i = nodes[t]
                if height[i] == FAR:
                    nodes[t] = nodes[border]
                    nodes[border] = i
                    border += 1
            if border < high:
                if once:
                    return work, border
                pending.append((border, high))
                pending.append((low, border))
        for t in range(low, high):
            height[nodes[t]] = OUT
    return work, 0


def solve_column(
    start: IntArray,
    neighbor: IntArray,
    edge: IntArray,
    reverse: IntArray,
    bounds: FloatArray,
    mass: FloatArray,
    g: FloatArray,
    p: FloatArray,
    x: FloatArray,
    allowed: float,
    work_limit: int,
    helper: Helper,
) -> bool:
    """Write a solution with a gap of at most `allowed` a node to x, updating g and p.

    Returns whether it came within the limit. Stopped by it, p is feasible, g belongs to it, and x
    holds the means of the pieces found so far: a candidate like any other. After the first split
    the helper may take one of the sides.
    """
    bound, flow = _by_arcs(start, neighbor, edge, bounds, p)
    state = start, neighbor, reverse, bound, mass, flow, g, x
    nodes = np.arange(g.size, dtype=np.uint32)
    work, border = _solve_piece(*state, nodes, allowed, work_limit, True)
    if border > 0:

        def solve(side: IntArray) -> int:
            return _solve_piece(*state, side, allowed, work_limit - work, False)[0]

        small, large = sorted((nodes[:border], nodes[border:]), key=len)
        work += max(helper.both(solve, large, small))
    _by_edges(start, neighbor, edge, flow, p)
    return bool(work <= work_limit)
