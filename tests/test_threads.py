"""One thread for BLAS, several for batches: in order, restored in any case, the same digits."""

import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from tvsvm import _threads
from tvsvm._threads import Later, a_core_is_free, beside, map_batches, one_blas_thread
from tvsvm.kernel import RKHS


def blas_threads():
    """The most that any library has: one that cvxpy brings never has more than one."""
    return max(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")


def needs(n_threads):
    if blas_threads() != n_threads:
        pytest.skip("OPENBLAS_NUM_THREADS or the like allows BLAS fewer threads")


@pytest.fixture(params=[1, 2, 3])
def n_threads(request):
    with threadpool_limits(request.param, user_api="blas"):
        needs(request.param)
        yield request.param


def test_batches_run_in_as_many_threads_as_blas_had_and_come_back_in_order(n_threads):
    together = threading.Barrier(n_threads, timeout=10)
    seen = set()

    def double(number):
        seen.add(threading.get_ident())
        together.wait()  # passes only if so many run at the same time
        assert blas_threads() == 1
        return 2 * number

    assert list(map_batches(double, range(2 * n_threads))) == list(range(0, 4 * n_threads, 2))
    assert len(seen) == n_threads
    assert blas_threads() == n_threads


def test_an_error_comes_through_and_the_threads_are_restored(n_threads):
    def fail(batch):
        raise ValueError("from a batch")

    with pytest.raises(ValueError, match="from a batch"):
        list(map_batches(fail, range(5)))
    assert blas_threads() == n_threads


def test_whoever_leaves_last_restores():
    with threadpool_limits(2, user_api="blas"):
        needs(2)
        first, second = one_blas_thread(), one_blas_thread()
        assert (first.__enter__(), second.__enter__()) == (2, 2)
        first.__exit__(None, None, None)
        assert blas_threads() == 1
        second.__exit__(None, None, None)
        assert blas_threads() == 2


def test_the_number_of_threads_does_not_change_a_digit(monkeypatch):
    monkeypatch.setattr("tvsvm.kernel.features.BATCH_SIZE", 2000)
    X = np.random.default_rng(0).standard_normal((2500, 12)).astype(np.float32)
    found = []
    for count in (1, 2, 3):
        with threadpool_limits(count, user_api="blas"), one_blas_thread():
            space = RKHS(X, n_components=30, random_state=0)
            W = np.ones((space.rank, 2))
            found.append((space.features, space.expansion(W)(X)))
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("text", "free"),
    [
        ("0.50 0.58 0.59 1/211 34133\n", True),
        ("0.50 0.58 0.59 2/211 34133\n", False),
        ("9.50 9.58 9.59 12/211 34133\n", False),
        ("", True),
        (None, True),
    ],
)
def test_a_core_is_free_while_fewer_threads_run_than_there_are_processors(
    monkeypatch, tmp_path, text, free
):
    file = tmp_path / "loadavg"
    if text is not None:
        file.write_text(text)
    monkeypatch.setattr(_threads, "LOAD", file)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert a_core_is_free() is free


def test_a_value_is_made_once_wherever_it_is_asked_for():
    calls = []

    def make():
        calls.append(threading.get_ident())
        return len(calls)

    here, there = Later(make), Later(make)
    assert not here.begun
    assert here() == here() == 1
    beside(here, there)  # only one of them is left to do
    assert there.begun
    assert there() == 2
    beside(here, there)
    assert len(calls) == 2
    assert (calls[0] == threading.get_ident(), calls[1] == threading.get_ident()) == (True, False)


@pytest.mark.parametrize("begin", [False, True])
def test_who_asks_for_a_value_that_cannot_be_made_is_told_every_time(begin):
    def make():
        raise RuntimeError("it cannot be made")

    value = Later(make)
    if begin:
        beside(value)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="cannot be made"):
            value()


def test_values_begun_together_may_need_each_other():
    first = Later(lambda: 20)
    second = Later(lambda: first() + 1)
    beside(first, second)
    assert second() == 21


def test_what_was_interrupted_can_be_made_again():
    attempts = []

    def make():
        attempts.append(None)
        if len(attempts) == 1:
            raise KeyboardInterrupt
        return "made"

    value = Later(make)
    with pytest.raises(KeyboardInterrupt):
        value()
    assert value() == "made"


def test_without_a_thread_values_are_made_at_once(monkeypatch):
    def start(self):
        raise RuntimeError("can't start new thread")

    value = Later(lambda: 1)
    monkeypatch.setattr(threading.Thread, "start", start)
    beside(value)
    assert value() == 1


def test_others_help_with_batches_as_soon_as_somebody_waits():
    """The first batch ends only when the value is asked for; then two more run at the same time."""
    needs(2)
    waited, both = threading.Event(), threading.Barrier(2)

    def work(batch):
        if batch == 0:
            assert waited.wait(timeout=10)
            time.sleep(0.05)
        else:
            both.wait(timeout=10)
        return threading.get_ident()

    value = Later(lambda: list(map_batches(work, [0, 1, 2])))
    beside(value)
    threading.Timer(0.05, waited.set).start()
    first, *rest = value()
    assert first != threading.get_ident()
    assert len({*rest}) == 2
