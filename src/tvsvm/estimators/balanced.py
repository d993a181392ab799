"""What the classifiers with total variation and Cheeger cut share: starts, balance, stopping."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from tvsvm.estimators.base import AT_LEAST_ONE, POSITIVE
from tvsvm.estimators.graph import GraphClassifier
from tvsvm.estimators.memory import Memory
from tvsvm.estimators.parameters import parameter, with_parameters
from tvsvm.methods.cheeger import cheeger
from tvsvm.methods.doubt import softened
from tvsvm.methods.total_variation import TVStrengths, total_variation
from tvsvm.methods.two_classes import followed
from tvsvm.problem import MethodResult, Problem
from tvsvm.results import FloatArray
from tvsvm.start import first_guesses, poisson

# Class shares that a start finds, corrected by what is known of them.
Prior = Callable[[FloatArray], FloatArray]


@with_parameters
class BalancedMethod(GraphClassifier):
    """Functions found from several starts, the lowest energy kept."""

    r: float | None = parameter(
        None,
        [POSITIVE, None],
        """float or None
r, how firmly the functions on the graph and in the kernel space are tied. None:
0.1 for two classes, 1 for more.""",
    )
    n_init: int | None = parameter(
        None,
        [AT_LEAST_ONE, None],
        """int or None
Number of starts: Poisson learning, leading eigenvectors of the graph, then Poisson
learning on randomly changed graphs. The end with the lowest energy is kept.
None: 3 for two classes, and one more where a search finds a clearly better cut;
1 for more classes, where such a search always comes first.
After a fit with ``warm_start=True`` new labels that confirm the classes found
leave the functions as they are; other changes of labels, with the same classes
and parameters, are followed from the last functions, or for two classes from
a cut near these or Poisson learning if that is much better. The paper's
algorithm always starts afresh.""",
    )
    class_prior: Any = parameter(
        None,
        [StrOptions({"uniform"}), "array-like", None],
        """None, "uniform" or array-like
Share of each class. None: as the start finds them. An array of shape
(n_classes,), or (2, n_classes) for lower and upper bounds. It is a hint: two
classes get another start that is cut accordingly, more their sizes in the
total-variation iteration, and if the energy without it is lower, it is not used.
Not used by the paper's algorithm.""",
    )
    algorithm: str = parameter(
        "default",
        [StrOptions({"default", "paper"})],
        """{"default", "paper"}
"paper" runs the paper's iteration as printed, from the first start only.""",
    )
    tol: float = parameter(
        1e-3, [POSITIVE], "float\nThe iteration ends when the functions move relatively less."
    )
    max_iter: int = parameter(100, [AT_LEAST_ONE], "int\nMost iterations from each start.")

    def _tie(self, problem: Problem) -> float:
        """The value of r."""
        return self.r or (0.1 if problem.n_columns == 1 else 1.0)

    @abstractmethod
    def _follow(
        self,
        problem: Problem,
        starts: list[FloatArray],
        *,
        last: MethodResult | None = None,
        search: bool = False,
    ) -> MethodResult:
        """Find the functions from these starts, or from the last ones, found for other labels.

        Two classes by a `search` for a better cut, too.
        """

    def _solve(self, problem: Problem) -> MethodResult:
        assert problem.graph is not None
        count = self.n_init or (3 if problem.n_columns == 1 else 1)
        if self.algorithm == "paper":
            count = 1
        random = check_random_state(self.random_state)
        starts = first_guesses(problem, problem.graph, count, random)
        if problem.n_columns == 1 and self.algorithm != "paper":
            starts += _recut(problem, starts[0], self._prior(problem))
        search = self.n_init is None and self.algorithm != "paper"
        return self._follow(problem, starts, search=search)

    def _prior(self, problem: Problem) -> Prior:
        """How class shares are corrected by what is known of them."""
        return _prior(self.class_prior, max(problem.n_columns, 2))

    def _resolve(self, problem: Problem, last: Memory) -> MethodResult:
        if self.algorithm == "paper":
            return self._solve(problem)
        if last.result.converged and last.confirmed_by(problem):
            # A lowest ratio stays the lowest where more labels are clamped that it meets. With
            # the softer labels of TV another run changes less than one from another start does.
            return last.result
        assert problem.graph is not None
        starts = [last.result.solution]
        if problem.n_columns == 1:
            starts = followed(problem, last.result.solution)
            if self.class_prior is not None:
                guess = poisson(problem, problem.graph)
                starts += _recut(problem, guess, self._prior(problem))
        return self._follow(problem, starts, last=last.result)


@with_parameters
class TVMethod(BalancedMethod):
    """Total variation."""

    gamma: float | None = parameter(
        None,
        [POSITIVE, None],
        """float or None
γ, weight of the total variation of a graph of mean degree 1. None: 0.5 for two
classes, 1.2 for more.""",
    )

    def _follow(
        self,
        problem: Problem,
        starts: list[FloatArray],
        *,
        last: MethodResult | None = None,
        search: bool = False,
    ) -> MethodResult:
        gamma = self.gamma or (0.5 if problem.n_columns == 1 else 1.2)
        return total_variation(
            problem,
            self._loss,
            starts,
            strengths=TVStrengths(lam=self.lam, gamma=gamma, r=self._tie(problem)),
            prior=self._prior(problem),
            last=last,
            search=search,
            paper=self.algorithm == "paper",
            tol=self.tol,
            max_iter=self.max_iter,
            n_jobs=self._n_threads,
        )


@with_parameters
class CheegerMethod(BalancedMethod):
    """Cheeger cut."""

    step: float = parameter(
        0.1, [POSITIVE], "float\nc, length of a step towards the cut, for two classes."
    )

    def _follow(
        self,
        problem: Problem,
        starts: list[FloatArray],
        *,
        last: MethodResult | None = None,
        search: bool = False,
    ) -> MethodResult:
        result = cheeger(
            problem,
            self._loss,
            starts,
            lam=self.lam,
            r=self._tie(problem),
            step=self.step,
            prior=self._prior(problem),
            searched=last is not None,
            search=search,
            paper=self.algorithm == "paper",
            tol=self.tol,
            max_iter=self.max_iter,
            n_jobs=self._n_threads,
        )
        return result if self.algorithm == "paper" else softened(problem, result)


def _recut(problem: Problem, start: FloatArray, prior: Prior) -> list[FloatArray]:
    """Two classes of a start with their shares corrected; none if there is nothing to correct."""
    positive = float(np.mean(start > 0))
    found = np.array([1 - positive, positive])
    shares = prior(found)
    if np.allclose(shares, found):
        return []
    cut = np.where(start > np.quantile(start, shares[0]), 1.0, -1.0)
    cut[problem.rows] = problem.targets
    return [cut]


def _prior(given: ArrayLike | str | None, n_classes: int) -> Prior:
    """How the class shares that a start finds are corrected by what is known of them."""
    if given is None:
        return lambda shares: shares
    if isinstance(given, str):
        given = np.full(n_classes, 1 / n_classes)
    try:
        bounds = np.broadcast_to(np.asarray(given, dtype=np.float64), (2, n_classes))
    except ValueError:  # another shape, or no numbers
        bounds = np.full((2, n_classes), np.nan)
    low, high = bounds
    if not (np.isfinite(bounds).all() and (low > 0).all() and (low <= high).all()):
        raise ValueError(
            f"`class_prior` must hold positive shares of {n_classes} classes, or lower and upper "
            f"bounds of them. Got {given!r}; pass for example 'uniform'."
        )

    def corrected(shares: FloatArray) -> FloatArray:
        kept = np.clip(shares, low, high)
        return kept / kept.sum()

    return corrected
