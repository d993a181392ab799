"""What a long computation is doing, told while it runs to whoever listens above it.

``told_by`` listens; ``tell``, ``each`` and ``part_of`` speak, and cost nothing if nobody listens.
Listening ends at the border of a thread: fits side by side do not talk into each other.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
# Called with what is being done, and the share of it that is done if that is known.
Listener = Callable[[str, float | None], None]

_listener: ContextVar[Listener | None] = ContextVar("tvsvm_listener", default=None)


@contextmanager
def told_by(listener: Listener) -> Iterator[None]:
    """Context in which `listener` gets what is told."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(stage: str, share: float | None = None) -> None:
    """Say what begins, or how much of it is done."""
    listener = _listener.get()
    if listener is not None:
        listener(stage, share)


def each(items: Sequence[T], stage: str) -> Iterator[T]:
    """Pass items on, and tell with each the share that came before it."""
    listener = _listener.get()  # of who takes the first item: other threads may take the others
    for k, item in enumerate(items):
        if listener is not None:
            listener(stage, k / len(items))
        yield item


@contextmanager
def part_of(stage: str, share: float | None = None) -> Iterator[None]:
    """Context in which what is told is part of `stage`, of which this share is done."""
    listener = _listener.get()
    if listener is None:
        yield
        return
    with told_by(lambda part, _: listener(f"{stage}: {part}", share)):
        yield
