"""Solvers: functions on arrays, each returning its certificate."""

from tvsvm.solvers.box_qp import box_qp
from tvsvm.solvers.eigen import leading_eigenvectors, smooth_functions
from tvsvm.solvers.knapsack import QPResult, knapsack
from tvsvm.solvers.linear import HarmonicResult, harmonic_extension, laplacian_solve
from tvsvm.solvers.partition import ratio_partition
from tvsvm.solvers.simplex import simplex_projection
from tvsvm.solvers.total_variation import TVProxResult, graph_tv_prox

__all__ = [
    "HarmonicResult",
    "QPResult",
    "TVProxResult",
    "box_qp",
    "graph_tv_prox",
    "harmonic_extension",
    "knapsack",
    "laplacian_solve",
    "leading_eigenvectors",
    "ratio_partition",
    "simplex_projection",
    "smooth_functions",
]
