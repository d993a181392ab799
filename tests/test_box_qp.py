"""The box QP: against enumeration and scikit-learn, built backwards, and degenerate."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from tvsvm.results import Status
from tvsvm.solvers.box_qp import box_qp
from tvsvm.solvers.knapsack import knapsack

law = settings(deadline=None, derandomize=True, max_examples=40)
seeds = st.integers(0, 2**32 - 1)


def objective(x, Q, b):
    return x @ Q @ x / 2 - b @ x


def by_enumeration(Q, b, lower, upper, a, d):
    """Lowest objective over every choice of who is at which bound and who is free."""
    best = np.inf
    for choice in product((0, 1, 2), repeat=len(b)):
        free = np.array(choice) == 2
        x = np.where(np.array(choice) == 0, lower, upper)
        x[free] = 0.0
        system = np.block([[Q[np.ix_(free, free)], a[free, None]], [a[free], 0.0]])
        right = np.append((b - Q @ x)[free], d - a @ x)
        x[free] = np.linalg.lstsq(system, right, rcond=None)[0][:-1]
        within = (x >= lower - 1e-9).all() and (x <= upper + 1e-9).all()
        if within and abs(a @ x - d) < 1e-9:
            best = min(best, objective(x, Q, b))
    return best


def assert_optimal(result, Q, b, lower, upper, a, d, tol=1e-7):
    """The optimality conditions, written down once more and independently of the certificate."""
    x = result.solution
    lower, upper, a = (np.broadcast_to(v, x.shape) for v in (lower, upper, a))
    assert result.converged
    assert result.certificate <= 1e-8
    assert (lower <= x).all()
    assert (x <= upper).all()
    assert abs(a @ x - d) <= 1e-8 * (np.abs(a * x).sum() + abs(d))
    slope = (Q @ x - b) / a + result.multiplier
    slack = tol * max(np.abs(b / a).max(), np.abs(Q @ x / a).max())
    grows = np.where(a > 0, x < upper, x > lower)
    shrinks = np.where(a > 0, x > lower, x < upper)
    assert (slope[grows] >= -slack).all()
    assert (slope[shrinks] <= slack).all()


@law
@given(seeds, st.integers(1, 5), st.integers(0, 5))
def test_agrees_with_enumeration(seed, n, rank):
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(n, rank))
    lower = rng.normal(size=n)
    problem = {
        "Q": factor @ factor.T,
        "b": rng.normal(size=n),
        "lower": lower,
        "upper": lower + rng.choice([0.0, 1.0, 3.0], size=n),
        "a": rng.choice([-2.0, -1.0, 1.0, 0.5], size=n),
    }
    problem["d"] = problem["a"] @ (lower + rng.random(n) * (problem["upper"] - lower))
    result = box_qp(**problem)
    assert_optimal(result, **problem)
    value = objective(result.solution, problem["Q"], problem["b"])
    np.testing.assert_allclose(value, by_enumeration(**problem), atol=1e-7)


def backwards(seed, n=30, rank=8):
    """A problem with a known solution: choose x, ν and the signs of the slopes, read off b."""
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(n, rank))
    Q = factor @ factor.T
    upper = rng.uniform(0.5, 2, size=n)
    place = rng.integers(0, 3, size=n)
    x = np.select([place == 0, place == 1], [0.0, upper], rng.uniform(0.1, 0.4, size=n))
    a, multiplier = rng.choice([-1.0, 1.0], size=n), rng.normal()
    slope = np.select([place == 0, place == 1], [rng.random(n), -rng.random(n)], 0.0)
    b = Q @ x + multiplier * a - slope
    return {"Q": Q, "b": b, "lower": 0.0, "upper": upper, "a": a, "d": a @ x}, x, multiplier


@law
@given(seeds)
def test_built_backwards(seed):
    problem, x, multiplier = backwards(seed)
    result = box_qp(**problem)
    assert_optimal(result, **problem)
    value = objective(x, problem["Q"], problem["b"])
    np.testing.assert_allclose(
        objective(result.solution, problem["Q"], problem["b"]), value, rtol=1e-9, atol=1e-9
    )
    # Q is singular and x need not be unique, but Qx is, and so is ν next to a free entry.
    scale = np.abs(problem["b"]).max()
    np.testing.assert_allclose(problem["Q"] @ result.solution, problem["Q"] @ x, atol=1e-5 * scale)
    np.testing.assert_allclose(result.multiplier, multiplier, atol=1e-5 * scale)


@law
@given(seeds, st.sampled_from([1e-150, 1e-5, 1e5, 1e150]), st.sampled_from([1e-100, 1.0, 1e100]))
def test_scale_equivariance(seed, stretch, stiffness):
    problem, _, _ = backwards(seed, n=12, rank=12)
    result = box_qp(**problem)
    scaled = problem | {
        "Q": problem["Q"] * stiffness,
        "b": problem["b"] * stiffness * stretch,
        "upper": problem["upper"] * stretch,
        "d": problem["d"] * stretch,
    }
    if not 1e-200 < stiffness * stretch < 1e200:
        return
    again = box_qp(**scaled)
    assert again.converged
    np.testing.assert_allclose(again.solution / stretch, result.solution, atol=1e-5)


@law
@given(seeds)
def test_diagonal_problems_are_knapsacks(seed):
    rng = np.random.default_rng(seed)
    n = 15
    q, b, a = rng.uniform(0.1, 2, n), rng.normal(size=n), rng.choice([-1.0, 1.0, 2.0], n)
    exact = knapsack(q, b, lower=-1.0, upper=1.0, a=a, d=0.5)
    result = box_qp(np.diag(q), b, lower=-1.0, upper=1.0, a=a, d=0.5)
    np.testing.assert_allclose(result.solution, exact.solution, atol=1e-6)


def digits(n):
    X, y = load_digits(return_X_y=True)
    return rbf_kernel(X[:n] / 16, gamma=0.1), np.where(y[:n] > 4, 1.0, -1.0)


def machine(K, y, C, **options):
    return box_qp(K, y, lower=np.minimum(C * y, 0), upper=np.maximum(C * y, 0), **options)


@pytest.mark.parametrize("C", [0.01, 1.0, 1e4])
@pytest.mark.parametrize("n", [10, 300])
def test_agrees_with_scikit_learn(n, C):
    K, y = digits(n)
    result = machine(K, y, C)
    assert result.converged
    peer = SVC(C=C, kernel="precomputed", tol=1e-8).fit(K, y)
    decision = K @ result.solution + result.multiplier
    np.testing.assert_allclose(decision, peer.decision_function(K), atol=1e-5)


def test_both_ways_to_write_the_machine():
    K, y = digits(40)
    signed = machine(K, y, 2.0)
    dual = box_qp(K * np.outer(y, y), np.ones(40), upper=2.0, a=y)
    np.testing.assert_allclose(y * dual.solution, signed.solution, atol=1e-6)
    np.testing.assert_allclose(dual.multiplier, signed.multiplier, atol=1e-6)


def test_warm_start_is_quick_and_made_feasible():
    K, y = digits(300)
    cold = machine(K, y, 100.0)
    assert machine(K, y, 100.0, x0=cold.solution).n_iter == 0
    rng = np.random.default_rng(0)
    warm = machine(K, y, 100.0, x0=cold.solution + rng.normal(size=300))
    assert warm.converged
    np.testing.assert_allclose(warm.solution, cold.solution, atol=1e-5)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_duplicates_with_either_label(C):
    K, _ = digits(30)
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 10, size=60)
    K, y = K[np.ix_(rows, rows)], rng.choice([-1.0, 1.0], size=60)
    lower, upper = np.minimum(C * y, 0), np.maximum(C * y, 0)
    assert_optimal(machine(K, y, C), K, y, lower, upper, 1.0, 0.0)


def test_low_rank_with_a_wide_box():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = np.where(X[:, 0] + rng.normal(size=80) > 0, 1.0, -1.0)
    result = machine(X @ X.T, y, 1e4)
    assert_optimal(result, X @ X.T, y, np.minimum(1e4 * y, 0), np.maximum(1e4 * y, 0), 1.0, 0.0)


def test_hard_margin():
    X = np.array([[0.0], [1.0], [3.0], [5.0]])
    y = np.array([-1.0, -1.0, 1.0, 1.0])
    result = box_qp((X @ X.T) * np.outer(y, y), np.ones(4), a=y)
    np.testing.assert_allclose(result.solution, [0.0, 0.5, 0.5, 0.0], atol=1e-7)
    np.testing.assert_allclose(result.multiplier, -2.0, atol=1e-7)


@pytest.mark.parametrize("kind", ["zero", "duplicates", "inseparable"])
def test_no_minimum_is_an_error(kind):
    rng = np.random.default_rng(0)
    X = {
        "zero": np.zeros((6, 1)),
        "duplicates": rng.normal(size=(3, 5))[[0, 0, 1, 1, 2, 2]],
        "inseparable": np.arange(6.0)[:, None],
    }[kind]
    y = np.array([1.0, -1.0] * 3)
    with pytest.raises(ValueError, match="finite bounds"):
        box_qp((X @ X.T) * np.outer(y, y), np.ones(6), a=y)


def test_one_class_only():
    K, _ = digits(20)
    result = box_qp(K, np.ones(20), upper=3.0)
    np.testing.assert_array_equal(result.solution, 0.0)
    assert result.multiplier == 1.0


def test_zero_matrix_and_closed_boxes():
    y = np.array([1.0, -1.0, 1.0, -1.0])
    result = box_qp(np.zeros((4, 4)), np.ones(4), upper=[2.0, 1.0, 0.0, 0.0], a=y)
    np.testing.assert_array_equal(result.solution, [1.0, 1.0, 0.0, 0.0])
    closed = box_qp(np.eye(4), np.ones(4), upper=0.0, a=y)
    np.testing.assert_array_equal(closed.solution, 0.0)
    assert closed.converged


def test_midpoint_when_no_entry_is_free():
    # Slopes 3/4 - 1 and 2/4 - 1 at the upper bounds: -1/4 + ν ≤ 0 and -1/2 - ν ≤ 0.
    result = box_qp(np.diag([3.0, 2.0]), np.ones(2), upper=0.25, a=[1.0, -1.0])
    np.testing.assert_array_equal(result.solution, [0.25, 0.25])
    np.testing.assert_allclose(result.multiplier, (0.25 - 0.5) / 2)


@pytest.mark.parametrize("n", [0, 1])
def test_hardly_any_entries(n):
    result = box_qp(np.eye(n), np.ones(n), upper=2.0, d=0.5 * n)
    np.testing.assert_array_equal(result.solution, np.full(n, 0.5))


def test_iteration_limit_is_reported_with_a_feasible_point():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = rng.choice([-1.0, 1.0], size=200)
    result = machine(X @ X.T, y, 1e3, x0=np.zeros(200), max_iter=1)
    assert result.status is Status.MAX_ITER
    assert result.certificate > 1e-8
    assert abs(result.solution.sum()) < 1e-8
    assert (np.abs(result.solution) <= 1e3).all()


def test_the_input_stays():
    K, y = digits(20)
    K32 = np.asfortranarray(K.astype(np.float32))
    for array in (K, y, K32):
        array.flags.writeable = False
    x0 = np.zeros(20)
    expected = machine(K, y, 1.0, x0=x0).solution
    assert not x0.any()
    np.testing.assert_allclose(machine(K32, y, 1.0).solution, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Q": np.eye(3)}, "`Q` must be"),
        ({"Q": np.full((2, 2), np.nan)}, "`Q` must be"),
        ({"b": [np.inf, 1.0]}, "`b` holds"),
        ({"a": [1.0, 0.0]}, "must not be zero"),
        ({"d": 5.0}, "widen the bounds"),
        ({"lower": 3.0}, "must not exceed"),
        ({"x0": [0.0]}, "`x0` must have shape"),
    ],
)
def test_errors(change, message):
    problem = {"Q": np.eye(2), "b": [1.0, 1.0], "upper": 2.0} | change
    with pytest.raises(ValueError, match=message):
        box_qp(**problem)
