"""Functions of any row, as sums of kernel functions of landmarks."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_array

from tvsvm.kernel.features import fill_batches
from tvsvm.kernel.functions import Kernel, Rows
from tvsvm.results import FloatArray

# float32 rows are extended to in float32, two to three times as fast, if at so many landmarks this
# moves the functions by at most that part of their largest value.
N_PROBES, SINGLE_TOL = 100, 2e-5


@dataclass(frozen=True, eq=False)
class Expansion:
    """Functions f(x) = Σ_j k(x, z_j) coef_j, independent of the space they come from.

    Attributes
    ----------
    kernel : Kernel
        k.
    landmarks : ndarray or sparse matrix
        The rows z_j (column indices for a precomputed kernel).
    coef : ndarray of shape (n_landmarks, c)
        One column for every function.
    n_columns : int
        Number of columns that new rows must have.
    """

    kernel: Kernel
    landmarks: Rows
    coef: FloatArray
    n_columns: int

    def __call__(self, X: ArrayLike | sparse.spmatrix) -> FloatArray:
        """Values, (n_rows, c), at the rows of X; rows k(x, x_1..x_N) for a precomputed kernel."""
        rows = check_array(X, accept_sparse="csr")
        if rows.shape[1] != self.n_columns:
            raise ValueError(
                f"New rows must have as many columns as the data. Got {rows.shape[1]} for "
                f"{self.n_columns}; pass the same columns, or K(new, data) if it is precomputed."
            )
        single = rows.dtype == np.float32 and self._good_in_single
        return fill_batches(
            np.empty((rows.shape[0], self.coef.shape[1])),
            lambda batch: self._evaluate(rows[batch], single=single),
            width=max(self.n_columns, len(self.coef)),
        )

    @cached_property
    def _good_in_single(self) -> bool:
        """Whether float32 gives the same values, as seen at some landmarks."""
        if not self.kernel.fast:
            return False
        some = self.landmarks[:N_PROBES]
        double, single = (self._evaluate(some, single=flag) for flag in (False, True))
        return bool(np.abs(double - single).max() <= SINGLE_TOL * np.abs(double).max())

    def _evaluate(self, rows: Rows, *, single: bool) -> FloatArray:
        # A float64 product: coefficients of both signs nearly cancel.
        return self.kernel(rows, self.landmarks, single=single) @ self.coef
