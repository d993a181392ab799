"""What `auto` chose, and what it hands on to a fit with somewhat other labels."""

from dataclasses import dataclass

import numpy as np

from tvsvm.methods.judging import fair_labels
from tvsvm.problem import Problem
from tvsvm.results import FloatArray, IntArray

MORE_LABELS = 0.25  # share of new labels up to which a choice is kept


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
