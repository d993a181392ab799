"""The kernel space: landmarks, and what it keeps for the next system."""

import gc
import pickle
import tracemalloc
import weakref

import numpy as np
import pytest
from references import kernel_matrix, make_rows, path_laplacian
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel

from tvsvm import knn_graph
from tvsvm.kernel import RKHS
from tvsvm.kernel._spread import spread_out
from tvsvm.kernel.quadratic import compress

# ---- what is kept ------------------------------------------------------------------------------


def test_the_compressed_laplacian_of_a_graph_is_kept_but_does_not_travel():
    X = make_rows(20)
    L = knn_graph(X, n_neighbors=4).laplacian
    space = RKHS(X)
    kept = space.compressed(L)
    np.testing.assert_allclose(kept, space.features.T @ (L @ space.features), atol=1e-12)
    before = space.quadratic(lam=0.1, gamma=1.0, laplacian=L).solve(X)
    assert space.compressed(L) is kept
    np.testing.assert_array_equal(space.quadratic(lam=0.1, gamma=1.0, laplacian=L).solve(X), before)
    copy = pickle.loads(pickle.dumps(space))
    assert len(pickle.dumps(space)) < len(pickle.dumps(copy)) + kept.nbytes / 10
    np.testing.assert_allclose(copy.quadratic(lam=0.1, gamma=1.0, laplacian=L).solve(X), before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_compressed_a_few_at_a_time(dtype, monkeypatch):
    monkeypatch.setattr("tvsvm.kernel.quadratic.FEWEST_COLUMNS", 3)
    monkeypatch.setattr("tvsvm.kernel.quadratic.BATCH_SIZE", 1)
    monkeypatch.setattr("tvsvm.kernel.features.BATCH_SIZE", 40)
    features = make_rows(25, d=11).astype(dtype)
    L = knn_graph(make_rows(26), n_neighbors=4).laplacian
    expected = features.astype(float).T @ (L @ features.astype(float))
    np.testing.assert_allclose(compress(L, features), expected, atol=1e-12)


def test_columns_of_the_inverse_are_its_action_on_unit_vectors():
    X = make_rows(27)
    L = knn_graph(X, n_neighbors=4).laplacian
    space, rows = RKHS(X), [4, 9]
    quadratic = space.quadratic(lam=0.1, r=0.2, gamma=1.0, laplacian=L)
    G = quadratic.solve(np.eye(30))
    np.testing.assert_allclose(space.values(quadratic.columns(rows)), G[:, rows], atol=1e-10)
    np.testing.assert_allclose(quadratic.block(rows), G[np.ix_(rows, rows)], atol=1e-10)


def test_a_laplacian_that_can_be_written_to_is_compressed_anew():
    X = make_rows(21)
    L = knn_graph(X, n_neighbors=4).laplacian.copy()
    space = RKHS(X)
    once = space.quadratic(lam=0.1, gamma=1.0, laplacian=L).solve(X)
    L *= 2
    twice = space.quadratic(lam=0.1, gamma=1.0, laplacian=L).solve(X)
    np.testing.assert_allclose(twice, space.quadratic(lam=0.1, gamma=2.0, laplacian=L / 2).solve(X))
    assert not np.allclose(once, twice)


# ---- landmarks among some rows -----------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_landmarks_among_some_rows_solve_for_labels_on_these_rows(kernel):
    X = make_rows(22)
    rows, gamma = np.array([3, 8, 20, 21]), 0.7
    data = rbf_kernel(X, gamma=gamma) if kernel == "precomputed" else X
    width = {} if kernel == "precomputed" else {"gamma": gamma}
    whole = RKHS(data, kernel=kernel, **width)
    part = RKHS(data, kernel=kernel, **width, among=rows)
    np.testing.assert_array_equal(part.landmark_indices, rows)
    weights, B = np.zeros(30), np.zeros((30, 1))
    weights[rows], B[rows, 0] = 2.0, [1, -1, 1, -1]
    found, expected = (
        space.quadratic(lam=0.3, row_weights=weights).solve(B) for space in (part, whole)
    )
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("sampling", ["uniform", "kmeans++"])
def test_fewer_landmarks_are_drawn_among_the_given_rows(sampling):
    rows = np.arange(5, 25)
    space = RKHS(make_rows(23), among=rows, n_components=6, sampling=sampling, random_state=0)
    assert len(space.landmark_indices) == 6
    assert np.isin(space.landmark_indices, rows).all()


def test_all_given_rows_are_landmarks_while_memory_allows(monkeypatch):
    monkeypatch.setattr("tvsvm.kernel.space.MOST_FEATURES", 30 * 12)
    monkeypatch.setattr("tvsvm.kernel.space.FEWEST_LANDMARKS", 5)
    monkeypatch.setattr("tvsvm.kernel.space.N_FEATURES", 30 * 5)
    X = make_rows(24)
    assert len(RKHS(X, among=np.arange(12)).landmark_indices) == 12
    assert len(RKHS(X, among=np.arange(13)).landmark_indices) == 5


# ---- Nyström -----------------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", ["uniform", "kmeans++"])
@pytest.mark.parametrize("form", ["rows", "sparse", "precomputed"])
def test_nystrom_is_the_textbook_formula(sampling, form):
    X = make_rows(12, n=80)
    K = rbf_kernel(X, gamma=0.5)
    data = {"rows": X, "sparse": sparse.csr_array(X), "precomputed": K}[form]
    kernel = "precomputed" if form == "precomputed" else "rbf"
    space = RKHS(data, kernel=kernel, gamma=0.5, n_components=25, sampling=sampling, random_state=3)
    Z = space.landmark_indices
    assert not space.exact
    assert len(np.unique(Z)) == 25
    expected = K[:, Z] @ np.linalg.pinv(K[np.ix_(Z, Z)], rcond=1e-14, hermitian=True) @ K[Z]
    np.testing.assert_allclose(kernel_matrix(space), expected, atol=1e-7)
    again = RKHS(data, kernel=kernel, gamma=0.5, n_components=25, sampling=sampling, random_state=3)
    np.testing.assert_array_equal(again.features, space.features)


def test_spread_landmarks_approximate_better_than_uniform_ones():
    X = load_digits().data
    K = rbf_kernel(X, gamma=4e-4)

    def error(sampling, seed):
        space = RKHS(X, gamma=4e-4, n_components=80, sampling=sampling, random_state=seed)
        return np.linalg.norm(K - kernel_matrix(space))

    errors = {s: [error(s, seed) for seed in range(3)] for s in ("uniform", "kmeans++")}
    assert np.mean(errors["kmeans++"]) < 0.95 * np.mean(errors["uniform"])


@pytest.mark.parametrize("sampling", ["uniform", "kmeans++"])
def test_rank_deficient_kernels_drop_to_their_rank(sampling):
    options = {"n_components": 20, "sampling": sampling, "random_state": 0}
    X = make_rows(13, n=100)
    linear = RKHS(X, kernel="linear", **options)
    assert linear.rank == 3
    np.testing.assert_allclose(kernel_matrix(linear), X @ X.T, atol=1e-12)
    copies = RKHS(np.repeat(X[:4], 25, axis=0), gamma=1.0, **options)
    assert copies.rank == 4
    expected = np.repeat(np.repeat(rbf_kernel(X[:4], gamma=1.0), 25, axis=0), 25, axis=1)
    np.testing.assert_allclose(kernel_matrix(copies), expected, atol=1e-10)
    constant = RKHS(np.ones((100, 2)), **options)
    assert constant.rank == 1
    np.testing.assert_allclose(kernel_matrix(constant), 1.0)


def test_float32_rows_give_float32_features_close_to_float64():
    X = make_rows(14, n=300).astype(np.float32)
    single, double = (
        RKHS(rows, n_components=40, random_state=0) for rows in (X, X.astype(np.float64))
    )
    assert single.features.dtype == np.float32
    assert RKHS(X).features.dtype == np.float64
    B = np.random.default_rng(14).standard_normal((300, 2))
    L = path_laplacian(300)
    results = []
    for space in (single, double):
        graph = space.quadratic(lam=0.1, r=1.0, gamma=1.0, laplacian=L)
        results.append((space.apply(B), space.solve(B, lam=1.0, r=1.0), graph.solve(B)))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5 * np.abs(b).max())
    W = single.quadratic(lam=0.1, r=1.0).coordinates(B)
    np.testing.assert_allclose(single.expansion(W)(X), single.values(W), atol=1e-5)


def test_memory_stays_linear_in_the_number_of_rows():
    n = 20_000
    X = make_rows(15, n=n, d=5)
    L = path_laplacian(n)
    sizes = []

    def spy(A, B):
        sizes.append(len(A) * len(B))
        return rbf_kernel(A, B)

    tracemalloc.start()
    space = RKHS(X, kernel=spy, n_components=300, random_state=0)
    quadratic = space.quadratic(lam=1.0, r=1.0, gamma=1.0, laplacian=L, row_weights=np.ones(n))
    quadratic.block(np.arange(50))
    W = quadratic.coordinates(np.ones((n, 1)))
    space.expansion(W)(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300e6  # K alone would be 3200e6
    assert max(sizes) <= 2**22 < n * 300


def test_number_of_landmarks_follows_the_number_of_rows(monkeypatch):
    monkeypatch.setattr("tvsvm.kernel.space.EXACT_LIMIT", 50)
    monkeypatch.setattr("tvsvm.kernel.space.N_FEATURES", 20_000)
    assert RKHS(make_rows(0, n=50)).exact
    assert len(RKHS(make_rows(0, n=150), kernel="laplacian").landmark_indices) == 20_000 // 150
    assert len(RKHS(make_rows(0, n=400), kernel="laplacian").landmark_indices) == 128


@pytest.mark.parametrize("begin", [False, True])
def test_features_that_are_made_later_are_the_same(begin):
    X = np.random.default_rng(0).standard_normal((300, 5))
    now, later = (RKHS(X, n_components=40, random_state=0, later=later) for later in (False, True))
    if begin:
        later.begin()
    assert later.n_points == 300
    np.testing.assert_array_equal(later.landmark_indices, now.landmark_indices)
    W = later.project(np.ones((300, 1)))
    np.testing.assert_allclose(W, now.project(np.ones((300, 1))), rtol=1e-12)
    np.testing.assert_allclose(later.gram(), now.gram(), rtol=1e-12, atol=1e-12)
    assert later.gram() is later.gram()
    later.begin()  # there is nothing left to do
    again = pickle.loads(pickle.dumps(later))
    np.testing.assert_array_equal(again.values(W), later.values(W))
    assert not later.features.flags.writeable


@pytest.mark.parametrize("begin", [False, True])
def test_an_error_of_a_kernel_is_raised_where_features_are_asked_for(begin):
    def kernel(X, Z):
        if len(X) == 300:
            raise RuntimeError("no kernel")
        return rbf_kernel(X, Z)

    X = np.random.default_rng(0).standard_normal((300, 5))
    space = RKHS(X, n_components=40, kernel=kernel, random_state=0, later=True)
    if begin:
        space.begin()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no kernel"):
            _ = space.features


def sampled(X, monkeypatch, **options):
    """A space of so many rows that `nearest` looks at a sample of them."""
    monkeypatch.setattr("tvsvm.kernel.space.LEAST_SAMPLE", 100)
    monkeypatch.setattr("tvsvm.kernel.space.SAMPLE_A_LANDMARK", 10)
    return RKHS(X, n_components=12, random_state=0, later=True, sample=True, **options)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("before", [False, True])
def test_the_nearest_function_is_that_of_the_sample(dtype, before, monkeypatch):
    """Whether the features of all rows are made before or not."""
    rng = np.random.default_rng(0)
    X, F = rng.standard_normal((900, 3)).astype(dtype), rng.standard_normal((900, 2))
    space = sampled(X, monkeypatch)
    if before:
        _ = space.features
    W = space.nearest(F, ratio=0.7)
    rows, values = space.values_seen(W)
    assert len(rows) == 120
    # min 0.7/2 |w|² + 900/120 ½ |Φw - F|² over the sample.
    P = space.features[rows].astype(np.float64)
    A = P.T @ P * (900 / 120) + 0.7 * np.eye(space.rank)
    np.testing.assert_allclose(
        W, np.linalg.solve(A, P.T @ F[rows] * (900 / 120)), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(values, P @ W, atol=1e-4)
    np.testing.assert_allclose(space.expansion(W)(X[rows]), P @ W, atol=1e-4)


def test_without_a_sample_the_nearest_function_is_that_of_all_rows():
    rng = np.random.default_rng(0)
    X, F = rng.standard_normal((900, 3)), rng.standard_normal((900, 2))
    expected = RKHS(X, n_components=12, random_state=0).quadratic(lam=0.7, r=1.0).coordinates(F)
    space = RKHS(X, n_components=12, random_state=0, later=True)
    np.testing.assert_allclose(space.nearest(F, ratio=0.7), expected, rtol=1e-9)
    assert len(space.values_seen(expected)[0]) == 900


def test_the_sample_tells_nearly_what_all_rows_tell(monkeypatch):
    X = np.random.default_rng(0).standard_normal((3000, 2))
    F = np.sin(2 * X[:, :1])
    monkeypatch.setattr("tvsvm.kernel.space.LEAST_SAMPLE", 100)
    spaces = [RKHS(X, n_components=40, random_state=0, sample=sample) for sample in (True, False)]
    few, all_ = (space.values(space.nearest(F, ratio=0.1)) for space in spaces)
    assert len(spaces[0].values_seen(np.ones((spaces[0].rank, 1)))[0]) == 32 * 40
    assert np.abs(few - F).mean() < 1.3 * np.abs(all_ - F).mean() + 1e-3


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_sample_that_is_begun_is_made_in_a_thread_if_there_is_one(n_threads, monkeypatch):
    rng = np.random.default_rng(0)
    X, F = rng.standard_normal((900, 3)), rng.standard_normal((900, 2))
    expected = sampled(X, monkeypatch).nearest(F, ratio=0.7)
    space = sampled(X, monkeypatch, n_threads=n_threads)
    space.begin_sample()
    assert space._sample.begun == (n_threads == 2)
    np.testing.assert_array_equal(space.nearest(F, ratio=0.7), expected)
    again = pickle.loads(pickle.dumps(space))
    np.testing.assert_allclose(again.values(expected), space.values(expected), rtol=1e-12)
    for same in (space, again):  # also after pickling, which makes the features of all rows
        np.testing.assert_array_equal(same.nearest(F, ratio=0.7), expected)


def test_no_sample_of_a_precomputed_kernel_or_of_few_rows(monkeypatch):
    X = np.random.default_rng(0).standard_normal((300, 3))
    K = rbf_kernel(X)
    for space in (
        sampled(K, monkeypatch, kernel="precomputed"),
        sampled(X[:110], monkeypatch),
        RKHS(X, random_state=0, later=True, sample=True),
    ):
        assert space._sample is None
        space.begin_sample()
        W = space.nearest(np.ones((space.n_points, 1)), ratio=1.0)
        assert len(space.values_seen(W)[1]) == space.n_points


@pytest.mark.parametrize("options", [{}, {"n_components": 12}, {"n_components": 12, "later": True}])
def test_a_space_is_freed_with_its_last_user(options):
    space = RKHS(np.random.default_rng(0).standard_normal((300, 3)), random_state=0, **options)
    space.nearest(np.ones((300, 1)), ratio=1.0)
    gone = weakref.ref(space)
    gc.disable()
    try:
        del space
        assert gone() is None
    finally:
        gc.enable()


def test_the_kernel_matrix_of_an_exact_space_is_there_once():
    space = RKHS(np.random.default_rng(0).standard_normal((60, 3)))
    space.quadratic(lam=0.1, r=1.0).solve(np.ones((60, 1)))
    assert "matrix" not in space._kept
    assert space._root().matrix is not None


def test_landmarks_that_are_chosen_later_leave_the_generator_to_others():
    """And any generator will do; two spaces from one have landmarks of their own."""
    X = np.random.default_rng(0).standard_normal((300, 3))
    rng = np.random.RandomState(np.random.PCG64(0))
    first, second = (
        RKHS(X, n_components=20, gamma=1.0, later=True, random_state=rng) for _ in range(2)
    )
    following = rng.rand()
    assert not np.array_equal(first.landmark_indices, second.landmark_indices)
    again = np.random.RandomState(np.random.PCG64(0))
    for _ in range(2):
        RKHS(X, n_components=20, gamma=1.0, later=True, random_state=again)
    assert again.rand() == following


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_landmarks_spread_out_as_greedy_k_means_does(n):
    """Against the same in numpy: the best of several rows drawn by their distance, each time."""
    rng = np.random.default_rng(n)
    X = rng.integers(0, 4, (n, 2)).astype(float)  # some rows coincide
    K = rbf_kernel(X)
    draws = rng.random((n - 1, 3))
    chosen = [0]
    distances = np.maximum(2 - 2 * K[0], 0)
    for draw in draws:
        total = np.cumsum(distances)
        if total[-1] <= 1e-9:
            break
        drawn = np.minimum(np.searchsorted(total, draw * total[-1], side="right"), n - 1)
        trials = np.minimum(distances, np.maximum(2 - 2 * K[drawn], 0))
        best = trials.sum(axis=1).argmin()
        chosen.append(drawn[best])
        distances = trials[best]
    np.testing.assert_array_equal(spread_out(K, 0, draws, 1e-9), chosen)
