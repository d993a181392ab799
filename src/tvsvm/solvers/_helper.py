"""A second thread for compiled loops, which do not hold the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import get_ident
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def halves(n_rows: int) -> tuple[slice, slice]:
    """The rows of an array in two parts."""
    return slice(0, n_rows // 2), slice(n_rows // 2, n_rows)


class Helper:
    """Takes half of the work where there is a thread for it, and nothing otherwise.

    What is done does not depend on who does it, so neither does the result. Use it as a context,
    which ends the thread.

    Parameters
    ----------
    present : bool
        Whether there is a second thread.
    """

    def __init__(self, present: bool) -> None:
        self._pool = ThreadPoolExecutor(1) if present else None
        self._owner = get_ident()
        self._given: list[tuple[Future[None], Callable[[], None]]] = []

    def __enter__(self) -> Helper:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def share(
        self, work: Callable[[Item], Result], mine: Item, others: Item
    ) -> tuple[Result, Result]:
        """Return work(mine) and work(others), done at the same time if the helper is free.

        Within what it was given the helper itself would wait for itself, and does both.
        """
        alone = self._pool is None or get_ident() != self._owner
        if alone or any(not task.done() for task, _ in self._given):
            return work(mine), work(others)
        assert self._pool is not None
        theirs = self._pool.submit(work, others)
        return work(mine), theirs.result()

    def give(self, work: Callable[[], None]) -> None:
        """Let work be done, by the helper or in `finish`."""
        if self._pool is None:
            work()
        else:
            self._given.append((self._pool.submit(work), work))

    def finish(self) -> None:
        """Wait for all that was given, doing what the helper has not begun."""
        while self._given:
            task, work = self._given[-1]
            if task.cancel():
                self._given.pop()
                work()
            else:
                task.result()
                self._given.remove((task, work))
