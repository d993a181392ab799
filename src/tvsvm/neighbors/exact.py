"""Exact neighbours: inner products say which rows are possible, differences which are nearest."""

import numpy as np

from tvsvm.neighbors import kernels
from tvsvm.neighbors.rows import Rows, in_parallel
from tvsvm.results import FloatArray, IntArray

# Products that are held at once, by each thread.
N_PRODUCTS_AT_ONCE = 2**23
# Looking at a product costs as much as this many multiplications.
COST_OF_A_LOOK = 60


def exact_cost(data: Rows) -> float:
    """Cost of an exact search for one row, in multiplications."""
    return data.shape[0] * (data.cost + COST_OF_A_LOOK)


def exact_neighbors(
    data: Rows, n_neighbors: int, *, n_jobs: int | None, subset: IntArray | None = None
) -> tuple[IntArray, FloatArray]:
    """Nearest neighbours of all rows, or of a subset, among all rows, ties by row number."""
    n_rows = data.shape[0]
    wanted = np.arange(n_rows) if subset is None else subset

    def search(rows: IntArray) -> tuple[IntArray, FloatArray]:
        indptr, candidates = kernels.possible_neighbors(
            data.products(rows), data.norms, rows, n_neighbors, data.rounding
        )
        return data.nearest(rows, indptr, candidates, n_neighbors)

    size = int(np.clip(N_PRODUCTS_AT_ONCE // n_rows, 16, 1024))
    blocks = [wanted[start : start + size] for start in range(0, len(wanted), size)]
    indices, distances = zip(*in_parallel(search, blocks, n_jobs), strict=True)
    return np.concatenate(indices), np.concatenate(distances)
