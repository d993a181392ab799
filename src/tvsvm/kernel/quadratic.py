"""Quadratic energies on an RKHS, factorised once in the symmetric form."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.linalg import LinAlgError, cholesky, solve_triangular

from tvsvm.kernel.features import BATCH_SIZE, batches, gram
from tvsvm.results import FloatArray, IntArray

if TYPE_CHECKING:
    from tvsvm.kernel.space import RKHS

FEWEST_COLUMNS = 64  # of Φ that are multiplied by M at once: fewer do not pay for reading Φ again


class Quadratic:
    """Factorised energy λ/2 |f|²_K + ½ fᵀMf, M = rI + γL + diag(row_weights), on an `RKHS`.

    Its inverse is G = (λK⁻¹ + M)⁻¹ = (λI + KM)⁻¹K, symmetric, computed as
    G = Φ A⁻¹ Φᵀ, A = λI + ΦᵀMΦ, with one Cholesky factor of size rank, which the space keeps for
    M = rI.
    The paper's (ηJK + λI + γLK)⁻¹B are the expansion coefficients of GB. Rounding costs a
    relative eps cond(A) ≤ eps (1 + |M||K|/λ): eight digits are left at |M||K| = 1e8 λ.

    With `residual`, K has the diagonal D of the space's residuals added, which makes its own
    diagonal right (Snelson and Ghahramani, NIPS 2005): a row that the landmarks tell little about
    has a part of f to itself, at a price, instead of following rows that it is not like. Then
    f = Φw + s with s of norm |D^-½ s|, and G = CΦ A⁻¹ ΦᵀC + D(λI + MD)⁻¹ with
    C = λ(λI + MD)⁻¹, A = λI + ΦᵀMCΦ.

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
    row_weights : array of shape (n_points,)
        Non-negative, such as η on labelled rows and 0 elsewhere.
    residual : bool
        Whether rows have a part of f to themselves; only for γ = 0.
    """

    def __init__(
        self,
        space: "RKHS",
        *,
        lam: float,
        r: float,
        gamma: float,
        laplacian: sparse.spmatrix | None,
        row_weights: FloatArray,
        residual: bool,
    ) -> None:
        self.space, weights = space, row_weights
        # C and D(λI + MD)⁻¹ where rows have something to themselves.
        self._common: FloatArray | None = None
        self._own: FloatArray | None = None
        residual = residual and bool(space.residual.any())
        if residual:
            if gamma > 0:
                raise ValueError("`residual` needs gamma = 0. Got gamma > 0; pass one of the two.")
            of_all = lam / (lam + r * space.residual)
            self._common = lam / (lam + (r + weights) * space.residual)
            self._own = self._common * space.residual / lam
            weights = weights * of_all * self._common  # what MC is above r of_all
        # The lower triangular root R of A = scale² RRᵀ; None for the identity.
        self._root: FloatArray | None = None
        self._scale = np.sqrt(lam)
        if gamma > 0 or weights.any():
            A = np.diag(np.full(space.rank, float(lam)))
            if r > 0:
                A += r * space.gram(r / lam if residual else 0.0)
            if gamma > 0:
                A += gamma * space.compressed(_check_laplacian(laplacian, space))
            if weights.any():
                A += gram(space.features, weights)
            self._root, self._scale = lower_root(A), 1.0
        elif r > 0:
            self._root, self._scale = space.ridge_root(lam / r, residual=residual), np.sqrt(r)

    def coordinates(self, B: ArrayLike) -> FloatArray:
        """Coordinates w, (rank, c), of the minimisers GB for B of shape (n_points, c)."""
        return self.coordinates_of(self.held(B))

    def coordinates_of(self, held: FloatArray) -> FloatArray:
        """Coordinates of functions that are held: as these. `Ridge` holds something else."""
        return held

    def held(self, B: ArrayLike) -> FloatArray:
        """The minimisers GB for B of shape (n_points, c), in the way they are held."""
        if self._common is not None:
            B = self._common[:, None] * np.asarray(B)
        half = self._divide(self.space.project(B))
        return self._divide(half, transposed=True)

    def values(self, held: FloatArray, B: ArrayLike) -> FloatArray:
        """Values on the rows of X, (n_points, c), of the minimisers GB that are held."""
        return self._with_own(self.space.values(held), np.asarray(B), slice(None))

    def values_at(self, rows: IntArray, held: FloatArray, B: FloatArray) -> FloatArray:
        """The same at some rows, (n, c)."""
        return self._with_own(self.space.features[rows] @ held, B, rows)

    def solve(self, B: ArrayLike) -> FloatArray:
        """Values GB of the minimisers on the rows of X, (n_points, c)."""
        return self.values(self.held(B), B)

    def columns(self, rows: ArrayLike) -> FloatArray:
        """The columns of G at `rows`, indices or a mask, held."""
        return self._divide(self._half(rows), transposed=True)

    def block(self, rows: ArrayLike) -> FloatArray:
        """Block of G at `rows`, indices or a mask: float64, symmetric, positive semi-definite."""
        half = self._half(rows)
        block = half.T @ half
        if self._own is not None:
            block[np.diag_indices_from(block)] += self._own[np.asarray(rows)]
        return block

    def _with_own(self, F: FloatArray, B: FloatArray, rows: Any) -> FloatArray:
        """Functions of the space, (n, c) at `rows`, with what the rows have to themselves."""
        if self._common is None or self._own is None:
            return F
        return self._common[rows, None] * F + self._own[rows, None] * B[rows]

    def _half(self, rows: ArrayLike) -> FloatArray:
        """R⁻¹ΦᵀC at `rows`."""
        part = self.space.features[np.asarray(rows)].astype(np.float64, copy=False)
        if self._common is not None:
            part = self._common[np.asarray(rows), None] * part
        return self._divide(part.T)

    def _divide(self, C: FloatArray, *, transposed: bool = False) -> FloatArray:
        C = C / self._scale
        if self._root is None:
            return C
        # A check would read R once more, which takes longer than to solve.
        return solve_triangular(
            self._root, C, lower=True, trans=int(transposed), check_finite=False
        )


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


def check_weights(row_weights: ArrayLike | None, space: "RKHS") -> FloatArray:
    """Refuse weights that are not one finite non-negative number a row; None is none."""
    if row_weights is None:
        return np.zeros(space.n_points)
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


def lower_root(A: FloatArray) -> FloatArray:
    """The lower triangular R with RRᵀ = A, which it overwrites."""
    try:
        return cholesky(A, lower=True, overwrite_a=True)
    except LinAlgError:
        raise ValueError(
            "λI + ΦᵀMΦ must be positive definite. Got one that is not, up to rounding; raise "
            "`lam`, or check that the Laplacian is positive semi-definite."
        ) from None
