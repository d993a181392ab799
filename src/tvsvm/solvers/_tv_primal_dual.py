"""The paper's solver of the graph-TV prox: accelerated primal-dual (Chambolle and Pock, 2011)."""

import numpy as np

from tvsvm._jit import kernel
from tvsvm.results import FloatArray, IntArray
from tvsvm.solvers._tv_edges import Edges
from tvsvm.solvers._tv_hybrid import Columns, Start, first_dual
from tvsvm.solvers._tv_rows import RowConstraint, certify, joint_columns
from tvsvm.solvers._tv_scale import rounding_floor

CHECK_EVERY = 20


@kernel
def ascend_column(
    indptr: IntArray, heads: IntArray, weights: FloatArray, strength: FloatArray,
    ahead: FloatArray, sigma: float, p: FloatArray, divergence: FloatArray,
) -> None:  # fmt: skip
    """p ← clip(p + σ D x̄) for a single column, and its Dᵀp on the way."""
    divergence[:] = 0.0
    for i in range(indptr.size - 1):
        here = ahead[i, 0]
        out = divergence[i, 0]
        for e in range(indptr[i], indptr[i + 1]):
            bound = weights[e] * strength[0]
            new = min(max(p[e, 0] + sigma * (here - ahead[heads[e], 0]), -bound), bound)
            p[e, 0] = new
            out += new
            divergence[heads[e], 0] -= new
        divergence[i, 0] = out


@kernel
def ascend_columns(
    indptr: IntArray, heads: IntArray, weights: FloatArray, strength: FloatArray,
    ahead: FloatArray, sigma: float, p: FloatArray, divergence: FloatArray,
) -> None:  # fmt: skip
    """`ascend_column` for many columns at once."""
    divergence[:] = 0.0
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            j = heads[e]
            for k in range(p.shape[1]):
                bound = weights[e] * strength[k]
                new = min(max(p[e, k] + sigma * (ahead[i, k] - ahead[j, k]), -bound), bound)
                p[e, k] = new
                divergence[i, k] += new
                divergence[j, k] -= new


@kernel
def descend(
    z: FloatArray, x: FloatArray, divergence: FloatArray, tau: float, new: FloatArray
) -> None:
    """Write (x - τ Dᵀp + τz) / (1 + τ) to new."""
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            new[i, k] = (x[i, k] + tau * (z[i, k] - divergence[i, k])) / (1.0 + tau)


@kernel
def extrapolate(x: FloatArray, new: FloatArray, theta: float, ahead: FloatArray) -> None:
    """x̄ ← new + θ(new - x), then x ← new."""
    for i in range(x.shape[0]):
        for k in range(x.shape[1]):
            ahead[i, k] = new[i, k] + theta * (new[i, k] - x[i, k])
            x[i, k] = new[i, k]


@kernel
def largest_degree_sum(indptr: IntArray, heads: IntArray) -> int:
    """max over edges of the number of edges at both ends, a bound of |D|²."""
    degree = np.zeros(indptr.size - 1, dtype=np.int64)
    for i in range(degree.size):
        degree[i] += indptr[i + 1] - indptr[i]
        for e in range(indptr[i], indptr[i + 1]):
            degree[heads[e]] += 1
    largest = 1
    for i in range(degree.size):
        for e in range(indptr[i], indptr[i + 1]):
            largest = max(largest, degree[i] + degree[heads[e]])
    return largest


def solve_primal_dual(
    edges: Edges,
    z: FloatArray,
    strength: FloatArray,
    start: Start | None,
    rows: RowConstraint,
    tol: float,
    max_iter: int,
) -> Columns:
    """Minimise Σ_k strength_k TV(x_k) + ½|X - Z|²; steps τσ|D|² ≤ 1, τ shrinking like 1/n."""
    p = first_dual(edges, start, strength, z.shape[1], z.dtype)
    divergence, v, nearest, new = (np.empty_like(z) for _ in range(4))
    edges.primal(z, p, v)
    rows.project(v, nearest, edges.helper)
    x, ahead = nearest.copy(), nearest.copy()
    ascend = ascend_column if z.shape[1] == 1 else ascend_columns
    tau = 1.0
    sigma = 1.0 / (tau * largest_degree_sum(edges.indptr, edges.heads))
    floor = rounding_floor(z).sum() + rows.rounding_floor(z.dtype)
    n_iter = 0
    while True:
        edges.primal(z, p, v)
        rows.project(v, nearest, edges.helper)
        gap, value = certify(edges, z, strength, p, v, nearest, x)
        open_ = gap > tol * value + floor
        if not open_ or n_iter >= max_iter:
            return joint_columns(x, p, gap, value, open_, n_iter)
        for _ in range(min(CHECK_EVERY, max_iter - n_iter)):
            ascend(edges.indptr, edges.heads, edges.weights, strength, ahead, sigma, p, divergence)
            descend(z, x, divergence, tau, new)
            rows.project(new, new, edges.helper)
            theta = 1.0 / np.sqrt(1.0 + 2.0 * tau)
            tau, sigma = theta * tau, sigma / theta
            extrapolate(x, new, theta, ahead)
            n_iter += 1
