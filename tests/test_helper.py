"""The second thread: shares work, takes what it is given, and hands on errors."""

import threading

import pytest

from tvsvm.solvers._helper import Helper, halves


def test_rows_are_cut_into_two_parts():
    assert [list(range(5))[rows] for rows in halves(5)] == [[0, 1], [2, 3, 4]]
    assert [list(range(1))[rows] for rows in halves(1)] == [[], [0]]


@pytest.mark.parametrize("present", [False, True])
def test_work_is_shared(present):
    with Helper(present) as helper:
        result = helper.share(lambda item: (item, threading.get_ident()), "mine", "others")
    (mine, here), (others, there) = result
    assert (mine, others) == ("mine", "others")
    assert here == threading.get_ident()
    assert (there != here) == present


@pytest.mark.parametrize("present", [False, True])
def test_all_that_is_given_is_done_and_may_give_more(present):
    done = []
    with Helper(present) as helper:

        def work(item):
            done.append(item)
            if item < 3:
                helper.give(lambda: work(item + 10))

        for item in range(6):
            helper.give(lambda item=item: work(item))
        helper.finish()
    assert sorted(done) == [0, 1, 2, 3, 4, 5, 10, 11, 12]


def test_who_is_busy_is_not_asked_to_share():
    held = threading.Event()
    with Helper(True) as helper:
        helper.give(held.wait)
        here = threading.get_ident()
        assert helper.share(lambda _: threading.get_ident(), 0, 1) == (here, here)
        held.set()
        helper.finish()


def test_who_is_waited_for_takes_only_what_is_given():
    here, there = threading.get_ident(), []
    with Helper(True) as helper:
        helper.waited(False)
        assert helper.free
        helper.waited(True)
        assert not helper.free
        assert helper.share(lambda _: threading.get_ident(), 0, 1) == (here, here)
        begun = threading.Event()
        helper.give(lambda: (there.append(threading.get_ident()), begun.set()))
        assert begun.wait(10)
        helper.finish()
    assert there != [here]


def test_the_helper_does_not_wait_for_itself():
    shared = []
    with Helper(True) as helper:
        helper.give(lambda: shared.append(helper.share(lambda item: item, 1, 2)))
        helper.give(lambda: None)
        helper.finish()
    assert shared == [(1, 2)]


def test_who_waits_does_what_the_helper_offers():
    here, found = threading.get_ident(), []
    begun, taken = threading.Event(), threading.Event()

    def work(item):
        if item == "others":
            taken.set()
        else:
            begun.set()
            assert taken.wait(10)
        return item, threading.get_ident() == here

    with Helper(True) as helper:
        helper.give(lambda: found.append(helper.both(work, "mine", "others")))
        assert begun.wait(10)  # else the owner would do it all
        helper.finish()
    assert found == [(("mine", False), ("others", True))]


@pytest.mark.parametrize("present", [False, True])
def test_both_are_done_also_if_nobody_waits(present):
    found, ended = [], threading.Event()
    with Helper(present) as helper:
        assert helper.both(lambda item: item, 1, 2) == (1, 2)
        helper.give(lambda: (found.append(helper.both(lambda item: item, 3, 4)), ended.set()))
        assert ended.wait(10)
        helper.finish()
    assert found == [(3, 4)]


def test_an_error_in_what_is_offered_reaches_the_caller():
    def fail(item):
        if item == "others":
            raise ValueError("no")

    with Helper(True) as helper:
        helper.give(lambda: helper.both(fail, "mine", "others"))
        with pytest.raises(ValueError, match="no"):
            helper.finish()


def test_errors_reach_the_caller():
    def fail(*_):
        raise ValueError("no")

    with Helper(True) as helper:
        with pytest.raises(ValueError, match="no"):
            helper.share(fail, 0, 1)
        helper.give(fail)
        with pytest.raises(ValueError, match="no"):
            helper.finish()
