"""A second thread for compiled loops, which do not hold the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread, get_ident
from typing import Any, TypeVar

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tvsvm._jit import kernel
from tvsvm.results import IntArray

Item = TypeVar("Item")
Result = TypeVar("Result")

# How often a thread looks for the other before it goes to sleep: some tenths of a millisecond. To
# be woken takes a tenth on a virtual machine, and a sweep is done within one or two milliseconds.
PATIENCE = 1_000_000
GLANCE = 1e-3  # seconds between two looks for work that is offered


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
        self._worker = _Worker() if present else None
        self._owner = get_ident()
        self._given: list[tuple[Future[None], Callable[[], None]]] = []
        self._offers: list[_Offer] = []
        self._shares = present

    def __enter__(self) -> Helper:
        return self

    def __exit__(self, *_: object) -> None:
        for task, _work in self._given:
            task.cancel()
        for offer in self._offers:
            offer.withdraw()
        if self._worker is not None:
            self._worker.end()

    @property
    def free(self) -> bool:
        """Whether there is a thread that would take its share at once.

        Within what it was given the helper itself would wait for itself.
        """
        mine = self._shares and get_ident() == self._owner
        return mine and all(task.done() for task, _ in self._given)

    def waited(self, long: bool) -> None:
        """Be told whether a share had to be waited for; if so, take no more shares."""
        self._shares = self._shares and not long

    def share(
        self, work: Callable[[Item], Result], mine: Item, others: Item
    ) -> tuple[Result, Result]:
        """Return work(mine) and work(others), done at the same time if the helper is free."""
        if not self.free:
            return work(mine), work(others)
        assert self._worker is not None
        theirs = self._worker.ask(partial(work, others))
        result = work(mine)
        self._worker.expect()
        return result, theirs.result()

    def both(
        self, work: Callable[[Item], Result], mine: Item, others: Item
    ) -> tuple[Result, Result]:
        """The same, also within what the helper was given: then the owner may do its share.

        It does so if it waits in `finish` before the helper itself gets there.
        """
        if self._worker is None or get_ident() == self._owner:
            return self.share(work, mine, others)
        offer = _Offer(partial(work, others))
        self._offers.append(offer)
        try:
            result = work(mine)
            offer.take()
            return result, offer.result()
        finally:
            self._offers.remove(offer)

    def give(self, work: Callable[[], None]) -> None:
        """Let work be done, by the helper or in `finish`."""
        if self._worker is None:
            work()
        else:
            self._given.append((self._worker.ask(work), work))

    def finish(self) -> None:
        """Wait for all that was given, doing what the helper has not begun."""
        while self._given:
            task, work = self._given[-1]
            if task.cancel():
                self._given.pop()
                work()
            else:
                while not task.done():
                    for offer in self._offers.copy():
                        offer.take()
                    wait([task], timeout=GLANCE)
                task.result()
                self._given.remove((task, work))


class _Offer:
    """Work for whoever takes it first."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work, self._taken, self._done = work, Lock(), Future[Any]()

    def take(self) -> None:
        """Do the work, unless somebody has taken it."""
        if self._taken.acquire(blocking=False):
            try:
                self._done.set_result(self._work())
            except BaseException as error:
                self._done.set_exception(error)
                raise

    def withdraw(self) -> None:
        """Let nobody wait for it any more."""
        self._done.cancel()

    def result(self) -> Any:
        """What came out, when it is done."""
        return self._done.result()


class _Worker:
    """A thread that does what it is asked, one thing after the other.

    Both sides look for the other's count for a while before they sleep, in a loop without the
    interpreter's lock: a wait of the usual kind costs as much as a tenth of a sweep.
    """

    def __init__(self) -> None:
        self._tasks: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        # How many tasks were asked for and are done, in cache lines of their own.
        self._asked, self._done = (np.zeros(16, dtype=np.int64) for _ in range(2))
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def ask(self, work: Callable[[], Result]) -> Future[Result]:
        """Let work be done when its turn comes."""
        task: Future[Result] = Future()
        self._tasks.put((task, work))
        self._asked[0] += 1
        return task

    def expect(self) -> None:
        """Wait a while for all tasks to be done."""
        _look(self._done, self._asked[0], PATIENCE)

    def end(self) -> None:
        """Wait for the task under way; those that were cancelled are not begun."""
        self._tasks.put(None)
        self._asked[0] += 1
        self._thread.join()

    def _run(self) -> None:
        while (task_and_work := self._tasks.get()) is not None:
            task, work = task_and_work
            if task.set_running_or_notify_cancel():
                try:
                    task.set_result(work())
                except BaseException as error:  # raised where it is waited for
                    task.set_exception(error)
            del task, work, task_and_work  # what they hold is the owner's
            self._done[0] += 1
            _look(self._asked, self._done[0] + 1, PATIENCE)


def _first_entry(_typing: Any, array: Any) -> Any:
    """First entry of an array that another thread may change, so never kept in a register."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        struct = context.make_array(signature.args[0])(context, builder, arguments[0])
        zero = context.get_constant(types.intp, 0)
        item = cgutils.get_item_pointer(context, builder, signature.args[0], struct, [zero])
        return builder.load_atomic(item, ordering="acquire", align=8)

    return types.int64(array), generate


_read: Any = intrinsic(_first_entry)


@kernel
def _look(count: IntArray, wanted: int, patience: int) -> None:
    """Wait until a count is as high as wanted, or patience is at its end."""
    while _read(count) < wanted and patience > 0:
        patience -= 1
