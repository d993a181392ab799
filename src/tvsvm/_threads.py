"""Threads: one for each product of BLAS, several for batches of rows.

Threads of BLAS wait for each other in every product. As soon as another process wants a core, two
take 1.3 to 5 times as long as one does (benchmarks/README.md). Batches wait once, at their end, and
give the same digits whatever the number of threads.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import Event, Lock, local
from typing import Any, Generic, TypeVar

from threadpoolctl import ThreadpoolController

A = TypeVar("A")
B = TypeVar("B")

LOAD = Path("/proc/loadavg")  # which tells, on Linux, how many threads run or wait for their turn


class _BlasLimit:
    """One thread for BLAS while anybody, in any thread, is in the context."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._n_users = 0
        self._n_threads = 1
        self._limiter: Any = None

    @contextmanager
    def held(self) -> Iterator[int]:
        with self._lock:
            if self._n_users == 0:
                self._n_threads = max((p.num_threads for p in _blas().lib_controllers), default=1)
                self._limiter = _blas().limit(limits=1)
            self._n_users += 1
        try:
            yield self._n_threads
        finally:
            with self._lock:
                self._n_users -= 1
                if self._n_users == 0:
                    self._limiter.restore_original_limits()


_limit = _BlasLimit()
# Context in which BLAS has one thread; it gives the number that BLAS had outside.
one_blas_thread = _limit.held


_here = local()  # hurry: in a thread that does batches by itself until that is set


def map_batches(function: Callable[[A], B], batches: Sequence[A]) -> Iterator[B]:
    """Call the function for every batch, as many at a time as BLAS would have threads."""
    hurry: Event | None = getattr(_here, "hurry", None)
    with one_blas_thread() as n_threads:
        done = 0
        if min(n_threads, len(batches)) == 1 or hurry is not None:
            while done < len(batches) and not (n_threads > 1 and hurry and hurry.is_set()):
                yield function(batches[done])
                done += 1
        if done < len(batches):
            with ThreadPoolExecutor(n_threads) as pool:
                yield from pool.map(function, batches[done:])


class Later(Generic[A]):
    """A value that is made once: when it is asked for, or in another thread by `beside`."""

    def __init__(self, make: Callable[[], A]) -> None:
        self._make: Callable[[], A] | None = make
        self._future: Future[A] = Future()
        self._lock = Lock()
        self.hurry = Event()  # set as soon as somebody waits for it

    @classmethod
    def of(cls, value: A) -> "Later[A]":
        """One that is made already."""
        later = cls(lambda: value)
        later()
        return later

    @property
    def begun(self) -> bool:
        """Whether it is made, or being made."""
        return self._make is None

    def take(self) -> Callable[[], None] | None:
        """What makes it, for one caller; None if another one makes it, or has made it."""
        with self._lock:
            make, self._make = self._make, None
        if make is None:
            return None

        def run() -> None:
            try:
                self._future.set_result(make())
            except Exception as error:  # for whoever asks for it
                self._future.set_exception(error)
            except BaseException:  # an interruption is not its fault: it can be made again
                with self._lock:
                    self._make = make
                raise

        return run

    def __call__(self) -> A:
        """The value; if it could not be made, what was raised then."""
        run = self.take()
        if run is not None:
            run()
        elif not self._future.done():
            self.hurry.set()
        return self._future.result()


def beside(*values: Later[Any]) -> None:
    """Make values one after the other in a thread of their own.

    That thread is the only one for them, for batches and for BLAS; the caller goes on, and waits
    only when it asks for one of them: then others may help. Where no thread can be had, they are
    made here.
    """
    hurry = Event()
    runs = []
    for value in values:
        run = value.take()
        if run is not None:
            runs.append(run)
            value.hurry = hurry

    if not runs:
        return

    def alone() -> None:
        _here.hurry = hurry
        with one_blas_thread():
            for run in runs:
                run()

    pool = ThreadPoolExecutor(1)
    try:
        pool.submit(alone)
    except RuntimeError:
        for run in runs:
            run()
    pool.shutdown(wait=False)


def n_threads() -> int:
    """How many threads BLAS has, or had outside of `one_blas_thread`."""
    with one_blas_thread() as number:
        return number


def a_core_is_free() -> bool:
    """Whether fewer threads run now than the machine has processors; True where nobody knows.

    A share of a millisecond's work that has to wait for its turn waits for several.
    """
    try:
        running = int(LOAD.read_text().split()[3].partition("/")[0])
    except (OSError, ValueError, IndexError):
        return True
    return running < (os.cpu_count() or 1)


@cache
def _blas() -> ThreadpoolController:
    # Kept, since looking for the libraries takes longer than a small fit.
    return ThreadpoolController().select(user_api="blas")
