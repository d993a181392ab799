"""Rows that stand for others: places on a graph, weighted groups of them, one row of each."""

import numpy as np

from tvsvm.graph import Graph
from tvsvm.layout import smoothed_noise
from tvsvm.results import FloatArray, IntArray

N_VECTORS, N_SPARE = 20, 8  # eigenvectors that tell places apart, and columns to find them with
SLOW = 0.15  # δ of the columns; overlapping classes have few eigenvalues close to 1
LLOYD_STEPS = 15
BLOCK = 1 << 22  # distances held at a time


def places_on(graph: Graph) -> FloatArray:
    """Rows of length 1: the closer two are, the easier a walk gets from one to the other.

    They are the rows of V diag(μ) for the leading eigenpairs of D^-½ W D^-½, or nearly so: the
    best approximations (Rayleigh and Ritz) that smoothed noise holds. Small graphs have fewer
    leading pairs than asked for; μ keeps the others, near zero, from blurring the places.
    """
    n_columns = min(N_VECTORS + N_SPARE, graph.n_nodes)
    alone = (graph.degrees == 0)[:, None]
    root = np.sqrt(np.where(alone, 1.0, graph.degrees[:, None].astype(np.float64)))
    Q = np.linalg.qr(root * smoothed_noise(graph, n_columns, below=SLOW))[0]
    SQ = (graph.affinity @ (Q / root)) / root + alone * Q
    values, vectors = np.linalg.eigh(Q.T @ SQ)
    places = Q @ (vectors * np.maximum(values, 0.0))[:, -N_VECTORS:]
    return places / np.maximum(np.linalg.norm(places, axis=1, keepdims=True), 1e-300)


def representatives(
    places: FloatArray, weight: FloatArray, count: int, *, taken: FloatArray | None = None
) -> tuple[IntArray, FloatArray]:
    """One row of each of `count` groups and the weight of the group, the heaviest first.

    min_C  Σ_i weight_i min(|z_i - C|², |z_i - taken|²),  by Lloyd's steps from far-apart centres.

    `places` are in the unit ball. The row of a group is the one nearest to its centre: one at its
    border, be it as heavy as it may, can be a stray that says nothing about the others. Rows of
    weight 0 are never chosen; if there are fewer groups, as among duplicates, the heaviest of the
    other rows fill up.
    """
    count = min(count, int(np.count_nonzero(weight)))
    if count <= 0:
        return np.empty(0, dtype=np.intp), np.empty(0)
    reserved = np.full(len(places), np.inf)
    if taken is not None and len(taken):
        reserved = _nearest(places, taken)[1]
    centres = places[_far_apart(places, weight, count, reserved)]
    for _ in range(LLOYD_STEPS):
        group, distance = _nearest(places, centres)
        pull = np.where(distance <= reserved, weight, 0.0)
        mass = np.bincount(group, pull, minlength=count)
        sums = np.stack([np.bincount(group, pull * z, minlength=count) for z in places.T], axis=1)
        centres = np.where(mass[:, None] > 0, sums / np.maximum(mass, 1e-300)[:, None], centres)
    by_nearness = np.lexsort((-pull, distance))
    rows = _first_of_each(group, by_nearness[pull[by_nearness] > 0])
    rows = rows[np.argsort(-mass[group[rows]], kind="stable")]
    left = np.setdiff1d(np.flatnonzero(weight), rows)
    others = left[np.argsort(-weight[left], kind="stable")][: count - rows.size]
    return np.append(rows, others), np.append(mass[group[rows]], weight[others])


def _first_of_each(group: IntArray, rows: IntArray) -> IntArray:
    """The first of the given rows in each group that has one."""
    return rows[np.unique(group[rows], return_index=True)[1]]


def _far_apart(
    places: FloatArray, weight: FloatArray, count: int, reserved: FloatArray
) -> IntArray:
    """Rows one after the other, each heavy and far from those before."""
    distance = np.minimum(reserved, 4.0)  # no two places are further apart
    rows = np.empty(count, dtype=np.intp)
    for k in range(count):
        rows[k] = np.argmax(weight * distance)
        distance = np.minimum(distance, np.sum((places - places[rows[k]]) ** 2, axis=1))
    return rows


def _nearest(places: FloatArray, centres: FloatArray) -> tuple[IntArray, FloatArray]:
    """Index of the nearest centre of every place and its squared distance, a block at a time."""
    nearest = np.empty(len(places), dtype=np.intp)
    distance = np.empty(len(places))
    rows = max(1, BLOCK // len(centres))
    for start in range(0, len(places), rows):
        here = slice(start, start + rows)
        squares = np.sum(centres**2, axis=1) - 2.0 * places[here] @ centres.T
        nearest[here] = squares.argmin(axis=1)
        smallest = squares.min(axis=1) + np.sum(places[here] ** 2, axis=1)
        distance[here] = np.maximum(smallest, 0.0)
    return nearest, distance
