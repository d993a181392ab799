"""Several starts, one answer: the candidate of lowest energy, extended to new points."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tvsvm.problem import MethodResult, Problem
from tvsvm.results import FloatArray, IntArray, Status

# Iterations in a row that may gain nothing: with multipliers and a balance in it, an iteration
# circles around its end. From a start that is nearly the end, there is little to wait for.
PATIENCE, PATIENCE_NEARBY = 8, 2


@dataclass(frozen=True, eq=False)
class Candidate:
    """Where an iteration got from one start: its best iterate, and its last if that is of use.

    `partition` as in `MethodResult`.
    """

    solution: FloatArray
    energy: float
    change: float
    n_iter: int
    status: Status
    energies: Sequence[float]
    last: FloatArray | None = None
    partition: IntArray | None = None


class Progress:
    """Keeps the best iterate and says when there is nothing more to gain.

    An iteration has converged when its iterates move by at most `tol` relative to their norm, or
    when the best energy has not fallen by `tol`, relatively, for `patience` iterations.
    """

    def __init__(self, tol: float, patience: int = PATIENCE) -> None:
        self.tol, self.patience = tol, patience
        self.n_iter = 0
        self.energies: list[float] = []
        self.best: FloatArray = np.empty(0)
        self.last: FloatArray = np.empty(0)
        self._best_energy = self._settled_energy = np.inf
        self._settled_at = 0
        self._change = np.inf

    def add(self, solution: FloatArray, energy: float, change: float) -> bool:
        """Take in an iterate; whether the iteration has converged.

        A start, which has moved from nowhere, has an infinite change and is no iteration.
        """
        self.n_iter += bool(np.isfinite(change))
        self.energies.append(energy)
        self._change, self.last = change, solution
        if energy < self._best_energy:
            self.best, self._best_energy = solution, energy
        if energy < self._settled_energy * (1 - self.tol):
            self._settled_energy, self._settled_at = energy, len(self.energies)
        return self.converged

    @property
    def converged(self) -> bool:
        """Whether the last iterate met one of the two criteria."""
        idle = len(self.energies) - self._settled_at
        return self._change <= self.tol or idle >= self.patience

    def candidate(self) -> Candidate:
        """The best iterate, with how the iteration went."""
        return Candidate(
            solution=self.best,
            energy=self._best_energy,
            change=self._change,
            n_iter=max(self.n_iter, 1),  # one that was not taken in was tried
            status=Status.CONVERGED if self.converged else Status.MAX_ITER,
            energies=self.energies,
            last=self.last,
        )


def lowest(problem: Problem, candidates: Sequence[Candidate], ratio: float) -> MethodResult:
    """Result of the candidate with the lowest energy.

    For new points the space gets the function nearest to it,
    argmin_f ratio/2 |f|²_K + ½ |f - solution|².
    """
    best = min(candidates, key=lambda candidate: candidate.energy)
    offset = 0.0 if problem.n_columns == 1 else 1 / problem.n_columns
    return MethodResult(
        solution=best.solution,
        status=best.status,
        n_iter=best.n_iter,
        certificate=best.change,
        coordinates=problem.space.nearest(best.solution - offset, ratio=ratio),
        intercept=np.full(problem.n_columns, offset),
        energy_path=np.array(best.energies),
        partition=best.partition,
    )
