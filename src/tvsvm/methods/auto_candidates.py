"""The six methods that `auto` chooses among, each for a problem and for parts of its labels."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from tvsvm.losses import Squared
from tvsvm.methods.candidates import Candidate, lowest
from tvsvm.methods.choice import Last
from tvsvm.methods.doubt import softened, softened_by_names, softened_by_neighbours
from tvsvm.methods.judging import Judged
from tvsvm.methods.laplacian import laplacian
from tvsvm.methods.pairwise import pairwise, pairwise_at
from tvsvm.methods.partition import (
    PartitionSearch,
    TwoSided,
    both_sides,
    clear_cut,
    loss_of_evenness,
    one_function,
)
from tvsvm.methods.ratio import rounded, shares_of
from tvsvm.methods.spectral import spectral, spectral_at, waves
from tvsvm.methods.supervised import supervised
from tvsvm.methods.total_variation import TVStrengths, from_partition
from tvsvm.methods.two_classes import balanced_cut, by_one_function
from tvsvm.problem import MethodResult, Problem
from tvsvm.results import FloatArray, IntArray, Status
from tvsvm.start import poisson

LAM, GAMMA, R, ETA = 0.1, 1.0, 0.1, 10.0
WEAK = TVStrengths(LAM, 0.05, R)
UNEVEN = 0.01  # loss of evenness by a search that counts for something
# Classes that have no place where their labels are: by chance one, or so many of all.
ONE_HOMELESS, SOME_HOMELESS = 1, 0.15

Method = Callable[[Problem], MethodResult]


class Candidates:
    """The methods, each for the problem itself and for parts of it with labels held back."""

    def __init__(self, problem: Problem, options: dict[str, Any], last: Last | None) -> None:
        assert problem.graph is not None
        self.problem, self.graph, self.options = problem, problem.graph, options
        self.last = last
        # The end of a search with somewhat other labels.
        self.searched = last.cut if last is not None and "balanced" in last.choice.say else None
        if problem.n_columns > 2:  # what a partition found needs, and it is mostly the answer
            problem.space.begin_sample()
        self._guesses: dict[bytes, FloatArray] = {}
        self._found: dict[str, MethodResult] = {}

    def run(self, name: str) -> MethodResult:
        """One of them, by its name, for the problem itself."""
        if name not in self._found:
            method: Method = getattr(self, name)
            self._found[name] = method(self.problem)
        return self._found[name]

    def together(self, say: dict[str, float]) -> MethodResult:
        """Several of them added up, each with its say."""
        found = {name: self.run(name) for name in say}
        two = self.problem.n_columns == 2
        if len(say) > 1 and "balanced" in say and not two:
            found["balanced"] = softened(self.problem, found["balanced"])
        lead = max(found.values(), key=lambda result: not result.converged)
        lead = replace(lead, clear=self._clear)
        if len(say) == 1:
            # Weak total variation may end where it began: a partition is sure of every row.
            is_cut = bool(np.isin(lead.solution, (0.0, 1.0)).all())
            if not is_cut:
                return lead
            if two:
                return softened(self.problem, lead)
            doubt = self._partitions.names_in_doubt(lead.solution)
            return softened_by_names(
                self.problem, softened_by_neighbours(self.problem, lead), doubt
            )

        def total(part: str) -> FloatArray:
            return np.sum([say[name] * getattr(found[name], part) for name in say], axis=0)

        cut = found.get("balanced")
        return replace(
            lead,
            solution=total("solution"),
            coordinates=total("coordinates"),
            intercept=total("intercept"),
            partition=None if cut is None else cut.solution.argmax(axis=1),
        )

    def judged(self, name: str) -> Judged:
        """One of them, by its name, for parts of the problem and only where labels were held back.

        Pairs gain by that, being many, and so does what is made of the same eigenvectors. Of a
        balanced cut the partition near a first guess is judged: what follows, a long search,
        changes too few rows to matter.
        """
        if name == "pairs":
            return pairwise_at
        if name == "spectral":
            return lambda part, rows: spectral_at(part, rows, self._waves)
        if name == "balanced" and self.problem.n_columns > 2:
            return lambda part, rows: self._near(part)[0][rows]
        method: Method = getattr(self, name)
        return lambda part, rows: method(part).solution[rows]

    @cached_property
    def first(self) -> FloatArray:
        """A first guess."""
        return poisson(self.problem, self.graph)

    @cached_property
    def near(self) -> FloatArray:
        """A balanced cut that is quickly found."""
        if self.problem.n_columns == 2:
            return self._one_cut.solution
        return self._nearby[0]

    @cached_property
    def _nearby(self) -> tuple[FloatArray, list[float]]:
        """That, for c > 2, and its falling energies."""
        return self._near(self.problem)

    @cached_property
    def _far(self) -> tuple[FloatArray, list[float]]:
        """A balanced cut that a longer search finds, for c > 2, and its falling energies."""
        return self._nearby if self.is_clear else self._partitions.everywhere(self.near)

    @property
    def astray(self) -> bool:
        """Whether that one is less even than the one nearby, and no more walks end at home.

        Where classes are clusters a search makes them more even, or walks agree with it. Where they
        only touch seldom, being many, it unites some and divides others.
        """
        if self.searched is not None or self.is_clear:
            return False
        far, price = self._far[0], self._partitions.price
        loss = loss_of_evenness(shares_of(far), shares_of(self.near))
        return loss > UNEVEN and price(far) >= price(self.near)

    @cached_property
    def homeless(self) -> bool:
        """Whether the longer search leaves classes without a place where their labels are.

        Then two classes share a part, and a third one has two: so large classes are divided, and
        small ones united, by cuts that are too balanced.
        """
        if self.searched is not None or self.is_clear:
            return False
        count = self._partitions.homeless(self._far[0])
        return count > max(ONE_HOMELESS, SOME_HOMELESS * self.problem.n_columns)

    def kernel(self, problem: Problem) -> MethodResult:
        """RLS."""
        return supervised(problem, Squared(ETA), lam=LAM)

    def pairs(self, problem: Problem) -> MethodResult:
        """Regression of the labels alone, one class against one other."""
        return pairwise(problem)

    def spectral(self, problem: Problem) -> MethodResult:
        """Regression of the labels on the leading eigenvectors of the graph."""
        return spectral(problem, self._waves)

    @cached_property
    def _waves(self) -> FloatArray:
        return waves(self.graph, self.problem.n_columns)

    def laplacian(self, problem: Problem) -> MethodResult:
        """LapRLS."""

        def method(p: Problem) -> MethodResult:
            return laplacian(p, Squared(ETA), lam=LAM, gamma=GAMMA, tol=1e-2, max_iter=50)

        return by_one_function(problem, method) if problem.n_columns == 2 else method(problem)

    def smooth(self, problem: Problem) -> MethodResult:
        """Weak total variation from a first guess."""
        start = rounded(problem, self._guess(problem))
        return from_partition(problem, Squared(ETA), start, WEAK, **self.options)

    def balanced(self, problem: Problem) -> MethodResult:
        """A partition of low ratio, found by a search, or Cheeger's cut for two classes."""
        if problem.n_columns == 2:
            whole = problem is self.problem
            return self._one_cut if whole else self._cut(problem)
        if self.is_clear:
            partition, path = self._nearby
        elif self.searched is not None:
            partition, path = self._partitions.again(self.searched)
        elif self.astray or self.homeless:
            partition, path = self._nearby
        else:
            partition, path = self._far
        n_iter = max(len(path) - 1, 1)
        found = Candidate(partition, path[-1], 0.0, n_iter, Status.CONVERGED, path)
        return lowest(problem, [found], LAM)

    def quick(self, part: Problem, rows: IntArray) -> FloatArray:
        """A partition of low ratio for part of the labels of two classes, at some rows."""
        one = replace(part, targets=one_function(part.targets))
        guess = both_sides(poisson(one, self.graph))
        return TwoSided(one, self.graph).search(guess)[0][rows]

    def _near(self, problem: Problem) -> tuple[FloatArray, list[float]]:
        placed = self._placed
        if placed is not None and problem is not self.problem:
            placed = PartitionSearch(problem, self.graph.confirmed, self._clear).placed()
        if placed is not None:
            return placed
        guess = self._guess(problem)  # first: it takes the most memory
        return PartitionSearch(problem, self.graph).nearby(guess, hasty=True)

    @cached_property
    def _one_cut(self) -> MethodResult:
        return self._cut(self.problem)

    def _cut(self, problem: Problem) -> MethodResult:
        options = {"lam": LAM, "r": R, "tol": self.options["tol"]}
        last = self.searched if problem is self.problem else None
        return by_one_function(
            problem, lambda one: balanced_cut(one, Squared(ETA), last, **options)
        )

    @cached_property
    def _partitions(self) -> PartitionSearch:
        """The longer search, for c > 2.

        Clusters hang together by edges that common neighbours confirm, and with each other mostly
        by edges that they do not.
        """
        return PartitionSearch(self.problem, self.graph.confirmed, self._clear)

    @cached_property
    def _clear(self) -> IntArray | None:
        """A partition found without labels, for c > 2, if there is one between even clusters."""
        c = self.problem.n_columns
        if c == 2 or self.last is not None:
            return None if self.last is None else self.last.clear
        return clear_cut(self.graph, self.graph.confirmed, c)

    @cached_property
    def _placed(self) -> tuple[FloatArray, list[float]] | None:
        """That one with the labels, if it suits them."""
        return None if self._clear is None else self._partitions.placed()

    @property
    def is_clear(self) -> bool:
        """Whether the cut nearby, for c > 2, is one found without labels: also the one far away."""
        return self._placed is not None

    def _guess(self, problem: Problem) -> FloatArray:
        if problem is self.problem:
            return self.first
        # Several methods are judged with the same labels held back.
        kept = problem.rows.tobytes()
        if kept not in self._guesses:
            self._guesses[kept] = poisson(problem, self.graph)
        return self._guesses[kept]
