"""Dense convex QP over a box and one equality: pairs of variables, then Newton on the free ones."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg.lapack import dposv

from tvsvm._jit import kernel
from tvsvm.results import FloatArray, Status
from tvsvm.solvers.knapsack import QPResult, from_unit, kkt, knapsack, unit_bounds, vector

_EPS = float(np.finfo(float).eps)
# A curvature below this fraction of the diagonal is noise, and so is a solution above its inverse.
_FLAT = 1e-12


def box_qp(
    Q: ArrayLike,
    b: ArrayLike,
    *,
    lower: ArrayLike = 0.0,
    upper: ArrayLike = np.inf,
    a: ArrayLike = 1.0,
    d: float = 0.0,
    x0: ArrayLike | None = None,
    tol: float = 1e-8,
    max_iter: int = 200,
) -> QPResult:
    """Solve min_x ½ xᵀQx - bᵀx subject to lower ≤ x ≤ upper, Σ a_i x_i = d.

    Two kinds of iteration alternate, and neither ever raises the objective: some 10 n exchanges
    between pairs of variables chosen by second-order information (SMO), which settle small
    problems by themselves and find the bounds that matter in large ones; and Newton steps on the
    variables strictly between their bounds, fewer after every bound met, for the last digits.
    Without a first guess, wide boxes are opened by steps.

    Parameters
    ----------
    Q : array-like of shape (n, n)
        Symmetric positive semi-definite, of any rank.
    b : array-like of shape (n,)
        Linear term.
    lower, upper : float or array-like of shape (n,)
        Bounds, possibly infinite.
    a : float or array-like of shape (n,)
        Coefficients of the equality, none of them zero. All ones spares a copy of `Q`.
    d : float
        Right-hand side of the equality.
    x0 : array-like of shape (n,), optional
        First guess; the feasible point nearest to it is where the iterations start.
    tol : float
        Largest KKT residual, as :func:`tvsvm.solvers.knapsack.kkt` defines it for z_i = a_i x_i:
        relative to the largest entry of b or Qz, hence independent of the scale of Q, b and x.
    max_iter : int
        Most iterations, of either kind.

    Returns
    -------
    QPResult
        Solution, equality multiplier and the KKT residual as certificate.

    Raises
    ------
    ValueError
        If no point is feasible, or if infinite bounds leave the objective without a minimum.

    Notes
    -----
    The dual of a support vector machine with kernel matrix K, y = ±1 and box [0, C] is
    ``box_qp(K, y, lower=np.minimum(C * y, 0), upper=np.maximum(C * y, 0))`` in the variables
    y_i β_i: the classes of a one-against-rest machine share K. The bias is the multiplier.
    """
    n = np.size(b)
    Q = np.ascontiguousarray(Q, dtype=np.float64)
    if Q.shape != (n, n) or not np.isfinite(Q).all():
        raise ValueError(
            f"`Q` must be a finite ({n}, {n}) matrix to go with `b`. Got shape {Q.shape} "
            "or NaN or infinity in it; remove or replace them."
        )
    b, a = vector("b", b, n), vector("a", a, n)
    lower, upper = vector("lower", lower, n, finite=False), vector("upper", upper, n, finite=False)
    if not a.all():
        raise ValueError(
            "`a` must not be zero, every variable takes part in the equality. "
            f"Got a zero for entry {int(np.argmin(np.abs(a)))}; change it."
        )
    low, high = unit_bounds(a, lower, upper, d)

    # In z = a x / |b| the equality is Σ z = d and the linear term of size one (and a power of
    # two as the unit of length, for scaling without rounding).
    if not (a == 1.0).all():
        Q, b = Q / a / a[:, None], b / a
    unit = float(np.ldexp(1.0, np.frexp(np.abs(b).max(initial=0.0))[1]))
    b, low, high, d = b / unit, low / unit, high / unit, d / unit
    size = float(np.diagonal(Q).max(initial=0.0)) or 1.0
    far = 1 / (_FLAT * size)
    unlimited = np.isinf(low) | np.isinf(high)
    low, high = np.where(np.isinf(low), -far, low), np.where(np.isinf(high), far, high)
    problem = _Problem(Q, b, low, high, d, size)
    if x0 is None:
        z, n_iter = _open_box(problem)
    else:
        z, n_iter = _feasible(vector("x0", x0, n) * a / unit, low, high, d), 0
    result = _solve(problem, z, tol, max_iter)
    z = result.solution
    if (unlimited & (np.abs(z) >= far)).any():
        raise ValueError(
            "The objective must have a minimum within the bounds. Got one that falls for ever "
            "(a hard margin, and classes that cannot be separated); pass finite bounds."
        )
    return QPResult(
        solution=from_unit(z * unit, a, lower, upper),
        status=result.status,
        n_iter=n_iter + result.n_iter,
        certificate=result.certificate,
        multiplier=result.multiplier * unit,
    )


class _Problem(NamedTuple):
    """min ½zᵀQz - bᵀz, low ≤ z ≤ high, Σ z = d, with all bounds finite and |b| = 1."""

    Q: FloatArray
    b: FloatArray
    low: FloatArray
    high: FloatArray
    d: float
    size: float  # of the entries of Q


def _open_box(problem: _Problem) -> tuple[FloatArray, int]:
    """First guess from rough solutions in |z| ≤ c, c growing as long as it matters.

    Exchanges move by about |b|/|Q| and would take for ever to the far end of a wide box. The
    solution in a box ten times as wide is near ten times the one before where it meets the walls.
    """
    _, b, low, high, d, size = problem
    z = _feasible(np.zeros(len(b)), low, high, d)
    n_iter = 0
    c = 10 * max(1 / size, np.abs(z).max(initial=0.0))
    while (low < -c).any() or (high > c).any():
        box = problem._replace(low=np.maximum(low, -c), high=np.minimum(high, c))
        result = _solve(box, z, 1e-2, 30)
        z, n_iter = result.solution, n_iter + result.n_iter
        if not (((z == -c) & (low < -c)) | ((z == c) & (high > c))).any():
            break
        c *= 10
        z = _feasible(10 * z, np.maximum(low, -c), np.minimum(high, c), d)
    return z, n_iter


def _feasible(z: FloatArray, low: FloatArray, high: FloatArray, d: float) -> FloatArray:
    """Nearest point with low ≤ z ≤ high and Σ z = d."""
    z = np.clip(z, low, high)
    if abs(z.sum() - d) <= _EPS * (np.abs(z).sum() + abs(d)):
        return z
    return knapsack(1.0, z, lower=low, upper=high, d=d).solution


def _solve(problem: _Problem, z: FloatArray, tol: float, max_iter: int) -> QPResult:
    """Alternate exchanges and Newton steps from a feasible z."""
    Q, b, low, high, d, size = problem
    z = z.copy()
    for n_iter in range(max_iter + 1):
        Qz = Q @ z
        multiplier, residual, scale = kkt(z, Qz, b, low, high, d)
        rounding = _EPS * size * np.abs(z).sum() / scale if scale > 0 else 0.0
        if residual <= max(tol, rounding) or n_iter == max_iter:
            break
        if n_iter % 2 == 0:
            # Half the gap that is allowed, as rounding will add to it.
            _exchange(Q, b - Qz, low, high, z, tol * scale, 10 * len(z) + 500)
        else:
            _newton(Q, Qz - b, low, high, z)
    if residual <= tol:
        status = Status.CONVERGED
    else:
        status = Status.STALLED if residual <= rounding else Status.MAX_ITER
    return QPResult(z, status, n_iter, residual, multiplier)


def _newton(
    Q: FloatArray, gradient: FloatArray, low: FloatArray, high: FloatArray, z: FloatArray
) -> None:
    """Minimise over the free entries of z with Σ z kept, giving up those that meet a bound."""
    while True:
        free = np.flatnonzero((z > low) & (z < high))
        if len(free) < 2:
            return
        slope = gradient[free] - gradient[free].mean()
        step, bend = _direction(Q[np.ix_(free, free)], slope)
        ends = np.where(step > 0, high[free], low[free])
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(step != 0, (ends - z[free]) / step, np.inf)
            length = min(-(slope @ step) / (step @ bend), room.min())
        if not length > 0:
            return
        z[free] = np.where(room <= length, ends, z[free] + length * step)
        if room.min() > length:
            return
        gradient[free] += length * bend


def _direction(H: FloatArray, slope: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Newton direction with Σ = 0, and H times it up to a constant; overwrites H."""
    m = len(H)
    # Centring the rows and columns removes the one direction that would change the sum ...
    means = H.mean(axis=0)
    H += means.mean() - means - means[:, None]
    # ... and this gives it a curvature instead, so that H can be factorised.
    size = np.abs(np.diagonal(H)).max() or 1.0
    H += size / m
    ridge, failed = m * _EPS * size, 1
    while failed:
        # As small as rounding allows: H is singular when Q is, and with duplicate rows.
        regular = H.copy()
        regular[np.diag_indices(m)] += ridge
        _, step, failed = dposv(regular, -slope, overwrite_a=True)
        ridge *= 100.0
    step -= step.mean()
    return step, H @ step


@kernel
def _exchange(
    Q: FloatArray,
    descent: FloatArray,
    low: FloatArray,
    high: FloatArray,
    z: FloatArray,
    gap: float,
    max_iter: int,
) -> None:
    """Move weight between two entries of z at a time until descent = b - Qz agrees within gap.

    R.-E. Fan, P.-H. Chen, C.-J. Lin, "Working set selection using second order information for
    training support vector machines", JMLR 6 (2005).
    """
    n = len(z)
    diagonal = np.diag(Q).copy()
    grow = shrink = 0
    amount = 0.0
    for _ in range(max_iter):
        # Of those that may grow, who gains most? Of those that may shrink, who loses least?
        row, other = Q[grow], Q[shrink]
        top, bottom = -np.inf, np.inf
        for k in range(n):
            descent[k] -= amount * (row[k] - other[k])
            if descent[k] > top and z[k] < high[k]:
                top, grow = descent[k], k
            if descent[k] < bottom and z[k] > low[k]:
                bottom = descent[k]
        if not top - bottom > gap:
            return
        # The partner with which the objective falls most.
        row = Q[grow]
        most, curvature = 0.0, 0.0
        for k in range(n):
            fall = top - descent[k]
            both = diagonal[grow] + diagonal[k]
            bend = max(both - 2.0 * row[k], _FLAT * both)
            gain = fall * fall / bend
            if gain > most and fall > 0.0 and z[k] > low[k]:
                most, shrink, curvature = gain, k, bend
        to_high, to_low = high[grow] - z[grow], z[shrink] - low[shrink]
        amount = min((top - descent[shrink]) / curvature, to_high, to_low)
        z[grow] = high[grow] if amount == to_high else z[grow] + amount
        z[shrink] = low[shrink] if amount == to_low else z[shrink] - amount
