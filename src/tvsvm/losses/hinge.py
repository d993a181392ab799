"""Hinge loss: a knapsack for the prox, and a box QP for the step in the kernel space."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tvsvm.results import FloatArray, Status
from tvsvm.solvers import box_qp, knapsack

if TYPE_CHECKING:
    from tvsvm.problem import Problem


@dataclass(frozen=True)
class Hinge:
    """μ Σ_i w_i max(0, 1 - y_i(f_i + b)), y = ±1, with an intercept b for every column.

    Functions whose targets are 0 and 1 (one column a class) cannot have y(f + b) ≥ 1 on both
    sides while they stay between 0 and 1, as the simplex demands. There 2f - 1 takes the place
    of f, so that f + b = 1 and 0 are on the margins: y(2(f + b) - 1) ≥ 1. The price is then μ/4,
    as also (y - f)² is a quarter of what it is for ±1, so that the strengths of all terms keep
    their meaning. Both are μ m Σ_i w_i max(0, m - y_i(f_i + b - t)), t the middle between the
    targets and m half their distance.

    Where the labels of a column are all of one sign, the loss vanishes through the intercept.

    Parameters
    ----------
    mu : float
        μ > 0.
    """

    mu: float

    def __post_init__(self) -> None:
        if not 0 < self.mu < np.inf:
            raise ValueError(f"`mu` must be positive and finite. Got {self.mu!r}; pass mu > 0.")

    def value(self, F: FloatArray, intercept: FloatArray, problem: "Problem") -> float:
        """Cost of the values F (n, c) on the labelled rows with the intercept (c,)."""
        middle, margin = _coding(problem)
        slack = np.maximum(margin - problem.signs * (F + intercept - middle), 0.0)
        return self.mu * margin * float(problem.weights @ slack.sum(axis=1))

    def prox(self, E: FloatArray, problem: "Problem", r: float) -> tuple[FloatArray, FloatArray]:
        """Minimise loss(h + b) + r/2 |h - E|² on the labelled rows: h (n, c) and b (c,)."""
        middle, margin = _coding(problem)
        signs, price = problem.signs, self.mu * margin * problem.weights
        H, intercept = np.empty(signs.shape), np.empty(problem.n_columns)
        for k, y in enumerate(signs.T):
            dual = knapsack(1 / r, margin - y * E[:, k], upper=price, a=y)
            H[:, k] = E[:, k] + y * dual.solution / r
            intercept[k] = middle + dual.multiplier
        return H, intercept

    def kernel_step(
        self,
        problem: "Problem",
        *,
        lam: float,
        r: float = 0.0,
        gamma: float = 0.0,
        offset: float = 0.0,
        residual: bool = False,
    ) -> "_HingeStep":
        """Prepare f = G(Jᵀz + rE), G = (λK⁻¹ + rI + γL)⁻¹, z the solution of a QP over n rows.

        min_z ½ zᵀJGJᵀz - (m y - r JGE)ᵀz, y z in [0, μ m w], Σ z = 0, with z = Yβ of the paper.
        Its multiplier is the intercept, and each call starts from the z of the last one.
        """
        return _HingeStep(
            problem, self.mu, lam=lam, r=r, gamma=gamma, offset=offset, residual=residual
        )

    def clamped_step(
        self, problem: "Problem", *, lam: float, r: float, offset: float = 0.0
    ) -> "_HingeStep":
        """The paper's SVM(E): the kernel step, also where the method clamps the labels."""
        return self.kernel_step(problem, lam=lam, r=r, offset=offset, residual=True)

    def shift(
        self, problem: "Problem", by: FloatArray, say: FloatArray, *, lam: float, gamma: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The intercept moved by `by` (c,), whatever λ, γ and `say`."""
        space = problem.space
        return np.zeros((space.rank, by.size)), np.zeros((space.n_points, by.size)), by


class _HingeStep:
    """See `KernelStep`."""

    def __init__(
        self,
        problem: "Problem",
        mu: float,
        *,
        lam: float,
        r: float,
        gamma: float,
        offset: float,
        residual: bool,
    ) -> None:
        self._problem, self._r, self._offset = problem, r, offset
        self._middle, margin = _coding(problem)
        self._quadratic = problem.space.quadratic(
            lam=lam,
            r=r,
            gamma=gamma,
            laplacian=problem.graph.laplacian if gamma > 0 and problem.graph else None,
            residual=residual,
        )
        # Columns of G at the labelled rows, held, and its block there.
        self._columns = self._quadratic.columns(problem.rows)
        self._block = self._quadratic.block(problem.rows)
        self._goals = margin * problem.signs
        ends = mu * problem.weights[:, None] * self._goals
        self._lower, self._upper = np.minimum(ends, 0.0), np.maximum(ends, 0.0)
        self._duals: list[FloatArray | None] = [None] * problem.n_columns
        self.certificate, self.status = 0.0, Status.CONVERGED
        self.energy = 0.0

    def __call__(self, E: FloatArray | None) -> tuple[FloatArray, FloatArray, FloatArray]:
        held, F, intercept = self._minimise(E)
        return self._quadratic.coordinates_of(held), F, intercept

    def values(self, E: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self._minimise(E)[1:]

    def _minimise(self, E: FloatArray | None) -> tuple[FloatArray, FloatArray, FloatArray]:
        quadratic, rows, n_columns = self._quadratic, self._problem.rows, self._problem.n_columns
        held: FloatArray = np.zeros((len(self._columns), n_columns))
        B: FloatArray = np.zeros((quadratic.space.n_points, n_columns))
        without: FloatArray = np.zeros(self._goals.shape)
        if E is not None:
            E = E - self._offset
            B = self._r * E
            held = quadratic.held(B)
            without = quadratic.values_at(rows, held, B)
        goals = self._goals - without
        duals, intercept = np.empty(goals.shape), np.empty(n_columns)
        self.certificate, self.status = 0.0, Status.CONVERGED
        for k in range(n_columns):
            result = box_qp(
                self._block,
                goals[:, k],
                lower=self._lower[:, k],
                upper=self._upper[:, k],
                x0=self._duals[k],
            )
            self._duals[k] = duals[:, k] = result.solution
            intercept[k] = self._middle - self._offset + result.multiplier
            if result.certificate > self.certificate:
                self.certificate, self.status = result.certificate, result.status
        held += self._columns @ duals
        B[rows] += duals
        F = quadratic.values(held, B)
        # The minimum without labels, and what they add: the optimum of the QPs.
        self.energy = float(np.vdot(goals + 0.5 * (without - self._block @ duals), duals))
        if E is not None:
            self.energy += 0.5 * self._r * float(np.vdot(E, E - F))
        return held, self._offset + F, intercept


def _coding(problem: "Problem") -> tuple[float, float]:
    """Middle between the two targets of a column, and half their distance."""
    return (0.0, 1.0) if problem.n_columns == 1 else (0.5, 0.5)
