"""Smooth functions of a graph: against dense eigenvectors."""

import numpy as np
import pytest
from scipy.linalg import eigh
from scipy.sparse import csr_array

from tvsvm import knn_graph
from tvsvm.solvers import eigen, smooth_functions

pytestmark = pytest.mark.usefixtures("single_thread")


def rows_in_the_plane(n=400):
    X = np.random.default_rng(0).random((n, 2)) * [3, 1]
    return csr_array(knn_graph(X, bridges=True).affinity, dtype=np.float64)


def frequencies(W, V):
    """vᵀLv / vᵀDv of every column."""
    degrees = W.sum(axis=1)
    return np.array([v @ (degrees * v - W @ v) / (degrees @ v**2) for v in V.T])


def exact(W, count):
    degrees = W.sum(axis=1)
    values = eigh(np.diag(degrees) - W.toarray(), np.diag(degrees), eigvals_only=True)
    return values[1 : count + 1]


@pytest.mark.parametrize(("groups", "error"), [(400, 1e-9), (100, 0.1)])
def test_they_have_the_lowest_frequencies_or_nearly(groups, error, monkeypatch):
    monkeypatch.setattr(eigen, "GROUPS", groups)
    W = rows_in_the_plane()
    V = smooth_functions(W, 6)
    assert V.shape == (400, 6)
    np.testing.assert_allclose(V.T @ (W.sum(axis=1)[:, None] * V), np.eye(6), atol=1e-9)
    found, wanted = frequencies(W, V), exact(W, 6)
    assert (np.diff(found) > 0).all()
    assert (found > wanted * (1 - 1e-9)).all()  # as nothing is below
    np.testing.assert_allclose(found, wanted, rtol=error)


def test_where_nodes_cannot_be_merged():
    """A hub takes one partner: the graph of merged nodes is as large as the graph."""
    n = 2 * eigen.GROUPS + 10
    hub = np.zeros(n, dtype=int)
    W = csr_array((np.ones(n), (hub, np.arange(1, n + 1))), shape=(n + 1, n + 1))
    V = smooth_functions(csr_array(W + W.T), 3)
    assert V.shape[0] == n + 1
    assert np.isfinite(V).all()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_nodes_have_few_functions(n):
    V = smooth_functions(csr_array(np.ones((n, n)) - np.eye(n) + (n == 1)), 5)
    assert V.shape == (n, n - 1)


def test_they_are_the_same_in_every_run(monkeypatch):
    monkeypatch.setattr(eigen, "GROUPS", 100)
    W = rows_in_the_plane()
    np.testing.assert_array_equal(smooth_functions(W, 4), smooth_functions(W, 4))
