"""Map of a graph: a point in the plane for every node, neighbours close, clusters apart."""

import numpy as np

from tvsvm._jit import kernel
from tvsvm.graph import Graph
from tvsvm.results import FloatArray, IntArray

SMOOTHING_STEPS = 30
SLOW = 0.02  # δ of the coordinates at the start
FIRST_SPREAD = 4.0
EDGE_VISITS = 60_000_000  # what a map may cost: 70,000 rows of 10 neighbours take a few seconds
FEWEST_SWEEPS, MOST_SWEEPS = 10, 400
REPELLED = 2  # nodes that push each end of an edge away when the edge pulls
LONGEST_MOVE = 4.0
GAP = 0.06  # between components, as a part of the side of a box
SHELF = 1.5  # width of the shelves for components that cover a square of side 1


def layout(graph: Graph) -> FloatArray:
    """Place the nodes of a graph in the plane, always in the same way.

    min_Y  Σ_e p_e log(1 + d_e²) - Σ_{ij} log(d_ij² / (1 + d_ij²)),  d_ij = |Y_i - Y_j|,

    by stochastic descent from smoothed random coordinates; p_e compares the weight of an edge with
    the heaviest one at its ends, and the pairs ij are sampled inside a component. Components get
    boxes of their own, the largest first.

    Parameters
    ----------
    graph : Graph
        Any graph, connected or not.

    Returns
    -------
    ndarray of shape (N, 2)
        Coordinates in [0, 1]².
    """
    # In `graph.order` the nodes of a component follow each other.
    component = graph.component_labels[graph.order]
    start = np.flatnonzero(np.diff(component, prepend=-1))
    end = np.append(start[1:], graph.n_nodes)
    Y = _first_positions(graph, start, end)
    sweeps = int(np.clip(EDGE_VISITS // max(graph.n_edges, 1), FEWEST_SWEEPS, MOST_SWEEPS))
    first, last = (np.repeat(bound, end - start) for bound in (start, end))
    _descend(Y, graph.indptr, graph.heads, _pull(graph), first, last, sweeps)
    positions = np.empty((graph.n_nodes, 2))
    positions[graph.order] = _packed(Y, start, end)
    return positions


def smoothed_noise(graph: Graph, n_columns: int, *, below: float) -> FloatArray:
    """Random columns of which only what varies slowly along edges is kept, shape (N, n_columns).

    T_k(t(P)) Z for noise Z, with P the averaging over neighbours, T_k the Chebyshev polynomial and
    t the map of [-1, 1 - δ] to [-1, 1], δ = `below`: a mixture of the leading eigenvectors of the
    graph. Always the same columns.
    """
    alone = (graph.degrees == 0)[:, None]
    per_degree = 1.0 / np.where(alone, np.inf, graph.degrees[:, None].astype(np.float64))
    half = 1.0 - below / 2  # of [-1, 1 - δ], whose middle is half - 1

    def mapped(Z: FloatArray) -> FloatArray:
        return (per_degree * (graph.affinity @ Z) + (alone + 1.0 - half) * Z) / half

    before: FloatArray = np.random.default_rng(0).standard_normal((graph.n_nodes, n_columns))
    now = mapped(before)
    for _ in range(SMOOTHING_STEPS - 1):
        before, now = now, 2.0 * mapped(now) - before
    return now


def _first_positions(graph: Graph, start: IntArray, end: IntArray) -> FloatArray:
    """Two smoothed random columns by the order of the graph, uncorrelated in each component."""
    Y = smoothed_noise(graph, 2, below=SLOW)[graph.order]
    # Nodes with the same neighbours must not share a place: nothing would push them apart.
    jitter = np.random.default_rng(1).normal(scale=0.01, size=Y.shape)
    for a, b in zip(start, end, strict=True):
        axes, spread, _ = np.linalg.svd(Y[a:b] - Y[a:b].mean(axis=0), full_matrices=False)
        axes *= np.sqrt(b - a) * (spread > 1e-12 * spread[0])
        Y[a:b] = FIRST_SPREAD * np.clip(axes, -3.0, 3.0)
    return Y + jitter


def _pull(graph: Graph) -> FloatArray:
    """How often an edge pulls: its weight beside the heaviest at either end, evened out.

    The square root keeps long thin clusters in one piece, which the bare weights break.
    """
    heaviest = graph.affinity.max(axis=1).toarray().ravel()
    i, j = graph.edges.T
    return np.sqrt(graph.edge_weights / np.minimum(heaviest[i], heaviest[j]))


@kernel
def _descend(
    Y: FloatArray,
    indptr: IntArray,
    heads: IntArray,
    pull: FloatArray,
    first: IntArray,
    last: IntArray,
    sweeps: int,
) -> None:
    """Move the points, in place; node u is pushed by nodes of first[u]:last[u]."""
    state = np.uint64(88172645463325252)
    for sweep in range(sweeps):
        rate = 2.0 * (1.0 - sweep / sweeps)
        for p in range(indptr.size - 1):
            for e in range(indptr[p], indptr[p + 1]):
                state = _next_random(state)
                if np.float64(state >> np.uint64(11)) * 2.0**-53 >= pull[e]:
                    continue
                q = heads[e]
                dx = Y[p, 0] - Y[q, 0]
                dy = Y[p, 1] - Y[q, 1]
                factor = rate / (1.0 + dx * dx + dy * dy)
                dx, dy = _bounded(factor * dx), _bounded(factor * dy)
                Y[p, 0] -= dx
                Y[p, 1] -= dy
                Y[q, 0] += dx
                Y[q, 1] += dy
                for k in range(2 * REPELLED):
                    u = p if k < REPELLED else q
                    state = _next_random(state)
                    width = np.uint64(last[u] - first[u])
                    v = first[u] + np.int64((state >> np.uint64(11)) % width)
                    dx = Y[u, 0] - Y[v, 0]
                    dy = Y[u, 1] - Y[v, 1]
                    square = dx * dx + dy * dy
                    factor = rate / ((0.001 + square) * (1.0 + square))
                    Y[u, 0] += _bounded(factor * dx)
                    Y[u, 1] += _bounded(factor * dy)


@kernel
def _next_random(state: np.uint64) -> np.uint64:
    """Marsaglia's xorshift: enough for sampling pairs, and the same on every machine."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state


@kernel
def _bounded(move: float) -> float:
    return min(max(move, -LONGEST_MOVE), LONGEST_MOVE)


def _packed(Y: FloatArray, start: IntArray, end: IntArray) -> FloatArray:
    """The components on shelves, the largest first, each in a square of its share of the area."""
    sizes = end - start
    sides = np.sqrt(sizes / sizes.sum())
    placed = np.empty_like(Y)
    x = y = height = 0.0
    for k in np.argsort(-sizes, kind="stable"):
        box = sides[k] * (1 + GAP)
        if x + box > SHELF:
            x, y, height = 0.0, y + height, 0.0
        height = max(height, box)
        here = slice(start[k], end[k])
        inside = _in_unit_square(_lying(Y[here]))
        placed[here] = np.array([x, y]) + box / 2 + sides[k] * (inside - 0.5)
        x += box
    return _in_unit_square(placed)


def _lying(Y: FloatArray) -> FloatArray:
    """Turned so that its long axis is horizontal, as most screens are."""
    centred = Y - Y.mean(axis=0)
    return centred @ np.linalg.eigh(centred.T @ centred)[1][:, ::-1]


def _in_unit_square(Y: FloatArray) -> FloatArray:
    low, high = Y.min(axis=0), Y.max(axis=0)
    extent = max(float((high - low).max()), np.finfo(np.float64).tiny)
    return np.clip(0.5 + (Y - (low + high) / 2) / extent, 0.0, 1.0)
