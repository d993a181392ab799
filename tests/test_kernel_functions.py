"""Kernel functions against their formulas, at every scale and far from the origin."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import (
    cosine_similarity,
    laplacian_kernel,
    polynomial_kernel,
    rbf_kernel,
)

from tvsvm.kernel import RKHS
from tvsvm.kernel.functions import N_PAIRS


def make_rows(seed, n=30, d=3):
    return np.random.default_rng(seed).standard_normal((n, d))


def kernel_matrix(space):
    return space.apply(np.eye(space.n_points))


@pytest.mark.parametrize("as_rows", [np.asarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize(
    ("options", "reference"),
    [
        ({"kernel": "rbf", "gamma": 0.7}, partial(rbf_kernel, gamma=0.7)),
        ({"kernel": "laplacian", "gamma": 0.7}, partial(laplacian_kernel, gamma=0.7)),
        ({"kernel": "linear"}, lambda X: X @ X.T),
        (
            {"kernel": "poly", "gamma": 0.7, "degree": 2, "coef0": 0.5},
            partial(polynomial_kernel, gamma=0.7, degree=2, coef0=0.5),
        ),
        ({"kernel": "cosine"}, cosine_similarity),
        ({"kernel": rbf_kernel}, rbf_kernel),
    ],
    ids=["rbf", "laplacian", "linear", "poly", "cosine", "callable"],
)
def test_exact_space_has_the_named_kernel(as_rows, options, reference):
    X = make_rows(0)
    space = RKHS(as_rows(X), **options)
    assert space.exact
    np.testing.assert_allclose(kernel_matrix(space), reference(X), atol=1e-12)
    assert space.negative_share < 1e-14


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "sigmoid", "cosine"])
@pytest.mark.parametrize("scale", [1e-150, 1e-20, 1e150])
def test_default_width_follows_the_scale_of_the_rows(kernel, scale):
    X = make_rows(1)
    spaces = [RKHS(rows, kernel=kernel) for rows in (X, scale * X, sparse.csr_array(scale * X))]
    expected = kernel_matrix(spaces[0])
    for space in spaces[1:]:
        np.testing.assert_allclose(kernel_matrix(space), expected, atol=1e-10)


def test_default_widths_are_the_documented_formulas():
    X = make_rows(2)
    pairs = np.triu_indices(len(X), 1)
    for name, metric, power in (("rbf", "euclidean", 2), ("laplacian", "cityblock", 1)):
        distances = cdist(X, X, metric)
        expected = np.exp(-((distances / np.median(distances[pairs])) ** power))
        np.testing.assert_allclose(kernel_matrix(RKHS(X, kernel=name)), expected, atol=1e-12)
    expected = (1 + X @ X.T / np.mean(np.sum(X**2, axis=1))) ** 3
    np.testing.assert_allclose(kernel_matrix(RKHS(X, kernel="poly")), expected, atol=1e-12)


def test_sampled_width_ignores_outliers_and_copies():
    n = 3 * N_PAIRS
    X = make_rows(3, n=n)
    X[: n // 20] *= 1e200
    X[n // 2 :] = X[n // 2]
    space = RKHS(X, n_components=5, random_state=0)
    clean = make_rows(3, n=300)[50:]
    median = np.median(cdist(clean, clean)[np.triu_indices(250, 1)])
    assert 1 / space.kernel.scale == pytest.approx(median, rel=0.25)


def test_rbf_is_accurate_far_from_the_origin_and_between_far_clusters():
    X = make_rows(4)
    expected = kernel_matrix(RKHS(X, gamma=0.5))
    np.testing.assert_allclose(kernel_matrix(RKHS(X + 1e6, gamma=0.5)), expected, atol=1e-9)
    far = kernel_matrix(RKHS(np.vstack([X, X[:10] + 1e7]), gamma=0.5))
    np.testing.assert_allclose(far[30:, 30:], expected[:10, :10], atol=1e-7)
    assert np.abs(far[:30, 30:]).max() < 1e-12


def test_integer_readonly_and_strided_rows_are_taken_and_left_alone():
    X = (10 * make_rows(5, d=6)).astype(np.int16)
    copy = X.copy()
    X.flags.writeable = False
    expected = kernel_matrix(RKHS(X[:, ::2].astype(float)))
    np.testing.assert_array_equal(kernel_matrix(RKHS(X[:, ::2])), expected)
    np.testing.assert_array_equal(X, copy)
    unsigned = np.array([[0], [255], [200]], dtype=np.uint8)
    np.testing.assert_allclose(
        kernel_matrix(RKHS(unsigned)), kernel_matrix(RKHS(unsigned.astype(float))), atol=1e-14
    )
