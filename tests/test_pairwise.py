"""Regression of class against class: against brute force, and where it is needed."""

import numpy as np
import pytest
from sklearn.datasets import make_gaussian_quantiles

from tvsvm.kernel import RKHS
from tvsvm.losses import Squared
from tvsvm.methods.pairwise import RATIOS, compared, pairwise, pairwise_at
from tvsvm.methods.supervised import supervised
from tvsvm.problem import Problem

pytestmark = pytest.mark.usefixtures("single_thread")


def make_comparison(rank, n=30):
    rng = np.random.default_rng(0)
    targets = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    return rng.normal(size=(n, rank)), targets, rng.uniform(0.5, 2.0, n)


def brute_force(features, targets, weights, ratio):
    """w and b from the normal equations."""
    Z = np.column_stack([features, np.ones(len(features))])
    penalty = np.diag([ratio] * features.shape[1] + [0.0])
    w = np.linalg.solve(Z.T @ (weights[:, None] * Z) + penalty, Z.T @ (weights * targets))
    return w[:-1], w[-1]


@pytest.mark.parametrize("rank", [5, 60])
def test_a_comparison_is_ridge_regression_and_knows_what_left_out_labels_say(rank):
    features, targets, weights = make_comparison(rank)
    (found,) = compared(features, targets, weights, [0.1])
    w, b = brute_force(features, targets, weights, 0.1)
    np.testing.assert_allclose(found.coordinates, w, atol=1e-9)
    assert found.intercept == pytest.approx(b)
    missed = []
    for i in range(len(targets)):
        others = np.arange(len(targets)) != i
        w, b = brute_force(features[others], targets[others], weights[others], 0.1)
        missed.append((targets[i] - features[i] @ w - b) ** 2)
    assert found.error == pytest.approx(np.average(missed, weights=weights))


@pytest.mark.parametrize("rank", [5, 60])
@pytest.mark.parametrize("weight", [1e-12, 1e12])
def test_labels_of_any_weight(rank, weight):
    features, targets, _ = make_comparison(rank)
    features[1], targets[1] = features[0], -targets[0]  # labels that contradict each other
    weights = np.r_[weight, np.ones(len(targets) - 1)]
    (found,) = compared(features, targets, weights, [0.1])
    assert np.isfinite(found.error)
    if weight > 1:
        value = features[0] @ found.coordinates + found.intercept
        assert value == pytest.approx(targets[0], abs=0.1)
    else:
        w, b = brute_force(features[1:], targets[1:], weights[1:], 0.1)
        np.testing.assert_allclose(np.r_[found.coordinates, found.intercept], [*w, b], atol=1e-9)


def make_problem(n_classes, n_labels=60, seed=0):
    """Classes that lie around each other like the skins of an onion."""
    X, truth = make_gaussian_quantiles(
        n_samples=400, n_features=3, n_classes=n_classes, random_state=seed
    )
    rows = np.sort(np.random.default_rng(seed).choice(400, n_labels, replace=False))
    space = RKHS(X, unit_diagonal=True, random_state=0)
    return Problem(space, rows, np.eye(n_classes)[truth[rows]], np.ones(n_labels)), truth


def missed(values, truth):
    return np.mean(values.argmax(axis=1) != truth)


def test_a_class_in_the_middle_needs_one_against_one():
    own, rest = [], []
    for seed in range(3):
        problem, truth = make_problem(4, 120, seed)
        own.append(missed(pairwise(problem).solution, truth))
        rest.append(missed(supervised(problem, Squared(10.0), lam=0.1).solution, truth))
    assert np.mean(own) < np.mean(rest) - 0.1


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_solution_is_on_the_simplex_and_new_points_get_nearly_the_same(n_classes):
    problem, _ = make_problem(n_classes)
    result = pairwise(problem)
    assert result.converged
    np.testing.assert_allclose(result.solution.sum(axis=1), 1.0)
    assert result.solution.min() >= 0
    functions = problem.space.values(result.coordinates) + result.intercept
    same = functions.argmax(axis=1) == result.solution.argmax(axis=1)
    assert same.all() if n_classes == 2 else same.mean() > 0.9
    rows = np.array([3, 70, 11])
    np.testing.assert_allclose(pairwise_at(problem, rows), result.solution[rows], atol=1e-12)


def test_names_of_classes_do_not_matter():
    problem, _ = make_problem(4)
    order = np.array([2, 0, 3, 1])
    other = Problem(problem.space, problem.rows, problem.targets[:, order], problem.weights)
    found = pairwise(other).solution
    np.testing.assert_allclose(found, pairwise(problem).solution[:, order], atol=1e-9)


def test_noise_is_smoothed_more_than_a_clear_border():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    clear = (X[:, 0] > 0).astype(int)
    noisy = np.where(rng.random(200) < 0.3, 1 - clear, clear)
    errors = {}
    for name, codes in (("clear", clear), ("noisy", noisy)):
        features = RKHS(X, unit_diagonal=True, random_state=0).features[:80]
        targets = 2.0 * codes[:80] - 1
        errors[name] = [each.error for each in compared(features, targets, np.ones(80), RATIOS)]
    assert np.argmin(errors["clear"]) < np.argmin(errors["noisy"])
