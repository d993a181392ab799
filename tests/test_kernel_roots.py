"""The kernel space: kinds of Φ, and the ways to a system without a graph."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tvsvm.kernel import RKHS
from tvsvm.kernel.quadratic import lower_root

law = settings(deadline=None, derandomize=True, max_examples=25)
seeds = st.integers(0, 2**32 - 1)


def make_rows(seed, n=30, d=3):
    return np.random.default_rng(seed).standard_normal((n, d))


def near_copies(seed, distance):
    """Thirty rows, the last one at this distance from the first."""
    X = make_rows(seed)
    X[-1] = X[0] + [distance, 0, 0]
    return X


def flat_clouds(n_rows=300):
    """Rows in the plane, where a wide kernel has a low rank."""
    return np.random.default_rng(0).standard_normal((n_rows, 2))


@pytest.mark.parametrize(
    ("X", "kernel", "rank"),
    [
        (make_rows(30), "rbf", 30),
        (make_rows(30), "laplacian", 30),
        (near_copies(30, 0.0), "laplacian", 29),
        (near_copies(30, 1e-12), "laplacian", 30),
        (make_rows(30), "linear", 3),
        (make_rows(30), "cosine", 3),
        (np.ones((30, 2)), "rbf", 1),
        (np.vstack([make_rows(30), make_rows(30)]), "laplacian", 30),
        (1e9 * make_rows(30), "linear", 3),
        (1e-9 * make_rows(30), "linear", 3),
    ],
)
def test_features_are_a_triangle_as_wide_as_the_rank(X, kernel, rank):
    space = RKHS(X, kernel=kernel)
    n = len(X)
    assert space.exact
    assert space.rank == rank
    # In some order of the rows.
    assert (np.sum(space.features == 0.0, axis=0) >= np.arange(rank)).all()
    K = space.kernel(X, X)
    np.testing.assert_allclose(space.apply(np.eye(n)), K, atol=1e-12 * np.abs(K).max())
    assert space.trace == pytest.approx(np.trace(K))
    coordinates = np.random.default_rng(1).standard_normal((rank, 2))
    coef = space.expansion(coordinates).coef
    np.testing.assert_allclose(
        K @ coef, space.values(coordinates), atol=1e-6 * np.sqrt(np.abs(K).max())
    )


def test_a_wide_kernel_in_the_plane_has_a_low_rank_and_loses_nothing():
    X = flat_clouds()
    space = RKHS(X, gamma=0.3)
    K = space.kernel(X, X)
    assert space.rank < len(X) / 2
    np.testing.assert_allclose(space.apply(np.eye(len(X))), K, atol=1e-11)
    B = np.random.default_rng(1).standard_normal((len(X), 2))
    G = np.linalg.solve(0.1 * np.eye(len(X)) + K, K @ B)
    np.testing.assert_allclose(space.quadratic(lam=0.1, r=1.0).solve(B), G, atol=1e-9)
    new = flat_clouds(350)[300:]
    coef = np.linalg.solve(0.1 * np.eye(len(X)) + K, B)
    found = space.expansion(space.quadratic(lam=0.1, r=1.0).coordinates(B))
    np.testing.assert_allclose(found(new), space.kernel(new, X) @ coef, atol=1e-7)


@pytest.mark.parametrize("kernel", ["sigmoid", "precomputed"])
def test_an_indefinite_kernel_gets_its_positive_part(kernel):
    X = flat_clouds(60)
    if kernel == "precomputed":
        vectors = np.linalg.qr(np.random.default_rng(0).standard_normal((60, 60)))[0]
        X = (vectors * np.r_[np.ones(59), -1e-3]) @ vectors.T  # all of its diagonal is positive
        X = (X + X.T) / 2
    space = RKHS(X, kernel=kernel)
    K = X if kernel == "precomputed" else space.kernel(X, X)
    values, vectors = np.linalg.eigh(K)
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
    assert values[0] < 0
    assert space.negative_share == pytest.approx(
        -values[values < 0].sum() / np.abs(values).sum(), rel=1e-6
    )
    np.testing.assert_allclose(space.apply(np.eye(60)), positive, atol=1e-10 * values[-1])


@law
@given(
    seed=seeds,
    ratio=st.sampled_from([1e-3, 1.0, 1e3, 1e5, 1e9]),
    kernel=st.sampled_from(["laplacian", "linear"]),
    distance=st.sampled_from([0.0, 1e-12, 1.0]),
)
def test_every_way_to_a_system_without_a_graph_is_the_same(seed, ratio, kernel, distance):
    space = RKHS(near_copies(seed, distance), kernel=kernel, unit_diagonal=True)
    K = space.apply(np.eye(30))
    G = np.linalg.solve(ratio * np.eye(30) + K, K)
    B = np.random.default_rng(seed).standard_normal((30, 2))
    rows, tol = np.array([7, 0, 29]), {"rtol": 0, "atol": 1e-9 * np.abs(G).max()}
    # A vanishing weight takes the general way.
    for r, weights in [(1.0, None), (0.5, None), (1.0, 1e-300 * np.ones(30))]:
        quadratic = space.quadratic(lam=r * ratio, r=r, row_weights=weights)
        held, columns = quadratic.held(B), quadratic.coordinates_of(quadratic.columns(rows))
        np.testing.assert_allclose(r * quadratic.solve(B), G @ B, **tol)
        np.testing.assert_allclose(r * quadratic.values(held, B), G @ B, **tol)
        np.testing.assert_allclose(r * space.values(quadratic.coordinates(B)), G @ B, **tol)
        np.testing.assert_allclose(r * quadratic.values_at(rows, held, B), (G @ B)[rows], **tol)
        np.testing.assert_allclose(r * space.values(columns), G[:, rows], **tol)
        np.testing.assert_allclose(r * quadratic.block(rows), G[np.ix_(rows, rows)], **tol)
        mask = np.isin(np.arange(30), rows)
        np.testing.assert_array_equal(quadratic.block(mask), quadratic.block(np.sort(rows)))


@pytest.mark.parametrize(("count", "residual"), [(None, False), (8, False), (8, True)])
def test_the_root_of_the_last_ratio_is_kept_but_does_not_travel(count, residual, monkeypatch):
    made = []

    def spy(A):
        made.append(len(A))
        return lower_root(A)

    monkeypatch.setattr("tvsvm.kernel.space.lower_root", spy)
    X = make_rows(28)
    space = RKHS(X, n_components=count, random_state=0)
    size = len(pickle.dumps(space))
    solved = [
        r * space.quadratic(lam=lam, r=r, residual=residual).solve(X)
        for lam, r in [(0.5, 1.0), (1.0, 2.0), (3.0, 1.0), (0.5, 1.0)]
    ]
    assert made == 3 * [count or 30]
    np.testing.assert_allclose(solved[1], solved[0], atol=1e-12)
    np.testing.assert_array_equal(solved[3], solved[0])
    assert not np.allclose(solved[2], solved[0])
    assert len(pickle.dumps(space)) <= size + 100  # a number or two
    again = pickle.loads(pickle.dumps(space)).quadratic(lam=0.5, r=1.0, residual=residual).solve(X)
    np.testing.assert_allclose(again, solved[0], atol=1e-12)
