"""Laplacian systems: against dense algebra, built backwards, and on broken graphs."""

from time import perf_counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import block_diag, coo_array, csr_array, csr_matrix, random_array
from scipy.sparse.csgraph import connected_components

from tvsvm.results import Status
from tvsvm.solvers import linear
from tvsvm.solvers.linear import harmonic_extension, laplacian_solve

law = settings(deadline=None, derandomize=True, max_examples=40)
seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(scope="module", autouse=True, params=[False, True], ids=["usual", "coarse space"])
def with_a_coarse_space(request):
    """All of it also where a coarse space takes over at once, whatever the number of rows."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param:
            patch.setattr(linear, "_LARGE", 0)
            patch.setattr(linear, "_BRIEFLY", 1)
        yield


def random_graph(seed, n, density=0.1, spread=1.0):
    """A graph that is often disconnected, with isolated rows and weights over many magnitudes."""
    rng = np.random.default_rng(seed)
    W = np.triu(rng.random((n, n)) < density, 1) * 10.0 ** rng.uniform(-spread, spread, (n, n))
    return csr_array(W + W.T)


def ring(n):
    i = np.arange(n)
    half = coo_array((np.ones(n), (i, (i + 1) % n)), shape=(n, n))
    return csr_array(half + half.T)


def laplacian(W):
    W = W.toarray()
    return np.diag(W.sum(axis=1)) - W


def lengths(R):
    return np.linalg.norm(R, axis=0)


@law
@given(seeds, st.integers(1, 40), st.integers(1, 4))
def test_agrees_with_the_pseudoinverse(seed, n, c):
    W = random_graph(seed, n)
    B = np.random.default_rng(seed).normal(size=(n, c))
    result = laplacian_solve(W, B, tol=1e-11)
    expected = np.linalg.pinv(laplacian(W), rcond=1e-11) @ B
    assert result.converged
    np.testing.assert_allclose(result.solution, expected, atol=1e-7 * (1 + np.abs(expected).max()))


@law
@given(seeds, st.integers(1, 40))
def test_built_backwards(seed, n):
    W = random_graph(seed, n)
    _, components = connected_components(W)
    U = np.random.default_rng(seed).normal(size=(n, 3))
    for component in np.unique(components):
        U[components == component] -= U[components == component].mean(axis=0)
    B = laplacian(W) @ U
    result = laplacian_solve(W, B, tol=1e-11, components=components)
    np.testing.assert_allclose(result.solution, U, atol=1e-6)


@law
@given(seeds, st.integers(1, 40), st.sampled_from([1e-3, 1.0, 1e3]))
def test_shifted_systems(seed, n, shift):
    W = random_graph(seed, n)
    B = np.random.default_rng(seed).normal(size=(n, 2))
    result = laplacian_solve(W, B, shift=shift)
    matrix = laplacian(W) + shift * np.eye(n)
    R = B - matrix @ result.solution
    assert (lengths(R) <= 1.01e-8 * lengths(B)).all()
    members = np.eye(n)[connected_components(W)[1]]  # the mean of every component is exact
    means = members @ np.linalg.pinv(members)
    varying = lengths(B - means @ B)
    residual = np.divide(lengths(R - means @ R), varying, out=np.zeros(2), where=varying > 1e-12)
    np.testing.assert_allclose(result.certificate, residual.max(), rtol=0.02, atol=1e-11)


@law
@given(seeds, st.integers(2, 40), st.sampled_from([1e-150, 1e-3, 1e150]))
def test_scale_and_permutation_equivariance(seed, n, factor):
    W = random_graph(seed, n)
    rng = np.random.default_rng(seed)
    B, order = rng.normal(size=(n, 2)), rng.permutation(n)
    U = laplacian_solve(W, B, tol=1e-11).solution
    slack = 1e-7 * (1 + np.abs(U).max())
    scaled = laplacian_solve(W * factor, B * factor, tol=1e-11).solution
    np.testing.assert_allclose(scaled, U, atol=slack)
    np.testing.assert_allclose(
        laplacian_solve(W * factor, B, tol=1e-11).solution * factor, U, atol=slack
    )
    shuffled = laplacian_solve(W[order][:, order], B[order], tol=1e-11).solution
    np.testing.assert_allclose(shuffled, U[order], atol=slack)


@pytest.mark.parametrize("dtype", [bool, np.int64, np.float32])
def test_weights_of_any_type_are_taken_as_they_are(dtype):
    rng = np.random.default_rng(0)
    W = random_array((60, 60), density=0.2, rng=rng)
    W = (W + W.T > 0).astype(dtype) if dtype is not np.float32 else (W + W.T).astype(dtype)
    B, fixed = rng.standard_normal((60, 3)), np.arange(60) < 5
    for solve in (laplacian_solve, lambda V, B: harmonic_extension(V, B, fixed)):
        given = B.copy()
        found, expected = solve(W, given), solve(W.astype(np.float64), B)
        np.testing.assert_allclose(found.solution, expected.solution, atol=1e-7)
        assert found.certificate <= 1e-8
        np.testing.assert_array_equal(given, B)


def test_certificate_is_the_residual():
    W = random_graph(0, 300, density=0.03)
    B = np.random.default_rng(0).normal(size=(300, 5))
    B -= B.mean(axis=0)
    result = laplacian_solve(W, B, tol=1e-6)
    residual = lengths(B - laplacian(W) @ result.solution) / lengths(B)
    assert connected_components(W)[0] == 1
    assert result.certificate <= 1e-6
    np.testing.assert_allclose(residual.max(), result.certificate, rtol=1e-3)


def test_columns_do_not_disturb_each_other():
    W = random_graph(1, 200, density=0.05)
    rng = np.random.default_rng(1)
    hard = rng.normal(size=(200, 1))
    easy = laplacian(W)[:, :1] * 1e-9
    B = np.hstack([easy, np.zeros((200, 1)), hard * 1e120])
    together = laplacian_solve(W, B)
    assert together.converged
    assert not together.solution[:, 1].any()
    for k in (0, 2):
        alone = laplacian_solve(W, B[:, [k]], tol=1e-11).solution[:, 0]
        np.testing.assert_allclose(together.solution[:, k], alone, atol=1e-5 * np.abs(alone).max())


@pytest.mark.parametrize("kind", ["sparse", "long"])
def test_threads_give_the_same_digits(kind, monkeypatch):
    monkeypatch.setattr(linear, "_WORTH_THREADS", 1)
    rng = np.random.default_rng(0)
    W = {"sparse": random_graph(0, 60, density=0.3), "long": ring(1500)}[kind]
    B = rng.standard_normal((W.shape[0], 7))
    B -= B.mean(axis=0)
    solutions = []
    for number in (1, 2, 5):
        monkeypatch.setattr(linear, "n_threads", lambda number=number: number)
        solutions.append(laplacian_solve(W, B).solution)
    np.testing.assert_array_equal(solutions[1], solutions[0])
    np.testing.assert_array_equal(solutions[2], solutions[0])


def test_a_hub_does_not_take_quadratic_time():
    """Half a minute with scipy's order of the nodes."""
    n = 300_000
    leaves, ends = np.arange(1, n), np.random.default_rng(0).integers(1, n, (2, n))
    rows, columns = np.concatenate([[0 * leaves, leaves], ends], axis=1)
    W = coo_array((np.ones(len(rows)), (rows, columns)), shape=(n, n)).tocsr()
    B = np.zeros((n, 1))
    B[[5, 6], 0] = 1.0, -1.0
    begin = perf_counter()
    assert laplacian_solve(W + W.T, B, tol=1e-4).status == Status.CONVERGED
    assert perf_counter() - begin < 15.0


def test_components_of_very_different_scale():
    small, large = random_graph(2, 30, density=0.3) * 1e-140, random_graph(3, 30, density=0.3)
    B = np.random.default_rng(2).normal(size=(61, 2))
    W = block_diag([small, csr_array((1, 1)), large], format="csr")
    result = laplacian_solve(W, B, tol=1e-10)
    assert result.converged
    for rows, block in ((slice(0, 30), small), (slice(31, 61), large)):
        alone = laplacian_solve(block, B[rows], tol=1e-11).solution
        np.testing.assert_allclose(result.solution[rows], alone, atol=1e-6 * np.abs(alone).max())
    assert not result.solution[30].any()


def test_a_coarse_space_carries_values_along_a_ring():
    n = 5000
    B = np.zeros((n, 1))
    B[[0, n // 2], 0] = 1.0, -1.0
    result = laplacian_solve(ring(n), B)
    assert result.converged
    expected = n / 8 - np.minimum(np.arange(n), n - np.arange(n)) / 2
    np.testing.assert_allclose(result.solution[:, 0], expected, atol=1e-3)
    assert result.n_iter < 250  # 2500 by sweeps, as those carry them by a node each


@pytest.mark.parametrize("weight", [1e-3, 1e-6, 1e-9])
def test_parts_that_hang_together_by_next_to_nothing(weight):
    """Their difference is of size 1 / weight: rounding of it is what no residual can be below."""
    W = block_diag([ring(1200), ring(1200)], format="lil")
    W[0, 1200] = W[1200, 0] = weight
    B = np.zeros((2400, 1))
    B[[600, 1800], 0] = 1.0, -1.0
    result = laplacian_solve(csr_array(W), B)
    assert result.certificate < 1e-6 * max(1e-6 / weight, 1.0)
    assert result.n_iter < 3000
    across = result.solution[0, 0] - result.solution[1200, 0]
    np.testing.assert_allclose(across, 1 / weight, rtol=1e-5)


@pytest.mark.parametrize("exponent", [20, 40, 60])
def test_a_path_along_which_weights_grow_by_many_orders(exponent):
    n = 2000
    i, w = np.arange(n - 1), np.exp(np.linspace(0, exponent, n - 1))
    half = coo_array((w, (i, i + 1)), shape=(n, n))
    B = np.random.default_rng(1).standard_normal((n, 3))
    assert laplacian_solve(half + half.T, B).converged


def test_a_stored_zero_is_no_edge():
    W = block_diag([ring(1000), ring(1000)], format="csr") + 0
    i, j = np.append(W.tocoo().row, [0, 1000]), np.append(W.tocoo().col, [1000, 0])
    stored = coo_array((np.append(W.data, [0.0, 0.0]), (i, j)), shape=(2000, 2000)).tocsr()
    B = np.random.default_rng(0).standard_normal((2000, 1))
    result = laplacian_solve(stored, B)
    assert result.converged
    np.testing.assert_allclose(result.solution, laplacian_solve(W, B).solution, atol=1e-6)
    assert stored.nnz == W.nnz + 2


def test_a_long_ring_needs_many_iterations_and_says_so():
    B = np.zeros((2000, 1))
    B[[0, 1000], 0] = 1.0, -1.0
    result = laplacian_solve(ring(2000), B)
    assert result.converged
    expected = 250.0 - np.abs(np.minimum(np.arange(2000), 2000 - np.arange(2000))) / 2
    np.testing.assert_allclose(result.solution[:, 0], expected, atol=1e-3)
    short = laplacian_solve(ring(2000), B, max_iter=50)
    assert short.status is Status.MAX_ITER
    assert short.n_iter == 50
    assert short.certificate > 1e-8


def test_beyond_rounding_stalls_honestly():
    B = np.random.default_rng(0).normal(size=(500, 2))
    result = laplacian_solve(ring(500), B, tol=1e-18)
    assert result.status is Status.STALLED
    assert 1e-18 < result.certificate < 1e-8


def test_nearly_singular_shift():
    B = np.random.default_rng(0).normal(size=(50, 1)) + 1.0
    result = laplacian_solve(ring(50), B, shift=1e-10)
    assert result.converged
    np.testing.assert_allclose(result.solution.mean(), B.mean() / 1e-10, rtol=1e-6)


@law
@given(seeds, st.integers(1, 40))
def test_harmonic_extension(seed, n):
    W = random_graph(seed, n)
    rng = np.random.default_rng(seed)
    fixed = rng.random(n) < 0.3
    F = rng.normal(size=(n, 2))
    F[~fixed] = np.nan
    result = harmonic_extension(W, F, fixed, tol=1e-11)
    U = result.solution
    _, components = connected_components(W)
    reached = np.isin(components, components[fixed])
    np.testing.assert_array_equal(result.reached, reached)
    np.testing.assert_array_equal(U[fixed], F[fixed])
    assert not U[~reached].any()
    free = reached & ~fixed
    L = laplacian(W)
    expected = np.linalg.solve(L[np.ix_(free, free)], -L[np.ix_(free, fixed)] @ F[fixed])
    np.testing.assert_allclose(U[free], expected, atol=1e-6)


def test_harmonic_extension_with_all_or_nothing_fixed():
    F = np.random.default_rng(0).normal(size=(10, 2))
    everything = harmonic_extension(ring(10), F, np.ones(10, bool))
    np.testing.assert_array_equal(everything.solution, F)
    nothing = harmonic_extension(ring(10), F, np.zeros(10, bool))
    assert not nothing.solution.any()
    assert not nothing.reached.any()
    assert nothing.converged


def test_diagonal_does_not_matter_and_the_input_stays():
    W = random_graph(0, 50)
    looped = csr_matrix(W.toarray() + np.diag(np.arange(50.0)))
    before = looped.toarray()
    B = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    B.flags.writeable = False
    np.testing.assert_allclose(
        laplacian_solve(looped, B[:, ::-1]).solution, laplacian_solve(W, B[:, ::-1]).solution
    )
    np.testing.assert_array_equal(looped.toarray(), before)


@pytest.mark.parametrize("shape", [(0, 2), (1, 2), (5, 0)])
def test_empty_and_edgeless(shape):
    result = laplacian_solve(csr_array((shape[0], shape[0])), np.ones(shape))
    assert result.converged
    assert result.solution.shape == shape
    assert not result.solution.any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"W": csr_array((3, 2))}, "square"),
        ({"W": -ring(3)}, "non-negative"),
        ({"W": ring(3) * np.nan}, "finite"),
        ({"W": csr_array(np.triu(np.ones((3, 3)), 1))}, "symmetric"),
        ({"B": np.ones(3)}, "shape"),
        ({"B": np.ones((4, 1))}, "shape"),
        ({"B": np.full((3, 1), np.inf)}, "finite"),
        ({"shift": -1.0}, "non-negative"),
        ({"shift": np.nan}, "finite"),
    ],
)
def test_errors(change, message):
    with pytest.raises(ValueError, match=message):
        laplacian_solve(**({"W": ring(3), "B": np.ones((3, 1))} | change))


@pytest.mark.parametrize("fixed", [np.zeros(3), np.array([0, 1]), np.zeros(4, bool)])
def test_fixed_must_be_a_mask(fixed):
    with pytest.raises(ValueError, match="boolean mask"):
        harmonic_extension(ring(3), np.ones((3, 1)), fixed)
