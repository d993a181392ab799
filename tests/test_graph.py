import pickle
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from references import affinities
from scipy.sparse import coo_array, csc_matrix, csr_array, csr_matrix
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph, radius_neighbors_graph

from tvsvm.graph import Graph, knn_graph

ARRAYS = ["order", "edges", "edge_weights", "indptr", "heads", "crossing", "late", "degrees"]
ARRAYS += ["component_labels"]
WEIGHTS = ["gaussian", "selftuning", "uniform", "distance"]


def random_affinity(n_nodes, density=0.3, seed=0):
    rng = np.random.default_rng(seed)
    W = np.triu(
        rng.uniform(0.1, 2, (n_nodes, n_nodes)) * (rng.random((n_nodes, n_nodes)) < density), 1
    )
    return W + W.T


# --- the graph itself -----------------------------------------------------------------------------


@settings(deadline=None, derandomize=True, max_examples=80)
@given(affinities(), st.integers(0, 100))
def test_edges_and_energies_say_the_same_as_the_affinity(W, seed):
    graph = Graph(W)
    n_nodes = len(W)
    assert graph.n_nodes == n_nodes
    assert graph.n_edges == np.count_nonzero(W) // 2 == len(graph.edges) == len(graph.heads)
    np.testing.assert_array_equal(graph.affinity.toarray(), W)
    np.testing.assert_array_equal(np.sort(graph.order), np.arange(n_nodes))

    position = np.argsort(graph.order)
    tails = np.repeat(np.arange(n_nodes), np.diff(graph.indptr))
    np.testing.assert_array_equal(position[graph.edges], np.column_stack([tails, graph.heads]))
    assert (graph.heads > tails).all()
    assert (np.diff(tails * n_nodes + graph.heads) > 0).all()
    np.testing.assert_array_equal(graph.edge_weights, W[graph.edges[:, 0], graph.edges[:, 1]])
    assert np.count_nonzero(np.diff(graph.component_labels[graph.order])) < graph.n_components
    for p in range(graph.middle):
        heads = graph.heads[graph.indptr[p] : graph.indptr[p + 1]]
        assert graph.crossing[p] == graph.indptr[p] + np.sum(heads < graph.middle)
    between = (tails < graph.middle) & (graph.heads >= graph.middle)
    late = np.concatenate([np.zeros(graph.middle, dtype=bool), graph.late])[tails]
    assert not (set(graph.heads[between]) & {*tails[late], *graph.heads[late]})

    F = np.random.default_rng(seed).normal(size=(n_nodes, 3))
    i, j = graph.edges.T
    steps = F[i] - F[j]
    np.testing.assert_allclose(graph.difference(F), steps)
    np.testing.assert_allclose(graph.total_variation(F), graph.edge_weights @ abs(steps))
    np.testing.assert_allclose(
        graph.dirichlet(F), np.diag(F.T @ (graph.laplacian @ F)), rtol=1e-9, atol=1e-12
    )
    P = np.random.default_rng(seed + 1).normal(size=(graph.n_edges, 3))
    assert np.vdot(P, graph.difference(F)) == pytest.approx(
        np.vdot(graph.difference_adjoint(P), F), abs=1e-10
    )


def test_one_column_is_a_vector_or_a_matrix():
    graph = Graph(random_affinity(9))
    f = np.arange(9.0) ** 2
    assert isinstance(graph.total_variation(f), float)
    assert graph.total_variation(f) == graph.total_variation(f[:, None])[0]
    assert graph.dirichlet(f) == graph.dirichlet(f[:, None])[0]
    np.testing.assert_array_equal(graph.difference(f), graph.difference(f[:, None])[:, 0])
    p = graph.difference(f)
    np.testing.assert_array_equal(
        graph.difference_adjoint(p), graph.difference_adjoint(p[:, None])[:, 0]
    )
    assert graph.total_variation(np.arange(9)) == graph.total_variation(np.arange(9.0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, bool])
@pytest.mark.parametrize("container", [np.array, csr_array, csr_matrix, csc_matrix, coo_array])
def test_any_container_and_number(dtype, container):
    W = (random_affinity(8) > 0).astype(dtype)
    graph = Graph(container(W))
    assert graph.affinity.dtype == (np.float32 if dtype == np.float32 else np.float64)
    assert graph.edge_weights.dtype == graph.laplacian.dtype == graph.affinity.dtype
    np.testing.assert_array_equal(graph.affinity.toarray(), W)


def test_diagonal_zeros_and_duplicates():
    rows, columns = [0, 0, 1, 1, 1, 2, 0, 2], [0, 1, 0, 0, 2, 1, 2, 0]
    graph = Graph(coo_array(([5.0, 3, 1, 2, 4, 4, 0, 0], (rows, columns)), shape=(3, 3)))
    np.testing.assert_array_equal(graph.affinity.toarray(), [[0, 3, 0], [3, 0, 4], [0, 4, 0]])
    assert graph.affinity.nnz == 4
    np.testing.assert_array_equal(graph.degrees, [3, 7, 4])


def test_asymmetry_by_rounding_is_averaged():
    W = random_affinity(10)
    graph = Graph(W * (1 + 1e-12 * np.random.default_rng(0).normal(size=W.shape)))
    assert (graph.affinity != graph.affinity.T).nnz == 0
    np.testing.assert_allclose(graph.affinity.toarray(), W, rtol=1e-10)


def test_immutable_and_the_callers_arrays_are_not_touched():
    W = csr_array(random_affinity(10))
    given_data = W.data.copy()
    graph = Graph(W)
    for name in ARRAYS:
        assert not getattr(graph, name).flags.writeable
        with pytest.raises(AttributeError, match="immutable"):
            setattr(graph, name, 0)
    for matrix in (graph.affinity, graph.laplacian):
        assert not matrix.data.flags.writeable
        assert not matrix.indices.flags.writeable
    assert W.data.flags.writeable
    np.testing.assert_array_equal(W.data, given_data)


def test_pickle_carries_only_the_affinity():
    graph = Graph(random_affinity(200))
    small = len(pickle.dumps(graph))
    expected = {name: getattr(graph, name) for name in ARRAYS}
    assert len(pickle.dumps(graph)) == small
    copy = pickle.loads(pickle.dumps(graph))
    for name, value in expected.items():
        np.testing.assert_array_equal(getattr(copy, name), value)
        assert not getattr(copy, name).flags.writeable


def test_components():
    W = np.zeros((6, 6))
    W[0, 3] = W[3, 0] = W[1, 4] = W[4, 1] = 1
    graph = Graph(W)
    assert graph.n_components == 4
    np.testing.assert_array_equal(graph.component_labels, [0, 1, 2, 0, 1, 3])


def test_a_single_node():
    graph = Graph([[7.0]])
    assert (graph.n_nodes, graph.n_edges, graph.n_components) == (1, 0, 1)
    assert graph.edges.shape == (0, 2)
    assert graph.total_variation([3.0]) == 0
    assert graph.difference(np.zeros((1, 4))).shape == (0, 4)
    np.testing.assert_array_equal(graph.difference_adjoint(np.zeros((0, 2))), np.zeros((1, 2)))
    np.testing.assert_array_equal(graph.laplacian.toarray(), [[0]])


def test_order_keeps_neighbors_close():
    # A ring of points in random order: neighbours should end up next to each other.
    rng = np.random.default_rng(0)
    shuffled = rng.permutation(500)
    W = coo_array((np.ones(500), (shuffled, np.roll(shuffled, 1))), shape=(500, 500))
    graph = Graph(W + W.T)
    position = np.argsort(graph.order)
    assert abs(np.diff(position[graph.edges], axis=1)).max() <= 2


def test_halves_have_like_numbers_of_edges_and_few_between():
    rng = np.random.default_rng(0)
    graph = knn_graph(rng.normal(size=(2000, 3)))
    inside = graph.crossing - graph.indptr[: graph.middle]
    between = np.sum(graph.indptr[1 : graph.middle + 1] - graph.crossing)
    second = graph.n_edges - graph.indptr[graph.middle]
    assert between < 0.1 * graph.n_edges
    assert abs(inside.sum() - second) < 0.05 * graph.n_edges


def test_a_hub_does_not_take_quadratic_time():
    n_leaves = 300_000
    leaves = np.arange(1, n_leaves)
    rng = np.random.default_rng(0)
    ends = rng.integers(1, n_leaves, (2, n_leaves))
    rows, columns = np.concatenate([[0 * leaves, leaves], ends], axis=1)
    W = coo_array((np.ones(len(rows)), (rows, columns)), shape=(n_leaves, n_leaves)).tocsr()
    graph = Graph(W + W.T)
    assert graph.n_components == 1
    assert graph.total_variation(np.arange(n_leaves) == 0) == n_leaves - 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_scaled_already_stays_itself(dtype):
    rng = np.random.default_rng(0)
    half = np.triu(rng.random((300, 300)) ** 4, 1).astype(dtype)
    graph = Graph(half + half.T).scaled(mean_degree=1.0)
    assert graph.scaled(mean_degree=1.0) is graph
    assert graph.scaled(mean_degree=1.001) is not graph


def test_scaled():
    graph = Graph(random_affinity(30))
    scaled = graph.scaled(mean_degree=5.6)
    assert scaled.degrees.mean() == pytest.approx(5.6)
    np.testing.assert_array_equal(scaled.edges, graph.edges)
    ratio = scaled.edge_weights / graph.edge_weights
    np.testing.assert_allclose(ratio, ratio[0])
    for scale in (1e-300, 1e300):
        same = Graph(graph.affinity * scale).scaled(mean_degree=5.6)
        np.testing.assert_allclose(same.edge_weights, scaled.edge_weights)
    assert (
        Graph(graph.affinity.astype(np.float32)).scaled(mean_degree=1).degrees.dtype == np.float32
    )


def test_subgraph():
    W = random_affinity(12)
    nodes = [7, 2, 3, 11]
    graph = Graph(W)
    np.testing.assert_array_equal(graph.subgraph(nodes).affinity.toarray(), W[nodes][:, nodes])
    mask = np.isin(np.arange(12), nodes)
    np.testing.assert_array_equal(
        graph.subgraph(mask).affinity.toarray(), graph.subgraph(np.sort(nodes)).affinity.toarray()
    )


@pytest.mark.parametrize("nodes", [[0, 0], [12], [-1], [0.5], [], np.ones(5, bool), [[1, 2]]])
def test_subgraph_of_wrong_nodes(nodes):
    with pytest.raises(ValueError, match="distinct node numbers below 12"):
        Graph(random_affinity(12)).subgraph(nodes)


@pytest.mark.parametrize(
    ("affinity", "message"),
    [
        (np.ones((2, 3)), r"square.*Got shape \(2, 3\)"),
        (np.ones(3), "square"),
        (np.ones((0, 0)), "at least one row"),
        ([[0, -1], [-1, 0]], "negative. Got -1"),
        ([[0, np.nan], [np.nan, 0]], "finite. Got 2"),
        (csr_array([[0, np.inf], [np.inf, 0]]), "finite"),
        ([[0, 1], [2, 0]], r"differ by up to 1 .*from_directed"),
        ([[0, 1j], [1j, 0]], "real"),
    ],
)
def test_wrong_affinities(affinity, message):
    with pytest.raises(ValueError, match=message):
        Graph(affinity)


def test_wrong_arguments():
    graph = Graph(random_affinity(5))
    with pytest.raises(ValueError, match=r"Got \(4,\)"):
        graph.total_variation(np.zeros(4))
    with pytest.raises(ValueError, match="`P` must have shape"):
        graph.difference_adjoint(np.zeros((graph.n_edges + 1, 2)))
    with pytest.raises(ValueError, match="positive and finite"):
        graph.scaled(mean_degree=0)
    with pytest.raises(ValueError, match="no scale"):
        Graph(np.zeros((3, 3))).scaled(mean_degree=1)


# --- other ways to make one -----------------------------------------------------------------------


def test_from_directed():
    W = np.array([[0, 4.0, 2], [2, 0, 0], [0, 0, 9]])
    mean, largest, mutual = (
        Graph.from_directed(W, symmetrize=how).affinity.toarray()
        for how in ("mean", "max", "mutual")
    )
    np.testing.assert_array_equal(mean, [[0, 3, 1], [3, 0, 0], [1, 0, 0]])
    np.testing.assert_array_equal(largest, [[0, 4, 2], [4, 0, 0], [2, 0, 0]])
    np.testing.assert_array_equal(mutual, [[0, 2, 0], [2, 0, 0], [0, 0, 0]])
    with pytest.raises(ValueError, match=r"'mean', 'max', 'mutual'\. Got 'min'"):
        Graph.from_directed(W, symmetrize="min")


@pytest.mark.parametrize("weights", WEIGHTS)
def test_scikit_learns_neighbor_graphs(weights):
    X = np.random.default_rng(0).normal(size=(60, 3))
    expected = knn_graph(X, n_neighbors=5, weights=weights)
    plain = kneighbors_graph(X, 5, mode="distance")
    with_self = KNeighborsTransformer(n_neighbors=5).fit_transform(X)
    assert with_self.nnz > plain.nnz
    for distances in (plain, with_self):
        graph = Graph.from_distances(distances, weights=weights)
        np.testing.assert_allclose(graph.affinity.toarray(), expected.affinity.toarray())


def test_scikit_learns_connectivity():
    X = np.random.default_rng(0).normal(size=(60, 3))
    directed = kneighbors_graph(X, 5, mode="connectivity")
    expected = knn_graph(X, n_neighbors=5, weights="uniform")
    np.testing.assert_array_equal(
        Graph.from_directed(directed).affinity.toarray(), expected.affinity.toarray()
    )


def test_a_zero_distance_is_an_edge():
    X = np.array([[0.0], [0.0], [1.0], [5.0]])
    distances = kneighbors_graph(X, 2, mode="distance")
    assert Graph.from_distances(distances).affinity[0, 1] == 1
    ragged = Graph.from_distances(radius_neighbors_graph(X, 2.0, mode="distance"))
    assert ragged.component_labels.tolist() == [0, 0, 0, 1]
    assert ragged.affinity[0, 1] == 1


def test_distances_must_be_sparse():
    with pytest.raises(ValueError, match=r"sparse matrix.*kneighbors_graph"):
        Graph.from_distances(np.ones((3, 3)))


def test_from_networkx():
    networkx = pytest.importorskip("networkx")
    source = networkx.Graph()
    source.add_nodes_from("cab")
    source.add_edge("a", "b", weight=2.5)
    source.add_edge("b", "c")
    source.add_edge("c", "c")
    graph = Graph.from_networkx(source)
    np.testing.assert_array_equal(graph.affinity.toarray(), [[0, 0, 1], [0, 0, 2.5], [1, 2.5, 0]])
    assert set(Graph.from_networkx(source, weight=None).edge_weights) == {1.0}
    with pytest.raises(ValueError, match="symmetric"):
        Graph.from_networkx(networkx.DiGraph([(0, 1)]))
    with pytest.raises(ValueError, match="at least one node"):
        Graph.from_networkx(networkx.Graph())


def test_networkx_is_optional(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match="pip install networkx"):
        Graph.from_networkx(object())
