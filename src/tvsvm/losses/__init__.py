"""Losses: what a label costs, and the steps of the methods that contain this cost."""

from typing import TYPE_CHECKING, Protocol

from tvsvm.losses.hinge import Hinge
from tvsvm.losses.squared import Squared
from tvsvm.results import FloatArray, Status

if TYPE_CHECKING:
    from tvsvm.problem import Problem

__all__ = ["Hinge", "KernelStep", "Loss", "Squared"]


class KernelStep(Protocol):
    """A prepared minimisation over functions f = offset + Φw + s, to be called many times.

    min_{f, b} loss(f + b) + λ/2 |w|² + γ/2 fᵀLf + r/2 |f - E|², column by column. Where the space
    holds the functions of the rows, a constant offset that all columns share costs nothing:
    see :func:`tvsvm.methods.laplacian.laplacian`. s is zero unless the step was prepared with
    `residual`, see :class:`tvsvm.kernel.quadratic.Quadratic`; then its norm counts, too.
    """

    @property
    def certificate(self) -> float:
        """KKT residual of the last call, the worst column; 0 for a closed form."""

    @property
    def status(self) -> Status:
        """Whether that residual met the tolerance of the solver, 1e-8."""

    @property
    def energy(self) -> float:
        """The minimum that the last call found."""

    def __call__(self, E: FloatArray | None) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Coordinates w (rank, c), values f (N, c) and intercept b (c,); E of shape (N, c).

        None stands for r = 0, where E does not matter.
        """

    def values(self, E: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same without w, which an iteration does not need: values f and intercept b."""


class Loss(Protocol):
    """Cost of functions at the labelled rows, a sum over rows and columns.

    An intercept b, one for each column, belongs to the loss alone: graph, kernel and E see f.
    """

    def value(self, F: FloatArray, intercept: FloatArray, problem: "Problem") -> float:
        """Cost of the values F (n, c) on the labelled rows with the intercept (c,)."""

    def prox(self, E: FloatArray, problem: "Problem", r: float) -> tuple[FloatArray, FloatArray]:
        """Minimise loss(h + b) + r/2 |h - E|² on the labelled rows: h (n, c) and b (c,)."""

    def kernel_step(
        self,
        problem: "Problem",
        *,
        lam: float,
        r: float = 0.0,
        gamma: float = 0.0,
        offset: float = 0.0,
        residual: bool = False,
    ) -> KernelStep:
        """Prepare the minimisation over functions that contains this loss.

        With `residual` (only for γ = 0) rows have a part of f to themselves where the landmarks
        of the space tell little about them.
        """

    def clamped_step(
        self, problem: "Problem", *, lam: float, r: float, offset: float = 0.0
    ) -> KernelStep:
        """Prepare the kernel step of a method that puts the labels back itself."""

    def shift(
        self, problem: "Problem", by: FloatArray, say: FloatArray, *, lam: float, gamma: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """What to add to w, f and b so that f + b moves by `by` (c,) in the mean by `say` (N,).

        The squared loss moves its targets, because its functions vanish far from all rows and
        should go on doing so; the hinge moves its intercept.
        """
