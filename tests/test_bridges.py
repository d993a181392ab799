"""Small groups that a graph of neighbours leaves hanging by next to nothing."""

from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import kneighbors_graph

from tvsvm.graph import Graph, bridges, knn_graph
from tvsvm.graph.bridges import LOOSE, N_BRIDGES, bridged, loose_groups
from tvsvm.neighbors import nearest_neighbors


def rows_with_a_loose_group(n_loose=20, n_rows=300, hook=True):
    """A long cloud; few rows close together near its right end, joined to its left end by one."""
    rng = np.random.default_rng(0)
    cloud = rng.uniform([0, 0], [30, 3], size=(n_rows, 2))
    group = [30, 9] + 0.1 * rng.standard_normal((n_loose, 2))
    X = np.vstack([cloud, group])
    W = knn_graph(X).affinity.tolil()
    if hook:
        left = int(np.argmin(cloud[:, 0]))
        W[left, n_rows] = W[n_rows, left] = 0.01
    return X, Graph(W)


def link(graph, group):
    """Weight between the rows of a group and all others, and of the group."""
    W = graph.affinity.toarray()
    return W[np.ix_(group, ~group)].sum(), W[group].sum()


def nearest(X):
    return lambda rows, n: nearest_neighbors(X, n, rows=rows)[0]


def test_a_loose_group_is_found_and_nothing_else():
    _, graph = rows_with_a_loose_group()
    found = loose_groups(graph.affinity, 30)
    assert np.flatnonzero(found.of_row == 0).tolist() == list(range(300, 320))
    assert (found.of_row[:300] == -1).all()
    np.testing.assert_allclose([found.linked[0], found.weight[0]], link(graph, found.of_row == 0))


def test_it_gets_links_to_the_nearest_rows_up_to_the_least_share():
    X, graph = rows_with_a_loose_group()
    result = bridged(graph, 10, nearest(X))
    group = np.arange(320) >= 300
    weight = link(graph, group)[1]
    assert link(result, group)[0] == pytest.approx(LOOSE * weight)
    added = csr_array(result.affinity - graph.affinity)
    added.eliminate_zeros()
    for i in range(300, 320):
        distance = np.where(group, np.inf, np.linalg.norm(X - X[i], axis=1))
        assert set(added[[i]].indices) == set(np.argsort(distance)[:N_BRIDGES])
    same = ~group
    np.testing.assert_array_equal(
        result.affinity.toarray()[np.ix_(same, same)], graph.affinity.toarray()[np.ix_(same, same)]
    )


@pytest.mark.parametrize(
    ("n_loose", "n_rows", "hook"),
    [(20, 300, False), (40, 600, True), (20, 150, True)],
    ids=["a component of its own", "more than 3k rows", "more than a tenth"],
)
def test_what_is_left_alone(n_loose, n_rows, hook):
    X, graph = rows_with_a_loose_group(n_loose, n_rows, hook)
    assert bridged(graph, 10, nearest(X)) is graph


def test_with_many_groups_some_rows_of_each_or_none_are_linked(monkeypatch):
    X, graph = rows_with_a_loose_group()
    asked = []

    def search(rows, n):
        asked.extend(rows)
        return nearest(X)(rows, n)

    monkeypatch.setattr(bridges, "MOST_ROWS", 3)
    group = np.arange(320) >= 300
    weight = link(graph, group)[1]
    assert link(bridged(graph, 10, search), group)[0] == pytest.approx(LOOSE * weight)
    assert asked == [300, 301, 302]
    monkeypatch.setattr(bridges, "MOST_ROWS", 0)
    assert bridged(graph, 10, search) is graph


@pytest.mark.parametrize(
    ("kind", "metric"),
    [
        *product([np.float32, np.float64, csr_array], ["euclidean", "cosine", "manhattan"]),
        (np.float64, "precomputed"),
    ],
)
def test_27_handwritten_ones_are_linked_whatever_the_rows_and_the_metric(kind, metric):
    X, _ = load_digits(return_X_y=True)
    if metric == "precomputed":
        X = pairwise_distances(X)
    rows = kind(X) if kind is csr_array else X.astype(kind)
    plain, linked = (knn_graph(rows, metric=metric, bridges=b) for b in (False, True))
    assert linked.affinity.dtype == rows.dtype
    assert linked.n_components == plain.n_components == 1
    assert 100 < linked.n_edges - plain.n_edges <= 27 * N_BRIDGES


@pytest.mark.parametrize("n_rows", [2, 3, 9, 10, 11, 25])
def test_few_rows_and_copies(n_rows):
    X = np.random.default_rng(0).standard_normal((n_rows, 2))
    for rows in (X, np.ones_like(X), np.repeat(X, 12, axis=0)):
        k = min(10, len(rows) - 1)
        plain, linked = (knn_graph(rows, n_neighbors=k, bridges=b) for b in (False, True))
        assert np.isfinite(linked.affinity.data).all()
        np.testing.assert_array_equal(linked.component_labels, plain.component_labels)


@pytest.mark.parametrize("across", [True, False])
def test_a_group_is_not_linked_to_other_components(across):
    rng = np.random.default_rng(0)
    band = np.c_[rng.uniform(0, 30, 400), rng.uniform(0, 3, 400)]
    group = [15, 8] + 0.05 * rng.standard_normal((14, 2))
    rng = np.random.default_rng(0)
    cloud = np.c_[rng.uniform(5, 25, 60), rng.uniform(14.5, 40, 60)]
    X = np.vstack([band, group, cloud])
    if not across:
        X[: len(band), 1] -= 100  # so that only rows of its own component are near
    plain, linked = (knn_graph(X, bridges=b) for b in (False, True))
    assert plain.n_components == 2
    np.testing.assert_array_equal(linked.component_labels, plain.component_labels)
    assert (linked.n_edges > plain.n_edges) != across


def test_sparse_distances_cannot_be_bridged():
    X, _ = load_digits(return_X_y=True)
    distances = csr_array(kneighbors_graph(X[:200], 15, mode="distance"))
    knn_graph(distances, metric="precomputed")
    with pytest.raises(ValueError, match="pass bridges=False"):
        knn_graph(distances, metric="precomputed", bridges=True)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
@pytest.mark.parametrize("algorithm", ["auto", "approximate"])
def test_neighbours_of_some_rows_are_those_among_all(metric, algorithm):
    if metric == "manhattan" and algorithm == "approximate":
        pytest.skip("is always exact")
    X = np.random.default_rng(0).standard_normal((500, 3))
    rows = np.array([7, 3, 499])
    options = {"metric": metric, "algorithm": algorithm, "random_state": 0}
    some = nearest_neighbors(X, 6, rows=rows, **options)
    for part, whole in zip(some, nearest_neighbors(X, 6, **options), strict=True):
        np.testing.assert_array_equal(part, whole[rows])


def test_a_row_hidden_behind_its_copies_is_not_its_own_neighbour():
    rows = np.arange(30)
    found, _ = nearest_neighbors(np.ones((30, 2)), 5, metric="manhattan", rows=rows)
    assert found.shape == (30, 5)
    assert not (found == rows[:, None]).any()
