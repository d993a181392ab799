"""What every iterative routine returns: the solution with its certificate."""

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating]
IntArray = NDArray[np.integer]
BoolArray = NDArray[np.bool_]


class Status(Enum):
    """How a solver ended; the value is the advice for the reader."""

    CONVERGED = ""
    MAX_ITER = "The iteration limit was reached first: raise `max_iter` or `tol`."
    STALLED = "Rounding stops further progress: raise `tol` or rescale the data."


@dataclass(frozen=True)
class SolverResult:
    """A solution with the number that proves it.

    Attributes
    ----------
    solution : ndarray
        The minimiser, always feasible.
    status : Status
        Whether the certificate met the tolerance, and what to do if it did not.
    n_iter : int
        Iterations (sweeps, pivots) done.
    certificate : float
        What the solver stops on, as its docstring defines it (duality gap, KKT residual, ...).
    """

    solution: FloatArray
    status: Status
    n_iter: int
    certificate: float

    @property
    def converged(self) -> bool:
        """Whether the certificate met the tolerance."""
        return self.status is Status.CONVERGED
