"""Loops that divide classes, against energies of all divisions and dense eigenvectors."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.sparse import csr_array
from test_partition import level_of, make

from tvsvm.graph import knn_graph
from tvsvm.solvers import _partition_lines as lines
from tvsvm.solvers import partition, ratio_partition
from tvsvm.solvers._partition_proposals import EIGEN_TOL, _divided, _eigenvectors, _inside
from tvsvm.solvers.partition import partition_ratio


@pytest.mark.parametrize("group", [(1,), (0, 2)])
def test_the_inside_of_some_classes_and_its_links_to_others(group):
    graph, part, _ = make(2, 40, 4)
    inside = _inside(level_of(graph), part, group, 4)
    nodes = np.flatnonzero(np.isin(part, group))
    np.testing.assert_array_equal(inside.nodes, nodes)
    W = graph.affinity.toarray()
    found = csr_array((inside.weights, inside.indices, inside.indptr), shape=(nodes.size,) * 2)
    np.testing.assert_array_equal(found.toarray(), W[np.ix_(nodes, nodes)])
    links = W[nodes] @ np.eye(4)[part]
    links[:, list(group)] = 0
    np.testing.assert_allclose(inside.outer, links, atol=1e-15)


def test_a_line_is_divided_where_the_energy_is_lowest():
    graph, part, _ = make(4, 60, 3)
    level, order = level_of(graph), np.random.default_rng(0).permutation(np.sum(part < 2))
    inside = _inside(level, part, (0, 1), 3)
    energies = []
    for place in range(order.size - 1):
        trial = part.copy()
        trial[inside.nodes[order]] = np.arange(order.size) > place
        cut, size = partition.statistics(*level, trial, 3)
        allowed = min(place + 1, order.size - place - 1) >= 0.1 * order.size
        energy = np.sum(cut[:2] / np.minimum(2 * size[:2], 60 - size[:2]))
        energies.append(energy if allowed else np.inf)
    found = _divided(level, inside, order, 3)
    assert found.left.size == np.argmin(energies) + 1
    assert found.energy == pytest.approx(min(energies))
    np.testing.assert_array_equal(np.concatenate(found[:2]), inside.nodes[order])


def test_an_end_of_a_class_goes_where_the_energy_rises_least():
    graph, part, fixed = make(6, 60, 3)
    level, a = level_of(graph), 2
    inside = _inside(level, part, (a,), 3)
    order, held = np.random.default_rng(0).permutation(inside.nodes.size), fixed[inside.nodes]
    cut, size = partition.statistics(*level, part, 3)
    places, takers, changes = lines.best_gifts(
        order,
        *inside[1:4],
        np.ones(order.size),
        inside.outer,
        held.astype(float),
        cut,
        size,
        a,
        0.1,
    )
    for side in (0, 1):
        expected = {}
        for place in range(order.size - 1):
            end = order[place + 1 :] if side else order[: place + 1]
            n_held = held[end].sum()
            if n_held > held.sum() - n_held or not 0.1 <= end.size / order.size <= 0.9:
                continue
            for b in (0, 1):
                trial = part.copy()
                trial[inside.nodes[end]] = b
                expected[place, b] = partition_ratio(level, trial, 3)
        best = min(expected, key=expected.__getitem__)
        assert (places[side], takers[side]) == best
        assert changes[side] == pytest.approx(expected[best] - partition_ratio(level, part, 3))


def test_eigenvectors_are_those_of_the_normalised_graph():
    X = np.random.default_rng(0).random((300, 2)) * [3, 1]
    graph = knn_graph(X)
    found = _eigenvectors(_inside(level_of(graph), np.zeros(300, dtype=np.int32), (0,), 2))
    W = graph.affinity.toarray()
    root = np.sqrt(W.sum(axis=1))
    A = W / np.outer(root, root)
    vectors = found * root
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    values = np.einsum("ki,ij,kj->k", vectors, A, vectors)
    # An eigenvalue of a symmetric matrix is no further off than its residual.
    np.testing.assert_allclose(values, np.linalg.eigvalsh(A)[-2:-7:-1], atol=EIGEN_TOL)
    residuals = np.linalg.norm(vectors @ A - values[:, None] * vectors, axis=1)
    assert residuals.max() < 1.01 * EIGEN_TOL


def test_eigenvectors_of_a_graph_whose_krylov_space_is_exhausted():
    """Complete and equal: two different eigenvalues, hence no more than two steps."""
    n = 30
    W = csr_array(np.ones((n, n)) - np.eye(n))
    level = partition.Level(
        W.indptr.astype(np.uint64),
        W.indices.astype(np.uint32),
        W.data.astype(np.float32),
        np.ones(n),
    )
    found = _eigenvectors(_inside(level, np.zeros(n, dtype=np.int32), (0,), 2))
    assert len(found) == 1
    assert np.isfinite(found).all()


def test_no_cycles_above_a_limit(monkeypatch):
    graph, part, fixed = make(3, 200, 3)
    W = csr_array(graph.affinity)
    _, energies = ratio_partition(W, part, fixed, split=False, max_cycles=1)
    cycles = []
    cycle = partition._Search._cycle

    def counted(self, *args):
        cycles.append(1)
        return cycle(self, *args)

    monkeypatch.setattr(partition._Search, "_cycle", counted)
    _, path = ratio_partition(W, part, fixed, split=False, max_cycles=1, limit=1e-9)
    assert not cycles
    assert path[-1] <= path[0] == energies[0]
    ratio_partition(W, part, fixed, split=False, max_cycles=1, limit=1e9)
    assert len(cycles) == 1


@pytest.mark.parametrize(("patience", "expected"), [(1, 1), (3, 3), (6, 7)])
def test_ends_after_so_many_idle_cycles(patience, expected, monkeypatch):
    graph, part, fixed = make(3, 200, 3)
    cycles = []
    monkeypatch.setattr(
        partition._Search, "_cycle", lambda self, part, *_: cycles.append(1) or part
    )
    ratio_partition(csr_array(graph.affinity), part, fixed, split=False, patience=patience)
    assert len(cycles) == expected  # one, then two at a time


def test_the_same_in_threads_and_one_by_one(monkeypatch):
    graph, part, fixed = make(8, 600, 4)
    W = csr_array(graph.affinity)
    with ThreadPoolExecutor(2) as pool:
        monkeypatch.setattr(partition, "map_batches", pool.map)
        in_threads = ratio_partition(W, part, fixed)
    monkeypatch.setattr(partition, "map_batches", map)
    one_by_one = ratio_partition(W, part, fixed)
    np.testing.assert_array_equal(in_threads[0], one_by_one[0])
    np.testing.assert_array_equal(in_threads[1], one_by_one[1])
