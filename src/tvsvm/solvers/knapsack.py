"""Continuous quadratic knapsack: a separable quadratic over a box and one equality, exactly."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from tvsvm._jit import kernel
from tvsvm.results import FloatArray, SolverResult, Status

# The method is exact, so a certificate above this is rounding and nothing else.
_ROUNDING = 1e-10


@dataclass(frozen=True)
class QPResult(SolverResult):
    """Solution of a quadratic program with one equality.

    Attributes
    ----------
    multiplier : float
        ν of the equality, with the sign of the Lagrangian ½xᵀQx - bᵀx + ν(aᵀx - d). Where an
        interval of values is admissible (no entry strictly between its bounds) it is the
        midpoint, or the finite end, or 0. In the dual of a hinge loss ν is the bias.
    """

    multiplier: float


def knapsack(
    q: ArrayLike,
    b: ArrayLike,
    *,
    lower: ArrayLike = 0.0,
    upper: ArrayLike = np.inf,
    a: ArrayLike = 1.0,
    d: float = 0.0,
) -> QPResult:
    """Solve min_x ½ Σ q_i x_i² - Σ b_i x_i subject to lower ≤ x ≤ upper, Σ a_i x_i = d.

    x_i = clip((b_i - ν a_i) / q_i), and Σ a_i x_i falls monotonically with ν along straight lines
    between breakpoints: these are sorted, the right line is found by bisection and ν on it in
    closed form, O(n log n).

    Parameters
    ----------
    q : array-like of shape (n,)
        Positive curvatures. (With q_i = 0 the minimiser need not be unique or exist.)
    b : array-like of shape (n,)
        Linear term.
    lower, upper : float or array-like of shape (n,)
        Bounds, possibly infinite.
    a : float or array-like of shape (n,)
        Coefficients of the equality, of either sign; 0 leaves an entry out of it.
    d : float
        Right-hand side of the equality.

    Returns
    -------
    QPResult
        Its certificate is the KKT residual: by how much the best multiplier misses what an entry
        asks for, or the equality, relative to the size of the terms.

    Notes
    -----
    min_{h, β₀} Σ μ_i max(0, 1 - y_i(h_i + β₀)) + (r/2)|h - e|² has the dual
    ``knapsack(1/r, 1 - y * e, upper=mu, a=y)``, from which h = e + y x / r, and the bias β₀ is
    the multiplier: stationarity in an entry between its bounds reads y_i(h_i + ν) = 1.
    """
    n = np.size(b)
    b, q, a = vector("b", b, n), vector("q", q, n), vector("a", a, n)
    lower, upper = vector("lower", lower, n, finite=False), vector("upper", upper, n, finite=False)
    if not (q > 0).all():
        raise ValueError(f"`q` must be positive. Got a minimum of {q.min()}; add a small ridge.")
    tied = np.flatnonzero(a)
    a = a[tied]
    low, high = unit_bounds(a, lower[tied], upper[tied], d)

    # In z = a x the equality is Σ z = d, and its coefficients are gone.
    curvature, slope = q[tied] / a / a, b[tied] / a
    z, n_iter = _solve(curvature, slope, low, high, d)
    multiplier, residual, _ = kkt(z, curvature * z, slope, low, high, d)
    x = np.clip(b / q, lower, upper)
    x[tied] = from_unit(z, a, lower[tied], upper[tied])
    status = Status.CONVERGED if residual <= _ROUNDING else Status.STALLED
    return QPResult(x, status, n_iter, residual, multiplier)


def vector(name: str, values: ArrayLike, n: int, *, finite: bool = True) -> FloatArray:
    """Check a vector of `n` numbers; a scalar stands for `n` equal ones."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0:
        array = np.full(n, array)
    if array.shape != (n,):
        raise ValueError(
            f"`{name}` must have shape ({n},). Got shape {array.shape}; pass one number an entry."
        )
    if (~np.isfinite(array) if finite else np.isnan(array)).any():
        raise ValueError(f"`{name}` holds NaN or infinity. Got {array}; remove or replace them.")
    return array


def unit_bounds(
    a: FloatArray, lower: FloatArray, upper: FloatArray, d: float
) -> tuple[FloatArray, FloatArray]:
    """Bounds of z = a x, after checking that some z between them has Σ z = d."""
    allowed = (lower <= upper) & (lower < np.inf) & (upper > -np.inf)
    if not allowed.all():
        i = int(np.argmin(allowed))
        raise ValueError(
            "`lower` must not exceed `upper`, and a number must fit between them. "
            f"Got [{lower[i]}, {upper[i]}] for entry {i}; widen it."
        )
    ends = a * lower, a * upper
    low, high = np.minimum(*ends), np.maximum(*ends)
    least, most = low.sum(), high.sum()
    rounding = 4 * np.finfo(float).eps * len(a)
    below, above = rounding * np.abs(low).sum(), rounding * np.abs(high).sum()
    if not (np.isfinite(d) and least - below <= d <= most + above):
        raise ValueError(
            f"Some x within the bounds must have Σ a_i x_i = d. Got d = {d}, while the bounds "
            f"allow [{least}, {most}]; widen the bounds or change d."
        )
    return low, high


def from_unit(z: FloatArray, a: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return x = z / a, exactly at its bounds where z is at those of `unit_bounds`."""
    x = np.clip(z / a, lower, upper)
    return np.where(z == a * lower, lower, np.where(z == a * upper, upper, x))


@kernel
def kkt(
    z: FloatArray,
    Qz: FloatArray,
    b: FloatArray,
    low: FloatArray,
    high: FloatArray,
    d: float,
) -> tuple[float, float, float]:
    """Multiplier, KKT residual and scale of z in min ½zᵀQz - bᵀz, low ≤ z ≤ high, Σ z = d.

    Entries that may still grow ask for ν ≥ (b - Qz)_i, those that may still shrink for
    ν ≤ (b - Qz)_i; ν is the midpoint, and the residual the amount by which it misses the worst
    of these, divided by the scale max(|b|, |Qz|). An equality missed by more, relative to
    Σ|z| + |d|, counts instead.
    """
    least, most, scale, total, size = -np.inf, np.inf, 0.0, -d, abs(d)
    for i in range(len(z)):
        descent = b[i] - Qz[i]
        if z[i] < high[i]:
            least = max(least, descent)
        if z[i] > low[i]:
            most = min(most, descent)
        scale = max(scale, abs(b[i]), abs(Qz[i]))
        total += z[i]
        size += abs(z[i])
    multiplier = 0.0
    if np.isfinite(least) and np.isfinite(most):
        multiplier = least + (most - least) / 2.0
    elif np.isfinite(least):
        multiplier = least
    elif np.isfinite(most):
        multiplier = most
    violation = (least - most) / 2.0 / scale if least > most else 0.0
    return multiplier, max(violation, abs(total) / size if size > 0.0 else 0.0), scale


@kernel
def _solve(
    q: FloatArray, b: FloatArray, low: FloatArray, high: FloatArray, d: float
) -> tuple[FloatArray, int]:
    """Minimise ½ Σ q z² - Σ b z over low ≤ z ≤ high, Σ z = d, which must be feasible."""
    # Entry i is free, z = (b - ν)/q, for ν between leaves_high[i] and leaves_low[i].
    leaves_high, leaves_low = b - q * high, b - q * low
    breakpoints = np.concatenate((leaves_high, leaves_low))
    breakpoints = np.sort(breakpoints[np.isfinite(breakpoints)])

    # The last breakpoint where Σ z ≥ d; ν lies between it and the next.
    first, last = -1, len(breakpoints)
    n_iter = 0
    while last - first > 1:
        n_iter += 1
        middle = (first + last) // 2
        total = 0.0
        for i in range(len(q)):
            total += min(max((b[i] - breakpoints[middle]) / q[i], low[i]), high[i])
        if total >= d:
            first = middle
        else:
            last = middle
    left = breakpoints[first] if first >= 0 else -np.inf
    right = breakpoints[last] if last < len(breakpoints) else np.inf
    start = left if first >= 0 else (right if last < len(breakpoints) else 0.0)

    # Exact bounds for the others: one that misses by rounding would look free.
    free = (leaves_high <= left) & (leaves_low >= right)
    z = np.where(leaves_high > left, high, low)
    softness = 0.0
    for i in range(len(q)):
        if free[i]:
            z[i] = min(max((b[i] - start) / q[i], low[i]), high[i])
            softness += 1.0 / q[i]
    if softness > 0.0:
        # The first correction finds ν, the second undoes the rounding of the first.
        for _ in range(2):
            excess = z.sum() - d
            for i in range(len(q)):
                if free[i]:
                    z[i] = min(max(z[i] - excess / softness / q[i], low[i]), high[i])
    return z, n_iter
