"""The recommended choice: one of six methods, or several together, and the reason told.

Where classes are clusters a partition of low ratio is by far the best answer. Where they overlap
it cuts in the wrong place, and smoother functions are the better guide. Labels held back tell which
is the case if there are enough of them; otherwise the partition itself does. Neither is certain, so
what else may be right has its say: functions are added up, and one that is unsure of a row is small
there.
"""

from tvsvm.methods.auto_candidates import Candidates
from tvsvm.methods.choice import Choice, Last
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
from tvsvm.methods.partition import CUT_LIMIT, cut_share, less_even
from tvsvm.methods.ratio import rounded, shares_of
from tvsvm.problem import MethodResult, Problem
from tvsvm.results import BoolArray, FloatArray

# Share of the edge weight that a cut of more than two classes may cross. Where clusters have few
# rows, neighbours are not near, and cuts longer than CUT_LIMIT may still be between clusters.
LONG_CUT = 0.1
# Labels that a short cut in two may miss without a look at others, and labels fewer that one of
# these must miss to be heard beside it.
HARDLY_ANY, CLEARLY_FEWER = 1.5, 2.0
LONG_DOUBT = 2.0  # labels fewer that a cut of more than two classes longer than CUT_LIMIT must miss
METHODS = ("smooth", "laplacian", "kernel", "pairs", "spectral", "balanced")
# What has the same say as the favourite where labels are too few to judge.
OTHERS = ("laplacian", "kernel")


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
    candidates = Candidates(problem, options, last)
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
    problem: Problem, candidates: Candidates, methods: dict[str, Judged], fair: BoolArray
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
    candidates: Candidates, missed: dict[str, float], count: int, fair: BoolArray
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


def _from_the_search(candidates: Candidates, reason: str) -> tuple[str, str]:
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
