"""What a method is given and what it returns: arrays, never X or y."""

from dataclasses import dataclass, field

import numpy as np

from tvsvm.graph import Graph
from tvsvm.kernel import RKHS
from tvsvm.results import FloatArray, IntArray, SolverResult


@dataclass(frozen=True, eq=False)
class Problem:
    """Labelled rows of a function space, and the graph between all rows.

    Attributes
    ----------
    space : RKHS
        Functions on the N rows.
    rows : ndarray of shape (n,)
        The labelled rows, ascending.
    targets : ndarray of shape (n, c)
        Two classes: c = 1 and ±1. More: one column a class, one-hot rows.
    weights : ndarray of shape (n,)
        Confidence of each label, positive, 1 by default.
    graph : Graph or None
        Of mean degree 1, so that strengths mean the same for all data; None without a graph.
    """

    space: RKHS
    rows: IntArray
    targets: FloatArray
    weights: FloatArray
    graph: Graph | None = None

    @property
    def n_columns(self) -> int:
        """Number of functions sought: 1 for two classes."""
        return self.targets.shape[1]

    @property
    def signs(self) -> FloatArray:
        """Targets as ±1 in every column, as the hinge wants them."""
        return np.where(self.targets > 0.5, 1.0, -1.0)


@dataclass(frozen=True)
class MethodResult(SolverResult):
    """Functions found, on the rows and everywhere.

    Attributes
    ----------
    solution : ndarray of shape (N, c)
        Values on the rows, what the rows are labelled by: sign for c = 1, largest column else.
        On the simplex for c > 1 where the method says so.
    coordinates : ndarray of shape (rank, c)
        The functions in the space, for new points: `RKHS.expansion(coordinates)`.
    intercept : ndarray of shape (c,)
        To be added to the functions at new points; `solution` contains it already.
    energy_path : ndarray
        The energy after each iteration.
    partition : ndarray of shape (N,) or None
        Number of the class that each row had at the end of a search, from which the functions
        were found; None without such a search.
    clear : ndarray of shape (N,) or None
        A partition found without labels, which is the same for others; None if there is none.
    """

    coordinates: FloatArray
    intercept: FloatArray
    energy_path: FloatArray
    partition: IntArray | None = field(default=None, kw_only=True)
    clear: IntArray | None = field(default=None, kw_only=True)
