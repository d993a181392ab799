"""Leading eigenvectors of a sparse symmetric matrix, the same ones in every run."""

import inspect

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, eigsh

from tvsvm.results import FloatArray

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
