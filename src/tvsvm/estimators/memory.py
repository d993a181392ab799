"""What a fit keeps for the next one (`warm_start`): kernel space, graph and functions."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from scipy.sparse import issparse

from tvsvm.graph import Graph
from tvsvm.kernel import RKHS
from tvsvm.labels import codes_of
from tvsvm.problem import MethodResult, Problem
from tvsvm.results import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Memory:
    """The last fit, with what tells how much of it still holds.

    Attributes
    ----------
    ground : dict
        Fingerprints of the rows and of the parameters that make kernel space and graph.
    method : dict
        Fingerprints of the classes and of the parameters that say which functions are sought.
    problem : Problem
        Kernel space, graph and labels.
    result : MethodResult
        The functions.
    """

    ground: dict[str, Any]
    method: dict[str, Any]
    problem: Problem
    result: MethodResult

    def confirmed_by(self, problem: Problem) -> bool:
        """Whether labels were only added, and only such as the functions had found already.

        A label in a part of the graph that had none says something new in any case.
        """
        before, now = _confidence(self.problem), _confidence(problem)
        same = bool(np.all((before == 0) | (before == now))) and not self.corrected_by(problem).size
        if not same or problem.graph is None:
            return same
        components = problem.graph.component_labels
        return bool(np.isin(components[problem.rows], components[self.problem.rows]).all())

    def corrected_by(self, problem: Problem) -> IntArray:
        """Rows that have another label now than the class found, or given, before."""
        found = codes_of(self.result.solution)
        found[self.problem.rows] = codes_of(self.problem.targets)
        return problem.rows[found[problem.rows] != codes_of(problem.targets)]


def fingerprints(values: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """What tells by == whether any of the named values has changed since."""
    return {name: _fingerprint(values[name]) for name in names}


def _fingerprint(value: Any) -> Any:
    """The value itself where only identity can tell, otherwise a hash of its content."""
    if isinstance(value, Graph | RKHS | np.random.RandomState) or callable(value):
        return value
    if issparse(value):
        rows = value.tocsr()
        value = (rows.shape, rows.data, rows.indices, rows.indptr)
    return joblib.hash(value, hash_name="sha1")  # 0.2 s for 220 MB, md5 takes twice as long


def _confidence(problem: Problem) -> FloatArray:
    """Weight of each row's label, (N,), 0 without one."""
    weights = np.zeros(problem.space.n_points)
    weights[problem.rows] = problem.weights
    return weights
