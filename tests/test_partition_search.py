"""The search for a partition that the labels agree with."""

import numpy as np
import pytest

from tvsvm.graph import knn_graph
from tvsvm.kernel import RKHS
from tvsvm.methods.partition import PartitionSearch
from tvsvm.problem import Problem


def blobs(size=40, distance=6.0):
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(3), size)
    return rng.standard_normal((truth.size, 2)) + distance * truth[:, None] * [1, 0], truth


def search_of(X, truth, rows, labels):
    graph = knn_graph(X, random_state=0).scaled(mean_degree=1.0)
    problem = Problem(RKHS(X, random_state=0), rows, np.eye(3)[labels], np.ones(len(rows)), graph)
    return PartitionSearch(problem, graph), graph


def test_names_are_swapped_where_walks_are_undecided():
    X, truth = blobs()
    # Two labels of classes 1 and 2 each, one in either group: only their names are in doubt.
    rows, labels = np.array([0, 41, 42, 81, 82]), np.array([0, 1, 2, 1, 2])
    search, _ = search_of(X, truth, rows, labels)
    proposals = list(search._swapped(np.eye(3)[truth]))
    assert len(proposals) == 1
    swapped = np.choose(truth, [0, 2, 1])
    swapped[rows] = labels
    proposal, worth_splitting = proposals[0]
    np.testing.assert_array_equal(proposal.argmax(axis=1), swapped)
    assert worth_splitting == {1, 2}


def test_names_are_not_swapped_where_walks_are_sure():
    X, truth = blobs()
    rows = np.array([0, 40, 80])
    search, _ = search_of(X, truth, rows, truth[rows])
    assert not list(search._swapped(np.eye(3)[truth]))


@pytest.mark.parametrize("swap", [(0, 1), (1, 2), (0, 2)])
def test_wrong_names_are_mended(swap):
    X, truth = blobs(distance=4.0)
    rows = np.array([0, 40, 80])
    search, _ = search_of(X, truth, rows, truth[rows])
    names = np.arange(3)
    names[list(swap)] = names[list(swap)[::-1]]
    best, energies = search.search(np.eye(3)[names[truth]])
    assert np.mean(best.argmax(axis=1) == truth) > 0.95
    assert np.all(np.diff(energies) <= 0)


def test_walks_end_in_their_own_group():
    X, truth = blobs(distance=20.0)
    search, _ = search_of(X, truth, np.array([0, 40, 80]), np.arange(3))
    assert search.price(np.eye(3)[truth]) == pytest.approx(1.0)
