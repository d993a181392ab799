"""The quadratic knapsack: against bisection, its optimality conditions, and the hinge step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from tvsvm.solvers.knapsack import knapsack
from tvsvm.solvers.simplex import simplex_projection

law = settings(deadline=None, derandomize=True, max_examples=80)


@st.composite
def problems(draw):
    """A feasible problem with ties, zero and negative coefficients, fixed and unbounded entries."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 30))
    lower = rng.normal(size=n).round(1)
    upper = lower + rng.choice([0.0, 0.5, 2.0], size=n)
    a = rng.normal(size=n).round(1)
    inside = lower + rng.choice([0.0, 0.5, 1.0], size=n) * (upper - lower)
    d = float(a @ inside)
    lower[rng.random(n) < 0.2] = -np.inf
    upper[rng.random(n) < 0.2] = np.inf
    q = 10.0 ** rng.integers(-3, 4, size=n)
    return {
        "q": q,
        "b": rng.normal(size=n).round(1),
        "lower": lower,
        "upper": upper,
        "a": a,
        "d": d,
    }


def by_bisection(q, b, lower, upper, a, d):
    """Halve an interval that holds the multiplier, two hundred times."""

    def x(multiplier):
        return np.clip((b - multiplier * a) / q, lower, upper)

    left, right = -1e9, 1e9
    for _ in range(200):
        middle = (left + right) / 2
        left, right = (middle, right) if a @ x(middle) >= d else (left, middle)
    return x((left + right) / 2)


@law
@given(problems())
def test_agrees_with_bisection(problem):
    result = knapsack(**problem)
    np.testing.assert_allclose(result.solution, by_bisection(**problem), atol=1e-6)


@law
@given(problems())
def test_optimality_conditions(problem):
    result = knapsack(**problem)
    x, a = result.solution, problem["a"]
    assert result.converged
    assert result.certificate <= 1e-12
    assert (problem["lower"] <= x).all()
    assert (x <= problem["upper"]).all()
    assert abs(a @ x - problem["d"]) <= 1e-12 * (np.abs(a * x).sum() + abs(problem["d"]) + 1e-3)
    slope = problem["q"] * x - problem["b"] + result.multiplier * a
    scale = 1e-9 * (1 + np.abs(problem["q"] * x).max() + abs(result.multiplier))
    assert (slope[x < problem["upper"]] >= -scale).all()
    assert (slope[x > problem["lower"]] <= scale).all()


@law
@given(problems(), st.sampled_from([1e-100, 1e-3, 1e3, 1e100]))
def test_scale_equivariance(problem, factor):
    result = knapsack(**problem)
    longer = {k: v * factor for k, v in problem.items() if k not in ("q", "a")}
    scaled = knapsack(q=problem["q"], a=problem["a"], **longer)
    np.testing.assert_allclose(scaled.solution, factor * result.solution, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(scaled.multiplier, factor * result.multiplier, rtol=1e-6, atol=1e-9)


@law
@given(problems(), st.integers(0, 2**32 - 1))
def test_permutation_equivariance(problem, seed):
    order = np.random.default_rng(seed).permutation(len(problem["b"]))
    shuffled = {k: v if k == "d" else v[order] for k, v in problem.items()}
    expected = knapsack(**problem).solution[order]
    np.testing.assert_allclose(knapsack(**shuffled).solution, expected, atol=1e-9)


def test_built_backwards_from_a_multiplier():
    rng = np.random.default_rng(0)
    n, multiplier = 50, 0.7
    q, a, b = rng.uniform(0.1, 3, n), rng.choice([-2.0, -1.0, 1.0], n), rng.normal(size=n)
    x = np.clip((b - multiplier * a) / q, -0.5, 0.5)
    result = knapsack(q, b, lower=-0.5, upper=0.5, a=a, d=a @ x)
    np.testing.assert_allclose(result.solution, x, atol=1e-14)
    np.testing.assert_allclose(result.multiplier, multiplier, atol=1e-14)


def test_the_simplex_is_a_knapsack():
    z = np.random.default_rng(0).normal(size=20)
    np.testing.assert_allclose(
        knapsack(1.0, z, d=1.0).solution, simplex_projection(z[None])[0], atol=1e-15
    )


@pytest.mark.parametrize("seed", range(8))
def test_hinge_step_and_its_bias(seed):
    """min_{h, bias} Σ μ max(0, 1 - y(h + bias)) + (r/2)|h - e|² from its dual."""
    rng = np.random.default_rng(seed)
    n, r = 12, 0.7
    y, e = rng.choice([-1.0, 1.0], size=n), rng.normal(size=n)
    mu = rng.uniform(0, 2, n) * (rng.random(n) < 0.8)
    dual = knapsack(1 / r, 1 - y * e, upper=mu, a=y)
    h = e + y * dual.solution / r

    def value(h, bias):
        return (mu * np.maximum(0, 1 - y * (h + bias))).sum() + r / 2 * ((h - e) ** 2).sum()

    def best(bias):
        # Each h_i: stay, or move towards the margin by at most μ_i/r.
        return value(e + y * np.clip(1 - y * (e + bias), 0, mu / r), bias)

    reference = min(
        minimize_scalar(
            best, bounds=(left, left + 1), method="bounded", options={"xatol": 1e-9}
        ).fun
        for left in np.arange(-6, 6)
    )
    np.testing.assert_allclose(value(h, dual.multiplier), reference, rtol=1e-8, atol=1e-9)


def test_multiplier_without_a_free_entry_is_the_midpoint():
    # Slopes 0.5 - 1.7 and 0.5 - 1.3 at the upper bounds: -1.2 + ν ≤ 0 and -0.8 - ν ≤ 0.
    result = knapsack(1.0, [1.7, 1.3], upper=0.5, a=[1.0, -1.0])
    np.testing.assert_array_equal(result.solution, [0.5, 0.5])
    np.testing.assert_allclose(result.multiplier, (1.2 - 0.8) / 2)


def test_one_sided_and_free_multipliers():
    one_class = knapsack(1.0, [1.0, 0.5], upper=2.0)
    np.testing.assert_array_equal(one_class.solution, [0.0, 0.0])
    assert one_class.multiplier == 1.0
    nothing_left = knapsack(1.0, [1.0, 0.5], lower=0.1, upper=0.1, d=0.2)
    assert nothing_left.multiplier == 0.0
    assert nothing_left.converged


def test_entries_outside_the_equality():
    result = knapsack(2.0, [4.0, -4.0, 1.0], lower=-1.0, upper=5.0, a=[0.0, 0.0, 1.0], d=3.0)
    np.testing.assert_array_equal(result.solution, [2.0, -1.0, 3.0])


def test_without_bounds_and_without_entries():
    result = knapsack([1.0, 2.0], [0.0, 0.0], lower=-np.inf, d=3.0)
    np.testing.assert_allclose(result.solution, [2.0, 1.0])
    assert knapsack([], []).solution.shape == (0,)


def test_tiny_curvature_keeps_the_equality():
    result = knapsack([1e-12, 1.0, 1e12], [1.0, 1.0, 1.0], d=1.0)
    assert result.converged
    np.testing.assert_allclose(result.solution.sum(), 1.0, rtol=1e-15)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": 0.0}, "positive"),
        ({"q": -1.0}, "positive"),
        ({"b": [np.nan, 0.0]}, "`b` holds NaN"),
        ({"b": [[0.0, 1.0]]}, "shape"),
        ({"q": [1.0, 1.0, 1.0]}, "shape"),
        ({"lower": 2.0}, "must not exceed"),
        ({"lower": np.inf, "upper": np.inf}, "number must fit"),
        ({"d": 2.5}, "widen the bounds"),
        ({"d": -0.5}, "widen the bounds"),
        ({"d": np.nan}, "change d"),
        ({"d": np.inf, "upper": np.inf}, "change d"),
    ],
)
def test_errors(change, message):
    problem = {"q": 1.0, "b": [1.0, 0.0], "upper": 1.0, "d": 1.0} | change
    with pytest.raises(ValueError, match=message):
        knapsack(**problem)
