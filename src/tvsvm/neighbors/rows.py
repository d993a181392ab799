"""The rows whose neighbours are sought, dense or sparse: products, projection, exact distances."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from joblib import Parallel, delayed
from scipy.sparse import csr_array, issparse
from sklearn.utils.extmath import randomized_svd

from tvsvm._telling import each
from tvsvm.neighbors import kernels
from tvsvm.results import FloatArray, IntArray

T = TypeVar("T")


def in_parallel(function: Callable[[Any], T], blocks: Sequence[Any], n_jobs: int | None) -> list[T]:
    """`function` of every block, in threads; the blocks do not depend on their number."""
    told = each(blocks, "neighbours")
    return Parallel(n_jobs=n_jobs, require="sharedmem")(delayed(function)(b) for b in told)


class Rows(Protocol):
    """What the searches need of the data.

    Attributes
    ----------
    shape : (N, d)
    norms : Euclidean norm of each row
    rounding : bound on the relative rounding error of a product
    cost : of a product, in multiplications of a dense one
    """

    shape: tuple[int, int]
    cost: float
    norms: FloatArray
    rounding: float

    def products(self, rows: IntArray) -> FloatArray:
        """x_i · x_j for the given i and all j."""
        ...

    def project(self, n_directions: int, random: np.random.RandomState) -> FloatArray:
        """Coordinates along the leading directions, float32, shape (N, n_directions or d)."""
        ...

    def nearest(
        self, rows: IntArray, indptr: IntArray, candidates: IntArray, n_neighbors: int
    ) -> tuple[IntArray, FloatArray]:
        """Nearest of the candidates (CSR, ascending) of each row, and their distances."""
        ...


def as_rows(X: FloatArray | csr_array) -> Rows:
    """Wrap a finite float array."""
    return SparseRows(X) if issparse(X) else DenseRows(X)


# Rows whose leading directions stand for those of all.
N_ROWS_FOR_DIRECTIONS = 8192
COST_OF_A_SPARSE_MULTIPLICATION = 400
# Rows that are projected at once.
N_ROWS_AT_ONCE = 4096


class DenseRows:
    """Rows of a dense array.

    A column that stays far from zero is shifted by its entry nearest to zero, because inner
    products would cancel; it is far if no entry is more than twice that one, where floating-point
    subtraction is exact. Very large and very small data are scaled by a power of two.
    """

    def __init__(self, X: FloatArray) -> None:
        low, high = X.min(axis=0), X.max(axis=0)
        with np.errstate(over="ignore"):
            shift = np.where((low > 0) & (high <= 2 * low), low, 0)
            shift = np.where((high < 0) & (low >= 2 * high), high, shift).astype(X.dtype)
        X = X - shift if shift.any() else X
        self._exponent = _exponent(max(X.max(), -X.min()))
        X = np.ldexp(X, -self._exponent) if self._exponent else X
        self._X = np.ascontiguousarray(X).view()
        self._X.flags.writeable = False  # like a caller's read-only X: one compilation for both
        self.shape = (X.shape[0], X.shape[1])
        self.cost = float(X.shape[1])
        self.norms = np.sqrt(np.einsum("ij,ij->i", self._X, self._X))
        self.rounding = float(np.finfo(X.dtype).eps) * (X.shape[1] + 8)

    def products(self, rows: IntArray) -> FloatArray:
        """x_i · x_j for the given i and all j."""
        return self._X[rows] @ self._X.T

    def project(self, n_directions: int, random: np.random.RandomState) -> FloatArray:
        """Coordinates along the leading principal directions, or all of them if there are few."""
        n_rows, n_columns = self.shape
        sample = self._X[_sample(n_rows, N_ROWS_FOR_DIRECTIONS, random)]
        mean = sample.mean(axis=0)
        if n_columns <= n_directions:
            return (self._X - mean).astype(np.float32, copy=False)
        directions = _directions(sample - mean, n_directions, random)
        projected = np.empty((n_rows, directions.shape[1]), np.float32)
        for start in range(0, n_rows, N_ROWS_AT_ONCE):
            part = slice(start, start + N_ROWS_AT_ONCE)
            projected[part] = (self._X[part] - mean) @ directions
        return projected

    def nearest(
        self, rows: IntArray, indptr: IntArray, candidates: IntArray, n_neighbors: int
    ) -> tuple[IntArray, FloatArray]:
        """Nearest of the candidates of each row, and their distances."""
        nearest, squared = kernels.nearest_candidates(
            self._X, rows, indptr, candidates, n_neighbors
        )
        return nearest, np.ldexp(np.sqrt(squared), self._exponent)


class SparseRows:
    """Rows of a CSR array; its products stay sparse until a block of rows is complete."""

    def __init__(self, X: csr_array) -> None:
        self._exponent = _exponent(abs(X.data).max(initial=0))
        data = np.ldexp(X.data, -self._exponent)
        X = csr_array((data, X.indices.copy(), X.indptr.copy()), shape=X.shape)
        X.sum_duplicates()
        self._X = X
        self._transposed = X.T.tocsr()
        self.shape = (X.shape[0], X.shape[1])
        entries_a_column = np.bincount(X.indices).astype(np.float64)
        common = float(entries_a_column @ entries_a_column) / X.shape[0] ** 2
        self.cost = COST_OF_A_SPARSE_MULTIPLICATION * common
        self.norms = np.sqrt(X.multiply(X).sum(axis=1))
        longest = int(np.diff(X.indptr).max())
        self.rounding = float(np.finfo(X.dtype).eps) * (longest + 8)

    def products(self, rows: IntArray) -> FloatArray:
        """x_i · x_j for the given i and all j."""
        return (self._X[rows] @ self._transposed).toarray()

    def project(self, n_directions: int, random: np.random.RandomState) -> FloatArray:
        """Coordinates along the leading singular directions."""
        sample = self._X[_sample(self.shape[0], N_ROWS_FOR_DIRECTIONS, random)]
        directions = _directions(sample, min(n_directions, self.shape[1]), random)
        return (self._X @ directions).astype(np.float32, copy=False)

    def nearest(
        self, rows: IntArray, indptr: IntArray, candidates: IntArray, n_neighbors: int
    ) -> tuple[IntArray, FloatArray]:
        """Nearest of the candidates of each row, and their distances."""
        X = self._X
        nearest, squared = kernels.nearest_sparse_candidates(
            X.indptr, X.indices, X.data, rows, indptr, candidates, n_neighbors
        )
        return nearest, np.ldexp(np.sqrt(squared), self._exponent)


def _exponent(largest: float) -> int:
    """Power of two by which to divide the data so that squares neither overflow nor vanish."""
    exponent = int(np.frexp(largest)[1])
    return exponent if abs(exponent) > 30 else 0


def _sample(n_rows: int, size: int, random: np.random.RandomState) -> IntArray:
    return np.sort(random.choice(n_rows, min(size, n_rows), replace=False))


def _directions(
    sample: FloatArray | csr_array, n_directions: int, random: np.random.RandomState
) -> FloatArray:
    """Orthonormal columns that span the leading right singular vectors of the sample."""
    n_directions = min(n_directions, *sample.shape)
    return randomized_svd(sample, n_directions, n_iter=2, random_state=random)[2].T
