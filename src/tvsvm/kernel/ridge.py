"""The energy λ/2 |f|²_K + r/2 |f|² where the kernel is exact, and not of low rank."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from tvsvm.results import FloatArray

if TYPE_CHECKING:
    from tvsvm.kernel.space import RKHS

# λ up to so many times r and the mean eigenvalue of K: f = (B - λa)/r loses as many digits.
LARGEST_RATIO = 1e4


class Ridge:
    """What `Quadratic` is for M = rI, by the rows: a = (λI + rK)⁻¹B, f = Ka = (B - λa)/r.

    f is held as a: an iteration that asks for its values alone does not touch Φ, which is a third
    of the time. Its coordinates are Φᵀa, and G = (I - λ(λI + rK)⁻¹)/r.
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

    def held(self, B: ArrayLike) -> FloatArray:
        """The minimisers GB for B of shape (n_points, c), as a."""
        return self._divide(self._divide(np.asarray(B)), transposed=True) / self._r

    def coordinates_of(self, held: FloatArray) -> FloatArray:
        """Coordinates w, (rank, c), of functions held as a."""
        return self.space.project(held)

    def coordinates(self, B: ArrayLike) -> FloatArray:
        """Coordinates w, (rank, c), of the minimisers GB for B of shape (n_points, c)."""
        return self.coordinates_of(self.held(B))

    def values(self, held: FloatArray, B: ArrayLike) -> FloatArray:
        """Values on the rows of X, (n_points, c), of the minimisers GB that are held."""
        return self.values_at(slice(None), held, np.asarray(B))

    def values_at(self, rows: Any, held: FloatArray, B: FloatArray) -> FloatArray:
        """The same at some rows, (n, c)."""
        return (B[rows] - self._lam * held[rows]) / self._r

    def solve(self, B: ArrayLike) -> FloatArray:
        """Values GB of the minimisers on the rows of X, (n_points, c)."""
        return self.values(self.held(B), B)

    def columns(self, rows: ArrayLike) -> FloatArray:
        """The columns of G at `rows`, indices or a mask, held."""
        return self.held(self._units(rows))

    def block(self, rows: ArrayLike) -> FloatArray:
        """Block of G at `rows`, indices or a mask: symmetric, positive semi-definite."""
        half = self._divide(self._units(rows))
        return (np.eye(half.shape[1]) - self._lam / self._r * (half.T @ half)) / self._r

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
