"""The recommended choice: one of five methods, and the reason told.

Where classes are clusters a partition of low ratio is by far the best answer. Where they overlap
it cuts in the wrong place, and smoother functions are the better guide. Labels held back tell which
is the case if there are enough of them; otherwise the partition itself does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tvsvm._telling import part_of
from tvsvm.losses import Squared
from tvsvm.methods.laplacian import laplacian
from tvsvm.methods.pairwise import pairwise, pairwise_at
from tvsvm.methods.partition import (
    CUT_LIMIT,
    LESS_EVEN,
    PartitionSearch,
    cut_share,
    less_even,
    loss_of_evenness,
)
from tvsvm.methods.ratio import rounded, shares_of
from tvsvm.methods.supervised import supervised
from tvsvm.methods.total_variation import TVStrengths, from_partition
from tvsvm.methods.two_classes import balanced_cut, by_one_function
from tvsvm.problem import MethodResult, Problem
from tvsvm.results import BoolArray, FloatArray, IntArray
from tvsvm.start import poisson

LAM, GAMMA, R, ETA = 0.1, 1.0, 0.1, 10.0
WEAK, STRONG = TVStrengths(LAM, 0.05, R), TVStrengths(LAM, 1.2, 1.0)
BOTH = 1.5  # shares of the limits on cut and unevenness that together are too much, too
UNEVEN = 0.01  # loss of evenness by a search that counts for something
ENOUGH = 5  # times `tol`: from a partition of low ratio little happens after that for long
MOST_FOLDS = 3
FEWEST = 6  # labels that say something about a method
MANY_TIMES = 10  # as many labels of one class as of another: their number is no guide then
TINY = np.finfo(np.float64).tiny
MORE_LABELS = 0.25  # share of new labels up to which a choice is kept
CONTRADICTS = 1.64  # standard deviations: one of ten numbers of random labels is further off
FEW_MISSED = 0.1  # share of held-back labels: no more for a cut between clusters
METHODS = ("smooth", "laplacian", "kernel", "pairs", "balanced")

Method = Callable[[Problem], MethodResult]
Judged = Callable[[Problem, IntArray], FloatArray]  # values at some rows, for some of the labels


@dataclass(frozen=True)
class Choice:
    """What was chosen, and why.

    Attributes
    ----------
    method : str
        "kernel", "pairs", "laplacian", "smooth" (weak total variation from Poisson learning) or
        "balanced" (total variation from a partition of low ratio; for two classes the cut of
        low ratio itself).
    reason : str
        One sentence.
    held_back : dict
        Share of held-back labels missed by the favourite and by each method clearly better than
        it; empty if there were too few labels.
    n_labels : int
        How many labels it was chosen with, corrections not counted.
    corrections : tuple of int
        Labelled rows that an earlier fit had given another class. Somebody labelled them because
        they were wrong: held back, they would speak against what was chosen, however good it is.
    """

    method: str
    reason: str
    held_back: dict[str, float]
    n_labels: int
    corrections: tuple[int, ...] = ()

    def holds_for(self, problem: Problem) -> bool:
        """Whether labels are not so many more, or fewer, that it should be made again."""
        count = int(np.sum(_fair(problem, self.corrections)))
        return abs(count - self.n_labels) <= MORE_LABELS * self.n_labels


def auto(
    problem: Problem,
    last: tuple[Choice, FloatArray] | None = None,
    *,
    tol: float,
    max_iter: int,
    n_jobs: int | None = None,
) -> tuple[MethodResult, Choice]:
    """Run the candidates for c > 1 functions and keep one; see the module.

    `last` is what was chosen for somewhat other labels, with the functions found then.
    """
    options = {"tol": tol, "max_iter": max_iter, "n_jobs": n_jobs}
    searched = last[1] if last is not None and last[0].method == "balanced" else None
    candidates = _Candidates(problem, options, searched)
    if last is not None and last[0].holds_for(problem):
        return candidates.run(last[0].method), last[0]
    favourite, reason = _from_the_cut(problem, candidates.near, candidates.first)
    methods = {name: candidates.judged(name) for name in METHODS}
    clusters = favourite == "balanced" and _short(problem, candidates.near)
    corrections = () if last is None else last[0].corrections
    fair = _fair(problem, corrections)
    if favourite != "balanced":  # then it was never the best one, and takes the longest
        del methods["balanced"]
    if problem.targets[fair].sum(axis=0).min() < MOST_FOLDS:
        del methods["pairs"]  # a class that is not in every fold: all for the others looks good
    missed = _held_back(problem, methods, favourite, fair, few=FEW_MISSED if clusters else 0.0)
    against = ""
    if favourite == "balanced" and problem.n_columns == 2:
        against = _against_the_cut(problem, candidates.near, clusters, missed.get(favourite), fair)
    if against:
        del methods[favourite]
        favourite, reason = "laplacian", against
        missed = _held_back(problem, methods, favourite, fair)
    chosen = min(missed, key=missed.__getitem__, default=favourite)
    if missed and not (against and chosen == favourite):
        count = _folds(problem, fair)[1]
        reason = (
            f"of {count} labels held back it missed {missed[chosen]:.0%}, no method clearly fewer"
        )
    if chosen == "balanced" and problem.n_columns > 2 and candidates.astray:
        chosen = "smooth"
        reason = "the search for a better cut leads to less even classes, away from their labels"
    return candidates.run(chosen), Choice(chosen, reason, missed, int(fair.sum()), corrections)


class _Candidates:
    """The methods, each for the problem itself and for parts of it with labels held back."""

    def __init__(
        self, problem: Problem, options: dict[str, Any], searched: FloatArray | None
    ) -> None:
        assert problem.graph is not None
        self.problem, self.graph, self.options = problem, problem.graph, options
        self.searched = searched  # end of a search with somewhat other labels
        self._guesses: dict[bytes, FloatArray] = {}

    def run(self, name: str) -> MethodResult:
        """One of them, by its name, for the problem itself."""
        method: Method = getattr(self, name)
        return method(self.problem)

    def judged(self, name: str) -> Judged:
        """One of them, by its name, for parts of the problem and only where labels were held back.

        Only pairs gain by that, being many.
        """
        if name == "pairs":
            return pairwise_at
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
        return self._partitions.nearby(self.first, hasty=True)[0]

    @cached_property
    def far(self) -> FloatArray:
        """A balanced cut that a longer search finds, for c > 2."""
        return self._partitions.everywhere(self.near)[0]

    @cached_property
    def astray(self) -> bool:
        """Whether that one is less even than the one nearby, and no more walks end at home.

        Where classes are clusters a search makes them more even, or walks agree with it. Where they
        only touch seldom, being many, it unites some and divides others.
        """
        if self.searched is not None:
            return False
        loss = loss_of_evenness(shares_of(self.far), shares_of(self.near))
        price = self._partitions.price
        return loss > UNEVEN and price(self.far) >= price(self.near)

    def kernel(self, problem: Problem) -> MethodResult:
        """RLS."""
        return supervised(problem, Squared(ETA), lam=LAM)

    def pairs(self, problem: Problem) -> MethodResult:
        """Regression of the labels alone, one class against one other."""
        return pairwise(problem)

    def laplacian(self, problem: Problem) -> MethodResult:
        """LapRLS."""

        def method(p: Problem) -> MethodResult:
            return laplacian(p, Squared(ETA), lam=LAM, gamma=GAMMA, tol=1e-2, max_iter=50)

        return by_one_function(problem, method) if problem.n_columns == 2 else method(problem)

    def smooth(self, problem: Problem) -> MethodResult:
        """Weak total variation from a first guess."""
        start = rounded(problem, self._guess(problem))
        return from_partition(problem, Squared(ETA), start, WEAK, by_ratio=True, **self.options)

    def balanced(self, problem: Problem) -> MethodResult:
        """Total variation from a partition of low ratio, Cheeger's cut for two classes."""
        # Labels held back only tell whether a balanced cut is any good; a long search for the best
        # one hardly changes that.
        whole = problem is self.problem
        if problem.n_columns == 2:
            return self._one_cut if whole else self._cut(problem, quick=True)
        if not whole:
            start, _ = PartitionSearch(problem, self.graph).nearby(self._guess(problem))
        elif self.searched is not None:
            start, _ = self._partitions.again(self.searched)
        else:
            start = self.far
        options = {**self.options, "tol": ENOUGH * self.options["tol"]}
        return from_partition(problem, Squared(ETA), start, STRONG, **options)

    @cached_property
    def _one_cut(self) -> MethodResult:
        return self._cut(self.problem)

    def _cut(self, problem: Problem, *, quick: bool = False) -> MethodResult:
        options = {"lam": LAM, "r": R, "tol": self.options["tol"], "quick": quick}
        last = self.searched if problem is self.problem else None
        return by_one_function(
            problem, lambda one: balanced_cut(one, Squared(ETA), last, **options)
        )

    @cached_property
    def _partitions(self) -> PartitionSearch:
        return PartitionSearch(self.problem, self.graph)

    def _guess(self, problem: Problem) -> FloatArray:
        if problem is self.problem:
            return self.first
        # Several methods are judged with the same labels held back.
        kept = problem.rows.tobytes()
        if kept not in self._guesses:
            self._guesses[kept] = poisson(problem, self.graph)
        return self._guesses[kept]


def _from_the_cut(problem: Problem, near: FloatArray, guess: FloatArray) -> tuple[str, str]:
    """Whether a partition of low ratio is to be trusted, by the cut and the sizes of one nearby."""
    graph = problem.graph
    assert graph is not None
    partition, other = rounded(problem, near), rounded(problem, guess)
    cut = cut_share(graph, partition)
    if less_even(shares_of(partition), shares_of(other)):
        return "smooth", "the balanced cut would leave some classes next to nothing"
    if cut > CUT_LIMIT and problem.n_columns > 2:
        return (
            "smooth",
            f"the classes overlap: {cut:.0%} of the links between similar rows would be cut",
        )
    if cut > CUT_LIMIT:
        return (
            "balanced",
            f"the classes overlap: a cut found through the kernel crosses {cut:.0%} of the links",
        )
    loss = loss_of_evenness(shares_of(partition), shares_of(other))
    if problem.n_columns > 2 and cut / CUT_LIMIT + loss / LESS_EVEN > BOTH:
        return "smooth", "the balanced cut is rather long, and its classes are rather uneven"
    return (
        "balanced",
        f"the classes are clusters: a cut between them crosses only {cut:.1%} of the links",
    )


def _short(problem: Problem, near: FloatArray) -> bool:
    """Whether the classes of a partition seem to be clusters."""
    assert problem.graph is not None
    return cut_share(problem.graph, rounded(problem, near)) <= CUT_LIMIT


def _fair(problem: Problem, corrections: Sequence[int]) -> BoolArray:
    """Which labels can judge a method: all but corrections."""
    return ~np.isin(problem.rows, corrections)


def _against_the_cut(
    problem: Problem, near: FloatArray, short: bool, missed: float | None, fair: BoolArray
) -> str:
    """What labels say against a cut in two, if anything.

    They may lie on either side of it about as they would by chance. If it is `short`, they may
    speak against the sizes of its sides, having been missed when held back, too.
    """
    if _among_others(problem, near, fair):
        return "too many labels lie among rows that a balanced cut gives to the other class"
    by_chance = missed is not None and (
        missed <= FEW_MISSED or missed * _folds(problem, fair)[1] <= _noise(0)
    )
    if short and not by_chance and _other_sizes(problem, near, fair):
        return "numbers of labels contradict the class sizes that a cut between clusters has"
    return ""


def _among_others(problem: Problem, near: FloatArray, fair: BoolArray) -> bool:
    """Whether the neighbours of labels are on either side of a cut in two about as by chance.

    The labels themselves are held to their own.
    """
    assert problem.graph is not None
    sides = (problem.graph.affinity @ rounded(problem, near))[problem.rows]
    wrong = int(np.sum((sides.argmax(axis=1) != problem.targets.argmax(axis=1))[fair]))
    n = int(fair.sum())
    return n >= FEWEST and wrong + _noise(wrong) > n / 2


def _other_sizes(problem: Problem, near: FloatArray, fair: BoolArray) -> bool:
    """Whether the sides of a cut have sizes that random labels speak against.

    Labels in equal number, or many times as many of one class, say nothing about sizes: somebody
    chose them.
    """
    counts = problem.targets[fair].sum(axis=0)
    fewer, more = np.sort(counts)
    if more - fewer <= 1 or more >= MANY_TIMES * fewer:
        return False
    n, shares = counts.sum(), shares_of(rounded(problem, near))
    off = abs(counts[0] - n * shares[0]) / np.sqrt(max(n * shares[0] * shares[1], TINY))
    return bool(off > CONTRADICTS)


def _folds(problem: Problem, fair: BoolArray) -> tuple[IntArray, int]:
    """Fold of each label, -1 for those never held back, and how many are held back in all.

    A class always keeps a label, and every class its turn.
    """
    codes = problem.targets.argmax(axis=1)
    counts = np.bincount(codes[fair], minlength=problem.n_columns)
    n_folds = min(MOST_FOLDS, int(counts.max()))
    fold = np.full(codes.size, -1)
    order = np.random.RandomState(0).permutation(codes.size)  # whatever the classes are called
    for k in np.flatnonzero(counts >= 2):
        rows = order[(codes[order] == k) & fair[order]]
        fold[rows] = np.arange(rows.size) % n_folds
    return fold, int(np.sum(fold >= 0))


def _held_back(
    problem: Problem,
    methods: dict[str, Judged],
    favourite: str,
    fair: BoolArray,
    *,
    few: float = 0.0,
) -> dict[str, float]:
    """Share of held-back labels missed by the favourite and by each method clearly better than it.

    Clearly better is to miss fewer by more than a standard deviation. Where one class has ten times
    the labels of another, it must not miss more where classes count the same either: else
    whatever gives all rows to the larger one wins. Against a favourite that misses no more than a
    share of `few`, it takes two standard deviations. Empty if there is fewer than one label a class
    to hold back, or none but of one class. Another method is given up as soon as it cannot be
    clearly better.
    """
    fold, count = _folds(problem, fair)
    codes = problem.targets.argmax(axis=1)
    held = np.bincount(codes[fold >= 0], minlength=problem.n_columns)
    if count < max(problem.n_columns, FEWEST) or np.sum(held > 0) < 2:
        return {}
    uneven = held.max() >= MANY_TIMES * held[held > 0].min()
    share = (1 / np.maximum(held, 1))[codes]
    missed: dict[str, float] = {}
    to_beat = fewest = most_even = np.inf  # what the favourite missed; the best one so far
    margin = 1.0
    n_folds = int(fold.max()) + 1
    for name in sorted(methods, key=lambda name: name != favourite):
        wrong, evenly = 0, 0.0
        for f in range(n_folds):
            test = fold == f
            part = replace(
                problem,
                rows=problem.rows[~test],
                targets=problem.targets[~test],
                weights=problem.weights[~test],
            )
            with part_of(f"labels held back, fold {f + 1} of {n_folds}", f / n_folds):
                found = methods[name](part, problem.rows[test]).argmax(axis=1)
            wrong += int(np.sum(found != codes[test]))
            evenly += float(np.sum(share[test][found != codes[test]]))
            if wrong + margin * _noise(wrong) >= to_beat or wrong >= fewest or evenly > most_even:
                break
        else:
            missed[name] = wrong / count
            fewest = wrong
            if name == favourite:
                to_beat, most_even = wrong, evenly if uneven else np.inf
                margin = 2.0 if wrong <= few * count else 1.0
        if to_beat <= margin * _noise(0):
            break
    return missed


def _noise(wrong: float) -> float:
    """By how many missed labels two methods may differ by chance: a standard deviation."""
    return float(np.sqrt(wrong + 1))
