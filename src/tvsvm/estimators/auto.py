"""The recommended classifier: kernel, Laplacian, weak and balanced cut, one or together."""

from dataclasses import asdict, replace
from typing import Any, ClassVar

import numpy as np

from tvsvm.estimators.base import AT_LEAST_ONE, POSITIVE
from tvsvm.estimators.graph import GraphClassifier
from tvsvm.estimators.memory import Memory
from tvsvm.estimators.parameters import parameter, with_parameters
from tvsvm.labels import Labels
from tvsvm.methods.auto import auto
from tvsvm.methods.choice import Choice, Last
from tvsvm.methods.partition import both_sides, one_function
from tvsvm.problem import MethodResult, Problem
from tvsvm.results import FloatArray


@with_parameters
class AutoTV(GraphClassifier):
    """Recommended: a balanced cut where classes are clusters, smoother functions where not.

    min_f  η/2 Σ_i (f_i - y_i)² + λ/2 |f|²_K + γ S(f),

    over labelled rows i, for terms S that compete: none (RLS; also with an intercept, each class
    against each other one, λ/η by leave-one-out), the graph Laplacian (LapRLS), its leading
    eigenvectors (f is a sum of these) and weak total variation from Poisson learning; and with them
    a partition of low balanced ratio Σ_k cut_k / B_k with the labels in their classes (sought on
    edges that common neighbours confirm, see `Graph.confirmed`, first without labels, which only
    name its parts if independent searches agree; for two classes CheegerRLS). The
    favourite is the last, or weak total variation if it crosses more than a tenth of the edge
    weight (more than two classes) or leaves some classes next to nothing; then the last is out. If
    there are labels to spare, folds of them are held back. A short cut that misses at most 15 % of
    them is the answer, if it is one of more classes than two or no other method misses two labels
    fewer; otherwise functions are added up, e times less for each label more that a method missed.
    A short cut in two gives way to LapRLS if labels in unequal numbers contradict its sizes. Cuts
    of more than two classes, and short ones, are judged by one that is quickly found, the answer is
    found by a longer search. If that makes more than two classes less even and leads away from
    their labels, or leaves several without a place where their labels are, no cut is trusted that
    no label judges.
    """

    tol: float = parameter(
        1e-2,
        [POSITIVE],
        """float
Iterations end when the functions move relatively less; the search for a partition of more than
two classes ends by itself.""",
    )
    max_iter: int = parameter(
        100,
        [AT_LEAST_ONE],
        "int\nMost iterations of weak total variation, for more than two classes.",
    )

    _attributes: ClassVar[dict[str, str]] = {
        "report_": """dict
"method" with the largest "say", which is how much each method has in the sum of their
functions; the "reason" in one sentence; "held_back", the share of held-back labels that
methods missed (empty if labels were too few, without those that were given up soon);
"n_labels" there were when it was chosen: with
``warm_start`` it stays until there are a quarter more. "corrections": rows whose label
contradicted an earlier fit with ``warm_start``, neither counted nor held back, because
they were not labelled by chance.""",
    }

    def _when_made(self, labels: Labels) -> dict[str, Any]:
        # A partition is mostly the answer, and needs no more than a sample for new rows.
        return {**super()._when_made(labels), "sample": labels.n_classes > 2}

    def _solve(self, problem: Problem) -> MethodResult:
        return self._choose(problem)

    def _resolve(self, problem: Problem, last: Memory) -> MethodResult:
        choice = Choice(**self.report_)
        corrections = np.union1d(choice.corrections, last.corrected_by(problem))
        still = np.isin(corrections, problem.rows)
        choice = replace(choice, corrections=tuple(corrections[still].astype(int).tolist()))
        if last.result.converged and last.confirmed_by(problem):
            self._choice = choice  # labels that only agree are no reason to change
            return last.result
        return self._choose(problem, Last(choice, _last_cut(last.result), last.result.clear))

    def _choose(self, problem: Problem, last: Last | None = None) -> MethodResult:
        result, self._choice = auto(
            _one_function_a_class(problem),
            last,
            tol=self.tol,
            max_iter=self.max_iter,
            n_jobs=self._n_threads,
        )
        return _one_function(result) if problem.n_columns == 1 else result

    def _store(self, problem: Problem, labels: Labels, result: MethodResult) -> None:
        super()._store(problem, labels, result)
        constant = Choice("constant", "there is only one class", {}, {}, problem.rows.size)
        self.report_ = asdict(self.__dict__.pop("_choice", constant))


def _last_cut(result: MethodResult) -> FloatArray:
    """The functions found, or of several methods together the cut that one of them found."""
    if result.partition is None:
        return result.solution
    n_columns = result.solution.shape[1]
    sides = np.eye(max(n_columns, 2))[result.partition]
    return sides if n_columns > 1 else one_function(sides)


def _one_function_a_class(problem: Problem) -> Problem:
    """Also for two classes: then all candidates speak the same language."""
    if problem.n_columns > 1:
        return problem
    return replace(problem, targets=both_sides(problem.targets))


def _one_function(result: MethodResult) -> MethodResult:
    """The difference of two functions, positive for the second class."""
    difference = np.array([[-1.0], [1.0]])
    return replace(
        result,
        solution=result.solution @ difference,
        coordinates=result.coordinates @ difference,
        intercept=result.intercept @ difference,
    )
