import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.neighbors import radius_neighbors_graph

from tvsvm.graph import Graph, knn_graph

WEIGHTS = ["density", "gaussian", "selftuning", "uniform", "distance"]


def spread(X):
    """(tr C)² / tr C² of the rows' covariance, from the products of different rows."""
    products = (X - X.mean(axis=0)) @ (X - X.mean(axis=0)).T
    different = products[~np.eye(len(X), dtype=bool)]
    return np.mean(np.diag(products)) ** 2 / np.mean(different**2)


def directed_reference(distances, weights, dimension=0.0):
    """Weights of a table of distances, entry by entry; NaN where there is no neighbour."""
    n_rows = len(distances)
    scale = np.array([np.nanmax(row, initial=0) for row in distances])
    W = np.zeros((n_rows, n_rows))
    logs = [np.log(scale[i] / d) for i in range(n_rows) for d in distances[i] if d < scale[i]]
    power = 3 * np.clip((8 - max(1 / np.mean(logs), dimension)) / 6, 0, 1)
    for i, j in np.argwhere(~np.isnan(distances)):
        d = distances[i, j]
        denser = (np.median(scale) / np.sqrt(scale[i] * scale[j])) ** power
        W[i, j] = {
            "density": lambda: denser * np.exp(-4 * d**2 / scale[i] ** 2),  # noqa: B023
            "gaussian": lambda: np.exp(-4 * d**2 / scale[i] ** 2),  # noqa: B023
            "selftuning": lambda: np.exp(-(d**2) / (scale[i] * scale[j])),  # noqa: B023
            "uniform": lambda: 1.0,
            "distance": lambda: 1 / d,  # noqa: B023
        }[weights]()
    return W


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("symmetrize", ["mean", "max", "mutual"])
def test_knn_graph_is_its_formula(weights, symmetrize):
    X = np.random.default_rng(0).normal(size=(40, 3))
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    np.fill_diagonal(distances, np.nan)
    distances[distances > np.sort(distances, axis=1)[:, [5]]] = np.nan
    W = directed_reference(distances, weights, spread(X))
    expected = {"mean": (W + W.T) / 2, "max": np.maximum(W, W.T), "mutual": np.minimum(W, W.T)}
    graph = knn_graph(X, n_neighbors=6, weights=weights, symmetrize=symmetrize)
    np.testing.assert_allclose(graph.affinity.toarray(), expected[symmetrize], rtol=1e-9)


def test_callable_weights_see_the_nearest_first():
    X = np.random.default_rng(0).normal(size=(40, 3))

    def gaussian(distances):
        assert distances.shape == (40, 6)
        assert (np.diff(distances, axis=1) >= 0).all()
        return np.exp(-4 * (distances / distances[:, -1:]) ** 2)

    np.testing.assert_allclose(
        knn_graph(X, n_neighbors=6, weights=gaussian).affinity.toarray(),
        knn_graph(X, n_neighbors=6, weights="gaussian").affinity.toarray(),
    )


@pytest.mark.parametrize(("n_columns", "heavier"), [(2, 4.0), (30, 1.1)])
def test_density_makes_cuts_through_dense_places_dear_in_few_dimensions(n_columns, heavier):
    """The middle of a Gaussian against its rim."""
    X = np.random.default_rng(0).normal(size=(500, n_columns))
    ratio = []
    for weights in ("density", "gaussian"):
        graph = knn_graph(X, weights=weights)
        far = np.linalg.norm(X, axis=1)
        degrees = graph.degrees[np.argsort(far)]
        ratio.append(degrees[:100].mean() / degrees[-100:].mean())
    assert ratio[0] / ratio[1] > heavier if n_columns == 2 else ratio[0] / ratio[1] < heavier


def test_density_does_not_count_for_thin_sheets_in_many_dimensions():
    """Rings of different size, each in a plane of its own: they fill one dimension only."""
    rng = np.random.default_rng(0)
    angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    planes = np.linalg.qr(rng.normal(size=(40, 40)))[0].reshape(20, 2, 40)
    X = np.vstack([size * circle @ plane for size, plane in zip((1, 2) * 10, planes, strict=True)])
    a, b = (knn_graph(X, weights=w) for w in ("density", "gaussian"))
    np.testing.assert_array_equal(a.affinity.toarray(), b.affinity.toarray())
    flat = np.vstack([size * circle + [9 * size, 0] for size in (1, 2)])
    a, b = (knn_graph(flat, weights=w) for w in ("density", "gaussian"))
    assert a.degrees[:60].mean() / a.degrees[60:].mean() > 4 * b.degrees[0] / b.degrees[60]


@pytest.mark.parametrize("metric", ["cosine", "correlation", "sqeuclidean"])
def test_squares_of_distances_say_the_same_about_density(metric):
    X = np.random.default_rng(0).normal(size=(80, 4))
    X -= X.mean(axis=1, keepdims=True)  # where a correlation is a cosine
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    factors = []
    for name in (metric, "euclidean"):
        a, b = (knn_graph(X, metric=name, weights=w) for w in ("density", "gaussian"))
        factors.append(a.affinity.data / b.affinity.data)
    np.testing.assert_allclose(factors[0], factors[1], rtol=1e-6)


def test_density_of_rows_without_a_scale():
    """Copies are as dense as the densest row; far rows keep edges; one neighbour has no density."""
    rng = np.random.default_rng(0)
    X = np.vstack([np.zeros((8, 2)), rng.normal(size=(40, 2)), [[1e6, 0]]])
    graph = knn_graph(X, n_neighbors=4)
    assert np.isfinite(graph.edge_weights).all()
    assert graph.edge_weights.min() > 1e-6
    same, one = np.zeros((5, 2)), rng.normal(size=(9, 2))
    for rows, k in ((same, 2), (one, 1)):
        a, b = (knn_graph(rows, n_neighbors=k, weights=w) for w in ("density", "gaussian"))
        np.testing.assert_array_equal(a.affinity.toarray(), b.affinity.toarray())


def test_wrong_weights():
    X = np.random.default_rng(0).normal(size=(40, 3))
    with pytest.raises(ValueError, match=r"'gaussian', .* or a callable\. Got 'rbf'"):
        knn_graph(X, weights="rbf")
    with pytest.raises(ValueError, match="one weight a distance"):
        knn_graph(X, weights=lambda d: d[:, 0])
    with pytest.raises(ValueError, match="`weights` must not be negative"):
        knn_graph(X, weights=lambda d: -d)
    ragged = radius_neighbors_graph(X, 1.0, mode="distance")
    with pytest.raises(ValueError, match="same number of neighbours in every row"):
        Graph.from_distances(ragged, weights=np.exp)


@pytest.mark.parametrize("weights", ["density", "gaussian", "selftuning", "uniform"])
@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_the_unit_of_X_does_not_matter(weights, scale):
    X = np.random.default_rng(0).normal(size=(50, 3))
    expected = knn_graph(X, n_neighbors=4, weights=weights).affinity.toarray()
    scaled = knn_graph(X * scale, n_neighbors=4, weights=weights).affinity.toarray()
    np.testing.assert_allclose(scaled, expected, rtol=1e-9)
    shifted = knn_graph(X + 1e3, n_neighbors=4, weights=weights).affinity.toarray()
    np.testing.assert_allclose(shifted, expected, rtol=1e-8)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_edge_vanishes_next_to_copies_and_outliers(weights, dtype):
    # Five copies of one row, tight pairs, and rows so far away that exp underflows.
    X = np.zeros((20, 2), dtype)
    X[5:15] = np.random.default_rng(0).normal(size=(10, 2)) * 1e-3
    X[15:] = 1e6 * (1 + np.arange(5))[:, None]
    graph = knn_graph(X, n_neighbors=3, weights=weights, symmetrize="max")
    uniform = knn_graph(X, n_neighbors=3, weights="uniform", symmetrize="max")
    assert graph.affinity.dtype == dtype
    assert np.isfinite(graph.degrees).all()
    np.testing.assert_array_equal(graph.edges, uniform.edges)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_more_copies_than_neighbors_are_a_component_of_their_own(weights):
    X = np.repeat([[0.0, 0.0], [1.0, 0.0]], [8, 9], axis=0)
    graph = knn_graph(X, n_neighbors=3, weights=weights)
    assert graph.n_components == 2
    np.testing.assert_array_equal(graph.component_labels, np.repeat([0, 1], [8, 9]))
    assert set(graph.edge_weights) <= {0.5, 1.0}


def test_two_rows_and_too_few_rows():
    assert knn_graph([[0.0], [1.0]], n_neighbors=1).edge_weights == pytest.approx(np.exp(-4))
    with pytest.raises(ValueError, match="Got 10 for 8 rows; pass n_neighbors <= 7"):
        knn_graph(np.eye(8))
    with pytest.raises(ValueError, match="pass at least 2 rows"):
        knn_graph([[0.0, 1.0]], n_neighbors=1)


def test_knn_graph_passes_its_options_on():
    X = np.random.default_rng(0).normal(size=(400, 80)).cumsum(axis=1)
    sparse = knn_graph(csr_array(X), metric="cosine")
    dense = knn_graph(X, metric="cosine").affinity.toarray()
    np.testing.assert_allclose(sparse.affinity.toarray(), dense, atol=1e-9)
    assert knn_graph(X.astype(np.float32)).affinity.dtype == np.float32
    one, two = (
        knn_graph(X, algorithm="approximate", random_state=7, n_jobs=n_jobs) for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.affinity.data, two.affinity.data)


def test_rows_in_another_order_give_the_same_graph():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 4))
    order = rng.permutation(70)
    expected = knn_graph(X).affinity.toarray()[np.ix_(order, order)]
    np.testing.assert_allclose(knn_graph(X[order]).affinity.toarray(), expected)


def test_nodes_keep_their_masses_where_edges_are_made_heavier():
    X = np.random.default_rng(0).normal(size=(60, 2))
    plain, dense = (knn_graph(X, n_neighbors=5, weights=w) for w in ("gaussian", "density"))
    assert plain.masses is plain.degrees
    np.testing.assert_allclose(dense.masses, plain.degrees)
    assert np.ptp(dense.degrees / plain.degrees) > 1
    some = np.arange(10, 30)
    for graph, expected in (
        (pickle.loads(pickle.dumps(dense)), plain.degrees),
        (dense.scaled(mean_degree=3.0), plain.degrees),
        (dense.subgraph(some), plain.degrees[some]),
    ):
        np.testing.assert_allclose(graph.masses, expected)
        assert not graph.masses.flags.writeable
    for wrong in (np.ones(3), -np.ones(60), np.full(60, np.nan)):
        with pytest.raises(ValueError, match=r"`masses` must hold .* for 60 nodes"):
            Graph(plain.affinity, masses=wrong)
