"""What labels say about methods: those held back, and how much say a method gets by them."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from tvsvm import AutoTV
from tvsvm.methods.auto import _beside_a_short_cut
from tvsvm.methods.judging import folds, has_other_sizes, has_rare_sizes, held_back, say_of
from tvsvm.problem import Problem


def all_of(problem):
    return np.ones(problem.rows.size, dtype=bool)


def missing(counts, truth):
    """Methods that miss so many labels each, the same whatever is held back, and who was asked."""
    asked = []

    def judged(name, count):
        found = np.eye(3)[np.where(np.arange(truth.size) < count, (truth + 1) % 3, truth)]

        def method(part, rows):
            asked.append((name, rows.size))
            return found[rows]

        return method

    return {name: judged(name, count) for name, count in counts.items()}, asked


def test_every_method_is_judged_that_may_have_a_say():
    truth = np.repeat(np.arange(3), 10)
    problem = Problem(None, np.arange(30), np.eye(3)[truth], np.ones(30))
    methods, asked = missing({"kernel": 2, "balanced": 4, "smooth": 29}, truth)
    missed, count = held_back(problem, methods, "balanced", all_of(problem))
    assert count == 30
    assert missed == pytest.approx({"balanced": 4 / 30, "kernel": 2 / 30})
    assert [name for name, _ in asked] == ["balanced"] * 3 + ["kernel"] * 3 + ["smooth"]
    say = say_of(missed, count)
    assert say == pytest.approx({"balanced": 1 / (1 + np.e**2), "kernel": 1 / (1 + np.e**-2)})
    # A favourite that misses few needs no others.
    asked.clear()
    missed, _ = held_back(problem, methods, "balanced", all_of(problem), few=4 / 30)
    assert missed == pytest.approx({"balanced": 4 / 30})
    assert {name for name, _ in asked} == {"balanced"}


@pytest.mark.parametrize(
    ("missed", "count", "say"),
    [
        ({"a": 0.5}, 4, {"a": 1.0}),
        ({"a": 0.5, "b": 0.5}, 4, {"a": 0.5, "b": 0.5}),
        ({"a": 0.0, "b": 0.5}, 1000, {"a": 1.0}),
    ],
)
def test_what_methods_have_to_say(missed, count, say):
    assert say_of(missed, count) == pytest.approx(say)


def test_classes_count_the_same_where_one_has_ten_times_the_labels():
    truth = np.r_[np.zeros(40, dtype=int), np.ones(4, dtype=int)]
    problem = Problem(None, np.arange(44), np.eye(2)[truth], np.ones(44))
    methods = {
        "one class": lambda part, rows: np.eye(2)[np.zeros(rows.size, dtype=int)],
        "fair": lambda part, rows: np.eye(2)[np.where(rows < 8, 1, truth[rows])],
    }
    missed, count = held_back(problem, methods, "one class", all_of(problem))
    assert count == 44
    assert missed["fair"] == pytest.approx(0.5 * 8 / 40)
    assert missed["one class"] == pytest.approx(0.5)
    assert set(say_of(missed, count)) == {"fair"}


@pytest.mark.parametrize(("labels", "few", "expected"), [(48, 0.1, 18), (45, 0.1, 45), (48, 0, 48)])
def test_one_fold_is_enough_for_a_cut_that_misses_none_of_many(labels, few, expected):
    truth = np.arange(labels) % 3
    problem = Problem(None, np.arange(labels), np.eye(3)[truth], np.ones(labels))
    judged = []

    def right(part, rows):
        judged.extend(rows)
        return np.eye(3)[truth[rows]]

    held = held_back(problem, {"balanced": right}, "balanced", all_of(problem), few=few)
    assert held == ({"balanced": 0.0}, expected)
    assert len(judged) == expected


def test_a_class_always_keeps_a_label():
    codes = np.array([0, 0, 0, 0, 1, 1, 2])
    problem = Problem(None, np.arange(7), np.eye(3)[codes], np.ones(7))
    fold, count = folds(problem, all_of(problem))
    assert count == 6
    assert fold[6] == -1
    for f in range(fold.max() + 1):
        assert set(codes[fold != f]) == {0, 1, 2}


def test_folds_leave_corrections_out():
    codes = np.repeat(np.arange(3), 8)
    problem = Problem(None, np.arange(24), np.eye(3)[codes], np.ones(24))
    fair = np.arange(24) % 4 > 0
    fold, count = folds(problem, fair)
    assert count == fair.sum()
    np.testing.assert_array_equal(fold >= 0, fair)


@pytest.mark.parametrize(
    ("counts", "share", "missed", "contradicted"),
    [
        ((8, 2), 0.6, 0.3, True),
        ((8, 2), 0.6, 0.1, False),  # hardly any label is missed: their number is chance
        ((8, 2), 0.3, 0.3, False),
        ((5, 5), 0.1, 0.3, False),  # somebody chose equal numbers
        ((30, 2), 0.6, 0.3, False),  # and so many more of one class
    ],
)
def test_numbers_of_labels_contradict_sizes(counts, share, missed, contradicted):
    n = 100
    truth = np.repeat([0, 1], counts)
    problem = Problem(None, np.arange(truth.size), np.eye(2)[truth], np.ones(truth.size))
    found = np.eye(2)[(np.arange(n) >= round(n * (1 - share))).astype(int)]
    assert has_other_sizes(problem, found, missed, all_of(problem)) is contradicted


@pytest.mark.parametrize(
    ("counts", "share", "rare"),
    [
        ((7, 3), 0.01, True),
        ((2, 8), 0.99, True),
        ((7, 3), 0.1, False),  # one of fourteen draws has as many
        ((8, 2), 0.5, False),
        ((5, 5), 0.01, False),  # somebody chose equal numbers
        ((30, 2), 0.001, False),  # and so many more of one class
    ],
)
def test_numbers_of_labels_make_sizes_rare(counts, share, rare):
    n = 1000
    truth = np.repeat([0, 1], counts)
    rows = np.r_[: counts[0], n - counts[1] : n]
    problem = Problem(None, rows, np.eye(2)[truth], np.ones(truth.size))
    found = np.eye(2)[(np.arange(n) >= round(n * (1 - share))).astype(int)]
    assert has_rare_sizes(problem, found, all_of(problem)) is rare


@pytest.mark.parametrize(
    ("cut", "other", "judged"),
    [
        (1, 0, {"balanced"}),  # misses hardly any: others are not asked
        (3, 2, {"balanced"}),
        (3, 0, {"balanced", "kernel"}),
        (4, 0, set()),  # too many for a cut between clusters
    ],
)
def test_a_short_cut_in_two_is_alone_unless_others_miss_clearly_fewer(cut, other, judged):
    truth = np.tile([0, 1], 10)
    problem = Problem(None, np.arange(20), np.eye(2)[truth], np.ones(20))
    methods, asked = missing({"balanced": cut, "kernel": other}, truth)
    candidates = SimpleNamespace(quick=methods["balanced"])
    methods["balanced"] = None  # the cut itself takes too long to be asked
    missed, count = _beside_a_short_cut(problem, candidates, methods, all_of(problem))
    assert set(missed) == judged
    assert count == (20 if judged else 0)
    assert ("kernel" in {name for name, _ in asked}) is (cut > 1)


@pytest.mark.parametrize("contradicted", [False, True])
def test_weak_total_variation_of_other_sizes_has_no_say(contradicted, monkeypatch):
    X, truth = make_blobs(150, centers=2, cluster_std=4.0, random_state=2)
    y = np.full(150, -1)
    for k, count in enumerate((12, 5)):
        y[np.flatnonzero(truth == k)[:count]] = k
    monkeypatch.setattr("tvsvm.methods.auto.has_other_sizes", lambda *_: contradicted)
    report = AutoTV(random_state=0).fit(X, y).report_
    assert ("smooth" in report["held_back"]) is not contradicted
    assert not contradicted or "smooth" not in report["say"]
