"""What a fit says about itself with `verbose`: a line a stage, with its seconds."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from tvsvm._telling import told_by
from tvsvm.graph import Graph
from tvsvm.kernel import RKHS
from tvsvm.problem import MethodResult


class Stages:
    """The stages of one fit, each reported when it is done, if `verbose` is positive."""

    def __init__(self, name: str, *, verbose: int) -> None:
        self._name, self._verbose = name, verbose
        self._since = perf_counter()

    def kept(self, what: str) -> None:
        """Something was there already."""
        self._done(f"{what}: kept from the last fit")

    def made_space(self, space: RKHS) -> None:
        """The kernel space is ready."""
        # To ask for landmarks that are chosen later is to choose them now.
        count = len(space.landmark_indices) if self._verbose > 0 else 0
        self._done(f"kernel space: {_counted(count, 'landmark')}")

    def made_graph(self, graph: Graph) -> None:
        """The graph is ready."""
        rows, edges = _counted(graph.n_nodes, "row"), _counted(graph.n_edges, "edge")
        self._done(f"graph: {rows}, {edges}, {_counted(graph.n_components, 'component')}")

    def solved(self, result: MethodResult) -> None:
        """The functions are found."""
        ended = "converged" if result.converged else "not converged"
        iterations, energy = _counted(result.n_iter, "iteration"), result.energy_path[-1]
        self._done(f"{iterations}, {ended}, energy {energy:.4g}")

    def _done(self, text: str) -> None:
        seconds = perf_counter() - self._since
        if self._verbose > 0:
            _write(self._name, f"{text} ({seconds:.1f} s)")
        self._since = perf_counter()


@contextmanager
def parts_told(name: str, *, verbose: int) -> Iterator[None]:
    """Context in which a line says what begins, if `verbose` is 2 or more."""
    if verbose < 2:
        yield
        return
    last = ""

    def listen(part: str, share: float | None) -> None:
        nonlocal last
        if part != last:
            _write(name, f"{part} ...")
        last = part

    with told_by(listen):
        yield


def _write(name: str, text: str) -> None:
    sys.stdout.write(f"[{name}] {text}\n")
    sys.stdout.flush()


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
