"""The reproducing kernel Hilbert space of the data: one factorisation, then every system in it."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.linalg import cho_solve
from sklearn.utils import check_array, check_random_state

from tvsvm._threads import Later, beside, map_batches
from tvsvm.kernel.expansion import Expansion
from tvsvm.kernel.features import (
    batches,
    choose_landmarks,
    factorise,
    fill_batches,
    gram,
)
from tvsvm.kernel.functions import KernelName, Rows, make_kernel
from tvsvm.kernel.quadratic import (
    Quadratic,
    check_strengths,
    check_weights,
    compress,
    lower_root,
)
from tvsvm.kernel.ridge import Ridge
from tvsvm.results import FloatArray, IntArray

# Up to here K takes a fifth of a second, and a second or two where it is indefinite and needs
# eigenvectors (benchmarks/kernel.py).
EXACT_LIMIT = 2000
# Rows that all are landmarks may take Φ to so many numbers (512 MB).
MOST_FEATURES = 2**26
# Beyond, the number of landmarks: as many as keep Φ at 2²⁵ numbers (256 MB), within these bounds.
N_FEATURES = 2**25
FEWEST_LANDMARKS, MOST_LANDMARKS = 128, 1000
# Entries of Φ from which products with it are shared by threads. Next to busy processes a thread
# may have to wait for longer than a smaller product takes.
THREADS_FROM = 2**24
SINGLE = (np.float16, np.float32)
SAMPLE_A_LANDMARK, LEAST_SAMPLE = 32, 8192  # rows


class RKHS:
    """The functions on the rows of X that a kernel spans, with K = ΦΦᵀ.

    A function has coordinates w: its values on the rows of X are f = Φw and its norm is
    |f|_K = |w|. With fewer landmarks than rows K is the Nyström approximation
    k(X,Z) k(Z,Z)⁺ k(Z,X), and f is confined to the span of the landmarks' kernel functions.
    Φ is a Cholesky factor with pivots where K is exact and positive semi-definite, otherwise made
    of eigenvectors. What is as small as rounding is dropped: eigenvalues of k(Z,Z) up to 10 eps of
    the largest, or rows whose kernel function has less than n_points eps of the largest k(x, x)
    outside of the span of others. Where k is exact this moves f by about that part of |B|/λ on the
    rows, and by its root at most off them.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_points, n_features)
        The rows; for ``kernel="precomputed"`` the kernel matrix itself. float32 rows give
        float32 Nyström features (half the memory, values to about six digits); otherwise, and
        for all m × m algebra, float64.
    kernel : str or callable, default="rbf"
        With d = x - z: ``"rbf"`` exp(-γ|d|²), ``"laplacian"`` exp(-γ|d|₁), ``"poly"``
        (γ x·z + coef0)^degree, ``"sigmoid"`` tanh(γ x·z + coef0), ``"linear"`` x·z, ``"cosine"``
        x·z / |x||z|, ``"precomputed"``, or a function of two batches of rows that returns the
        matrix of kernel values, as scikit-learn's pairwise kernels do; it is called from several
        threads.
    gamma : float, optional
        By default 1 / median(|x_i - x_j|)² (``rbf``), 1 / median |x_i - x_j|₁ (``laplacian``),
        medians over sampled pairs of different rows, or 1 / mean |x_i|² (``poly``, ``sigmoid``),
        so that the kernel does not depend on the unit of X. Other kernels have no width.
    degree, coef0 : float, default=3, 1.0
        Parameters of ``poly`` and ``sigmoid``.
    among : array-like of row numbers, optional
        Rows among which the landmarks are, by default all. Labels on these rows alone give the
        same functions as in the whole space if all are landmarks (representer theorem).
    n_components : int, optional
        Number of landmarks; all of those rows if it is at least their number. By default all up
        to 2000, unless Φ then had more than 2²⁶ numbers, and 2²⁵ / n_points, within 128 and 1000,
        beyond.
    sampling : {"kmeans++", "uniform"}, default="kmeans++"
        How landmarks are drawn: k-means++ in the kernel's feature space among four times as many
        random rows, but 2000 at most (a tenth less error than uniform, see benchmarks/README), or
        at random.
    unit_diagonal : bool, default=False
        Divide the kernel by its mean diagonal over the landmarks.
    random_state : int, RandomState instance or None, default=None
        For the sampled pairs and the landmarks.
    later : bool, default=False
        Where not all rows are landmarks, choose these and make Φ when they are first asked for, or
        by `begin`. Only then is it raised if k is no kernel.
    sample : bool, default=False
        Whether `nearest` looks at a sample of the rows where they are many: at 32 for each
        landmark, and 8,192 at least, with which new rows are hardly classified otherwise
        (benchmarks/README.md).
    n_threads : int, default=2
        With one, what is begun waits until it is asked for, instead of having a thread of its own.

    Attributes
    ----------
    n_points : int
        Number of rows N.
    features : ndarray of shape (n_points, rank)
        Φ, read-only.
    residual : ndarray of shape (n_points,)
        k(x, x) - |φ(x)|² of every row: what its kernel function has outside of the landmarks'
        span. See `quadratic`.
    landmarks : ndarray or sparse matrix
        The landmark rows Z; their indices for ``kernel="precomputed"``.
    landmark_indices : ndarray of shape (n_landmarks,)
        Where the landmarks are in X.
    n_columns : int
        Number of columns of X.
    exact : bool
        Whether all rows are landmarks.
    negative_share : float
        Share of negative eigenvalues, Σ|negative| / Σ|all|, clipped on the landmarks: 0 up to
        rounding for a positive semi-definite kernel.
    """

    def __init__(
        self,
        X: ArrayLike | sparse.spmatrix,
        *,
        kernel: KernelName = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1.0,
        among: ArrayLike | None = None,
        n_components: int | None = None,
        sampling: str = "kmeans++",
        unit_diagonal: bool = False,
        random_state: Any = None,
        later: bool = False,
        sample: bool = False,
        n_threads: int = 2,
    ) -> None:
        rng = check_random_state(random_state)
        precomputed = isinstance(kernel, str) and kernel == "precomputed"
        rows = _check_rows(X, precomputed=precomputed)
        self.n_points, self.n_columns = rows.shape
        self.kernel = make_kernel(kernel, rows, gamma=gamma, degree=degree, coef0=coef0, rng=rng)
        candidates = np.arange(self.n_points) if among is None else np.array(among)
        count = n_landmarks(len(candidates), self.n_points, n_components)
        self.exact = count >= len(candidates) == self.n_points
        if later and not self.exact:
            # Of its own: others go on with theirs before the landmarks are chosen.
            own = copy.deepcopy(rng)
            rng.randint(2)
            rng = own
        # None of what is made knows the space, which so is freed with its last user.
        k, dtype = self.kernel, np.float32 if rows.dtype in SINGLE else np.float64

        def choose() -> tuple[IntArray, Rows]:
            index = choose_landmarks(k, rows, candidates, count, sampling=sampling, rng=rng)
            index.flags.writeable = False
            return index, k.select(rows, index)

        def make_sample() -> _Sample:
            made = root().features(k, k.select(rows, some), dtype).features
            return _Sample(some, made, gram(made))

        self._chosen = chosen = Later(choose)
        self._root = root = Later(
            lambda: factorise(k, rows, chosen()[0], unit_diagonal=unit_diagonal)
        )
        self._map = map_ = Later(lambda: root().features(k, rows, dtype))
        self._squared = Later(lambda: gram(map_().features))  # ΦᵀΦ
        self._sample: Later[_Sample] | None = None
        n_sample = max(SAMPLE_A_LANDMARK * count, LEAST_SAMPLE)
        if sample and n_sample < self.n_points and not precomputed:
            some = np.sort(np.random.RandomState(0).choice(self.n_points, n_sample, replace=False))
            self._sample = Later(make_sample)
        self._kept: dict[str, tuple[Any, FloatArray]] = {}
        self._beside = later and not self.exact and n_threads > 1
        if not later or self.exact:
            self._map()

    def begin(self) -> None:
        """Make Φ and ΦᵀΦ, if that is not done yet, in a thread of their own."""
        if self._beside:
            beside(self._map, self._squared)

    def begin_sample(self) -> None:
        """The same for what `nearest` needs."""
        if self._sample is None:
            self.begin()
        elif self._beside:
            beside(self._sample)

    @property
    def landmark_indices(self) -> IntArray:
        """Where the landmarks are in X, read-only."""
        return self._chosen()[0]

    @property
    def landmarks(self) -> Rows:
        """The landmark rows Z; their indices for ``kernel="precomputed"``."""
        return self._chosen()[1]

    @property
    def features(self) -> FloatArray:
        """Φ, (n_points, rank), read-only."""
        return self._map().features

    @property
    def residual(self) -> FloatArray:
        """k(x, x) - |φ(x)|² of every row, read-only."""
        return self._map().residual

    @property
    def negative_share(self) -> float:
        """Share of negative eigenvalues on the landmarks."""
        return self._root().negative_share

    def __getstate__(self) -> dict[str, Any]:
        # What is kept is large, and quickly made again.
        state = {**self.__dict__, "_squared": None, "_kept": {}}
        for name in ("_chosen", "_root", "_map", "_sample"):
            state[name] = None if state[name] is None else state[name]()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = dict(state)
        for name in ("_chosen", "_root", "_map", "_sample"):
            if state[name] is not None:
                setattr(self, name, Later.of(state[name]))
        map_ = self._map
        self._squared = Later(lambda: gram(map_().features))

    def __deepcopy__(self, memo: dict[int, Any]) -> "RKHS":
        return self  # nothing in it changes, and it is large: clones of an estimator share it

    @property
    def rank(self) -> int:
        """Dimension of the space, the numerical rank of K."""
        return self._root().rank

    @cached_property
    def trace(self) -> float:
        """Sum of the diagonal of K."""
        return float(np.einsum("ij,ij->", self.features, self.features, dtype=np.float64))

    def holds(self, X: Any) -> bool:
        """Whether this is the space of the rows of X, by its shape and some landmarks.

        Never so for a precomputed kernel, of which there are no rows.
        """
        if X.shape != (self.n_points, self.n_columns) or np.ndim(self.landmarks) == 1:
            return False
        some = np.linspace(0, len(self.landmark_indices) - 1, 100).astype(int)
        off = X[self.landmark_indices[some]] - self.landmarks[some]
        return not np.any(off.data if sparse.issparse(off) else off)

    def values(self, W: ArrayLike) -> FloatArray:
        """Values ΦW on the rows of X, (n_points, c), of functions with coordinates W, (rank, c)."""
        W = _columns(W, self.rank).astype(self.features.dtype, copy=False)
        if not self._is_large:
            return self.features @ W
        out = np.empty((self.n_points, W.shape[1]), W.dtype)
        return fill_batches(out, lambda rows: self.features[rows] @ W, width=self.rank)

    def project(self, B: ArrayLike) -> FloatArray:
        """Adjoint of `values`: ΦᵀB, (rank, c) in float64, for B of shape (n_points, c)."""
        B = _columns(B, self.n_points).astype(self.features.dtype, copy=False)
        if not self._is_large:
            return (self.features.T @ B).astype(np.float64, copy=False)
        total = np.zeros((self.rank, B.shape[1]))
        parts = map_batches(
            lambda rows: self.features[rows].T @ B[rows], batches(self.n_points, self.rank)
        )
        for part in parts:
            total += part
        return total

    @property
    def _is_large(self) -> bool:
        """Whether a product with Φ takes so long that threads may wait for each other."""
        return self.features.size >= THREADS_FROM

    def apply(self, A: ArrayLike) -> FloatArray:
        """K A for A of shape (n_points, c)."""
        return self.values(self.project(A))

    def solve(self, B: ArrayLike, *, lam: float, r: float) -> FloatArray:
        """(λI + rK)⁻¹ B for B of shape (n_points, c), to about eps (λ + r|K|) / λ."""
        check_strengths(lam, r=r)
        B = _columns(B, self.n_points)
        return (B - r * self.quadratic(lam=lam, r=r).solve(B)) / lam

    def compressed(self, laplacian: sparse.spmatrix) -> FloatArray:
        """ΦᵀLΦ, (rank, rank), read-only; that of the last graph is kept, whose L cannot change."""
        kept = self._kept.get("compressed")
        if kept is not None and kept[0] is laplacian:
            return kept[1]
        product = compress(laplacian, self.features)
        product.flags.writeable = False
        if isinstance(laplacian, sparse.csr_array) and not laplacian.data.flags.writeable:
            self._kept["compressed"] = (laplacian, product)
        return product

    def gram(self, strength: float = 0.0) -> FloatArray:
        """Φᵀ(I + strength D)⁻¹Φ, (rank, rank), read-only, D the residuals.

        That without residuals is kept, and the last one with them.
        """
        if strength == 0.0:
            return self._last("gram", 0.0, self._squared)
        shares = 1.0 / (1.0 + strength * self.residual)
        return self._last("common", strength, lambda: gram(self.features, shares))

    def row_root(self, ratio: float) -> FloatArray:
        """The lower triangular R with RRᵀ = ratio I + K; the last one is kept."""

        def make() -> FloatArray:
            matrix = self._root().matrix
            if matrix is None:
                matrix = self._last("matrix", 0.0, lambda: self.features @ self.features.T)
            A = matrix.copy()
            A[np.diag_indices_from(A)] += ratio
            return lower_root(A)

        return self._last("row root", ratio, make)

    def ridge_root(self, ratio: float, *, residual: bool) -> FloatArray:
        """The lower triangular R with RRᵀ = ratio I + Φᵀ(I + D/ratio)⁻¹Φ, D = 0 unless `residual`.

        An iteration asks for the same ratio again and again: the last one of each kind is kept.
        """

        def make() -> FloatArray:
            A = self.gram(1 / ratio if residual else 0.0).copy()
            A[np.diag_indices_from(A)] += ratio
            return lower_root(A)

        return self._last("common root" if residual else "root", ratio, make)

    def _last(self, kind: str, key: float, make: Callable[[], FloatArray]) -> FloatArray:
        """What was made last of this kind, if for the same key; otherwise it is made anew."""
        kept = self._kept.get(kind)
        if kept is None or kept[0] != key:
            made = make()
            made.flags.writeable = False
            kept = self._kept[kind] = (key, made)
        return kept[1]

    def quadratic(
        self,
        *,
        lam: float,
        r: float = 0.0,
        gamma: float = 0.0,
        laplacian: sparse.spmatrix | None = None,
        row_weights: ArrayLike | None = None,
        residual: bool = False,
    ) -> Quadratic | Ridge:
        """Prepare min_f λ/2 |f|²_K + ½ fᵀMf - ⟨B, f⟩, M = rI + γL + diag(row_weights).

        With `residual` rows have a part of f to themselves where the landmarks tell little.
        """
        check_strengths(lam, r=r, gamma=gamma)
        weights = check_weights(row_weights, self)
        plain = gamma == 0 and not weights.any()
        if plain and Ridge.suits(self, lam=lam, r=r):
            return Ridge(self, lam=lam, r=r)
        return Quadratic(
            self,
            lam=lam,
            r=r,
            gamma=gamma,
            laplacian=laplacian,
            row_weights=weights,
            residual=residual,
        )

    def nearest(self, F: ArrayLike, *, ratio: float) -> FloatArray:
        """Coordinates, (rank, c), of argmin_f ratio/2 |f|²_K + ½ |f - F|², F of (n_points, c).

        Of many rows a `sample` speaks for all.
        """
        F = _columns(F, self.n_points)
        if self._sample is None:
            return self.quadratic(lam=ratio, r=1.0).coordinates(F)
        sample = self._sample()
        A = sample.squared.copy()
        A[np.diag_indices_from(A)] += ratio * len(sample.rows) / self.n_points
        right = sample.features.T @ F[sample.rows].astype(sample.features.dtype)
        return cho_solve((lower_root(A), True), right.astype(np.float64), check_finite=False)

    def values_seen(self, W: ArrayLike) -> tuple[IntArray, FloatArray]:
        """Rows of X that `nearest` looks at, all or the sample, and the `values` there."""
        if self._sample is None:
            return np.arange(self.n_points), self.values(W)
        sample = self._sample()
        W = _columns(W, self.rank).astype(sample.features.dtype, copy=False)
        return sample.rows, sample.features @ W

    def expansion(self, W: ArrayLike) -> Expansion:
        """Functions with coordinates W, (rank, c), as Σ_j k(x, z_j) coef_j for any row x."""
        coef = self._root().expand(_columns(W, self.rank))
        return Expansion(self.kernel, self.landmarks, coef, self.n_columns)


@dataclass(frozen=True, eq=False)
class _Sample:
    """Some rows of X, their features Φ, and ΦᵀΦ."""

    rows: IntArray
    features: FloatArray
    squared: FloatArray


def _check_rows(X: ArrayLike | sparse.spmatrix, *, precomputed: bool) -> Rows:
    rows = check_array(X, accept_sparse=False if precomputed else "csr")
    if precomputed and rows.shape[0] != rows.shape[1]:
        raise ValueError(
            f"A precomputed kernel must be square. Got shape {rows.shape}; pass K between all "
            f"pairs of rows."
        )
    return rows


def n_landmarks(n_candidates: int, n_points: int, n_components: int | None) -> int:
    """Number of landmarks that `RKHS` looks for among its candidates."""
    if n_components is None:
        if n_candidates <= min(EXACT_LIMIT, MOST_FEATURES // n_points):
            return n_candidates
        return int(np.clip(N_FEATURES // n_points, FEWEST_LANDMARKS, MOST_LANDMARKS))
    if n_components < 1:
        raise ValueError(
            f"`n_components` must be at least 1. Got {n_components}; pass None to choose it."
        )
    return min(int(n_components), n_candidates)


def _columns(B: ArrayLike, n: int) -> FloatArray:
    B = np.asarray(B)
    if B.ndim != 2 or B.shape[0] != n:
        raise ValueError(
            f"Functions must be the columns of an array with {n} rows. Got shape {B.shape}; pass "
            f"shape ({n}, c), c = 1 for a single function."
        )
    return B
