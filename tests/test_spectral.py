"""Regression on eigenvectors of the graph: its laws, and where cuts and kernels fail."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from tvsvm import AutoTV
from tvsvm.graph import Graph, knn_graph
from tvsvm.kernel import RKHS
from tvsvm.methods.spectral import spectral, spectral_at, waves
from tvsvm.problem import Problem

pytestmark = pytest.mark.usefixtures("single_thread")


def crossed_clusters(n_classes=2, seed=0):
    """Clusters along a line, near in pairs of different classes; every class has two, far apart."""
    centers = np.column_stack([[9.0 * (k // 2) + 4.0 * (k % 2) for k in range(2 * n_classes)]] * 2)
    X, cluster = make_blobs(100 * n_classes, centers=centers, random_state=seed)
    return X, cluster % n_classes


def make_problem(n_classes, n_labels=10, seed=0):
    X, truth = crossed_clusters(n_classes, seed)
    rows = np.sort(np.random.default_rng(seed).choice(len(X), n_labels * n_classes, replace=False))
    space = RKHS(X, unit_diagonal=True, random_state=0)
    graph = knn_graph(X, random_state=0).scaled(mean_degree=1.0)
    targets = np.eye(n_classes)[truth[rows]]
    return Problem(space, rows, targets, np.ones(len(rows)), graph), truth


def test_waves_get_shorter():
    problem, _ = make_problem(2)
    found = waves(problem.graph, 2)
    sizes = np.sqrt(np.mean(found**2, axis=0))
    np.testing.assert_allclose(sizes, 1 / np.arange(1, len(sizes) + 1))


def test_there_are_fewer_waves_of_large_graphs(monkeypatch):
    graph = make_problem(2)[0].graph
    counts = []
    for values in (100, 15, 1):
        monkeypatch.setattr("tvsvm.methods.spectral.MOST_VALUES", values * graph.n_nodes)
        counts.append(waves(graph, 2).shape[1])
    assert counts == [20, 15, 10]


@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes_of_several_clusters_are_found(n_classes):
    problem, truth = make_problem(n_classes)
    result = spectral(problem, waves(problem.graph, n_classes))
    assert np.mean(result.solution.argmax(axis=1) != truth) < 0.1


def test_auto_hears_it_where_clusters_overlap_and_the_best_cut_unites_the_wrong_ones():
    centers = np.zeros((4, 20))
    centers[:, 0] = 0, 5, 7, 12
    X, cluster = make_blobs(600, centers=centers, random_state=0)
    truth, rng = cluster % 2, np.random.default_rng(0)
    y = np.full(len(truth), -1)
    for k in range(2):
        y[rng.choice(np.flatnonzero(truth == k), 10, replace=False)] = k
    model = AutoTV(random_state=0).fit(X, y)
    assert model.report_["method"] == "spectral"
    assert model.report_["held_back"]["balanced"] > 0.3
    assert np.mean(model.transduction_ != truth) < 0.2


def test_components_come_first_and_large_ones_are_divided():
    """Two rings of ten and eighty nodes, and one node alone."""
    sizes = (10, 80, 1)
    W = np.zeros((91, 91))
    for end, size in zip(np.cumsum(sizes), sizes, strict=True):
        nodes = np.arange(end - size, end)
        if size > 1:
            W[nodes, np.roll(nodes, 1)] = W[np.roll(nodes, 1), nodes] = 1.0
    found = waves(Graph(W), 2)
    constant = np.array([np.ptp(found[:10, k]) + np.ptp(found[10:90, k]) < 1e-9 for k in range(3)])
    np.testing.assert_array_equal(constant, [True, True, False])
    assert np.count_nonzero(np.abs(found).sum(axis=0)) == found.shape[1] > 3
    assert not found[90].any()


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_solution_is_on_the_simplex_and_new_points_get_nearly_the_same(n_classes):
    problem, _ = make_problem(n_classes)
    lines = waves(problem.graph, n_classes)
    result = spectral(problem, lines)
    assert result.converged
    np.testing.assert_allclose(result.solution.sum(axis=1), 1.0)
    assert result.solution.min() >= 0
    functions = problem.space.values(result.coordinates) + result.intercept
    assert np.mean(functions.argmax(axis=1) == result.solution.argmax(axis=1)) > 0.9
    rows = np.array([3, 70, 11])
    np.testing.assert_allclose(spectral_at(problem, rows, lines), result.solution[rows], atol=1e-12)


def test_names_of_classes_and_signs_of_eigenvectors_do_not_matter():
    problem, _ = make_problem(4)
    lines = waves(problem.graph, 4)
    order = np.array([2, 0, 3, 1])
    other = Problem(
        problem.space, problem.rows, problem.targets[:, order], problem.weights, problem.graph
    )
    found = spectral(other, -lines).solution
    np.testing.assert_allclose(found, spectral(problem, lines).solution[:, order], atol=1e-9)


def test_without_edges_every_row_is_as_likely_as_the_labels_are():
    problem, _ = make_problem(2)
    n = problem.space.n_points
    lines = waves(Graph(np.zeros((n, n))), 2)
    assert np.ptp(spectral(problem, lines).solution, axis=0).max() == pytest.approx(0.0)
