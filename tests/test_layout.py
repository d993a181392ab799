"""The map of a graph: neighbours close, clusters apart, any graph placed, always alike."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from references import random_graph
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from tvsvm.graph import Graph, knn_graph
from tvsvm.layout import layout, smoothed_noise


def cliques(*sizes):
    """Complete graphs of these sizes, joined by nothing."""
    member = np.repeat(np.arange(len(sizes)), sizes)
    return Graph((member[:, None] == member).astype(float)), member


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return layout(knn_graph(X)), y


def test_classes_of_digits_are_apart(digits):
    positions, y = digits
    neighbors = KNeighborsClassifier(10).fit(positions[::2], y[::2])
    # Principal components, the obvious map, reach 0.65.
    assert neighbors.score(positions[1::2], y[1::2]) > 0.95


def test_map_uses_its_square(digits):
    positions, _ = digits
    assert positions.min() >= 0
    assert positions.max() <= 1
    np.testing.assert_allclose(np.ptp(positions[:, 0]), 1.0)
    assert np.ptp(positions[:, 1]) > 0.3


def test_same_graph_same_map():
    graph, _ = cliques(5, 4)
    np.testing.assert_array_equal(layout(graph), layout(Graph(graph.affinity.copy())))


def test_components_do_not_overlap():
    graph, member = cliques(40, 30, 20, 1, 1)
    positions = layout(graph)
    boxes = [
        (positions[member == k].min(axis=0), positions[member == k].max(axis=0)) for k in range(5)
    ]
    for k, (low, high) in enumerate(boxes):
        for other_low, other_high in boxes[:k]:
            assert np.any((other_high < low) | (high < other_low))


def test_nodes_with_the_same_neighbours_are_told_apart():
    positions = layout(Graph(np.ones((6, 6))))
    distances = np.linalg.norm(positions[:, None] - positions, axis=2)
    assert distances[np.triu_indices(6, 1)].min() > 1e-3


@settings(deadline=None, derandomize=True, max_examples=25, database=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-150, 1.0, 1e150]), st.booleans())
def test_any_graph_has_a_map(seed, scale, single):
    rng = np.random.default_rng(seed)
    affinity = random_graph(rng, int(rng.integers(1, 15)), density=rng.uniform(0, 0.6)).affinity
    if single and scale == 1.0:
        affinity = affinity.astype(np.float32)
    positions = layout(Graph(affinity * affinity.dtype.type(scale)))
    assert positions.shape == (affinity.shape[0], 2)
    assert np.all((positions >= 0) & (positions <= 1))


def test_one_node_is_in_the_middle():
    np.testing.assert_array_equal(layout(Graph([[0.0]])), [[0.5, 0.5]])


def test_smoothed_noise_is_nearly_constant_on_a_clique():
    # Eigenvalues of averaging on a clique are 1 and about 0: all but the mean is damped.
    graph, member = cliques(30, 30)
    noise = smoothed_noise(graph, 3, below=0.1)
    for k in range(2):
        inside = noise[member == k]
        assert np.ptp(inside, axis=0).max() < 0.1 * np.abs(inside.mean(axis=0)).max()


def test_smoothed_noise_is_the_chebyshev_polynomial():
    rng = np.random.default_rng(3)
    graph = random_graph(rng, 12, density=0.5)
    W = graph.affinity.toarray()
    degrees = W.sum(axis=1)
    alone = degrees == 0
    average = W / np.where(alone, 1, degrees)[:, None] + np.diag(alone.astype(float))
    values, vectors = np.linalg.eig(average)
    mapped = (values.real + 0.05) / 0.95  # of [-1, 0.9] to [-1, 1]
    filtered = vectors * np.polynomial.Chebyshev.basis(30)(mapped) @ np.linalg.inv(vectors)
    start = np.random.default_rng(0).standard_normal((12, 2))
    np.testing.assert_allclose(
        smoothed_noise(graph, 2, below=0.1), filtered.real @ start, rtol=1e-6
    )
