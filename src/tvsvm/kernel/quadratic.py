"""Quadratic energies on an RKHS, factorised once in the symmetric form."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from tvsvm.kernel.features import BATCH_SIZE, batches
from tvsvm.results import FloatArray

if TYPE_CHECKING:
    from tvsvm.kernel.space import RKHS

FEWEST_COLUMNS = 64  # of Φ that are multiplied by M at once: fewer do not pay for reading Φ again


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
        # The root R of A = RRᵀ: lower triangular, or the diagonal where A is diagonal.
        self._root = np.sqrt(diagonal)
        weights = _check_weights(row_weights, space) if row_weights is not None else np.zeros(0)
        if gamma > 0 or weights.any():
            A = np.diag(diagonal)
            if gamma > 0:
                A += gamma * space.compressed(_check_laplacian(laplacian, space))
            if weights.any():
                A += _weighted_gram(space.features, weights)
            self._root = _lower_root(A)

    def coordinates(self, B: ArrayLike) -> FloatArray:
        """Coordinates, (rank, c), of the minimisers GB for B of shape (n_points, c)."""
        half = self._divide(self.space.project(B))
        return self._divide(half, transposed=True)

    def solve(self, B: ArrayLike) -> FloatArray:
        """Values GB of the minimisers on the rows of X, (n_points, c)."""
        return self.space.values(self.coordinates(B))

    def columns(self, rows: ArrayLike) -> FloatArray:
        """Coordinates, (rank, n), of the columns of G at `rows`, indices or a mask."""
        return self._divide(self._half(rows), transposed=True)

    def block(self, rows: ArrayLike) -> FloatArray:
        """Block of G at `rows`, indices or a mask: float64, symmetric, positive semi-definite."""
        half = self._half(rows)
        return half.T @ half

    def _half(self, rows: ArrayLike) -> FloatArray:
        """R⁻¹Φᵀ at `rows`."""
        part = self.space.features[np.asarray(rows)].astype(np.float64, copy=False)
        return self._divide(part.T)

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


def _check_laplacian(laplacian: sparse.spmatrix | None, space: "RKHS") -> sparse.spmatrix:
    shape = (space.n_points, space.n_points)
    if laplacian is None or laplacian.shape != shape:
        got = "None" if laplacian is None else f"shape {laplacian.shape}"
        raise ValueError(f"`laplacian` must have shape {shape} where gamma > 0. Got {got}; pass L.")
    return laplacian


def _check_weights(row_weights: ArrayLike, space: "RKHS") -> FloatArray:
    weights = np.asarray(row_weights, dtype=np.float64)
    if weights.shape != (space.n_points,) or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(
            f"`row_weights` must be {space.n_points} finite non-negative numbers. Got shape "
            f"{weights.shape} with smallest entry {weights.min(initial=np.inf)}; pass one a row."
        )
    return weights


def compress(M: sparse.spmatrix, features: FloatArray) -> FloatArray:
    """ΦᵀMΦ in float64 for symmetric M, without a float64 copy of Φ."""
    M = sparse.csr_array(M, dtype=np.float64)
    n_rows, rank = features.shape
    upper = np.zeros((rank, rank))
    width = max(FEWEST_COLUMNS, BATCH_SIZE // n_rows)
    for start in range(0, rank, width):
        stop = min(start + width, rank)
        product = M @ features[:, start:stop].astype(np.float64, copy=False)
        for rows in batches(n_rows, stop):
            part = features[rows, :stop].astype(np.float64, copy=False)
            upper[:stop, start:stop] += part.T @ product[rows]
    return np.triu(upper) + np.triu(upper, 1).T


def _weighted_gram(features: FloatArray, weights: FloatArray) -> FloatArray:
    """Φᵀ diag(weights) Φ in float64; rows without weight cost nothing."""
    used = np.flatnonzero(weights)
    total = np.zeros((features.shape[1], features.shape[1]))
    for batch in batches(len(used), features.shape[1]):
        part = np.sqrt(weights[used[batch], None]) * features[used[batch]]
        total += part.T @ part
    return total


def _lower_root(A: FloatArray) -> FloatArray:
    try:
        return cholesky(A, lower=True, overwrite_a=True)
    except LinAlgError:
        raise ValueError(
            "λI + ΦᵀMΦ must be positive definite. Got one that is not, up to rounding; raise "
            "`lam`, or check that the Laplacian is positive semi-definite."
        ) from None
