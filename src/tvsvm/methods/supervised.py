"""RLS and SVM: the labelled rows alone, without a graph."""

import numpy as np

from tvsvm.losses import Loss
from tvsvm.problem import MethodResult, Problem
from tvsvm.results import FloatArray


def supervised(problem: Problem, loss: Loss, *, lam: float) -> MethodResult:
    """Minimise loss(f + b) + λ/2 |f|²_K, every column by itself.

    With more than two classes this is one against the rest: a row belongs to the column that is
    largest, and nothing ties the columns together.

    Parameters
    ----------
    problem : Problem
        Its space may be that of the labelled rows alone: others have no say. The graph has none.
    loss : Loss
        `Squared` is RLS, `Hinge` is the SVM with C = μ/λ.
    lam : float
        λ > 0.

    Returns
    -------
    MethodResult
        `solution` is f + b; the certificate is that of the loss' step.
    """
    return solve_columns(problem, loss, lam=lam, gamma=0.0)


def solve_columns(problem: Problem, loss: Loss, *, lam: float, gamma: float) -> MethodResult:
    """Minimise loss(f + b) + λ/2 |f|²_K + γ/2 fᵀLf, every column by itself."""
    step = loss.kernel_step(problem, lam=lam, gamma=gamma)
    W, F, intercept = step(None)
    return MethodResult(
        solution=F + intercept,
        status=step.status,
        n_iter=1,
        certificate=step.certificate,
        coordinates=W,
        intercept=intercept,
        energy_path=np.array([energy(problem, loss, W, F, intercept, lam=lam, gamma=gamma)]),
    )


def energy(
    problem: Problem,
    loss: Loss,
    W: FloatArray,
    F: FloatArray,
    intercept: FloatArray,
    *,
    lam: float,
    gamma: float,
) -> float:
    """Σ_k loss(f_k + b_k) + λ/2 |w_k|² + γ/2 f_kᵀLf_k for coordinates W and values F."""
    total = loss.value(F[problem.rows], intercept, problem) + lam / 2 * float(np.sum(W**2))
    if gamma > 0 and problem.graph is not None:
        total += gamma / 2 * float(np.sum(problem.graph.dirichlet(F)))
    return total
