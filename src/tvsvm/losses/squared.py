"""Squared loss: diagonal prox, and one linear system for the step in the kernel space."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tvsvm.results import FloatArray, Status

if TYPE_CHECKING:
    from tvsvm.problem import Problem

ALIKE = 0.5  # share of a function's square that must be in its mean to call it a constant


@dataclass(frozen=True)
class Squared:
    """η/2 Σ_i w_i (y_i - f_i)², without an intercept.

    Parameters
    ----------
    eta : float
        η > 0.
    """

    eta: float

    def __post_init__(self) -> None:
        if not 0 < self.eta < np.inf:
            raise ValueError(f"`eta` must be positive and finite. Got {self.eta!r}; pass eta > 0.")

    def value(self, F: FloatArray, intercept: FloatArray, problem: "Problem") -> float:
        """Cost of the values F (n, c) on the labelled rows with the intercept (c,)."""
        misses = problem.targets - F - intercept
        return 0.5 * self.eta * float(problem.weights @ (misses**2).sum(axis=1))

    def prox(self, E: FloatArray, problem: "Problem", r: float) -> tuple[FloatArray, FloatArray]:
        """Minimise loss(h) + r/2 |h - E|² on the labelled rows: h (n, c) and no intercept."""
        pull = self.eta * problem.weights[:, None]
        return (pull * problem.targets + r * E) / (pull + r), np.zeros(problem.n_columns)

    def kernel_step(
        self,
        problem: "Problem",
        *,
        lam: float,
        r: float = 0.0,
        gamma: float = 0.0,
        offset: float = 0.0,
        residual: bool = False,
    ) -> "_SquaredStep":
        """Prepare f = (ηJ + rI + γL + λK⁻¹)⁻¹ (ηy + rE), J diagonal with the weights."""
        return _SquaredStep(
            problem, self.eta, lam=lam, r=r, gamma=gamma, offset=offset, residual=residual
        )

    def clamped_step(
        self, problem: "Problem", *, lam: float, r: float, offset: float = 0.0
    ) -> "_SquaredStep":
        """Prepare f = (rI + λK⁻¹)⁻¹ rE, the paper's RLS(E), for methods that clamp the labels."""
        return _SquaredStep(problem, 0.0, lam=lam, r=r, gamma=0.0, offset=offset, residual=True)

    def shift(
        self, problem: "Problem", by: FloatArray, say: FloatArray, *, lam: float, gamma: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Functions for targets moved so that the rows move by `by` (c,) in the mean by `say`.

        Where the space cannot move all rows alike, as with a linear kernel on centred rows, the
        intercept does it.
        """
        ones = replace(problem, targets=np.ones((problem.rows.size, 1)))
        W, F, _ = self.kernel_step(ones, lam=lam, gamma=gamma)(None)
        mean = float(say @ F[:, 0])
        if mean**2 <= ALIKE * float(say @ F[:, 0] ** 2):
            return np.zeros((len(W), by.size)), np.zeros((len(F), by.size)), by
        scale = by / mean
        return W * scale, F * scale, np.zeros(by.size)


class _SquaredStep:
    """See `KernelStep`."""

    certificate, status = 0.0, Status.CONVERGED

    def __init__(
        self,
        problem: "Problem",
        eta: float,
        *,
        lam: float,
        r: float,
        gamma: float,
        offset: float,
        residual: bool,
    ) -> None:
        space, rows = problem.space, problem.rows
        pull = np.zeros(space.n_points)
        pull[rows] = eta * problem.weights
        self._quadratic = space.quadratic(
            lam=lam,
            r=r,
            gamma=gamma,
            laplacian=problem.graph.laplacian if gamma > 0 and problem.graph else None,
            row_weights=pull,
            residual=residual,
        )
        self._rows, self._targets = rows, problem.targets - offset
        self._labels = np.zeros((space.n_points, problem.n_columns))
        self._labels[rows] = pull[rows, None] * self._targets
        self._r, self._offset = r, offset
        self.energy = 0.0

    def __call__(self, E: FloatArray | None) -> tuple[FloatArray, FloatArray, FloatArray]:
        held, F = self._minimise(E)
        return self._quadratic.coordinates_of(held), F, np.zeros(F.shape[1])

    def values(self, E: FloatArray) -> tuple[FloatArray, FloatArray]:
        _, F = self._minimise(E)
        return F, np.zeros(F.shape[1])

    def _minimise(self, E: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        B = self._labels
        if E is not None:
            E = E - self._offset
            B = B + self._r * E
        held = self._quadratic.held(B)
        F = self._quadratic.values(held, B)
        # Where f = GB is the minimiser, ½ ⟨B, f⟩ is what the minimum is below that of f = 0.
        self.energy = 0.5 * float(np.vdot(self._labels[self._rows], self._targets - F[self._rows]))
        if E is not None:
            self.energy += 0.5 * self._r * float(np.vdot(E, E - F))
        return held, self._offset + F
