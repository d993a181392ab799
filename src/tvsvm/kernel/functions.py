"""Kernel functions k(x, z) between batches of rows, with parameters from the data's scale."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import manhattan_distances
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from tvsvm._rows import directions, lengths
from tvsvm.results import FloatArray, IntArray

Rows = Any  # an ndarray or a scipy CSR matrix of rows
KernelName = str | Callable[[Rows, Rows], FloatArray]

# Pairs of rows that a width is estimated from: the median is then known to a few percent.
N_PAIRS = 1000
# Rows at once where only k(x, x) is wanted: calls are few, and little is computed in vain.
BLOCK = 32
# |x|² + |z|² - 2 x·z loses eps |x|² of a distance; beyond this squared norm (in widths) that would
# show in the kernel's tenth digit, in the sixth for float32. Then the next better way is taken:
# float64, and at last differences formed one by one.
LARGEST_SQUARED_NORM = {np.dtype(np.float64): 1e6, np.dtype(np.float32): 16.0}


class Kernel(Protocol):
    """What the space needs to know of a kernel."""

    @property
    def fast(self) -> bool:
        """Whether `single` makes a difference."""

    def select(self, X: Rows, index: IntArray) -> Rows:
        """Landmarks: what `__call__` takes as its second argument for the rows `index` of X."""

    def __call__(self, rows: Rows, landmarks: Rows, *, single: bool = False) -> FloatArray:
        """Evaluate k between every row and every landmark, in float64.

        With `single` it may be in float32 with an error of a few eps.
        """

    def diagonal(self, X: Rows) -> FloatArray:
        """k(x, x) for every row of X."""


@dataclass(frozen=True)
class RowKernel:
    """k(x, z) = function(scale x, scale z); `fast` if the function takes float32 rows, too."""

    function: Callable[[Rows, Rows], FloatArray]
    scale: float = 1.0
    fast: bool = False
    unit: bool = False  # whether k(x, x) = 1

    def select(self, X: Rows, index: IntArray) -> Rows:
        """Take the rows themselves, without a copy where all are wanted."""
        return X if len(index) == X.shape[0] else X[index]

    def __call__(self, rows: Rows, landmarks: Rows, *, single: bool = False) -> FloatArray:
        """Evaluate k between every row and every landmark."""
        dtype = np.float32 if single and self.fast else np.float64
        # Overflow ends in values that are not finite, and those are refused below with a sentence.
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (self._scaled(batch, dtype) for batch in (rows, landmarks))
            values = np.asarray(self.function(*scaled))
        shape = (rows.shape[0], landmarks.shape[0])
        if values.shape != shape:
            raise ValueError(
                f"A kernel function must return one value for every pair of rows. Got shape "
                f"{values.shape} for {shape[0]} and {shape[1]} rows; let it take two batches of "
                f"rows as scikit-learn's pairwise kernels do."
            )
        return require_finite(values)

    def diagonal(self, X: Rows) -> FloatArray:
        """k(x, x) for every row: read off small blocks, as a function takes pairs of batches."""
        if self.unit:
            return np.ones(X.shape[0])
        blocks = [X[start : start + BLOCK] for start in range(0, X.shape[0], BLOCK)]
        return np.concatenate([self(block, block).diagonal() for block in blocks])

    def _scaled(self, rows: Rows, dtype: type[np.floating]) -> Rows:
        rows = rows.astype(dtype, copy=False)
        return rows if self.scale == 1.0 else rows * dtype(self.scale)


@dataclass(frozen=True)
class PrecomputedKernel:
    """The rows are rows of K already; a landmark is the index of a column."""

    fast: bool = False

    def select(self, X: Rows, index: IntArray) -> Rows:
        """Take the indices."""
        return index

    def __call__(self, rows: Rows, landmarks: Rows, *, single: bool = False) -> FloatArray:
        """Read the columns of the landmarks, in float64."""
        return require_finite(rows[:, landmarks].astype(np.float64))

    def diagonal(self, X: Rows) -> FloatArray:
        """The diagonal of K."""
        return X.diagonal().astype(np.float64)


def require_finite(values: FloatArray) -> FloatArray:
    """Refuse NaN and infinity, which no later step could notice."""
    if not np.isfinite(values).all():
        raise ValueError(
            "Kernel values must be finite. Got NaN or infinity; rescale the rows, or check the "
            "kernel function and its parameters."
        )
    return values


def rbf(A: Rows, B: Rows) -> FloatArray:
    """exp(-|x - z|²), in the precision of the rows where that does."""
    norms_a, norms_b = row_norms(A, squared=True), row_norms(B, squared=True)
    if max(norms_a.max(), norms_b.max()) <= LARGEST_SQUARED_NORM[A.dtype]:
        values = safe_sparse_dot(A, 2 * B.T, dense_output=True)
        values -= norms_a[:, None]
        values -= norms_b
        np.minimum(values, 0, out=values)
    elif A.dtype == np.float32:
        return rbf(A.astype(np.float64), B.astype(np.float64))
    else:
        values = -cdist(_dense(A), _dense(B), "sqeuclidean")
    return np.exp(values, out=values)


def _laplacian(A: Rows, B: Rows) -> FloatArray:
    return np.exp(-manhattan_distances(A, B))


def _linear(A: Rows, B: Rows) -> FloatArray:
    return safe_sparse_dot(A, B.T, dense_output=True)


def _poly(A: Rows, B: Rows, *, degree: float, coef0: float) -> FloatArray:
    return (_linear(A, B) + coef0) ** degree


def _sigmoid(A: Rows, B: Rows, *, coef0: float) -> FloatArray:
    return np.tanh(_linear(A, B) + coef0)


def _cosine(A: Rows, B: Rows) -> FloatArray:
    return _linear(directions(A), directions(B))


def make_kernel(
    kernel: KernelName,
    X: Rows,
    *,
    gamma: float | None,
    degree: float,
    coef0: float,
    rng: np.random.RandomState,
) -> Kernel:
    """Build the kernel that `kernel` names, with `gamma` from the rows of X where it is None.

    Parameters are kept as one factor on the rows, √γ (γ for `laplacian`), so that nothing of the
    size of the data is ever squared and rows of size 1e150 or 1e-150 are as good as any.
    """
    if gamma is not None and not 0 < gamma < np.inf:
        raise ValueError(
            f"`gamma` must be positive and finite. Got {gamma!r}; pass None to take it from X."
        )
    if callable(kernel):
        return RowKernel(kernel)
    root = None if gamma is None else float(np.sqrt(gamma))
    match kernel:
        case "rbf":
            scale = root or 1.0 / _median_distance(X, lengths, rng)
            return RowKernel(rbf, scale, fast=True, unit=True)
        case "laplacian":
            scale = gamma or 1.0 / _median_distance(X, _absolute_sums, rng)
            return RowKernel(_laplacian, scale, unit=True)
        case "poly":
            function = partial(_poly, degree=degree, coef0=coef0)
            return RowKernel(function, root or 1.0 / _root_mean_square(lengths(_sample(X, rng))))
        case "sigmoid":
            function = partial(_sigmoid, coef0=coef0)
            return RowKernel(function, root or 1.0 / _root_mean_square(lengths(_sample(X, rng))))
        case "linear":
            return RowKernel(_linear)
        case "cosine":
            return RowKernel(_cosine)
        case "precomputed":
            return PrecomputedKernel()
    raise ValueError(
        f"`kernel` must be 'rbf', 'laplacian', 'poly', 'sigmoid', 'linear', 'cosine', "
        f"'precomputed' or a function. Got {kernel!r}; pass one of these."
    )


def _absolute_sums(rows: Rows) -> FloatArray:
    return np.asarray(abs(rows).sum(axis=1)).ravel()


def _median_distance(
    X: Rows, norm: Callable[[Rows], FloatArray], rng: np.random.RandomState
) -> float:
    """Median of norm(x_i - x_j) over sampled pairs of different rows; 1 if all rows are equal."""
    n = X.shape[0]
    if n * (n - 1) // 2 <= N_PAIRS:
        i, j = np.triu_indices(n, 1)
    else:
        i = rng.randint(n, size=_sample_size(X))
        j = (i + rng.randint(1, n, size=len(i))) % n
    distances = norm(X[i].astype(np.float64) - X[j].astype(np.float64))
    distances = distances[distances > 0]  # copies of a row say nothing about the width
    return float(np.median(distances)) if len(distances) else 1.0


def _root_mean_square(values: FloatArray) -> float:
    largest = values.max()
    return float(largest * np.sqrt(np.mean((values / largest) ** 2))) if largest > 0 else 1.0


def _sample_size(X: Rows) -> int:
    # Very wide rows: fewer of them, so that the sample stays below 128 MB.
    return int(np.clip(2**24 // X.shape[1], 50, N_PAIRS))


def _sample(X: Rows, rng: np.random.RandomState) -> Rows:
    n, size = X.shape[0], _sample_size(X)
    chosen = np.arange(n) if n <= size else rng.choice(n, size, replace=False)
    return X[chosen].astype(np.float64)


def _dense(rows: Rows) -> FloatArray:
    return rows.toarray() if sparse.issparse(rows) else rows
