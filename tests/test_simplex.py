"""The simplex projection: against sorting, its laws, and its hard cases."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tvsvm.solvers.simplex import project_rows, simplex_projection

law = settings(deadline=None, derandomize=True, max_examples=60)
matrices = arrays(
    np.float64,
    st.tuples(st.integers(0, 6), st.integers(1, 12)),
    elements=st.floats(-1e3, 1e3) | st.sampled_from([0.0, 0.25, 1.0]),
)
seeds = st.integers(0, 2**32 - 1)


def by_sorting(Z):
    """The textbook algorithm: the largest threshold that a leading group of entries asks for."""
    ordered = -np.sort(-Z, axis=1)
    thresholds = (np.cumsum(ordered, axis=1) - 1) / np.arange(1, Z.shape[1] + 1)
    return np.maximum(Z - thresholds.max(axis=1, keepdims=True), 0)


@law
@given(matrices)
def test_agrees_with_sorting(Z):
    np.testing.assert_allclose(simplex_projection(Z), by_sorting(Z), atol=1e-11)


@law
@given(matrices)
def test_lands_on_the_simplex_and_stays(Z):
    P = simplex_projection(Z)
    assert (P >= 0).all()
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-14)
    np.testing.assert_allclose(simplex_projection(P), P, atol=1e-15)


@law
@given(matrices, seeds)
def test_variational_inequality(Z, seed):
    P = simplex_projection(Z)
    X = np.random.default_rng(seed).dirichlet(np.full(Z.shape[1], 0.3), size=Z.shape[0])
    assert ((Z - P) * (X - P)).sum(axis=1).max(initial=0) <= 1e-10


@law
@given(matrices, seeds)
def test_moves_with_permutations_ignores_shifts_and_never_expands(Z, seed):
    rng = np.random.default_rng(seed)
    P = simplex_projection(Z)
    order = rng.permutation(Z.shape[1])
    np.testing.assert_allclose(simplex_projection(Z[:, order]), P[:, order], atol=1e-15)
    np.testing.assert_allclose(simplex_projection(Z + rng.normal()), P, atol=1e-12)
    V = Z + rng.normal(size=Z.shape)
    distance = np.linalg.norm(simplex_projection(V) - P, axis=1)
    assert (distance <= np.linalg.norm(V - Z, axis=1) + 1e-12).all()


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([7.0], [1.0]),
        ([1e300, 1e300, -1e300, 0.0], [0.5, 0.5, 0.0, 0.0]),
        ([1.7e308, -1.7e308], [1.0, 0.0]),
        ([-1e300, -1e300], [0.5, 0.5]),
        ([1e-300, 0.0], [0.5, 0.5]),
        ([1e16, 1e16, 1e16 - 2, 1.0], [0.5, 0.5, 0.0, 0.0]),
        ([0.0, -1.0, -1.0], [1.0, 0.0, 0.0]),
    ],
)
def test_extreme_rows(row, expected):
    np.testing.assert_allclose(simplex_projection([row])[0], expected, rtol=1e-15)


def test_many_columns_with_ties():
    rng = np.random.default_rng(0)
    Z = rng.integers(0, 4, size=(3, 100_000)) / 1e5
    P = simplex_projection(Z)
    np.testing.assert_allclose(P, by_sorting(Z), atol=1e-13)
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-11)


def test_float32_is_kept_and_integers_become_float64():
    Z = np.random.default_rng(0).normal(size=(200, 10)).astype(np.float32)
    P = simplex_projection(Z)
    assert P.dtype == np.float32
    np.testing.assert_allclose(P, by_sorting(Z.astype(float)), atol=1e-7)
    np.testing.assert_array_equal(simplex_projection([[3, 0]]), [[1.0, 0.0]])


def test_any_memory_layout_and_the_input_stays():
    Z = np.random.default_rng(1).normal(size=(10, 12))
    before = Z.copy()
    Z.flags.writeable = False
    for view in (Z[::2, ::-3], Z.T, np.asfortranarray(Z)):
        np.testing.assert_allclose(simplex_projection(view), by_sorting(view), atol=1e-14)
    np.testing.assert_array_equal(Z, before)


def test_project_rows_works_in_place():
    Z = np.random.default_rng(2).normal(size=(50, 7))
    expected = by_sorting(Z)
    project_rows(Z, Z)
    np.testing.assert_allclose(Z, expected, atol=1e-14)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_refuses_what_is_not_finite(bad):
    with pytest.raises(ValueError, match="finite"):
        simplex_projection([[0.0, bad]])


@pytest.mark.parametrize("Z", [np.zeros(3), np.zeros((3, 0)), 1.0])
def test_refuses_other_shapes(Z):
    with pytest.raises(ValueError, match="shape"):
        simplex_projection(Z)
