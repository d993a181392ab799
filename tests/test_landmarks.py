"""The kernel space: landmarks among some rows, and what it keeps for the next system."""

import pickle

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from tvsvm import knn_graph
from tvsvm.kernel import RKHS
from tvsvm.kernel.quadratic import compress


def make_rows(seed, n=30, d=3):
    return np.random.default_rng(seed).standard_normal((n, d))


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
    assert len(pickle.dumps(space)) == len(pickle.dumps(copy))
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
