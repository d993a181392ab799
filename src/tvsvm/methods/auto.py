"""The recommended choice: one of six methods, or several together, and the reason told.

Where classes are clusters a partition of low ratio is by far the best answer. Where they overlap
it cuts in the wrong place, and smoother functions are the better guide. Labels held back tell which
is the case if there are enough of them; otherwise the partition itself does. Neither is certain, so
what else may be right has its say: functions are added up, and one that is unsure of a row is small
there.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from tvsvm._telling import tell
from tvsvm.losses import Squared
from tvsvm.methods.candidates import Candidate, lowest
from tvsvm.methods.doubt import softened, softened_by_neighbours
from tvsvm.methods.judging import (
    FEW_MISSED,
    MOST_FOLDS,
    Judged,
    against_the_cut,
    fair_labels,
    folds,
    has_other_sizes,
    has_rare_sizes,
    held_back,
    say_of,
)
from tvsvm.methods.laplacian import laplacian
from tvsvm.methods.pairwise import pairwise, pairwise_at
from tvsvm.methods.partition import (
    CUT_LIMIT,
    PartitionSearch,
    TwoSided,
    both_sides,
    cut_share,
    less_even,
    loss_of_evenness,
    one_function,
)
from tvsvm.methods.ratio import rounded, shares_of
from tvsvm.methods.spectral import spectral, spectral_at, waves
from tvsvm.methods.supervised import supervised
from tvsvm.methods.total_variation import TVStrengths, from_partition
from tvsvm.methods.two_classes import balanced_cut, by_one_function
from tvsvm.problem import MethodResult, Problem
from tvsvm.results import BoolArray, FloatArray, IntArray, Status
from tvsvm.solvers.partition import clear_partition
from tvsvm.start import poisson

LAM, GAMMA, R, ETA = 0.1, 1.0, 0.1, 10.0
WEAK = TVStrengths(LAM, 0.05, R)
# Share of the edge weight that a cut of more than two classes may cross. Where clusters have few
# rows, neighbours are not near, and cuts longer than CUT_LIMIT may still be between clusters.
LONG_CUT = 0.1
# Labels that a short cut in two may miss without a look at others, and labels fewer that one of
# these must miss to be heard beside it.
HARDLY_ANY, CLEARLY_FEWER = 1.5, 2.0
LONG_DOUBT = 2.0  # labels fewer that a cut of more than two classes longer than CUT_LIMIT must miss
UNEVEN = 0.01  # loss of evenness by a search that counts for something
# Classes that have no place where their labels are: by chance one, or so many of all.
ONE_HOMELESS, SOME_HOMELESS = 1, 0.15
MORE_LABELS = 0.25  # share of new labels up to which a choice is kept
METHODS = ("smooth", "laplacian", "kernel", "pairs", "spectral", "balanced")
# What has the same say as the favourite where labels are too few to judge.
OTHERS = ("laplacian", "kernel")

Method = Callable[[Problem], MethodResult]


@dataclass(frozen=True)
class Choice:
    """What was chosen, and why.

    Attributes
    ----------
    method : str
        The one with the largest say: "kernel", "pairs", "spectral", "laplacian", "smooth" (weak
        total variation from Poisson learning) or "balanced" (a partition, or cut in two, of low
        ratio).
    reason : str
        One sentence.
    say : dict
        How much each method that was run has to say, 1 in all.
    held_back : dict
        Share of held-back labels that each method missed, of those that were not given up; empty
        if there were too few labels.
    n_labels : int
        How many labels it was chosen with, corrections not counted.
    corrections : tuple of int
        Labelled rows that an earlier fit had given another class. Somebody labelled them because
        they were wrong: held back, they would speak against what was chosen, however good it is.
    """

    method: str
    reason: str
    say: dict[str, float]
    held_back: dict[str, float]
    n_labels: int
    corrections: tuple[int, ...] = ()

    def holds_for(self, problem: Problem) -> bool:
        """Whether labels are not so many more, or fewer, that it should be made again."""
        count = int(np.sum(fair_labels(problem, self.corrections)))
        return abs(count - self.n_labels) <= MORE_LABELS * self.n_labels


@dataclass(frozen=True, eq=False)
class Last:
    """What was chosen for somewhat other labels, and the cut and clear partition found then."""

    choice: Choice
    cut: FloatArray
    clear: IntArray | None


def auto(
    problem: Problem,
    last: Last | None = None,
    *,
    tol: float,
    max_iter: int,
    n_jobs: int | None = None,
) -> tuple[MethodResult, Choice]:
    """Run the candidates for c > 1 functions and keep one; see the module."""
    options = {"tol": tol, "max_iter": max_iter, "n_jobs": n_jobs}
    searched = last if last is not None and "balanced" in last.choice.say else None
    candidates = _Candidates(problem, options, searched)
    if last is not None and last.choice.holds_for(problem):
        return candidates.together(last.choice.say), last.choice
    guess = None if candidates.is_clear else candidates.first
    favourite, reason = _from_the_cut(problem, candidates.near, guess)
    methods = {name: candidates.judged(name) for name in METHODS}
    clusters = favourite == "balanced" and _short(problem, candidates.near)
    corrections = () if last is None else last.choice.corrections
    fair = fair_labels(problem, corrections)
    if favourite != "balanced":  # then it was never the best one, and takes the longest
        del methods["balanced"]
    if problem.targets[fair].sum(axis=0).min() < MOST_FOLDS:
        del methods["pairs"]  # a class that is not in every fold: all for the others looks good
    missed: dict[str, float] = {}
    if clusters and problem.n_columns == 2:
        missed, count = _beside_a_short_cut(problem, candidates, methods, fair)
    if not missed:
        few = FEW_MISSED if clusters else 0.0
        missed, count = held_back(problem, methods, favourite, fair, few=few)
    against = ""
    if favourite == "balanced" and problem.n_columns == 2:
        against = against_the_cut(problem, candidates.near, clusters, missed.get(favourite), fair)
    if against:
        del methods[favourite]
        favourite, reason = "laplacian", against
        missed, count = held_back(problem, methods, favourite, fair)
    fewest = min(missed.values(), default=0.0)  # also of those that will have no say
    if problem.n_columns == 2 and len(missed) > 1:
        missed = _without_wrong_sizes(candidates, missed, count, fair)
    if problem.n_columns > 2 and favourite == "balanced" and not missed:
        favourite, reason = _from_the_search(candidates, reason)
    if not missed:
        say = _unjudged(favourite)
    else:
        long = problem.n_columns > 2 and not clusters and "balanced" in missed
        doubt = {"balanced": missed["balanced"] + LONG_DOUBT / count} if long else {}
        say = say_of(missed | doubt, count)
    chosen = max(say, key=lambda name: (say[name], name == favourite))
    if chosen in missed and not (against and chosen == favourite):
        reason = f"of {count} labels held back it missed {missed[chosen]:.0%}"
        reason += ", no method fewer" if len(missed) > 1 and missed[chosen] <= fewest else ""
    choice = Choice(chosen, reason, say, missed, int(fair.sum()), corrections)
    return candidates.together(say), choice


def _beside_a_short_cut(
    problem: Problem, candidates: "_Candidates", methods: dict[str, Judged], fair: BoolArray
) -> tuple[dict[str, float], int]:
    """Missed labels of a short cut in two, alone if it is the answer, and how many were held back.

    Nothing if too few are held back, or if it misses too many for a cut between clusters. What is
    judged is a cut that is found in a tenth of the time. Where one class is small, the shortest cut
    of about even sides may lead through the other one: then others miss clearly fewer labels.
    """
    missed, count = held_back(
        problem,
        methods | {"balanced": candidates.quick},
        "balanced",
        fair,
        few=HARDLY_ANY / max(folds(problem, fair)[1], 1),
    )
    if not missed or missed["balanced"] > FEW_MISSED:
        return {}, 0
    if (missed["balanced"] - min(missed.values())) * count < CLEARLY_FEWER:
        missed = {"balanced": missed["balanced"]}
    return missed, count


def _without_wrong_sizes(
    candidates: "_Candidates", missed: dict[str, float], count: int, fair: BoolArray
) -> dict[str, float]:
    """Missed labels of the methods, for two classes, whose class sizes labels do not contradict."""
    kept = dict(missed)
    for name in say_of(missed, count):
        found = candidates.run(name).solution
        # Weak total variation makes classes more even than they may be; others less, where they
        # know next to nothing.
        if name == "smooth":
            wrong = has_other_sizes(candidates.problem, found, missed[name], fair)
        else:
            wrong = name != "balanced" and has_rare_sizes(candidates.problem, found, fair)
        if wrong and len(kept) > 1:
            del kept[name]
    return kept


def _from_the_search(candidates: "_Candidates", reason: str) -> tuple[str, str]:
    """Whether a partition that no label judges is to be trusted, by where a longer search leads."""
    if candidates.homeless:
        return "smooth", "a balanced cut has no place for some classes where their labels are"
    if candidates.astray:
        return "smooth", "the search for a balanced cut leads away from the labels"
    return "balanced", reason


def _unjudged(favourite: str) -> dict[str, float]:
    """What each method has to say where there are not enough labels to hold back.

    A cut is right or wrong as a whole: between moons or rings, other methods would be wrong about
    half of what they add.
    """
    if favourite == "balanced":
        return {favourite: 1.0}
    heard = dict.fromkeys((favourite, *OTHERS))
    return dict.fromkeys(heard, 1 / len(heard))


class _Candidates:
    """The methods, each for the problem itself and for parts of it with labels held back."""

    def __init__(self, problem: Problem, options: dict[str, Any], last: Last | None) -> None:
        assert problem.graph is not None
        self.problem, self.graph, self.options = problem, problem.graph, options
        self.last = last  # with the end of a search with somewhat other labels
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
            soften = softened if two else softened_by_neighbours
            return soften(self.problem, lead) if is_cut else lead

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
        if self.last is not None or self.is_clear:
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
        if self.last is not None or self.is_clear:
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
        elif self.last is not None:
            partition, path = self._partitions.again(self.last.cut)
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
        whole = problem is self.problem
        last = self.last.cut if whole and self.last is not None else None
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
        """A partition found without labels, for c > 2, if there is one between clusters."""
        c = self.problem.n_columns
        if c == 2 or self.last is not None:
            return None if self.last is None else self.last.clear
        tell("searching a partition")
        found = clear_partition(csr_array(self.graph.confirmed.affinity), c)
        between = found is not None and cut_share(self.graph, np.eye(c)[found]) <= CUT_LIMIT
        return found if between else None

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


def _from_the_cut(problem: Problem, near: FloatArray, guess: FloatArray | None) -> tuple[str, str]:
    """Whether a partition of low ratio is to be trusted, by the cut and the sizes of one nearby.

    There is no guess that it comes from if it was found without labels.
    """
    graph = problem.graph
    assert graph is not None
    partition = rounded(problem, near)
    cut = cut_share(graph, partition)
    other = partition if guess is None else rounded(problem, guess)
    if less_even(shares_of(partition), shares_of(other)):
        return "smooth", "the balanced cut would leave some classes next to nothing"
    if problem.n_columns > 2 and cut > LONG_CUT:
        return (
            "smooth",
            f"the classes overlap: {cut:.0%} of the links between similar rows would be cut",
        )
    if problem.n_columns == 2 and cut > CUT_LIMIT:
        return (
            "balanced",
            f"the classes overlap: a cut found through the kernel crosses {cut:.0%} of the links",
        )
    return (
        "balanced",
        f"the classes are clusters: a cut between them crosses only {cut:.1%} of the links",
    )


def _short(problem: Problem, near: FloatArray) -> bool:
    """Whether the classes of a partition seem to be clusters."""
    assert problem.graph is not None
    return cut_share(problem.graph, rounded(problem, near)) <= CUT_LIMIT
