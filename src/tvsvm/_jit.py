"""The one way this package compiles a loop: numba, cached on disk, without the GIL.

numba decides that a cached kernel is stale from the file it is *defined* in, and does not look at
what that kernel calls. So a kernel may use only kernels and constants of its own file;
``tests/test_jit.py`` walks all of them and fails on one that reaches further.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any, TypeVar, cast

import numba
from numba.core.event import Event, Listener, register

F = TypeVar("F", bound=Callable[..., Any])

# Compiling that takes longer than this is told: less is not noticed.
PATIENCE = 1.0  # seconds
KEPT = "tvsvm compiles its loops for this machine; this takes up to a minute, once."
NOT_KEPT = (
    "tvsvm compiles its loops for this machine; this takes up to a minute in every process, since "
    "there is no folder to keep them in: set NUMBA_CACHE_DIR to one."
)


def kernel(function: F) -> F:
    """Compile `function` on its first call and keep the machine code for later processes."""
    # Division by zero follows IEEE (error_model) so that loops vectorise; strict floating point
    # otherwise: a duality gap summed with fast-math certifies nothing.
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        return cast(F, numba.njit(cache=True, **options)(function))
    except RuntimeError:
        # No folder to write the cache to (read-only installation and home): compile every time.
        _notice.sentence = NOT_KEPT
        return cast(F, numba.njit(**options)(function))


@contextmanager
def compiling_told_by(tell: Callable[[str], None]) -> Iterator[None]:
    """Context in which `tell` gets the sentence that kernels are compiled, not standard error."""
    before, _notice.tell = _notice.tell, tell
    try:
        yield
    finally:
        _notice.tell = before


def _to_stderr(sentence: str) -> None:
    if sys.stderr is not None:  # there is none under pythonw
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()


class _Notice(Listener):
    """Tells once in a process that kernels are compiled, as soon as that takes a while.

    numba calls it for what is really compiled, not for what it finds in its cache.
    """

    def __init__(self) -> None:
        self.tell: Callable[[str], None] = _to_stderr
        self.sentence = KEPT
        self._told = False
        self._spent = self._since = 0.0
        self._depth = 0  # a kernel compiles those that it calls

    def on_start(self, event: Event) -> None:
        """Begin to compile a function."""
        if not _is_ours(event):
            return
        now = perf_counter()
        if self._depth == 0:
            self._since = now
        self._depth += 1
        if not self._told and self._spent + now - self._since > PATIENCE:
            self._told = True
            self.tell(self.sentence)

    def on_end(self, event: Event) -> None:
        """Note how long it took."""
        if not _is_ours(event):
            return
        self._depth -= 1
        if self._depth == 0:
            self._spent += perf_counter() - self._since


def _is_ours(event: Event) -> bool:
    # What somebody made by exec has no module.
    return str(event.data["dispatcher"].py_func.__module__).startswith("tvsvm.")


_notice = _Notice()
register("numba:compile", _notice)
