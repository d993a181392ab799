"""Running methods over label draws: one graph for all, every outcome kept at once, in parallel."""

import signal
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cached_property
from multiprocessing import get_context

import numpy as np
from threadpoolctl import threadpool_limits

from tvsvm.datasets import Dataset, draw_labels
from tvsvm.experiments.store import Outcome, Store, Trial
from tvsvm.graph import Graph, knn_graph
from tvsvm.kernel import RKHS
from tvsvm.results import IntArray


@dataclass(frozen=True, eq=False)
class Case:
    """A data set as the methods see it.

    Attributes
    ----------
    name : str
        That of the data set, under which its outcomes are stored.
    X, y : ndarray
        Rows, and their classes numbered from 0 without a gap.
    graph : Graph
        The same for every method that uses one.
    splits : mapping from int to ndarray
        As in `Dataset`.
    """

    name: str
    X: np.ndarray
    y: IntArray
    graph: Graph
    splits: dict[int, IntArray]

    @classmethod
    def of(cls, dataset: Dataset, *, n_jobs: int | None = None) -> "Case":
        """The data set with the graph that comes with it, or else that of the classifiers."""
        codes = np.unique(dataset.y, return_inverse=True)[1]
        graph = dataset.graph or knn_graph(dataset.X, bridges=True, random_state=0, n_jobs=n_jobs)
        if graph.n_edges:
            graph = graph.scaled(mean_degree=1.0)
        return cls(dataset.name, dataset.X, codes, graph, dict(dataset.splits))

    @cached_property
    def space(self) -> RKHS:
        """The functions of the default kernel, shared by all methods that build it on all rows."""
        return RKHS(self.X, unit_diagonal=True, random_state=0)

    def labelled(self, trial: Trial) -> IntArray:
        """Rows whose class the trial shows."""
        if trial.official:
            return self.splits[trial.labels][trial.draw]
        return draw_labels(self.y, trial.labels, trial.draw, seed=trial.seed)

    def shown(self, rows: IntArray) -> IntArray:
        """The classes of some rows, -1 elsewhere."""
        y = np.full(len(self.y), -1)
        y[rows] = self.y[rows]
        return y


@dataclass(frozen=True)
class Method:
    """Something to compare.

    Attributes
    ----------
    name : str
        As in the tables.
    predict : callable
        From a case and its labelled rows to the classes of all rows. A module's own function, or
        a `functools.partial` of one, so that other processes can be sent it.
    settings : str
        Changes whenever the results would.
    """

    name: str
    predict: Callable[[Case, IntArray], np.ndarray]
    settings: str


def plan(
    case: Case,
    methods: Iterable[Method],
    *,
    labels: Sequence[int],
    draws: int,
    seed: int = 0,
    official: bool = False,
) -> list[Trial]:
    """All trials of some methods, draw by draw, so that an interrupted run compares all of them.

    Parameters
    ----------
    case, methods
        What to run on what.
    labels : sequence of int
        Labels a class; sizes of official splits if `official`.
    draws : int
        Sets of labelled rows for each of them, at most as many as there are official ones.
    seed : int
        Series of the draws.
    official : bool
        Take the official splits.
    """
    return [
        Trial(case.name, method.name, method.settings, count, official, draw, seed)
        for draw in range(draws)
        for count in labels
        if not official or draw < len(case.splits[count])
        for method in methods
    ]


def run(
    cases: Sequence[Case],
    methods: Sequence[Method],
    trials: Sequence[Trial],
    *,
    store: Store,
    n_jobs: int = 1,
) -> Iterator[Outcome]:
    """Do the trials that the store does not have, and yield the outcomes of all.

    A method that fails is counted as guessing, with the reason in the note.

    Parameters
    ----------
    cases, methods : sequences of Case and Method
        Those that the trials name.
    trials : sequence of Trial
        As from `plan`.
    store : Store
        Where each outcome is added as soon as it is there.
    n_jobs : int
        Processes, each with one thread for linear algebra.
    """
    names = [case.name for case in cases]
    if len(set(names)) < len(names) or not {trial.case for trial in trials} <= set(names):
        raise ValueError(
            f"`cases` must have names of their own, and those of the trials. Got {names}; rename "
            "or add some."
        )
    done = store.read()
    yield from (done[trial] for trial in trials if trial in done)
    for outcome in _outcomes(cases, methods, [t for t in trials if t not in done], n_jobs):
        store.add(outcome)
        yield outcome


def _outcomes(
    cases: Sequence[Case], methods: Sequence[Method], trials: list[Trial], n_jobs: int
) -> Iterator[Outcome]:
    if min(n_jobs, len(trials)) <= 1:
        with threadpool_limits(1):
            yield from (_outcome(cases, methods, trial) for trial in trials)
        return
    pool = ProcessPoolExecutor(
        min(n_jobs, len(trials)),
        mp_context=get_context("spawn"),  # threads of numba and BLAS do not survive a fork
        initializer=_start_worker,
        initargs=(cases, methods),
    )
    try:
        for future in as_completed([pool.submit(_work, trial) for trial in trials]):
            yield future.result()
    finally:
        pool.shutdown(cancel_futures=True)


_worker: tuple[
    Sequence[Case], Sequence[Method]
]  # of this process, sent once and not with every trial


def _start_worker(cases: Sequence[Case], methods: Sequence[Method]) -> None:
    global _worker
    _worker = cases, methods
    threadpool_limits(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops all


def _work(trial: Trial) -> Outcome:
    return _outcome(*_worker, trial)


def _outcome(cases: Sequence[Case], methods: Sequence[Method], trial: Trial) -> Outcome:
    case = next(case for case in cases if case.name == trial.case)
    method = next(method for method in methods if method.name == trial.method)
    rows = case.labelled(trial)
    hidden = np.ones(len(case.y), dtype=bool)
    hidden[rows] = False
    start, note = time.perf_counter(), ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = np.asarray(method.predict(case, rows))
        error = 100 * float(np.mean(found[hidden] != case.y[hidden]))
    except (Exception, SystemExit) as failure:  # GraphLearning exits where others raise
        error = 100 - 100 / (case.y.max() + 1)
        note = f"{type(failure).__name__}: {failure}"[:200]
    return Outcome(trial, error, time.perf_counter() - start, note)
