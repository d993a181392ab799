"""Landmarks and the factor Φ with K = ΦΦᵀ: exact from all rows, Nyström from some of them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, get_blas_funcs, lapack, solve_triangular

from tvsvm._threads import map_batches
from tvsvm.kernel._spread import spread_out
from tvsvm.kernel.functions import Kernel, Rows
from tvsvm.results import FloatArray, IntArray

# Numbers in one temporary array of a batch: 16 MB, less than a processor's cache.
BATCH_SIZE = 2**21
# k-means++ chooses among four times as many rows as it needs; their kernel matrix is formed, so
# not more than this unless that many are wanted.
POOL_SIZE = 2000
# Eigenvalues up to this fraction of the largest are dropped: the eigensolver leaves an error of
# about one eps of the largest in each, so smaller ones are noise, which 1/√ would blow up.
RANK_TOL = 10 * np.finfo(np.float64).eps
# What the pivoted Cholesky factor of a positive semi-definite K leaves of it is rounding: up to
# eps, times the number of rows, of the largest entry. More than this, and K is not one.
INDEFINITE = 1e-9
N_PROBES = 3  # random functions that it is looked for with
# Features of float32 are formed in float32 if this moves them less, relative to the largest, at so
# many rows.
SINGLE_TOL, N_SEEN = 7e-6, 100
TILE = 256
# Asymmetry that single-precision rounding explains.
SYMMETRY_TOL = 1e-6


@dataclass(frozen=True)
class FeatureMap:
    """Φ of some rows, and their residuals, see `RKHS`. Read-only."""

    features: FloatArray
    residual: FloatArray

    def __post_init__(self) -> None:
        for array in (self.features, self.residual):
            array.flags.writeable = False


@dataclass(frozen=True, eq=False)
class LandmarkRoot:
    """What the landmarks' kernel matrix gives: Φ = k(X, Z) T for any rows X.

    Attributes
    ----------
    landmarks : Rows
        Z, in the order of `factor`.
    factor : ndarray
        The triangle L of Φ = k(X, Z) L⁻ᵀ / scale, or T itself.
    triangular : bool
        Which of the two.
    order : ndarray
        Where the landmarks of `factor` are among all of them.
    n_landmarks : int
        How many there are.
    scale : float
        What the kernel is divided by.
    negative_share : float
        See `RKHS`.
    exact : ndarray or None
        Φ where all rows are landmarks.
    matrix : ndarray or None
        ΦΦᵀ where it was at hand.
    """

    landmarks: Rows
    factor: FloatArray
    triangular: bool
    order: IntArray
    n_landmarks: int
    scale: float
    negative_share: float
    exact: FloatArray | None = None
    matrix: FloatArray | None = None

    @property
    def rank(self) -> int:
        """Number of columns of Φ."""
        return self.factor.shape[1]

    def expand(self, W: FloatArray) -> FloatArray:
        """TW, for all landmarks."""
        if not self.triangular:
            return self.factor @ W
        coef = np.zeros((self.n_landmarks, W.shape[1]))
        coef[self.order] = solve_triangular(
            self.factor, W / self.scale, lower=True, trans=1, check_finite=False
        )
        return coef

    def features(self, kernel: Kernel, X: Rows, dtype: type[np.floating]) -> FeatureMap:
        """Φ of some rows."""
        if self.exact is not None:
            return FeatureMap(self.exact, np.zeros(len(self.exact)))
        if self.triangular:
            found = _by_substitution(kernel, X, self.landmarks, self.factor, self.scale, dtype)
        else:
            found = fill_batches(
                np.empty((X.shape[0], self.rank), dtype=dtype),
                lambda rows: kernel(X[rows], self.landmarks) @ self.factor,
                width=max(X.shape[1], self.n_landmarks),
            )
        explained = np.einsum("ij,ij->i", found, found, dtype=np.float64)
        return FeatureMap(found, np.maximum(kernel.diagonal(X) / self.scale - explained, 0.0))


def batches(n_rows: int, width: int) -> list[slice]:
    """Cut rows into batches of at most `BATCH_SIZE` numbers; `width` is the longest row formed."""
    step = max(1, BATCH_SIZE // width)
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


def fill_batches(
    out: FloatArray, evaluate: Callable[[slice], FloatArray], *, width: int
) -> FloatArray:
    """Set out[rows] = evaluate(rows), a batch at a time in each thread."""

    def fill(rows: slice) -> None:
        out[rows] = evaluate(rows)

    for _ in map_batches(fill, batches(len(out), width)):
        pass
    return out


def kernel_block(kernel: Kernel, X: Rows, index: IntArray) -> FloatArray:
    """Evaluate the symmetric block of K that belongs to the rows `index` of X."""
    landmarks = kernel.select(X, index)
    block = fill_batches(
        np.empty((len(index), len(index))),
        lambda rows: kernel(X[index[rows]], landmarks),
        width=max(X.shape[1], len(index)),
    )
    gap, largest = _symmetrise(block)
    if gap > SYMMETRY_TOL * largest:
        raise ValueError(
            f"A kernel must be symmetric. Got values that differ by {gap:.2g} from their mirror "
            f"image, the largest being {largest:.2g}; pass (K + K.T) / 2 or repair the function."
        )
    return block


def _symmetrise(block: FloatArray) -> tuple[float, float]:
    """Replace A by (A + Aᵀ) / 2 in place; return the largest of |A - Aᵀ| and of |A|."""
    gap = largest = 0.0
    # Tiles stay in the cache, where a column costs no more than a row.
    tiles = [slice(start, start + TILE) for start in range(0, len(block), TILE)]
    for i, rows in enumerate(tiles):
        for columns in tiles[i:]:
            upper, lower = block[rows, columns], block[columns, rows].T.copy()
            gap = max(gap, np.abs(upper - lower).max())
            largest = max(largest, np.abs(upper).max(), np.abs(lower).max())
            upper += lower
            upper /= 2
            block[columns, rows] = upper.T
    return gap, largest


def choose_landmarks(
    kernel: Kernel,
    X: Rows,
    among: IntArray,
    n_landmarks: int,
    *,
    sampling: str,
    rng: np.random.RandomState,
) -> IntArray:
    """Choose at most `n_landmarks` of the rows `among` of X, in ascending order."""
    n = len(among)
    if n_landmarks >= n:
        return np.sort(among)
    if sampling == "uniform":
        return np.sort(rng.choice(among, n_landmarks, replace=False))
    if sampling == "kmeans++":
        pool_size = min(n, max(n_landmarks, min(4 * n_landmarks, POOL_SIZE)))
        pool = np.sort(rng.choice(among, pool_size, replace=False))
        spread = _spread_out(kernel_block(kernel, X, pool), n_landmarks, rng)
        return np.sort(pool[spread])
    raise ValueError(
        f"`sampling` must be 'uniform' or 'kmeans++'. Got {sampling!r}; pass one of the two."
    )


def _spread_out(K: FloatArray, size: int, rng: np.random.RandomState) -> IntArray:
    """Greedy k-means++ in the feature space, fewer than `size` rows if all coincide with some."""
    first = rng.randint(len(K))
    draws = rng.uniform(size=(size - 1, 2 + int(np.log(size))))
    return spread_out(K, first, draws, RANK_TOL * float(np.abs(K.diagonal()).sum()))


def factorise(kernel: Kernel, X: Rows, index: IntArray, *, unit_diagonal: bool) -> LandmarkRoot:
    """Factorise K (all rows in `index`) or its Nyström approximation k(X,Z) k(Z,Z)⁺ k(Z,X)."""
    exact = len(index) == X.shape[0]
    block = kernel_block(kernel, X, index)
    found = _pivoted_root(block)
    if found is not None:
        root, pivots = found
        scale = float(block.diagonal().mean()) if unit_diagonal else 1.0
        root /= np.sqrt(scale)
        if exact:
            block /= scale
            block.flags.writeable = False
        return LandmarkRoot(
            landmarks=kernel.select(X, index[pivots]),
            factor=root[pivots],
            triangular=True,
            order=pivots,
            n_landmarks=len(index),
            scale=scale,
            negative_share=0.0,
            exact=root if exact else None,
            matrix=block if exact else None,
        )

    values, vectors = eigh(block, driver="evd", overwrite_a=True)
    # k(X, Z) v is of size √value only where k is positive semi-definite. Where it is not, values
    # that the sampling of the negative ones can disturb would give features larger than k.
    disturbance = 0.0 if exact else -values[0] / np.sqrt(len(index))
    kept = values > max(RANK_TOL * values[-1], disturbance)
    if not kept.any():
        raise ValueError(
            f"A kernel must be positive semi-definite, or nearly. Got eigenvalues from "
            f"{values[0]:.2g} to {values[-1]:.2g}; check that the rows are not all zero, or choose "
            f"another kernel."
        )
    negative_share = float(-values[values < 0].sum() / np.abs(values).sum())
    values, vectors = values[kept], vectors[:, kept]
    scale = float(values.sum()) / len(index) if unit_diagonal else 1.0
    return LandmarkRoot(
        landmarks=kernel.select(X, index),
        factor=vectors / np.sqrt(values) / np.sqrt(scale),
        triangular=False,
        order=np.arange(len(index)),
        n_landmarks=len(index),
        scale=scale,
        negative_share=negative_share,
        exact=vectors * np.sqrt(values / scale) if exact else None,
    )


def _by_substitution(
    kernel: Kernel,
    X: Rows,
    landmarks: Rows,
    triangle: FloatArray,
    scale: float,
    dtype: type[np.floating],
) -> FloatArray:
    """Φ with ΦTᵀ = k(X, Z) / scale for the triangle T of the landmarks Z.

    Half the products of an eigenvector basis, and no eigenvectors.
    """
    double = np.asfortranarray(triangle * scale)

    def evaluate(rows: slice, left: FloatArray) -> FloatArray:
        block = kernel(X[rows], landmarks, single=left.dtype == np.float32)
        (solve,) = get_blas_funcs(("trsm",), (left,))
        return solve(1.0, left, block.astype(left.dtype, copy=False).T, lower=1, overwrite_b=1).T

    left = double
    if dtype == np.float32 and kernel.fast:
        single = double.astype(np.float32)
        some = slice(0, None, max(1, X.shape[0] // N_SEEN))
        exact = evaluate(some, double)
        off = np.abs(evaluate(some, single) - exact).max()
        left = single if off <= SINGLE_TOL * np.abs(exact).max() else double
    width = max(X.shape[1], len(triangle))
    out = np.empty((X.shape[0], len(triangle)), dtype=dtype)
    return fill_batches(out, lambda rows: evaluate(rows, left), width=width)


def _pivoted_root(K: FloatArray) -> tuple[FloatArray, IntArray] | None:
    """Φ with ΦΦᵀ = K, as many columns as K has rank, and the rows in which it is triangular.

    A tenth of the time of eigenvectors, or less for a low rank. None where K is not positive
    semi-definite.
    """
    packed, order, rank, _ = lapack.dpstrf(K, lower=1)
    if rank == 0:
        return None
    order = order - 1  # LAPACK counts from one
    root = np.empty((len(K), rank))
    root[order] = np.tril(packed[:, :rank])
    probes = np.random.RandomState(0).standard_normal((len(K), N_PROBES))
    left = K @ probes - root @ (root.T @ probes)
    if np.abs(left).max() > INDEFINITE * K.diagonal().max():
        return None
    return root, order[:rank]


def gram(features: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """ΦᵀΦ, or Φᵀ diag(weights) Φ, in float64, without a float64 copy of Φ.

    Rows without weight cost nothing.
    """
    used = None if weights is None else np.flatnonzero(weights)

    def square(rows: slice) -> FloatArray:
        if used is None or weights is None:
            part = features[rows].astype(np.float64, copy=False)
        else:
            part = np.sqrt(weights[used[rows], None]) * features[used[rows]]
        return part.T @ part

    n_rows, rank = len(features) if used is None else len(used), features.shape[1]
    total = np.zeros((rank, rank))
    for part in map_batches(square, batches(n_rows, rank)):
        total += part
    return total
