"""Quadratic energies on an RKHS, factorised once in the symmetric form."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from tvsvm._features import batches
from tvsvm.results import FloatArray

if TYPE_CHECKING:
    from tvsvm.kernel import RKHS


class Quadratic:
    """Factorised energy λ/2 |f|²_K + ½ fᵀMf, M = rI + γL + diag(row_weights), on an `RKHS`.

    Its inverse is G = (λK⁻¹ + M)⁻¹ = (λI + KM)⁻¹K, symmetric, computed as
    G = Φ A⁻¹ Φᵀ, A = λI + ΦᵀMΦ, with one Cholesky factor of size rank (none at all for M = rI).
    The paper's (ηJK + λI + γLK)⁻¹B are the expansion coefficients of GB. Rounding costs a
    relative eps cond(A) ≤ eps (1 + |M||K|/λ): eight digits are left at |M||K| = 1e8 λ.

    Parameters
    ----------
    space : RKHS
        The space of f.
    lam : float
        λ > 0.
    r, gamma : float
        r, γ ≥ 0.
    laplacian : sparse matrix of shape (n_points, n_points)
        L, symmetric positive semi-definite; needed where γ > 0.
    row_weights : array-like of shape (n_points,), optional
        Non-negative, such as η on labelled rows and 0 elsewhere.
    """

    def __init__(
        self,
        space: "RKHS",
        *,
        lam: float,
        r: float,
        gamma: float,
        laplacian: sparse.spmatrix | None,
        row_weights: ArrayLike | None,
    ) -> None:
        check_strengths(lam, r=r, gamma=gamma)
        self.space = space
        diagonal = lam + r * space.spectrum
        M = sparse.csr_array((space.n_points, space.n_points))
        if gamma > 0:
            M = M + gamma * _check_laplacian(laplacian, space)
        if row_weights is not None:
            M = M + sparse.diags_array(_check_weights(row_weights, space), format="csr")
        # The root R of A = RRᵀ: lower triangular, or the diagonal where A is diagonal.
        self._root = np.sqrt(diagonal)
        if M.nnz > 0:
            A = _compress(M, space.features)
            A.flat[:: space.rank + 1] += diagonal
            self._root = _lower_root(A)

    def coordinates(self, B: ArrayLike) -> FloatArray:
        """Coordinates, (rank, c), of the minimisers GB for B of shape (n_points, c)."""
        half = self._divide(self.space.project(B))
        return self._divide(half, transposed=True)

    def solve(self, B: ArrayLike) -> FloatArray:
        """Values GB of the minimisers on the rows of X, (n_points, c)."""
        return self.space.values(self.coordinates(B))

    def block(self, rows: ArrayLike) -> FloatArray:
        """Block of G at `rows`, indices or a mask: float64, symmetric, positive semi-definite."""
        part = self.space.features[np.asarray(rows)].astype(np.float64, copy=False)
        half = self._divide(part.T)
        return half.T @ half

    def _divide(self, C: FloatArray, *, transposed: bool = False) -> FloatArray:
        if self._root.ndim == 1:
            return C / self._root[:, None]
        return solve_triangular(self._root, C, lower=True, trans=int(transposed))


def check_strengths(lam: float, **strengths: float) -> None:
    """Refuse λ ≤ 0 and other strengths < 0."""
    if not 0 < lam < np.inf:
        raise ValueError(f"`lam` must be positive and finite. Got {lam!r}; pass lam > 0.")
    for name, value in strengths.items():
        if not 0 <= value < np.inf:
            raise ValueError(
                f"`{name}` must be finite and not negative. Got {value!r}; pass 0 or more."
            )


def _check_laplacian(laplacian: sparse.spmatrix | None, space: "RKHS") -> sparse.csr_array:
    shape = (space.n_points, space.n_points)
    if laplacian is None or laplacian.shape != shape:
        got = "None" if laplacian is None else f"shape {laplacian.shape}"
        raise ValueError(f"`laplacian` must have shape {shape} where gamma > 0. Got {got}; pass L.")
    return sparse.csr_array(laplacian, dtype=np.float64)


def _check_weights(row_weights: ArrayLike, space: "RKHS") -> FloatArray:
    weights = np.asarray(row_weights, dtype=np.float64)
    if weights.shape != (space.n_points,) or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(
            f"`row_weights` must be {space.n_points} finite non-negative numbers. Got shape "
            f"{weights.shape} with smallest entry {weights.min(initial=np.inf)}; pass one a row."
        )
    return weights


def _compress(M: sparse.csr_array, features: FloatArray) -> FloatArray:
    """ΦᵀMΦ in float64 for symmetric M, without a float64 copy of Φ."""
    total = np.zeros((features.shape[1], features.shape[1]))
    used = np.flatnonzero(np.diff(M.indptr))
    M = M[used]
    # A batch reads the features of all its neighbours, so they count for its size.
    for batch in batches(len(used), features.shape[1] * (1 + M.nnz // len(used))):
        part = M[batch]
        touched, columns = np.unique(part.indices, return_inverse=True)
        part = sparse.csr_array((part.data, columns, part.indptr), (part.shape[0], len(touched)))
        product = part @ features[touched].astype(np.float64, copy=False)
        total += features[used[batch]].astype(np.float64, copy=False).T @ product
    return (total + total.T) / 2


def _lower_root(A: FloatArray) -> FloatArray:
    try:
        return cholesky(A, lower=True, overwrite_a=True)
    except LinAlgError:
        raise ValueError(
            "λI + ΦᵀMΦ must be positive definite. Got one that is not, up to rounding; raise "
            "`lam`, or check that the Laplacian is positive semi-definite."
        ) from None
