"""Laplacian systems of a graph by conjugate gradients, all right-hand sides at once."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, diags_array, sparray, spmatrix
from scipy.sparse.csgraph import connected_components

from tvsvm._ordering import reverse_cuthill_mckee
from tvsvm._threads import map_batches, n_threads
from tvsvm.results import FloatArray, IntArray, SolverResult, Status
from tvsvm.solvers._conjugate_gradients import conjugate_gradients, scaled
from tvsvm.solvers._deflation import Coarse, deflated_gradients

_FEWEST_COLUMNS = 2  # for a thread: every one walks along all edges
_WORTH_THREADS = 100_000  # values
_LONG, _FEW_COLUMNS = 200_000, 5  # rows from which on a thread has no more columns at a time
# Iterations after which a coarse space takes over, and rows from which on there is one. Graphs of
# many dimensions need 30 to 40 at most; each is then half as long again.
_BRIEFLY, _LARGE = 48, 1000
_COARSELY = 1000  # iterations with it in a run; usual are 20 to 100

# Right-hand sides, which are overwritten, lengths of residuals to be reached, most iterations →
# solutions, how many there were.
Method = Callable[[FloatArray, FloatArray, int], tuple[FloatArray, int]]


@dataclass(frozen=True)
class HarmonicResult(SolverResult):
    """A harmonic extension.

    Attributes
    ----------
    reached : ndarray of shape (N,), bool
        Rows connected to a fixed row. The others hold zeros, as nothing determines them.
    """

    reached: NDArray[np.bool_]


def laplacian_solve(
    W: sparray | spmatrix,
    B: ArrayLike,
    *,
    shift: float = 0.0,
    tol: float = 1e-8,
    max_iter: int = 10_000,
    components: IntArray | None = None,
) -> SolverResult:
    """Solve (shift I + L) U = B for the Laplacian L = diag(W1) - W of a graph.

    Without a shift L is singular: on every connected component the (plain) mean of `B` is removed
    and the solution with mean zero returned, i.e. U = L⁺B. An isolated row gets zero.

    Parameters
    ----------
    W : sparse array of shape (N, N)
        Symmetric non-negative affinity; its diagonal does not matter.
    B : array-like of shape (N, c)
        Right-hand sides.
    shift : float
        Non-negative multiple of the identity.
    tol : float
        Largest relative residual |B - (shift I + L) U| / |B| of a column, where the mean of every
        component has been taken out of both.
    max_iter : int
        Most iterations of conjugate gradients.
    components : ndarray of shape (N,), optional
        Label 0, 1, ... of each row's connected component, where known.

    Returns
    -------
    SolverResult
        Solution of shape (N, c); the certificate is the largest relative residual.
    """
    W = _affinity(W)
    B = _columns("B", B, W.shape[0])
    if not 0 <= shift < np.inf:
        raise ValueError(f"`shift` must be finite and non-negative. Got {shift}; pass 0 or more.")
    if components is None:
        components = connected_components(W, directed=False)[1]
    means = _component_means(B, components)
    B -= means[components]
    result = _solve(W, W @ np.ones(len(B)) + shift, B, components, tol, max_iter)
    solution = result.solution
    solution -= _component_means(solution, components)[components]
    if shift > 0:
        # L does not see constants: their share is exact, however small the shift.
        solution += (means / shift)[components]
    return SolverResult(solution, result.status, result.n_iter, result.certificate)


def harmonic_extension(
    W: sparray | spmatrix,
    F: ArrayLike,
    fixed: ArrayLike,
    *,
    tol: float = 1e-8,
    max_iter: int = 10_000,
    components: IntArray | None = None,
) -> HarmonicResult:
    """Extend given rows harmonically: min_U Σ w_ij |u_i - u_j|² subject to U = F on fixed rows.

    Parameters
    ----------
    W : sparse array of shape (N, N)
        Symmetric non-negative affinity; its diagonal does not matter.
    F : array-like of shape (N, c)
        Values, of which only the fixed rows are used.
    fixed : array-like of shape (N,), bool
        Rows to keep.
    tol, max_iter, components
        As in :func:`laplacian_solve`; the system is the one of the rows that are not fixed.

    Returns
    -------
    HarmonicResult
        Solution of shape (N, c), with the rows that no fixed row reaches at zero.
    """
    W = _affinity(W)
    fixed = np.asarray(fixed)
    if fixed.dtype != bool or fixed.shape != W.shape[:1]:
        raise ValueError(
            f"`fixed` must be a boolean mask of shape {W.shape[:1]}. "
            f"Got {fixed.dtype} of shape {fixed.shape}; mark the rows to keep with True."
        )
    F = _columns("F", np.where(fixed[:, None], F, 0.0), W.shape[0])
    if components is None:
        components = connected_components(W, directed=False)[1]
    reached = np.isin(components, components[fixed])
    free = reached & ~fixed
    rows = W[free]
    degree, sources = rows @ np.ones(len(F)), rows[:, fixed] @ F[fixed]
    result = _solve(rows[:, free], degree, sources, components[free], tol, max_iter)
    F[free] = result.solution
    return HarmonicResult(F, result.status, result.n_iter, result.certificate, reached)


def _affinity(W: sparray | spmatrix) -> csr_array:
    """Check W and return it without its diagonal, floats as they are: a copy would be large."""
    W = csr_array(W)
    if W.dtype != np.float32:
        W = W.astype(np.float64, copy=False)
    if W.shape[0] != W.shape[1] or not (np.isfinite(W.data).all() and (W.data >= 0).all()):
        raise ValueError(
            f"`W` must be a square affinity, finite and non-negative. Got shape {W.shape} or "
            "entries that are not; pass a symmetric affinity matrix."
        )
    # A symmetric W gives the same from both sides, which is cheaper to check than W = Wᵀ.
    probe = np.cos(np.arange(W.shape[0]))
    if not np.allclose(W @ probe, probe @ W, rtol=0, atol=1e-8 * W.data.max(initial=0.0)):
        raise ValueError("`W` must be symmetric. Got an asymmetric one; pass (W + W.T) / 2.")
    if not W.data.all():
        W = W.copy()
        W.eliminate_zeros()  # they are no edges
    if W.diagonal().any():
        W = W - diags_array(W.diagonal(), format="csr")
        W.eliminate_zeros()
    return W


def _columns(name: str, B: ArrayLike, n_rows: int) -> FloatArray:
    """Check a finite (N, c) array and return it in float64."""
    B = np.array(B, dtype=np.float64, order="C")
    if B.ndim != 2 or len(B) != n_rows or not np.isfinite(B).all():
        raise ValueError(
            f"`{name}` must be a finite array of shape ({n_rows}, c). Got shape {B.shape} or "
            "NaN or infinity in it; pass one row per node."
        )
    return B


def _component_means(B: FloatArray, components: IntArray) -> FloatArray:
    """Mean of each column over each component."""
    n = len(components)
    shape = (int(components.max(initial=-1)) + 1, n)
    members = csr_array((np.ones(n), (components, np.arange(n))), shape=shape)
    means: FloatArray = (members @ B) / np.maximum(members.sum(axis=1), 1.0)[:, None]
    return means


def _solve(
    W: csr_array,
    diagonal: FloatArray,
    B: FloatArray,
    components: IntArray,
    tol: float,
    max_iter: int,
) -> SolverResult:
    """Solve (diag(diagonal) - W) U = B, restarted until the true residual agrees.

    B is overwritten: it is long.
    """
    if B.size == 0:
        return SolverResult(B, Status.CONVERGED, 0, 0.0)
    # Columns and components may differ in scale by any factor: both are taken out.
    size = np.zeros(components.max() + 1)
    np.maximum.at(size, components, diagonal)
    row_size = np.where(size > 0, size, 1.0)[components]
    column_size = np.abs(B).max(axis=0)
    column_size[column_size == 0] = 1.0
    # Neighbours close together in memory: fewer cache misses, and slightly fewer iterations.
    order = reverse_cuthill_mckee(W)
    W = W[order][:, order].astype(np.float64, copy=False)
    W.sort_indices()
    W.data *= np.repeat(1 / row_size[order], np.diff(W.indptr))
    B[:] = B[order]
    B /= column_size
    diagonal = (diagonal / row_size)[order]
    graph, root = scaled(W, diagonal)

    plain = partial(conjugate_gradients, graph, root)
    system = _System(W, diagonal, B, tol)
    if len(B) < _LARGE:
        system.follow(plain, max_iter, max_iter)
    else:
        system.follow(plain, _BRIEFLY, max_iter)
        coarse = None if system.solved else Coarse.of(graph, W, root, components[order])
        if coarse is not None:
            system.follow(partial(deflated_gradients, graph, coarse, root), _COARSELY, max_iter)
        if not system.solved:
            # Where weights differ too much for the coarse space, sweeps alone may get there.
            alone = _System(W, diagonal, B, tol)
            alone.follow(plain, max_iter, max_iter - system.n_iter)
            spent = alone.n_iter + system.n_iter
            system = min(alone, system, key=lambda one: one.residual.max())
            system.n_iter = spent
    U, residual, n_iter = system.U, system.residual, system.n_iter
    worst = float(residual.max())
    if worst <= tol:
        status = Status.CONVERGED
    else:
        status = Status.MAX_ITER if n_iter >= max_iter else Status.STALLED
    solution = np.empty_like(U)
    solution[order] = U * column_size
    return SolverResult(solution / row_size[:, None], status, n_iter, worst)


class _System:
    """A system diag(diagonal) - W for several columns, as far as it is solved."""

    def __init__(self, W: csr_array, diagonal: FloatArray, B: FloatArray, tol: float) -> None:
        self.W, self.diagonal, self.B, self.tol = W, diagonal[:, None], B, tol
        self.length = np.maximum(np.linalg.norm(B, axis=0), np.finfo(float).tiny)
        self.U, self.n_iter = np.zeros_like(B), 0
        self.residual = np.linalg.norm(B, axis=0) / self.length
        self._left = B

    @property
    def solved(self) -> bool:
        """Whether no residual is larger than the tolerance."""
        return bool((self.residual <= self.tol).all())

    def follow(self, method: Method, most: int, max_iter: int) -> None:
        """Let a method run, restarted as long as the true residual falls, or until it took long.

        That is `most` iterations in a run, or `max_iter` in all.
        """
        target = np.full_like(self.residual, self.tol)
        n = 0
        while (self.residual > target).any() and self.n_iter < max_iter and n < most:
            going = self.residual > target
            # No more digits at a time than the recurrence of the residual can be trusted with.
            goal = np.maximum(0.9 * target, 1e-10 * self.residual) * self.length
            run = min(most, max_iter - self.n_iter)
            trial = self.U.copy()
            n = _by_columns(method, self._left, np.flatnonzero(going), goal, run, trial)
            self.n_iter += n
            left = self.W @ trial
            left -= self.diagonal * trial
            left += self.B
            residual = np.linalg.norm(left, axis=0) / self.length
            if residual.max() >= self.residual.max():
                return
            self.U, self._left, self.residual = trial, left, residual
            # Rounding in diagonal * U limits what another run could gain.
            size = np.linalg.norm(self.diagonal * trial, axis=0) / self.length
            target = np.maximum(self.tol, 4 * np.finfo(float).eps * size)


def _by_columns(
    method: Method,
    R: FloatArray,
    columns: IntArray,
    goal: FloatArray,
    max_iter: int,
    total: FloatArray,
) -> int:
    """Add what a method finds for some columns of R; the most iterations that it took.

    The columns are shared out to threads, with the same digits; where they are long, a few at a
    time, as a method needs several times their memory.
    """

    def solve(share: IntArray) -> int:
        step, n_iter = method(np.take(R, share, axis=1), goal[share], max_iter)
        total[:, share] += step
        return n_iter

    n_shares = 1
    if len(R) * columns.size > _WORTH_THREADS:
        n_shares = max(min(n_threads(), columns.size // _FEWEST_COLUMNS), 1)
    if len(R) > _LONG:
        n_shares = max(n_shares, -(-columns.size // _FEW_COLUMNS))
    return max(map_batches(solve, np.array_split(columns, n_shares)))
