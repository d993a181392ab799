import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_array, csr_matrix, random_array
from scipy.spatial.distance import cdist

from tvsvm import neighbors
from tvsvm.neighbors import nearest_neighbors

METRICS = ["euclidean", "cosine", "manhattan", "chebyshev"]


def brute_force(X, n_neighbors, metric="euclidean"):
    """All distances, one row at a time; ties by row number."""
    X = np.asarray(X, dtype=np.float64)
    distances = cdist(X, X, {"manhattan": "cityblock"}.get(metric, metric))
    np.fill_diagonal(distances, np.inf)
    indices = np.argsort(distances, axis=1, kind="stable")[:, :n_neighbors]
    return indices, np.take_along_axis(distances, indices, axis=1)


def clustered(n_rows, n_columns, seed=0):
    """Rows near a curved surface of five dimensions, in several pieces."""
    rng = np.random.default_rng(seed)
    inner = rng.normal(size=(n_rows, 5))
    pieces = 3 * rng.normal(size=(4, n_columns))[rng.integers(4, size=n_rows)]
    noise = 0.02 * rng.normal(size=(n_rows, n_columns))
    return np.tanh(inner @ rng.normal(size=(5, n_columns))) + pieces + noise


def recall(indices, truth):
    return np.mean([np.isin(t, i).mean() for i, t in zip(indices, truth, strict=True)])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("shape", [(2, 1), (40, 3), (300, 70)])
def test_exact_is_brute_force(metric, shape):
    X = np.random.default_rng(0).normal(size=shape)
    n_neighbors = min(7, shape[0] - 1)
    indices, distances = nearest_neighbors(X, n_neighbors, metric=metric)
    expected_indices, expected = brute_force(X, n_neighbors, metric)
    np.testing.assert_allclose(distances, expected, rtol=1e-12, atol=1e-15)
    if shape[1] > 1:  # on a line all cosine distances are 0 or 2
        np.testing.assert_array_equal(indices, expected_indices)
    assert indices.dtype == np.int32


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    hnp.arrays(
        np.int64,
        st.tuples(st.integers(2, 30), st.integers(1, 5)),
        elements=st.integers(-2, 2),
    ),
    st.integers(1, 29),
    st.sampled_from([np.float32, np.float64, np.int8, np.int64]),
    st.booleans(),
)
def test_ties_and_copies_as_brute_force(X, n_neighbors, dtype, sparse):
    n_neighbors = min(n_neighbors, len(X) - 1)
    given_X = csr_array(X.astype(dtype)) if sparse else X.astype(dtype)
    indices, distances = nearest_neighbors(given_X, n_neighbors)
    expected_indices, expected = brute_force(X, n_neighbors)
    np.testing.assert_array_equal(indices, expected_indices)
    np.testing.assert_allclose(distances, expected, rtol=1e-6)
    assert distances.dtype == (np.float32 if dtype in (np.float32, np.int8) else np.float64)


def test_all_rows_equal():
    indices, distances = nearest_neighbors(np.full((50, 3), 0.1), 4)
    np.testing.assert_array_equal(indices[10], [0, 1, 2, 3])
    np.testing.assert_array_equal(indices[1], [0, 2, 3, 4])
    assert not distances.any()


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("container", [csr_array, csr_matrix])
def test_sparse_is_dense(metric, container):
    X = random_array((200, 50), density=0.1, rng=np.random.default_rng(0), format="csr")
    X = X.toarray()
    X[[3, 70]] = 0
    indices, distances = nearest_neighbors(container(X), 6, metric=metric)
    _, expected = nearest_neighbors(X, 6, metric=metric)
    np.testing.assert_allclose(distances, expected, atol=1e-12)
    rows = np.arange(200)[:, None]
    if metric == "euclidean":
        np.testing.assert_allclose(distances, cdist(X, X)[rows, indices], atol=1e-12)


def test_rows_of_zeros_have_a_direction_of_their_own():
    X = np.array([[0, 0], [0, 0], [1, 0], [2, 0.1], [-1, 0], [-3, 0.2]])
    indices, distances = nearest_neighbors(X, 5, metric="cosine")
    assert indices[0, 0] == 1
    np.testing.assert_allclose(distances[0], [0, 1, 1, 1, 1], atol=1e-12)
    np.testing.assert_array_equal(indices[2], [3, 0, 1, 5, 4])  # zeros before the opposite
    np.testing.assert_allclose(distances[2, 1:3], 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_no_cancellation_far_from_the_origin(dtype, shift):
    X = (shift + np.random.default_rng(0).normal(size=(300, 20))).astype(dtype)
    indices, distances = nearest_neighbors(X, 5)
    expected_indices, expected = brute_force(X, 5)
    assert distances.dtype == dtype
    np.testing.assert_allclose(distances, expected, rtol=20 * np.finfo(dtype).eps)
    if dtype == np.float64:
        np.testing.assert_array_equal(indices, expected_indices)


def test_no_cancellation_between_far_clusters():
    # Inner products in float32 are wrong by more than the distances within a cluster.
    rng = np.random.default_rng(1)
    centers = np.repeat([[-3e4], [0.0], [4e4]], 50, axis=0)
    X = (centers + rng.normal(size=(150, 8))).astype(np.float32)
    _, distances = nearest_neighbors(X, 5)
    np.testing.assert_allclose(distances, brute_force(X, 5)[1], rtol=1e-5)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("scale", [1e-150, 1e150])
@pytest.mark.parametrize("sparse", [False, True])
def test_scale_does_not_matter(metric, scale, sparse):
    X = np.random.default_rng(0).normal(size=(60, 4))
    expected_indices, expected = nearest_neighbors(X, 5, metric=metric)
    indices, distances = nearest_neighbors(
        csr_array(X * scale) if sparse else X * scale, 5, metric=metric
    )
    np.testing.assert_array_equal(indices, expected_indices)
    unit = scale if metric == "euclidean" else 1
    np.testing.assert_allclose(distances / unit, expected, rtol=1e-10)


@pytest.mark.parametrize("metric", METRICS)
def test_rows_may_come_in_any_order(metric):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    order = rng.permutation(120)
    indices, distances = nearest_neighbors(X, 5, metric=metric)
    permuted, permuted_distances = nearest_neighbors(X[order], 5, metric=metric)
    np.testing.assert_array_equal(order[permuted], indices[order])
    np.testing.assert_allclose(permuted_distances, distances[order])


def test_any_memory_layout_and_never_written():
    X = np.random.default_rng(0).normal(size=(80, 12)) + 50
    expected = nearest_neighbors(X, 4)[0]
    frozen = X.copy()
    frozen.flags.writeable = False
    for same in (frozen, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], X.tolist()):
        np.testing.assert_array_equal(nearest_neighbors(same, 4)[0], expected)
    sparse = csr_array(X * 1e200)
    before = sparse.copy()
    nearest_neighbors(sparse, 4)
    np.testing.assert_array_equal(sparse.data, before.data)


@pytest.mark.parametrize("n_columns", [20, 200])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_approximate_recall_and_distances(n_columns, dtype, metric):
    X = clustered(4000, n_columns).astype(dtype)
    indices, distances = nearest_neighbors(
        X, 10, metric=metric, algorithm="approximate", random_state=0
    )
    truth, expected = nearest_neighbors(X, 10, metric=metric, algorithm="exact")
    assert recall(indices, truth) >= 0.98
    assert (np.diff(distances, axis=1) >= 0).all()
    assert (indices != np.arange(4000)[:, None]).all()
    right = (indices == truth).all(axis=1)
    assert right.mean() > 0.8
    np.testing.assert_allclose(distances[right], expected[right], rtol=1e-6)


def test_approximate_does_not_depend_on_threads():
    X = clustered(3000, 100).astype(np.float32)
    one = nearest_neighbors(X, 8, algorithm="approximate", random_state=3, n_jobs=1)
    two = nearest_neighbors(X, 8, algorithm="approximate", random_state=3, n_jobs=2)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


def test_approximate_sparse():
    X = np.maximum(clustered(3000, 150) - 2, 0)
    assert (X == 0).mean() > 0.5
    indices, _ = nearest_neighbors(csr_array(X), 10, algorithm="approximate", random_state=0)
    assert recall(indices, nearest_neighbors(X, 10, algorithm="exact")[0]) >= 0.98


def test_approximate_finds_copies():
    X = clustered(2000, 80)
    X[500:1000] = X[:500]  # pairs
    X[1500:] = X[1500]  # one row 500 times
    indices, distances = nearest_neighbors(X, 10, algorithm="approximate", random_state=0)
    assert (distances[:1000, 0] == 0).mean() > 0.98
    assert not distances[1500:].any()
    assert (np.sort(indices, axis=1)[:, 1:] != np.sort(indices, axis=1)[:, :-1]).all()


def test_approximate_of_few_rows_has_enough_neighbors():
    for n_rows in (2, 3, 10, 40):
        X = np.random.default_rng(n_rows).normal(size=(n_rows, 3))
        k = n_rows - 1
        indices, _ = nearest_neighbors(X, k, algorithm="approximate", random_state=0)
        np.testing.assert_array_equal(
            np.sort(np.column_stack([indices, np.arange(n_rows)])),
            np.tile(np.arange(n_rows), (n_rows, 1)),
        )


def test_white_noise_in_many_dimensions_is_searched_exactly(monkeypatch):
    # No projection keeps its neighbours: the sample says so.
    monkeypatch.setattr(neighbors.approximate, "_search", None)
    X = np.random.default_rng(0).normal(size=(1500, 300))
    indices, _ = nearest_neighbors(X, 10, algorithm="approximate", random_state=0)
    np.testing.assert_array_equal(indices, nearest_neighbors(X, 10, algorithm="exact")[0])


def test_auto_is_exact_until_that_is_too_much_work(monkeypatch):
    X = clustered(3000, 200)
    exact = nearest_neighbors(X, 10, algorithm="exact")[0]
    approximate = nearest_neighbors(X, 10, algorithm="approximate", random_state=0)[0]
    assert not np.array_equal(exact, approximate)
    np.testing.assert_array_equal(nearest_neighbors(X, 10)[0], exact)
    monkeypatch.setattr(neighbors, "EXACT_WORK", 1e9)
    np.testing.assert_array_equal(nearest_neighbors(X, 10, random_state=0)[0], approximate)


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        (np.zeros((8, 2)), {"n_neighbors": 8}, "Got 8 for 8 rows; pass n_neighbors <= 7"),
        (np.zeros((1, 2)), {"n_neighbors": 1}, "pass at least 2 rows"),
        (np.zeros((8, 2)), {"n_neighbors": 0}, "positive integer"),
        (np.zeros((8, 2)), {"n_neighbors": 2.5}, "positive integer"),
        (np.array([[0.0], [np.nan], [1.0]]), {"n_neighbors": 1}, "NaN"),
        (np.array([[0.0], [np.inf], [1.0]]), {"n_neighbors": 1}, "infinity"),
        (np.zeros((8, 2)), {"n_neighbors": 1, "algorithm": "fast"}, "Got 'fast'"),
        (
            np.zeros((8, 2)),
            {"n_neighbors": 1, "algorithm": "approximate", "metric": "manhattan"},
            "algorithm='exact'",
        ),
    ],
)
def test_errors_say_what_got_and_cure(X, options, message):
    with pytest.raises(ValueError, match=message):
        nearest_neighbors(X, **options)
