"""First guesses: known solutions on small graphs, and that they do not depend on chance."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh
from scipy.sparse import block_diag

from tvsvm.graph import Graph
from tvsvm.kernel import RKHS
from tvsvm.losses import Squared
from tvsvm.problem import Problem
from tvsvm.start import EVEN, eigenvectors, first_guesses, poisson


def path(n_nodes, weight=1.0):
    W = weight * np.eye(n_nodes, k=1)
    return Graph(W + W.T)


def problem_on(graph, rows, targets, weights=None):
    X = np.random.default_rng(0).normal(size=(graph.n_nodes, 2))
    targets = np.asarray(targets, dtype=float)
    weights = np.ones(len(rows)) if weights is None else np.asarray(weights)
    return Problem(RKHS(X, unit_diagonal=True), np.asarray(rows), targets, weights, graph)


def connected_graph(rng, n_nodes):
    W = np.triu(rng.uniform(0.1, 1.0, (n_nodes, n_nodes)) * (rng.random((n_nodes, n_nodes)) < 0.5))
    W += np.eye(n_nodes, k=1)
    np.fill_diagonal(W, 0.0)
    return Graph(W + W.T)


# ---- Poisson learning --------------------------------------------------------------------------


def test_poisson_on_a_path_is_a_line():
    """With sources ±1 at its ends one unit flows through every edge: 1/w is the drop."""
    graph = path(9, weight=2.0)
    u = poisson(problem_on(graph, [0, 8], [[-1], [1]]), graph)
    np.testing.assert_allclose(u[:, 0], (np.arange(9) - 4) / 2, atol=1e-4)


def test_poisson_is_level_outside_the_labels():
    graph = path(9)
    u = poisson(problem_on(graph, [2, 6], [[-1], [1]]), graph)
    np.testing.assert_allclose(u[:, 0], np.clip(np.arange(9) - 4, -2, 2), atol=1e-4)


@pytest.mark.parametrize("columns", [1, 3])
def test_poisson_against_the_pseudo_inverse(columns):
    rng = np.random.default_rng(1)
    graph = connected_graph(rng, 12)
    rows = np.array([1, 4, 5, 9, 11])
    codes = np.array([0, 1, 2, 1, 0])
    targets = np.eye(3)[codes] if columns == 3 else 2.0 * (codes[:, None] > 0) - 1
    weights = rng.uniform(0.5, 2.0, 5)
    mean = weights @ targets / weights.sum()
    sources = np.zeros((12, columns))
    sources[rows] = weights[:, None] * (targets - mean)
    expected = np.linalg.pinv(graph.laplacian.toarray()) @ sources
    if columns == 3:
        expected /= (3 * mean) ** EVEN
    u = poisson(problem_on(graph, rows, targets, weights), graph)
    np.testing.assert_allclose(u - u.mean(axis=0), expected, atol=1e-3)
    np.testing.assert_allclose(graph.degrees @ u, 0.0, atol=1e-9)


def test_poisson_hardly_favours_a_class_for_the_weight_of_its_labels():
    graph = connected_graph(np.random.default_rng(3), 12)
    rows, codes = np.array([1, 4, 5, 9, 11]), np.array([0, 1, 2, 1, 0])
    weights = np.where(codes == 1, 5.0, 1.0)
    problem = problem_on(graph, rows, np.eye(3)[codes], weights)
    spread = np.ptp(poisson(problem, graph), axis=0)
    plain = spread * (3 * np.bincount(codes, weights) / weights.sum()) ** EVEN
    assert spread[1] / spread[0] < 0.6 * plain[1] / plain[0]


def test_poisson_in_components():
    """One with both classes, one with a single class, one that no label reaches, a lone node."""
    graph = Graph(block_diag([path(5).affinity, path(4).affinity, path(3).affinity, [[0.0]]]))
    problem = problem_on(graph, [0, 4, 6, 7], [[-1], [1], [1], [1]])
    u = poisson(problem, graph)[:, 0]
    np.testing.assert_allclose(u[:5], np.arange(5) - 2, atol=1e-4)
    np.testing.assert_array_equal(u[5:9], 1.0)
    in_space = Squared(1.0).kernel_step(problem, lam=1e-3)(None)[1][:, 0]
    np.testing.assert_array_equal(u[9:], in_space[9:])


def test_poisson_in_a_pure_component_of_many_classes():
    graph = Graph(block_diag([path(4).affinity, path(4).affinity]))
    u = poisson(problem_on(graph, [0, 3, 5], np.eye(3)), graph)
    np.testing.assert_array_equal(u[4:], np.tile([0.0, 0.0, 1.0], (4, 1)))
    assert (u[:2].argmax(axis=1) == 0).all()
    assert (u[2:4].argmax(axis=1) == 1).all()


# ---- eigenvectors ------------------------------------------------------------------------------


@settings(deadline=None, derandomize=True, max_examples=20)
@given(seed=st.integers(0, 10_000), count=st.integers(1, 3))
def test_eigenvectors_against_a_dense_solver(seed, count):
    graph = connected_graph(np.random.default_rng(seed), 12)
    L, D = graph.laplacian.toarray(), np.diag(graph.degrees)
    values, expected = eigh(L, D)
    found = eigenvectors(graph, count)
    assert found.shape == (12, count)
    rayleigh = np.diag(found.T @ L @ found) / np.diag(found.T @ D @ found)
    np.testing.assert_allclose(rayleigh, values[1 : count + 1], atol=1e-6)
    gap = min(values[count + 1] - values[count], *np.diff(values[: count + 2]))
    if gap > 1e-2:
        cosines = np.abs(np.diag(found.T @ D @ expected[:, 1 : count + 1]))
        np.testing.assert_allclose(cosines, 1.0, atol=1e-3)


def test_eigenvectors_live_on_the_largest_component():
    graph = Graph(block_diag([path(3).affinity, path(6).affinity]))
    found = eigenvectors(graph, 2)
    np.testing.assert_array_equal(found[:3], 0.0)
    assert (np.diff(found[3:, 0]) > 0).all() or (np.diff(found[3:, 0]) < 0).all()
    np.testing.assert_array_equal(found, eigenvectors(graph, 2))


@pytest.mark.parametrize("n_nodes", [1, 2])
def test_eigenvectors_of_tiny_graphs_are_none(n_nodes):
    assert eigenvectors(path(n_nodes), 3).shape == (n_nodes, 0)
    assert eigenvectors(path(3), 3).shape == (3, 1)


# ---- all of them -------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("n_init", [1, 2, 3, 4, 7])
def test_as_many_guesses_as_asked_for(columns, n_init):
    graph = connected_graph(np.random.default_rng(2), 15)
    targets = np.eye(3)[[0, 1, 2]] if columns == 3 else [[-1], [1], [1]]
    problem = problem_on(graph, [0, 5, 10], targets)

    def guesses():
        return first_guesses(problem, graph, n_init, np.random.RandomState(0))

    found = guesses()
    assert len(found) == n_init
    for guess, again in zip(found, guesses(), strict=True):
        assert guess.shape == (15, columns)
        assert np.isfinite(guess).all()
        np.testing.assert_array_equal(guess, again)
    np.testing.assert_array_equal(found[0], poisson(problem, graph))


def test_only_the_last_guesses_are_random():
    graph = connected_graph(np.random.default_rng(2), 15)
    problem = problem_on(graph, [0, 10], [[-1], [1]])
    one, other = (first_guesses(problem, graph, 30, np.random.RandomState(s)) for s in (0, 1))
    same = [np.array_equal(a, b) for a, b in zip(one, other, strict=True)]
    deterministic = sum(same)
    assert 3 <= deterministic < 30
    assert same == [True] * deterministic + [False] * (30 - deterministic)


def test_eigenvectors_come_with_both_signs():
    graph = path(8)
    _, up, down = first_guesses(
        problem_on(graph, [0, 1], [[-1], [1]]), graph, 3, np.random.RandomState(0)
    )
    np.testing.assert_array_equal(up, -down)
