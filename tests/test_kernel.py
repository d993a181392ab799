"""The kernel layer against dense references, 50-digit arithmetic and its laws."""

import pickle
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from references import kernel_matrix, make_rows, path_laplacian
from scipy import sparse
from scipy.linalg import eigh
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import chi2_kernel, rbf_kernel, sigmoid_kernel

from tvsvm.kernel import RKHS

law = settings(deadline=None, derandomize=True, max_examples=25)
seeds = st.integers(0, 2**32 - 1)
strengths = st.sampled_from([1e-3, 0.1, 1.0, 30.0])
landmark_counts = st.sampled_from([None, 7, 25])


def solve_to_50_digits(A, B):
    """Gaussian elimination with pivoting in decimal arithmetic."""
    A, B = A.copy(), B.copy()
    for k in range(len(A)):
        pivot = k + max(range(len(A) - k), key=lambda i: abs(A[k + i, k]))
        A[[k, pivot]], B[[k, pivot]] = A[[pivot, k]], B[[pivot, k]]
        for i in range(len(A)):
            if i != k:
                factor = A[i, k] / A[k, k]
                A[i, k:] -= factor * A[k, k:]
                B[i] -= factor * B[k]
    return B / A.diagonal()[:, None]


# ---- systems in the space ----------------------------------------------------------------------


@law
@given(seed=seeds, lam=strengths, r=strengths, count=landmark_counts)
def test_solve_inverts_and_pushes_through(seed, lam, r, count):
    space = RKHS(make_rows(seed), n_components=count, random_state=0)
    K = kernel_matrix(space)
    B = np.random.default_rng(seed).standard_normal((30, 2))
    rounding = 1e-14 * (1 + r * 30 / lam)
    solved = space.solve(lam * B + r * space.apply(B), lam=lam, r=r)
    np.testing.assert_allclose(solved, B, atol=30 * rounding)
    left, right = space.solve(K @ B, lam=lam, r=r), K @ space.solve(B, lam=lam, r=r)
    np.testing.assert_allclose(left, right, atol=1e3 * rounding / lam)
    np.testing.assert_allclose(
        space.quadratic(lam=lam, r=r).solve(B), right, atol=1e3 * rounding / lam
    )


@law
@given(seed=seeds, lam=strengths, r=st.sampled_from([0.0, 1.0]), gamma=st.sampled_from([0.0, 3.0]))
def test_quadratic_agrees_with_the_paper_unsymmetric_systems(seed, lam, r, gamma):
    X, L = make_rows(seed), path_laplacian(30)
    rng = np.random.default_rng(seed)
    weights = np.where(rng.permutation(30) < 4, rng.uniform(1, 10, 30), 0)
    B = rng.standard_normal((30, 3))
    space = RKHS(X, kernel="laplacian")
    K = np.exp(-cdist(X, X, "cityblock") * space.kernel.scale)
    system = lam * np.eye(30) + (r * np.eye(30) + gamma * L + np.diag(weights)) @ K
    quadratic = space.quadratic(lam=lam, r=r, gamma=gamma, laplacian=L, row_weights=weights)
    coef = np.linalg.solve(system, B)
    np.testing.assert_allclose(quadratic.solve(B), K @ coef, atol=1e-9 / lam)
    expansion = space.expansion(quadratic.coordinates(B))
    np.testing.assert_allclose(expansion.coef, coef, atol=1e-9 / lam)
    G = K @ np.linalg.inv(system)
    rows = np.array([7, 0, 29])
    np.testing.assert_allclose(quadratic.block(rows), G[np.ix_(rows, rows)], atol=1e-9 / lam)


@pytest.mark.parametrize("lam", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(("r", "gamma", "eta"), [(0, 1, 1), (0, 0, 10), (1, 1, 0), (0, 100, 100)])
def test_quadratic_agrees_with_50_digits(lam, r, gamma, eta):
    n = 25
    X, L = make_rows(6, n=n), path_laplacian(n).toarray()
    weights = eta * (np.arange(n) < 5.0)
    B = np.random.default_rng(6).standard_normal((n, 1))
    K = rbf_kernel(X)
    K = (K + K.T) / 2
    exactly = np.vectorize(Decimal, otypes=[object])
    with localcontext() as context:
        context.prec = 50
        M = exactly(float(r) * np.eye(n)) + exactly(float(gamma)) * exactly(L)
        M = M + exactly(np.diag(weights))
        system = exactly(lam * np.eye(n)) + M @ exactly(K)
        expected = (exactly(K) @ solve_to_50_digits(system, exactly(B))).astype(float)
    space = RKHS(K, kernel="precomputed")
    quadratic = space.quadratic(
        lam=lam, r=r, gamma=gamma, laplacian=sparse.csr_array(L), row_weights=weights
    )
    scale = np.abs(expected).max()
    assert np.abs(quadratic.solve(B) - expected).max() <= 1e-8 * scale
    at_rows = space.expansion(quadratic.coordinates(B))(K)
    assert np.abs(at_rows - expected).max() <= 1e-8 * scale


@law
@given(seed=seeds, lam=strengths, gamma=st.sampled_from([0.0, 1.0]), count=landmark_counts)
def test_blocks_are_symmetric_positive_and_permute(seed, lam, gamma, count):
    space = RKHS(make_rows(seed), n_components=count, random_state=0)
    quadratic = space.quadratic(lam=lam, r=0.5, gamma=gamma, laplacian=path_laplacian(30))
    rows = np.random.default_rng(seed).permutation(30)[:12]
    block = quadratic.block(rows)
    np.testing.assert_array_equal(block, block.T)
    assert np.linalg.eigvalsh(block).min() >= -1e-13 * np.trace(block)
    full = quadratic.solve(np.eye(30))
    np.testing.assert_allclose(block, full[np.ix_(rows, rows)], atol=1e-11 / lam)


@law
@given(seed=seeds, lam=strengths, count=landmark_counts)
def test_a_vanishing_graph_term_leaves_the_graph_free_system(seed, lam, count):
    space = RKHS(make_rows(seed), n_components=count, random_state=0)
    free = space.quadratic(lam=lam, r=1.0).block(np.arange(30))
    nearly = space.quadratic(lam=lam, r=1.0, gamma=1e-13 * lam, laplacian=path_laplacian(30))
    np.testing.assert_allclose(nearly.block(np.arange(30)), free, atol=1e-9 * np.abs(free).max())


@law
@given(seed=seeds)
def test_heavy_rows_are_interpolated(seed):
    space = RKHS(make_rows(seed), kernel="laplacian")
    y = np.random.default_rng(seed).standard_normal((30, 1))
    weights = 1e8 * (np.arange(30) < 6)
    f = space.quadratic(lam=1.0, row_weights=weights).solve(weights[:, None] * y)
    np.testing.assert_allclose(f[:6], y[:6], atol=1e-6)


@law
@given(seed=seeds, kernel=st.sampled_from(["rbf", "laplacian", "poly", "cosine"]))
def test_permuted_rows_permute_functions(seed, kernel):
    X, order = make_rows(seed), np.random.default_rng(seed).permutation(30)
    B = np.random.default_rng(seed + 1).standard_normal((30, 2))
    spaces = RKHS(X, kernel=kernel), RKHS(X[order], kernel=kernel)
    smooth, permuted = (space.quadratic(lam=0.1, r=1.0) for space in spaces)
    np.testing.assert_allclose(permuted.solve(B[order]), smooth.solve(B)[order], atol=1e-9)


def test_norm_of_a_function_is_the_norm_of_its_coordinates():
    space = RKHS(make_rows(7), kernel="laplacian")
    W = np.random.default_rng(7).standard_normal((space.rank, 1))
    f = space.values(W)
    assert np.sum(W**2) == pytest.approx((f.T @ np.linalg.solve(kernel_matrix(space), f)).item())


# ---- rows with a part of f to themselves -------------------------------------------------------


@law
@given(
    seed=seeds,
    lam=strengths,
    r=st.sampled_from([0.0, 0.7, 50.0]),
    eta=st.sampled_from([0.0, 3.0]),
    count=landmark_counts,
)
def test_residuals_give_rows_a_part_to_themselves(seed, lam, r, eta, count):
    space = RKHS(make_rows(seed), n_components=count, unit_diagonal=True, random_state=0)
    rng = np.random.default_rng(seed)
    weights, B = eta * (np.arange(30) < 5), rng.standard_normal((30, 2))
    K = kernel_matrix(space) + np.diag(space.residual)
    M = np.diag(r + weights)
    G = np.linalg.solve(lam * np.eye(30) + K @ M, K)
    quadratic = space.quadratic(lam=lam, r=r, row_weights=weights, residual=True)
    np.testing.assert_allclose(quadratic.solve(B), G @ B, atol=1e-9 / lam)
    rows = rng.permutation(30)[:8]
    np.testing.assert_allclose(quadratic.block(rows), G[np.ix_(rows, rows)], atol=1e-9 / lam)
    columns = np.zeros((30, 8))
    columns[rows, np.arange(8)] = 1.0
    np.testing.assert_allclose(quadratic.columns(rows), quadratic.held(columns), atol=1e-9 / lam)
    held = quadratic.held(B)
    np.testing.assert_allclose(
        quadratic.values_at(rows, held, B), quadratic.solve(B)[rows], atol=1e-9 / lam
    )


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "poly", "cosine", rbf_kernel])
def test_residuals_are_what_the_diagonal_lacks(kernel):
    X = make_rows(3, n=70)  # more than a block of rows, and not a multiple of it
    whole = RKHS(X, kernel=kernel, gamma=0.3 if kernel in ("rbf", "poly") else None)
    some = RKHS(X, kernel=kernel, gamma=0.3 if kernel in ("rbf", "poly") else None, n_components=9)
    lacking = np.diag(kernel_matrix(whole)) - np.diag(kernel_matrix(some))
    np.testing.assert_allclose(some.residual, lacking, atol=1e-8 * np.abs(lacking).max() + 1e-9)
    assert not whole.residual.any()
    precomputed = RKHS(kernel_matrix(whole), kernel="precomputed", n_components=9, random_state=0)
    assert (precomputed.residual >= 0).all()
    assert precomputed.residual[precomputed.landmark_indices] == pytest.approx(0.0, abs=1e-6)


def test_residuals_do_not_go_with_a_graph():
    space = RKHS(make_rows(4), n_components=5)
    with pytest.raises(ValueError, match="`residual` needs gamma = 0"):
        space.quadratic(lam=1.0, gamma=1.0, laplacian=path_laplacian(30), residual=True)


# ---- expansions --------------------------------------------------------------------------------


@law
@given(
    seed=seeds, count=landmark_counts, kernel=st.sampled_from(["rbf", "linear", "poly", "cosine"])
)
def test_expansion_at_the_rows_is_the_function(seed, count, kernel):
    X = make_rows(seed)
    space = RKHS(X, kernel=kernel, n_components=count, unit_diagonal=True, random_state=0)
    B = np.random.default_rng(seed).standard_normal((30, 2))
    quadratic = space.quadratic(lam=1e-3, r=1.0)
    np.testing.assert_allclose(
        space.expansion(quadratic.coordinates(B))(X), quadratic.solve(B), atol=1e-8
    )
    np.testing.assert_allclose(space.expansion(space.project(B))(X), space.apply(B), atol=1e-8)


def test_expansion_at_new_rows_is_kernel_ridge_regression():
    X, new = make_rows(8), make_rows(9, n=11)
    y = np.sin(X[:, :1])
    space = RKHS(X, gamma=0.5)
    expected = rbf_kernel(new, X, gamma=0.5) @ np.linalg.solve(
        rbf_kernel(X, gamma=0.5) + np.eye(30), y
    )
    coordinates = space.quadratic(lam=1.0, r=1.0).coordinates(y)
    np.testing.assert_allclose(space.expansion(coordinates)(new), expected, atol=1e-12)
    precomputed = RKHS(rbf_kernel(X, gamma=0.5), kernel="precomputed")
    coordinates = precomputed.quadratic(lam=1.0, r=1.0).coordinates(y)
    at_new = precomputed.expansion(coordinates)(rbf_kernel(new, X, gamma=0.5))
    np.testing.assert_allclose(at_new, expected, atol=1e-12)


def test_batches_do_not_change_the_result(monkeypatch):
    X = make_rows(10, n=60)
    options = {"n_components": 20, "random_state": 0}
    B = np.random.default_rng(0).standard_normal((60, 2))
    one = RKHS(X, **options)
    expected, at_rows = one.solve(B, lam=1.0, r=1.0), one.expansion(one.project(B))(X)
    monkeypatch.setattr("tvsvm.kernel.features.BATCH_SIZE", 100)
    monkeypatch.setattr("tvsvm.kernel.space.THREADS_FROM", 0)
    many = RKHS(X, **options)
    np.testing.assert_allclose(many.project(B), many.features.T @ B, atol=1e-12)
    np.testing.assert_allclose(many.values(B[:20]), many.features @ B[:20], atol=1e-12)
    np.testing.assert_allclose(many.solve(B, lam=1.0, r=1.0), expected, atol=1e-10)
    np.testing.assert_allclose(many.expansion(many.project(B))(X), at_rows, atol=1e-10)
    L = path_laplacian(60)
    cut = many.quadratic(lam=1.0, gamma=1.0, laplacian=L).solve(B)
    monkeypatch.undo()
    np.testing.assert_allclose(
        cut, one.quadratic(lam=1.0, gamma=1.0, laplacian=L).solve(B), atol=1e-10
    )


def test_space_and_expansion_survive_pickling():
    X = make_rows(11)
    space = RKHS(X, kernel="poly", n_components=8, random_state=0)
    W = np.ones((space.rank, 1))
    copy = pickle.loads(pickle.dumps(space))
    np.testing.assert_array_equal(copy.values(W), space.values(W))
    expansion = space.expansion(W)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(expansion))(X), expansion(X))
    with pytest.raises(ValueError, match="read-only"):
        space.features[0] = 0


# ---- indefinite kernels, scale, degenerate input -----------------------------------------------


def test_negative_eigenvalues_are_clipped_and_reported():
    X = make_rows(16)
    K = sigmoid_kernel(X, gamma=0.5, coef0=-1.0)
    values, vectors = eigh(K)
    assert values.min() < -0.01
    space = RKHS(X, kernel="sigmoid", gamma=0.5, coef0=-1.0)
    expected = (vectors * np.maximum(values, 0)) @ vectors.T
    np.testing.assert_allclose(kernel_matrix(space), expected, atol=1e-12)
    share = -values[values < 0].sum() / np.abs(values).sum()
    assert space.negative_share == pytest.approx(share)


def test_indefinite_nystrom_features_do_not_blow_up():
    X = make_rows(17, n=400)
    K = sigmoid_kernel(X, gamma=0.5, coef0=-1.0)
    space = RKHS(X, kernel="sigmoid", gamma=0.5, coef0=-1.0, n_components=40, random_state=0)
    assert np.linalg.norm(space.features, 2) ** 2 <= 1.1 * eigh(K, eigvals_only=True)[-1]


@pytest.mark.parametrize("kernel", ["linear", "poly", "sigmoid", chi2_kernel, "precomputed"])
def test_unit_diagonal(kernel):
    X = 7.0 * np.abs(make_rows(18)) + 1
    if kernel == "precomputed":
        X = X @ X.T
    space = RKHS(X, kernel=kernel, unit_diagonal=True)
    assert np.mean(kernel_matrix(space).diagonal()) == pytest.approx(1.0)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "poly", "cosine"])
@pytest.mark.parametrize(
    "X", [np.ones((1, 2)), np.array([[0.0, 1.0], [1.0, 1.0]]), np.ones((3, 1))]
)
def test_one_two_or_equal_rows(kernel, X):
    for rows in (X, sparse.csr_array(X)):
        space = RKHS(rows, kernel=kernel)
        assert np.isfinite(kernel_matrix(space)).all()
        np.testing.assert_allclose(
            space.expansion(space.project(X))(rows), space.apply(X), atol=1e-12
        )


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda X: RKHS(X, kernel="gauss"), "`kernel` must be .* Got 'gauss'"),
        (lambda X: RKHS(X, gamma=0.0), "`gamma` must be positive"),
        (lambda X: RKHS(X, n_components=0), "`n_components` must be at least 1"),
        (lambda X: RKHS(X, n_components=5, sampling="grid"), "`sampling` must be"),
        (lambda X: RKHS(X * np.nan), "NaN"),
        (lambda X: RKHS(X * 1e200, kernel="linear"), "must be finite"),
        (lambda X: RKHS(X * 0, kernel="linear"), "positive semi-definite"),
        (lambda X: RKHS(X, kernel="precomputed"), "must be square"),
        (lambda X: RKHS(np.tri(4), kernel="precomputed"), "must be symmetric"),
        (lambda X: RKHS(-np.eye(4), kernel="precomputed"), "positive semi-definite"),
        (lambda X: RKHS(X, kernel=lambda a, b: np.ones(3)), "one value for every pair"),
        (lambda X: RKHS(X).solve(np.ones(30), lam=1, r=1), "columns of an array with 30 rows"),
        (lambda X: RKHS(X).solve(np.ones((30, 1)), lam=0, r=1), "`lam` must be positive"),
        (lambda X: RKHS(X).quadratic(lam=1, r=-1), "`r` must be finite and not negative"),
        (lambda X: RKHS(X).quadratic(lam=1, gamma=1), "`laplacian` must have shape"),
        (lambda X: RKHS(X).quadratic(lam=1, row_weights=-np.ones(30)), "`row_weights` must be"),
        (
            lambda X: RKHS(X).quadratic(lam=1, gamma=9, laplacian=-sparse.eye_array(30)),
            "must be positive definite",
        ),
        (lambda X: RKHS(X).expansion(np.ones((30, 1)))(X[:, :2]), "as many columns as the data"),
    ],
)
def test_wrong_input_gets_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(make_rows(19))
