"""Approximate neighbours of many rows: project, look into near cells, re-rank exactly.

The rows are projected on their leading directions and the projections partitioned into cells by
k-means. A row's candidates are the nearest projections in the cells nearest to it; the nearest of
the candidates in the original space are its neighbours. How many cells and candidates that takes
is read off the exact neighbours of a few rows.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

from tvsvm.neighbors import kernels
from tvsvm.neighbors.exact import COST_OF_A_LOOK, exact_cost, exact_neighbors
from tvsvm.neighbors.rows import Rows, in_parallel
from tvsvm.results import FloatArray, IntArray

N_DIRECTIONS = 64
N_SAMPLED_ROWS = 256
N_SAMPLED_AT_ONCE = 16
# Share of the sampled neighbours that may be lost, once by the cells and once by the candidates.
LOSS = 0.005
N_LLOYD_STEPS = 6
N_ROWS_A_CENTER = 32
N_ROWS_AT_ONCE = 256
# A distance by differences, in rows all over the memory, costs this many products.
COST_OF_A_CANDIDATE = 8


def approximate_neighbors(
    data: Rows, n_neighbors: int, *, random: np.random.RandomState, n_jobs: int | None
) -> tuple[IntArray, FloatArray]:
    """Nearest neighbours with an expected recall of 0.99, or exact ones if that is cheaper."""
    projected = data.project(N_DIRECTIONS, random)
    cells = partition(projected, random)
    sample = np.sort(random.choice(data.shape[0], min(N_SAMPLED_ROWS, data.shape[0]), False))
    truth, _ = exact_neighbors(data, n_neighbors, n_jobs=n_jobs, subset=sample)
    n_probes, n_scanned = _probes_needed(projected, cells, sample, truth)
    n_candidates = _candidates_needed(projected, sample, truth)
    cost = n_scanned * (projected.shape[1] + COST_OF_A_LOOK)
    cost += n_candidates * COST_OF_A_CANDIDATE * data.cost
    if cost > exact_cost(data):
        return exact_neighbors(data, n_neighbors, n_jobs=n_jobs)
    indices, distances = _search(
        data, projected, cells, n_neighbors, n_probes, n_candidates, n_jobs
    )
    short = np.flatnonzero(indices[:, -1] < 0)  # rows whose cells hold too few others
    if short.size:
        indices[short], distances[short] = exact_neighbors(
            data, n_neighbors, n_jobs=n_jobs, subset=short
        )
    return indices, distances


@dataclass(frozen=True)
class Cells:
    """Partition of rows: cell b holds rows order[starts[b]:starts[b + 1]], around centers[b]."""

    centers: FloatArray
    labels: IntArray
    order: IntArray
    starts: IntArray


def partition(P: FloatArray, random: np.random.RandomState) -> Cells:
    """Cells of about √N / 2 rows each, by some steps of Lloyd's k-means on a sample."""
    n_rows = P.shape[0]
    n_cells = min(n_rows, int(2 * np.sqrt(n_rows)))
    sample = P[random.choice(n_rows, min(n_rows, N_ROWS_A_CENTER * n_cells), replace=False)]
    centers = sample[:n_cells]
    for _ in range(N_LLOYD_STEPS):
        labels = _nearest_center(sample, centers)
        counts = np.bincount(labels, minlength=n_cells)
        membership = csr_array(
            (np.ones(len(labels), P.dtype), (labels, np.arange(len(labels)))),
            shape=(n_cells, len(labels)),
        )
        means = (membership @ sample) / np.maximum(counts, 1)[:, None].astype(P.dtype)
        centers = np.where(counts[:, None] > 0, means, centers)
    labels = _nearest_center(P, centers)
    starts = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=n_cells))])
    return Cells(centers, labels, np.argsort(labels, kind="stable"), starts)


def _to_centers(P: FloatArray, centers: FloatArray) -> FloatArray:
    """Half the squared distances from rows to centres, up to a constant of the row."""
    return _half_norms(centers) - P @ centers.T


def _half_norms(P: FloatArray) -> FloatArray:
    return np.einsum("ij,ij->i", P, P) / 2


def _nearest_center(P: FloatArray, centers: FloatArray) -> IntArray:
    labels = np.empty(len(P), np.int64)
    for start in range(0, len(P), N_ROWS_AT_ONCE):
        part = slice(start, start + N_ROWS_AT_ONCE)
        labels[part] = _to_centers(P[part], centers).argmin(axis=1)
    return labels


def _probes_needed(
    P: FloatArray, cells: Cells, sample: IntArray, truth: IntArray
) -> tuple[int, float]:
    """How many nearest cells hold the true neighbours, and how many rows are in those cells."""
    by_distance = np.argsort(_to_centers(P[sample], cells.centers), axis=1, kind="stable")
    rank = np.argsort(by_distance, axis=1)
    ranks = np.take_along_axis(rank, cells.labels[truth], axis=1)
    n_probes = 1 + int(np.quantile(ranks, 1 - LOSS, method="higher"))
    return n_probes, float(np.diff(cells.starts)[by_distance[:, :n_probes]].sum(axis=1).mean())


def _candidates_needed(P: FloatArray, sample: IntArray, truth: IntArray) -> int:
    """How many nearest projections contain the true neighbours."""
    half_norms = _half_norms(P)
    tolerance = 8 * np.finfo(P.dtype).eps * half_norms.max()  # copies of a row count as equal
    ranks = np.empty(truth.shape, np.int64)
    for start in range(0, len(sample), N_SAMPLED_AT_ONCE):
        rows = sample[start : start + N_SAMPLED_AT_ONCE]
        for s, keys in enumerate(half_norms - P[rows] @ P.T, start=start):
            keys[sample[s]] = np.inf
            bars = keys[truth[s]] - tolerance
            ranks[s] = [np.count_nonzero(keys < bar) for bar in bars]
    return max(truth.shape[1], 1 + int(np.quantile(ranks, 1 - LOSS, method="higher")))


def _search(
    data: Rows,
    P: FloatArray,
    cells: Cells,
    n_neighbors: int,
    n_probes: int,
    n_candidates: int,
    n_jobs: int | None,
) -> tuple[IntArray, FloatArray]:
    """Nearest neighbours among the candidates, -1 where there are not enough."""
    n_rows, order = len(P), cells.order
    sorted_rows = P[order]
    half_norms = _half_norms(sorted_rows)
    half_center_norms = _half_norms(cells.centers)

    def search(block: tuple[int, int]) -> tuple[IntArray, FloatArray]:
        found = kernels.search_cells(
            sorted_rows,
            half_norms,
            cells.starts,
            cells.centers,
            half_center_norms,
            *block,
            n_probes,
            n_candidates,
        )
        candidates = np.where(found >= 0, order[found], n_rows).astype(np.int32)
        candidates.sort(axis=1)
        filled = candidates < n_rows
        indptr = np.concatenate([[0], np.cumsum(filled.sum(axis=1))])
        return data.nearest(order[slice(*block)], indptr, candidates[filled], n_neighbors)

    blocks = [
        (first, min(first + N_ROWS_AT_ONCE, stop))
        for start, stop in pairwise(cells.starts.tolist())
        for first in range(start, stop, N_ROWS_AT_ONCE)
    ]
    nearest, lengths = zip(*in_parallel(search, blocks, n_jobs), strict=True)
    indices = np.empty((n_rows, n_neighbors), np.int32)
    distances = np.empty((n_rows, n_neighbors), lengths[0].dtype)
    indices[order] = np.concatenate(nearest)
    distances[order] = np.concatenate(lengths)
    return indices, distances
