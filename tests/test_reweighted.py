"""Graphs with the same edges and other weights: squared, confirmed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from references import affinities, agreement
from scipy.sparse import csr_array

from tvsvm.graph import Graph


@settings(deadline=None, derandomize=True, max_examples=40)
@given(affinities(), st.integers(0, 100))
def test_the_squared_graph_has_the_sum_of_squares_of_weighted_differences(W, seed):
    graph = Graph(W)
    f = np.random.default_rng(seed).normal(size=len(W))
    total = np.sum((graph.edge_weights * graph.difference(f)) ** 2)
    scale = (W**2).sum() / W.sum() if graph.n_edges else 1.0
    assert graph.squared.dirichlet(f) * scale == pytest.approx(total)
    np.testing.assert_allclose(graph.squared.degrees.mean(), graph.degrees.mean())
    np.testing.assert_array_equal(graph.squared.masses, graph.masses)
    assert graph.squared is graph.squared


@pytest.mark.parametrize(
    "dense", [0.0, 1.0]
)  # share of entries from which on dense arrays are used
@settings(deadline=None, derandomize=True, max_examples=40)
@given(W=affinities())
def test_the_confirmed_graph_weighs_edges_by_the_agreement_of_their_ends(W, dense):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tvsvm.graph.weights.DENSE", dense)
        graph = Graph(W)
        confirmed = graph.confirmed
    expected = W * agreement(W)
    if graph.n_edges:
        expected *= W.sum() / expected.sum()
    np.testing.assert_allclose(confirmed.affinity.toarray(), expected, rtol=1e-9, atol=1e-300)
    np.testing.assert_array_equal(confirmed.masses, graph.masses)
    np.testing.assert_array_equal(confirmed.component_labels, graph.component_labels)
    np.testing.assert_array_equal(confirmed.order, Graph(confirmed.affinity).order)


def test_an_edge_between_clusters_is_lighter_on_the_confirmed_graph():
    W = np.kron(np.eye(2), np.ones((4, 4))) - np.eye(8)
    W[3, 4] = W[4, 3] = 1.0
    confirmed = Graph(W).confirmed.affinity
    assert confirmed[3, 4] < 0.75 * min(confirmed[0, 1], confirmed[2, 3], confirmed[4, 5])


def test_a_hub_of_many_edges_is_confirmed_at_once():
    n = 200_000
    hub, leaves = np.zeros(n - 1, dtype=int), np.arange(1, n)
    weights = np.where(leaves % 2, 1.0, 0.5)
    star = csr_array((weights, (hub, leaves)), shape=(n, n))
    confirmed = Graph(star + star.T).confirmed.affinity[[0], 1:].toarray().ravel()
    own = 2 * weights.sum() / n
    expected = weights * 2 * own * weights / np.hypot(own, weights)  # but for a factor
    # Edges are looked at from their leaves: from the hub this would take hours.
    np.testing.assert_allclose(confirmed / confirmed[0], expected / expected[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("other", ["squared", "confirmed"])
@pytest.mark.parametrize(
    "weights",
    [
        lambda limits: [limits.max**0.5, 1.0, limits.tiny],
        lambda limits: [limits.max / 4, limits.max / 4, limits.max / 4],
        lambda limits: [limits.tiny**0.25, limits.tiny**0.75, limits.tiny],
        lambda limits: [limits.smallest_subnormal, 3 * limits.smallest_subnormal, 1e-30],
    ],
)
def test_no_edge_of_the_squared_or_confirmed_graph_vanishes(weights, other, dtype):
    W = np.zeros((4, 4), dtype=dtype)
    W[0, 1], W[1, 2], W[2, 3] = weights(np.finfo(dtype))
    graph = getattr(Graph(W + W.T), other)
    assert graph.n_edges == 3
    assert graph.affinity.dtype == dtype
    assert (graph.affinity.data > 0).all()
    assert np.isfinite(graph.degrees).all()


@pytest.mark.parametrize("other", ["squared", "confirmed"])
def test_a_graph_without_edges_has_nothing_to_square_or_confirm(other):
    assert getattr(Graph(np.zeros((3, 3))), other).n_edges == 0
