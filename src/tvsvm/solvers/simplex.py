"""Euclidean projection of rows onto the probability simplex, exact in finitely many steps."""

import numpy as np
from numpy.typing import ArrayLike

from tvsvm._jit import kernel
from tvsvm.results import FloatArray


def simplex_projection(Z: ArrayLike) -> FloatArray:
    """Project every row on the simplex: argmin |x - z|² subject to x ≥ 0, Σ_k x_k = 1.

    The solution is x_k = max(z_k - τ, 0), and τ is found by discarding entries below the
    threshold of those that are left, without sorting.

    Parameters
    ----------
    Z : array-like of shape (N, c)
        Finite values of any size, c ≥ 1.

    Returns
    -------
    ndarray of shape (N, c)
        The projections, non-negative and with rows that sum to one up to rounding; float32 if `Z`
        is, float64 otherwise.

    References
    ----------
    C. Michelot, "A finite algorithm for finding the projection of a point onto the canonical
    simplex of R^n", J. Optim. Theory Appl. 50 (1986).
    """
    Z = np.asarray(Z)
    projection = np.array(Z, dtype=Z.dtype if Z.dtype == np.float32 else np.float64, order="C")
    if projection.ndim != 2 or projection.shape[1] == 0:
        raise ValueError(
            f"`Z` must have shape (N, c) with c >= 1. Got shape {projection.shape}; "
            "pass a single point as one row, Z.reshape(1, -1)."
        )
    if not np.isfinite(projection).all():
        raise ValueError("`Z` must be finite. Got NaN or infinity; remove or replace them.")
    project_rows(projection, projection)
    return projection


@kernel
def project_rows(Z: FloatArray, out: FloatArray) -> None:
    """Write the projection of every row of `Z` into `out`, which may be `Z` itself."""
    n_rows, n_columns = Z.shape
    for i in range(n_rows):
        largest = Z[i, 0]
        for k in range(1, n_columns):
            largest = Z[i, k] if Z[i, k] > largest else largest
        # Relative to the largest entry the threshold lies in [-1, 0): entries below -1 never
        # count, and those above are summed without overflow or loss.
        threshold = -1.0
        n_before, n_above = n_columns + 2, n_columns + 1
        while n_above < n_before:
            n_before = n_above
            n_above, excess = 0, -1.0
            for k in range(n_columns):
                z = np.float64(Z[i, k]) - largest - threshold
                n_above += z > 0.0
                excess += z if z > 0.0 else 0.0
            threshold += excess / n_above
        for k in range(n_columns):
            z = np.float64(Z[i, k]) - largest - threshold
            out[i, k] = z if z > 0.0 else 0.0
