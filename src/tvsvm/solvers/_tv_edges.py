"""A graph's edges as the graph-TV prox wants them, and the loops over all of them."""

from typing import NamedTuple

import numpy as np

from tvsvm.results import FloatArray, IntArray
from tvsvm.solvers._tv_sweeps import gap_and_value, push_dual, sweep_blocks, sweep_column


class Edges(NamedTuple):
    """Layout as in `_tv_sweeps`, with unsigned indices."""

    indptr: IntArray
    heads: IntArray
    weights: FloatArray

    @classmethod
    def of(cls, indptr: IntArray, heads: IntArray, weights: FloatArray) -> "Edges":
        """Edges from `Graph`'s arrays."""
        return cls(indptr.view(np.uint64), heads.view(np.uint32), weights)

    def sweep(self, strength: FloatArray, g: FloatArray, p: FloatArray, times: int = 1) -> None:
        """Run Gauss-Seidel passes over the dual, in place; all arrays of one type."""
        loop = sweep_column if g.shape[1] == 1 else sweep_blocks
        weights = self.weights.astype(g.dtype, copy=False)
        for left in range(times, 0, -1):
            loop(self.indptr, self.heads, weights, strength, g, p, True if left == 1 else None)

    def primal(self, z: FloatArray, p: FloatArray, g: FloatArray) -> None:
        """g = z - Dᵀp from scratch: sweeps only keep it up to date, and rounding adds up."""
        g[:] = z
        push_dual(self.indptr, self.heads, p, g)

    def gap_and_value(
        self, strength: FloatArray, z: FloatArray, g: FloatArray, p: FloatArray, x: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Duality gap and objective of x for the dual p, per column."""
        return gap_and_value(*self, strength, z, g, p, x)
