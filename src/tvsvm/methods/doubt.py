"""How sure a cut is of each row: by itself it has no doubts, and is sure of its errors, too."""

from dataclasses import replace

import numpy as np
from scipy.sparse import csr_array

from tvsvm.methods.ratio import one_hot
from tvsvm.problem import MethodResult, Problem
from tvsvm.results import FloatArray
from tvsvm.solvers import simplex_projection

DOUBT = (
    0.49  # the say of kernel or neighbours in how sure a class is; below a half, so that it stays
)
STEPS = 4  # of random walks: with fewer it is too sure of what lies on the wrong side as a group


def softened(problem: Problem, result: MethodResult) -> MethodResult:
    """The same classes, with doubt about those that the function in the kernel space denies.

    A cut has no doubts: for c > 1 its functions are 0 and 1, and for c = 1 their size says more
    about the graph than about the row. The function in the space is near ±1, or one of 0 and 1,
    where all rows around are of one class.
    """
    in_space = problem.space.values(result.coordinates) + result.intercept
    sides: FloatArray
    view: FloatArray
    if problem.n_columns == 1:
        sides, view = np.where(result.solution > 0, 1.0, -1.0), np.clip(in_space, -1.0, 1.0)
    else:
        sides, view = one_hot(result.solution), simplex_projection(in_space)
    sides *= 1 - DOUBT
    view *= DOUBT
    sides += view
    sides[problem.rows] = problem.targets
    return replace(result, solution=sides)


def softened_by_neighbours(problem: Problem, result: MethodResult) -> MethodResult:
    """The same classes, c > 1, with doubt about rows whose neighbours are in others.

    By where short random walks from them end. Of clusters that tells errors about as well as the
    function in the kernel space does, which is wrong about more rows than the cut, and surer where
    the cut is right; it needs no features of all rows (benchmarks/README.md).
    """
    assert problem.graph is not None
    W = csr_array(problem.graph.affinity)
    sides = one_hot(result.solution).astype(W.dtype)
    degree = W.sum(axis=1)[:, None]
    share = 1 / np.where(degree > 0, degree, 1)
    around = sides
    for _ in range(STEPS):
        around = W @ around
        around *= share
    alone = degree[:, 0] == 0
    around[alone] = sides[alone]
    # In double precision now, or they would not sum to one.
    solution = DOUBT * around.astype(np.float64)
    solution += (1 - DOUBT) * sides
    solution /= solution.sum(axis=1, keepdims=True)
    solution[problem.rows] = problem.targets
    return replace(result, solution=solution)


def softened_by_names(problem: Problem, result: MethodResult, doubt: FloatArray) -> MethodResult:
    """The same classes, c > 1, less sure where two may have each other's names, (c, c)."""
    if not doubt.any():
        return result
    F, part = result.solution, result.solution.argmax(axis=1)
    other = doubt.argmax(axis=1)
    share = np.minimum(doubt.max(axis=1), DOUBT)[part][:, None]
    exchanged = F.copy()
    rows = np.arange(len(F))
    exchanged[rows, part], exchanged[rows, other[part]] = F[rows, other[part]], F[rows, part]
    mixed = (1 - share) * F + share * exchanged
    kept = mixed.argmax(axis=1) == part
    solution = np.where(kept[:, None], mixed, F)
    solution[problem.rows] = problem.targets
    return replace(result, solution=solution)
