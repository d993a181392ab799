"""Leading eigenvectors of sparse symmetric matrices, the same ones in every run."""

import inspect

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csr_array, diags_array
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, eigsh

from tvsvm.results import FloatArray
from tvsvm.solvers._deflation import merged

# Groups of nodes on which smooth functions are sought first, and steps of smoothing afterwards.
GROUPS, ROUNDS, STEPS = 1500, 3, 10
DENSE = 4000  # nodes up to which all eigenvectors are to be had in seconds

# Where a few steps exhaust the matrix ARPACK goes on from random numbers: newer scipy draws them.
_RANDOM = {"rng": 0} if "rng" in inspect.signature(eigsh).parameters else {}


def leading_eigenvectors(
    A: csr_array, count: int, *, tol: float, max_iter: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """Largest eigenvalues, descending, and their eigenvectors as columns.

    Fewer than `count`, or none, if the iteration did not get there. Their signs are arbitrary.
    """
    start = 1.0 + 0.5 * np.cos(np.arange(A.shape[0]))  # neither random nor an eigenvector
    options = {"which": "LA", "tol": tol, "v0": start, "maxiter": max_iter}
    try:
        values, vectors = eigsh(A, k=count, **options, **_RANDOM)
    except ArpackNoConvergence as stopped:
        values, vectors = stopped.eigenvalues, stopped.eigenvectors
    except ArpackError:  # where a few steps exhaust it, as for zero; such a matrix has no structure
        values, vectors = np.empty(0), np.empty((A.shape[0], 0))
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[:, order]


def smooth_functions(W: csr_array, count: int) -> FloatArray:
    """About the leading eigenvectors v of D^-1 W for connected weights W, the constant left out.

    For many nodes they are those of a graph of merged ones, made smooth by lazy random walks and
    turned to be conjugate: where rows fill few dimensions, eigenvalues lie so close together that
    the exact ones take minutes (50,000 rows in the plane), these a second.

    Parameters
    ----------
    W : sparse array of shape (N, N)
        Symmetric and non-negative, every row with a positive sum.
    count : int
        How many, fewer if there are not so many.

    Returns
    -------
    ndarray of shape (N, m)
        With VᵀDV = I, the smoothest first. Their signs are arbitrary.
    """
    root = np.sqrt(W.sum(axis=1))
    count = min(count, W.shape[0] - 1)
    if count < 1:
        return np.empty((W.shape[0], 0))
    if W.shape[0] <= GROUPS:
        return _leading(W, root, count + 1)[:, 1:]
    group = merged(W, GROUPS)
    members = csr_array((np.ones(root.size), (np.arange(root.size), group)))
    coarse = csr_array(members.T @ W @ members)
    V = _leading(coarse, np.sqrt(members.T @ root**2), count + 1)[group] * root[:, None]
    A = _normalised(W, root)
    for _ in range(ROUNDS):
        for _ in range(STEPS):
            V = 0.5 * (V + A @ V)
        V, _ = np.linalg.qr(V)
        _, turn = eigh(V.T @ (A @ V))
        V = V @ turn[:, ::-1]
    return V[:, 1:] / root[:, None]


def _leading(W: csr_array, root: FloatArray, count: int) -> FloatArray:
    """Eigenvectors of D^-1 W, D = diag(root²), the constant first."""
    A, n = _normalised(W, root), W.shape[0]
    if n > DENSE:  # nodes that would not be merged, as around hubs
        vectors = leading_eigenvectors(A, count, tol=1e-3, max_iter=300)[1]
    else:
        vectors = eigh(A.toarray(), subset_by_index=[n - count, n - 1])[1][:, ::-1]
    return vectors / root[:, None]


def _normalised(W: csr_array, root: FloatArray) -> csr_array:
    scale = diags_array(1.0 / root)
    return csr_array(scale @ W @ scale)
