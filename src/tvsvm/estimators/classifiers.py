"""The classifiers of the paper: each a loss and a method."""

from sklearn.utils._param_validation import StrOptions

from tvsvm.estimators.balanced import CheegerMethod, TVMethod
from tvsvm.estimators.base import AT_LEAST_ONE, NON_NEGATIVE, POSITIVE, KernelClassifier
from tvsvm.estimators.graph import GraphClassifier
from tvsvm.estimators.memory import Memory
from tvsvm.estimators.parameters import parameter, with_parameters
from tvsvm.labels import Labels
from tvsvm.losses import Hinge, Squared
from tvsvm.methods.laplacian import SimplexResult, SimplexState, laplacian
from tvsvm.methods.supervised import supervised
from tvsvm.problem import MethodResult, Problem
from tvsvm.results import IntArray


@with_parameters
class SquaredLoss:
    """Loss and its weight for the RLS classifiers."""

    eta: float = parameter(10.0, [POSITIVE], "float\nη, weight of the squared loss.")

    @property
    def _loss(self) -> Squared:
        return Squared(self.eta)


@with_parameters
class HingeLoss:
    """Loss and its weight for the SVM classifiers."""

    mu: float = parameter(10.0, [POSITIVE], "float\nμ, weight of the hinge loss.")

    @property
    def _loss(self) -> Hinge:
        return Hinge(self.mu)


class SupervisedMethod(KernelClassifier):
    """Labelled rows alone."""

    def _carriers(self, labels: Labels) -> IntArray:
        # Only they can carry the functions (representer theorem): few, and without any error.
        return labels.rows

    def _solve(self, problem: Problem) -> MethodResult:
        return supervised(problem, self._loss, lam=self.lam)


@with_parameters
class LaplacianMethod(GraphClassifier):
    """Smooth functions on the graph."""

    gamma: float = parameter(
        10.0,
        [NON_NEGATIVE],
        "float\nγ, weight of the graph: the larger, the less the functions vary along edges.",
    )
    tol: float = parameter(
        1e-3,
        [POSITIVE],
        "float\nThe iteration ends when its relative residuals are below this.",
    )
    max_iter: int = parameter(2000, [AT_LEAST_ONE], "int\nMost iterations.")
    algorithm: str = parameter(
        "default",
        [StrOptions({"default", "paper"})],
        """{"default", "paper"}
"paper" takes the weights of the graph without squaring them, iterates as the paper
does, and leaves the functions at the height that its objective gives them; by
default the iteration is accelerated, and their mean is brought to that of the
labels, which decides with few labels.""",
    )

    _family = "laplacian"

    def _solve(self, problem: Problem) -> MethodResult:
        return self._from(problem, None)

    def _resolve(self, problem: Problem, last: Memory) -> MethodResult:
        result = last.result
        return self._from(problem, result.state if isinstance(result, SimplexResult) else None)

    def _from(self, problem: Problem, start: SimplexState | None) -> MethodResult:
        return laplacian(
            problem,
            self._loss,
            lam=self.lam,
            gamma=self.gamma,
            paper=self.algorithm == "paper",
            start=start,
            tol=self.tol,
            max_iter=self.max_iter,
        )


@with_parameters
class RLS(SupervisedMethod, SquaredLoss):
    """Regularised least squares in a kernel space, from the labelled rows alone.

    min_f  η/2 Σ_i (f_i - y_i)² + λ/2 |f|²_K,

    over labelled rows i; y = ±1 for two classes, otherwise one function a class with y = 0 or 1.
    """


@with_parameters
class SVM(SupervisedMethod, HingeLoss):
    """Support vector machine, from the labelled rows alone.

    min_{f,b}  μ Σ_i max(0, 1 - y_i (f_i + b)) + λ/2 |f|²_K,

    over labelled rows i, y = ±1; with more than two classes one against the rest.
    """


@with_parameters
class LapRLS(LaplacianMethod, SquaredLoss):
    """Least squares with functions that are smooth on a graph of all rows.

    min_f  η/2 Σ_i (f_i - y_i)² + λ/2 |f|²_K + γ/2 Σ_{jk} w_jk² (f_j - f_k)²,

    over labelled rows i and edges jk, the w_jk² scaled to a mean degree of 1; y = ±1 for two
    classes, otherwise one function a class with y = 0 or 1, together on the simplex. Where a given
    graph has weights of a wide range, ``algorithm="paper"``, which does not square them, may be
    the better choice.
    """


@with_parameters
class LapSVM(LaplacianMethod, HingeLoss):
    """Support vector machine with functions that are smooth on a graph of all rows.

    min_{f,b}  μ Σ_i max(0, 1 - y_i (f_i + b)) + λ/2 |f|²_K + γ/2 Σ_{jk} w_jk² (f_j - f_k)²,

    over labelled rows i and edges jk, the w_jk² scaled to a mean degree of 1, y = ±1; with more
    than two classes one function a class, together on the simplex. For given graphs see `LapRLS`.
    """


@with_parameters
class TVRLS(TVMethod, SquaredLoss):
    """Least squares with functions of small total variation on a graph of all rows.

    min_f  η/2 Σ_i (f_i - y_i)² + λ/2 |f|²_K + γ Σ_{jk} w_jk |f_j - f_k|,

    over labelled rows i and edges jk, with the balance that keeps the cut from shrinking to the
    labelled rows: f has mean zero and norm √N for two classes; with more, one function a class,
    on the simplex, each with the norm of its share of the rows.
    """


@with_parameters
class TVSVM(TVMethod, HingeLoss):
    """Support vector machine with functions of small total variation on a graph of all rows.

    min_{f,b}  μ Σ_i max(0, 1 - y_i (f_i + b)) + λ/2 |f|²_K + γ Σ_{jk} w_jk |f_j - f_k|,

    over labelled rows i and edges jk, balanced as `TVRLS` is.
    """


@with_parameters
class CheegerRLS(CheegerMethod, SquaredLoss):
    """Cheeger cut of a graph of all rows through the labels, with steps through least squares.

    min_f  Σ_{jk} w_jk |f_j - f_k| / Σ_i |f_i - median f|,  f_i = y_i on labelled rows i,

    with more than two classes the sum of such ratios, balanced for as many classes, for one
    function a class on the simplex. The labels are clamped; η has no part in it. The balance is
    that of the ratio, for classes of the same size: where they are known to differ much, `TVRLS`
    with a `class_prior` is the better choice.
    """


@with_parameters
class CheegerSVM(CheegerMethod, HingeLoss):
    """Cheeger cut of a graph of all rows through the labels, with steps through an SVM.

    min_f  Σ_{jk} w_jk |f_j - f_k| / Σ_i |f_i - median f|,  f_i = y_i on labelled rows i,

    as `CheegerRLS`; the step e = argmin μ Σ_i ξ_i + λ/2 |e|²_K + r/2 |e - g|² has margins.
    """
