"""The energy λ/2 |f|²_K + r/2 |f|² where the kernel is exact, and not of low rank."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from tvsvm.results import FloatArray, IntArray

if TYPE_CHECKING:
    from tvsvm.kernel.space import RKHS

# λ up to so many times r and the mean eigenvalue of K: f = (B - λa)/r loses as many digits.
LARGEST_RATIO = 1e4


class Ridge:
    """What `Quadratic` is for M = rI, by the rows: a = (λI + rK)⁻¹B, f = Ka = (B - λa)/r.

    An iteration that asks for f alone does not touch Φ: that is a third of the time. The
    coordinates of f are Φᵀa, and G = (I - λ(λI + rK)⁻¹)/r.
    """

    def __init__(self, space: "RKHS", *, lam: float, r: float) -> None:
        self.space, self._lam, self._r = space, lam, r
        self._root = space.row_root(lam / r)  # R with rRRᵀ = λI + rK

    @staticmethod
    def suits(space: "RKHS", *, lam: float, r: float) -> bool:
        """Whether it is the faster way in this space, and precise."""
        if not space.exact or 2 * space.rank <= space.n_points:
            return False
        return lam <= LARGEST_RATIO * r * space.trace / space.n_points

    def coordinates(self, B: ArrayLike) -> FloatArray:
        """Coordinates w, (rank, c), of the minimisers GB for B of shape (n_points, c)."""
        return self.space.project(self._coefficients(B))

    def values(self, W: ArrayLike, B: ArrayLike) -> FloatArray:
        """Values on the rows of X, (n_points, c), of the minimisers GB with coordinates W."""
        return self.space.values(W)

    def values_at(self, rows: IntArray, W: FloatArray, B: FloatArray) -> FloatArray:
        """The same at some rows, (n, c)."""
        return self.space.features[rows] @ W

    def solve(self, B: ArrayLike) -> FloatArray:
        """Values GB of the minimisers on the rows of X, (n_points, c)."""
        return (np.asarray(B) - self._lam * self._coefficients(B)) / self._r

    def columns(self, rows: ArrayLike) -> FloatArray:
        """Coordinates, (rank, n), of the columns of G at `rows`, indices or a mask."""
        return self.coordinates(self._units(rows))

    def block(self, rows: ArrayLike) -> FloatArray:
        """Block of G at `rows`, indices or a mask: symmetric, positive semi-definite."""
        half = self._divide(self._units(rows))
        return (np.eye(half.shape[1]) - self._lam / self._r * (half.T @ half)) / self._r

    def _coefficients(self, B: ArrayLike) -> FloatArray:
        """(λI + rK)⁻¹B."""
        return self._divide(self._divide(np.asarray(B)), transposed=True) / self._r

    def _divide(self, B: FloatArray, *, transposed: bool = False) -> FloatArray:
        # A check would read R once more, which takes longer than to solve.
        return solve_triangular(
            self._root, B, lower=True, trans=int(transposed), check_finite=False
        )

    def _units(self, rows: ArrayLike) -> FloatArray:
        """Columns of the identity."""
        index = np.arange(self.space.n_points)[np.asarray(rows)]
        units = np.zeros((self.space.n_points, len(index)))
        units[index, np.arange(len(index))] = 1.0
        return units
