"""Conjugate gradients for I - F - Fᵀ, F strictly lower, preconditioned by Gauss-Seidel sweeps."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from tvsvm._jit import kernel
from tvsvm.results import FloatArray, IntArray

# Iterations between two looks at the true residuals, which cost half an iteration.
LOOK_EVERY = 8


class Scaled(NamedTuple):
    """F + Fᵀ by rows: where they begin, where in each the columns pass the diagonal, entries."""

    indptr: IntArray
    split: IntArray
    indices: IntArray
    weights: FloatArray


def scaled(W: csr_array, diagonal: FloatArray) -> tuple[Scaled, FloatArray]:
    """Scale diag(diagonal) - W to unit diagonal; also the scaling, 0 if isolated."""
    root = np.zeros_like(diagonal)
    np.divide(1.0, np.sqrt(diagonal), out=root, where=diagonal > 0)
    rows = np.repeat(np.arange(len(diagonal), dtype=W.indices.dtype), np.diff(W.indptr))
    below = np.bincount(rows[W.indices < rows], minlength=len(diagonal))
    weights = W.data * root[rows]
    weights *= root[W.indices]
    return Scaled(W.indptr, W.indptr[:-1] + below, W.indices, weights), root


def conjugate_gradients(
    graph: Scaled, root: FloatArray, R: FloatArray, goal: FloatArray, max_iter: int
) -> tuple[FloatArray, int]:
    """Solve for the right-hand sides R until the length of each residual is below its goal.

    R is overwritten: it is long.
    The preconditioner is a symmetric Gauss-Seidel sweep, (I - F)(I - Fᵀ). Eisenstat's identity
    (I - F)⁻¹(I - F - Fᵀ)(I - Fᵀ)⁻¹ p = t + (I - F)⁻¹(p - t) with t = (I - Fᵀ)⁻¹ p makes an
    iteration as cheap as one without preconditioner, at less than half as many.
    S. C. Eisenstat, "Efficient implementation of a class of preconditioned conjugate gradient
    methods", SIAM J. Sci. Stat. Comput. 2 (1981).
    """
    solution = np.zeros_like(R)
    columns = np.arange(R.shape[1])
    x, p, t, y, r = (np.zeros_like(R) for _ in range(5))
    R *= root[:, None]
    forward(*graph, R, t, r)
    beta: FloatArray = np.zeros(len(columns))
    rr = advance(root, beta, t, y, x, r)  # by no step
    # Below this, what is left may be rounding along the constants, which L cannot answer.
    floor = 1e-24 * rr
    for n_iter in range(1, max_iter + 1):
        backward(*graph, r, beta, p, t)
        pq = forward(*graph, p, t, y)
        alpha = np.divide(rr, pq, out=np.zeros_like(rr), where=(rr > floor) & (pq > 0))
        before, rr = rr, advance(root, alpha, t, y, x, r)
        beta = np.divide(rr, before, out=np.zeros_like(rr), where=before > 0)
        if n_iter % LOOK_EVERY == 0:
            going = (rr > floor) & (residual_lengths(*graph, root, r) > goal[columns])
            if not going.all():
                solution[:, columns] = x
                columns = columns[going]
                rr, beta, floor = (v[going] for v in (rr, beta, floor))
                x, p, t, y, r = (np.ascontiguousarray(v[:, going]) for v in (x, p, t, y, r))
            if len(columns) == 0:
                break
    solution[:, columns] = x
    return solution, n_iter


@kernel
def backward(
    indptr: IntArray,
    split: IntArray,
    indices: IntArray,
    weights: FloatArray,
    r: FloatArray,
    beta: FloatArray,
    p: FloatArray,
    t: FloatArray,
) -> None:
    """Next direction p ← r + β p, and t = (I - Fᵀ)⁻¹ p.

    Here and in `forward` a single column has loops of its own, whose sums stay in a register.
    """
    if len(beta) == 1:
        for i in range(len(r) - 1, -1, -1):
            p[i, 0] = r[i, 0] + beta[0] * p[i, 0]
            total = p[i, 0]
            for e in range(split[i], indptr[i + 1]):
                total += weights[e] * t[indices[e], 0]
            t[i, 0] = total
        return
    for i in range(len(r) - 1, -1, -1):
        for k in range(len(beta)):
            p[i, k] = r[i, k] + beta[k] * p[i, k]
            t[i, k] = p[i, k]
        for e in range(split[i], indptr[i + 1]):
            j, weight = indices[e], weights[e]
            for k in range(len(beta)):
                t[i, k] += weight * t[j, k]


@kernel
def forward(
    indptr: IntArray,
    split: IntArray,
    indices: IntArray,
    weights: FloatArray,
    p: FloatArray,
    t: FloatArray,
    y: FloatArray,
) -> FloatArray:
    """Compute y = (I - F)⁻¹(p - t), and return Σ p (t + y) of each column."""
    pq = np.zeros(p.shape[1])
    if len(pq) == 1:
        for i in range(len(p)):
            total = p[i, 0] - t[i, 0]
            for e in range(indptr[i], split[i]):
                total += weights[e] * y[indices[e], 0]
            y[i, 0] = total
            pq[0] += p[i, 0] * (t[i, 0] + total)
        return pq
    for i in range(len(p)):
        for k in range(len(pq)):
            y[i, k] = p[i, k] - t[i, k]
        for e in range(indptr[i], split[i]):
            j, weight = indices[e], weights[e]
            for k in range(len(pq)):
                y[i, k] += weight * y[j, k]
        for k in range(len(pq)):
            pq[k] += p[i, k] * (t[i, k] + y[i, k])
    return pq


@kernel
def advance(
    root: FloatArray,
    alpha: FloatArray,
    t: FloatArray,
    y: FloatArray,
    x: FloatArray,
    r: FloatArray,
) -> FloatArray:
    """Step by α along t in x and along t + y in r, and return Σ r² of each column."""
    rr = np.zeros(len(alpha))
    for i in range(len(x)):
        for k in range(len(alpha)):
            x[i, k] += alpha[k] * root[i] * t[i, k]
            r[i, k] -= alpha[k] * (t[i, k] + y[i, k])
            rr[k] += r[i, k] * r[i, k]
    return rr


@kernel
def residual_lengths(
    indptr: IntArray,
    split: IntArray,
    indices: IntArray,
    weights: FloatArray,
    root: FloatArray,
    r: FloatArray,
) -> FloatArray:
    """Length of each column of the residual behind r, which is (I - F) r / root."""
    squares, row = np.zeros(r.shape[1]), np.empty(r.shape[1])
    for i in range(len(r)):
        if root[i] == 0.0:
            continue
        row[:] = r[i]
        for e in range(indptr[i], split[i]):
            j, weight = indices[e], weights[e]
            for k in range(len(row)):
                row[k] -= weight * r[j, k]
        squares += (row / root[i]) ** 2
    return np.sqrt(squares)
