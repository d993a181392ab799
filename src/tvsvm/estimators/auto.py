"""The recommended classifier: chooses between kernel, Laplacian, weak and balanced cut."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from tvsvm.estimators.base import AT_LEAST_ONE, POSITIVE
from tvsvm.estimators.graph import GraphClassifier
from tvsvm.estimators.memory import Memory
from tvsvm.estimators.parameters import parameter, with_parameters
from tvsvm.labels import Labels
from tvsvm.methods.auto import Choice, auto
from tvsvm.methods.problem import MethodResult, Problem


@with_parameters
class AutoTV(GraphClassifier):
    """Recommended: total variation where classes are clusters, smoother functions where not.

    min_f  η/2 Σ_i (f_i - y_i)² + λ/2 |f|²_K + γ S(f),

    over labelled rows i, for four terms S that compete: none (RLS), the graph Laplacian (LapRLS),
    weak total variation from Poisson learning, and total variation from a partition of low
    balanced ratio Σ_k cut_k / B_k (TVRLS). The favourite is the last, or the third if the cut
    crosses more than a twentieth of the edge weight or leaves some classes next to nothing; then
    the last is out. If there are labels to spare, folds of them are held back, and a method that
    misses clearly fewer of them takes the favourite's place. For more than two classes both are
    judged by a partition that is quickly found; the result comes from a longer search.
    """

    tol: float = parameter(
        1e-2, [POSITIVE], "float\nThe iteration ends when the functions move relatively less."
    )
    max_iter: int = parameter(100, [AT_LEAST_ONE], "int\nMost iterations.")

    _attributes: ClassVar[dict[str, str]] = {
        "report_": """dict
"method" that was chosen, "reason" in one sentence, and "held_back", the share of
held-back labels missed by the favourite and by each method clearly better than it
(empty if labels were too few).""",
    }

    def _solve(self, problem: Problem) -> MethodResult:
        two = problem.n_columns == 1
        if two:  # one function a class here, too: then all candidates speak the same language
            positive = problem.targets[:, 0] > 0
            problem = replace(problem, targets=np.stack([~positive, positive], 1).astype(float))
        result, self._choice = auto(
            problem, tol=self.tol, max_iter=self.max_iter, n_jobs=self.n_jobs
        )
        return _one_function(result) if two else result

    def _resolve(self, problem: Problem, last: Memory) -> MethodResult:
        if last.result.converged and last.confirmed_by(problem):
            self._choice = Choice(**self.report_)  # labels that only agree are no reason to change
            return last.result
        return self._solve(problem)

    def _store(self, problem: Problem, labels: Labels, result: MethodResult) -> None:
        super()._store(problem, labels, result)
        choice: Any = self.__dict__.pop("_choice", None)
        self.report_ = {
            "method": choice.method if choice else "constant",
            "reason": choice.reason if choice else "there is only one class",
            "held_back": choice.held_back if choice else {},
        }


def _one_function(result: MethodResult) -> MethodResult:
    """The difference of two functions, positive for the second class."""
    difference = np.array([[-1.0], [1.0]])
    return replace(
        result,
        solution=result.solution @ difference,
        coordinates=result.coordinates @ difference,
        intercept=result.intercept @ difference,
    )
