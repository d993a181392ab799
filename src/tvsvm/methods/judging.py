"""What labels say about methods and cuts: those held back, and those on the wrong side."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import bdtr

from tvsvm._telling import part_of
from tvsvm.methods.ratio import rounded, shares_of
from tvsvm.problem import Problem
from tvsvm.results import BoolArray, FloatArray, IntArray

MOST_FOLDS = 3
FEWEST = 4  # labels held back that say something about a method
SEVERAL = 6  # labels beside a cut that say something about it
RARE = 0.01  # chance of numbers of labels below which class sizes are not believed at all
MANY_TIMES = 10  # as many labels of one class as of another: their number is no guide then
CONTRADICTS = 1.64  # standard deviations: one of ten numbers of random labels is further off
FEW_MISSED = 0.15  # share of held-back labels: no more for a cut between clusters
UNHEARD = 3.0  # labels more than another that a method must not miss to be heard at all
ALL_RIGHT = 16  # labels of one fold: a cut between clusters that misses none needs no other fold
TINY = np.finfo(np.float64).tiny

Judged = Callable[[Problem, IntArray], FloatArray]  # values at some rows, for some of the labels


def fair_labels(problem: Problem, corrections: Sequence[int]) -> BoolArray:
    """Which labels can judge a method: all but corrections."""
    return ~np.isin(problem.rows, corrections)


def against_the_cut(
    problem: Problem, near: FloatArray, short: bool, missed: float | None, fair: BoolArray
) -> str:
    """What labels say against a cut in two, if anything.

    They may lie on either side of it about as they would by chance. If it is `short`, they may
    speak against the sizes of its sides, having been missed when held back, too.
    """
    if _among_others(problem, near, fair):
        return "too many labels lie among rows that a balanced cut gives to the other class"
    if short and has_other_sizes(problem, near, missed, fair):
        return "numbers of labels contradict the class sizes that a cut between clusters has"
    return ""


def has_other_sizes(
    problem: Problem, functions: FloatArray, missed: float | None, fair: BoolArray
) -> bool:
    """Whether two classes have sizes that random labels speak against.

    Not if hardly any of the labels held back are `missed`: then their number is chance.
    """
    by_chance = missed is not None and (
        missed <= FEW_MISSED or missed * folds(problem, fair)[1] <= _noise(0)
    )
    return not by_chance and _other_sizes(problem, functions, fair)


def has_rare_sizes(problem: Problem, functions: FloatArray, fair: BoolArray) -> bool:
    """Whether random labels would hardly ever be as they are if two classes had these sizes.

    So it is where next to all rows are given to the class with more labels. Labels that say nothing
    about sizes do not speak against them either.
    """
    counts = problem.targets[fair].sum(axis=0)
    if _chosen(counts):
        return False
    share = shares_of(rounded(problem, functions))[0]
    first, n = int(counts[0]), int(counts.sum())
    return bool(min(bdtr(first, n, share), bdtr(n - first, n, 1 - share)) < RARE)


def _among_others(problem: Problem, near: FloatArray, fair: BoolArray) -> bool:
    """Whether the neighbours of labels are on either side of a cut in two about as by chance.

    The labels themselves are held to their own.
    """
    assert problem.graph is not None
    sides = (problem.graph.affinity @ rounded(problem, near))[problem.rows]
    wrong = int(np.sum((sides.argmax(axis=1) != problem.targets.argmax(axis=1))[fair]))
    n = int(fair.sum())
    return n >= SEVERAL and wrong + _noise(wrong) > n / 2


def _other_sizes(problem: Problem, near: FloatArray, fair: BoolArray) -> bool:
    """Whether the sides of a cut have sizes that random labels speak against."""
    counts = problem.targets[fair].sum(axis=0)
    if _chosen(counts):
        return False
    n, shares = counts.sum(), shares_of(rounded(problem, near))
    off = abs(counts[0] - n * shares[0]) / np.sqrt(max(n * shares[0] * shares[1], TINY))
    return bool(off > CONTRADICTS)


def _chosen(counts: FloatArray) -> bool:
    """Whether somebody chose the labels of two classes, so that their numbers mean nothing.

    They are equal, or of one class there are many times as many.
    """
    fewer, more = np.sort(counts)
    return bool(more - fewer <= 1 or more >= MANY_TIMES * fewer)


def folds(problem: Problem, fair: BoolArray) -> tuple[IntArray, int]:
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


def held_back(
    problem: Problem,
    methods: dict[str, Judged],
    favourite: str,
    fair: BoolArray,
    *,
    few: float = 0.0,
) -> tuple[dict[str, float], int]:
    """Share of held-back labels that each method misses, and how many were held back.

    Half of it is counted by label and half by class: whether classes have as many rows as they have
    labels is not known, and whatever gives all rows to the one with the most would win. Where one
    has ten times the labels of another, somebody chose them, and only classes count. If the
    favourite misses no more than a share of `few`, it is the only one that is judged, and if it
    misses none of many, one fold is enough. A method is given up as soon as it would have no say,
    see `say_of`. Empty if there is fewer than one label a class to hold back, or none but of one
    class.
    """
    fold, count = folds(problem, fair)
    codes = problem.targets.argmax(axis=1)
    held = np.bincount(codes[fold >= 0], minlength=problem.n_columns)
    if count < max(problem.n_columns, FEWEST) or np.sum(held > 0) < 2:
        return {}, 0
    uneven = held.max() >= MANY_TIMES * held[held > 0].min()
    evenly = (count / np.sum(held > 0) / np.maximum(held, 1))[codes]
    worth = evenly if uneven else (1 + evenly) / 2
    missed: dict[str, float] = {}
    n_folds = int(fold.max()) + 1
    for name in sorted(methods, key=lambda name: name != favourite):
        wrong = 0.0
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
            wrong += float(np.sum(worth[test][found != codes[test]]))
            if wrong > min(missed.values(), default=np.inf) * count + UNHEARD:
                break
            enough = few > 0.0 and not uneven and np.sum(test) >= ALL_RIGHT
            if enough and name == favourite and wrong == 0:
                return {favourite: 0.0}, int(np.sum(test))
        else:
            missed[name] = wrong / count
            if name == favourite and wrong <= few * count:
                break
    return missed, count


def say_of(missed: dict[str, float], count: int) -> dict[str, float]:
    """How much each method has to say, 1 in all: e times less for each label more that it missed.

    So the likelihood of the labels would have it, roughly, if each method was as sure as it should
    be. A few labels do not tell methods apart, and then several together are better than any.
    """
    fewest = min(missed.values())
    more = {name: (share - fewest) * count for name, share in missed.items()}
    say = {name: float(np.exp(-lost)) for name, lost in more.items() if lost <= UNHEARD}
    return {name: each / sum(say.values()) for name, each in say.items()}


def _noise(wrong: float) -> float:
    """By how many missed labels two methods may differ by chance: a standard deviation."""
    return float(np.sqrt(wrong + 1))
