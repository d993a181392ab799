import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from references import random_graph

from tvsvm.kernel import RKHS
from tvsvm.losses import Hinge, Squared
from tvsvm.problem import Problem
from tvsvm.results import Status

LOSSES = [Squared(3.0), Hinge(0.7)]
COLUMNS = [1, 3]


def make_problem(rng, *, columns, n_points=14, n_labelled=7, landmarks=None):
    """Random rows, graph and weights; every class has a label."""
    X = rng.normal(size=(n_points, 2))
    space = RKHS(X, gamma=0.5, unit_diagonal=True, n_components=landmarks, random_state=0)
    rows = np.sort(rng.choice(n_points, n_labelled, replace=False))
    codes = rng.permutation(np.arange(n_labelled) % max(columns, 2))
    targets = np.eye(columns)[codes] if columns > 1 else 2.0 * codes[:, None] - 1
    weights = rng.uniform(0.5, 2.0, n_labelled)
    return Problem(space, rows, targets, weights, random_graph(rng, n_points))


def convex_loss(loss, F, intercept, problem):
    """The loss as a convex solver takes it, term by term from the definition."""
    total = 0
    for i, w in enumerate(problem.weights):
        for k in range(problem.n_columns):
            y = problem.targets[i, k]
            if isinstance(loss, Squared):
                total += loss.eta / 2 * w * cp.square(y - F[i, k])
            elif problem.n_columns == 1:
                total += loss.mu * w * cp.pos(1 - y * (F[i, k] + intercept[k]))
            else:
                sign = 2 * y - 1
                score = 2 * (F[i, k] + intercept[k]) - 1
                total += loss.mu / 4 * w * cp.pos(1 - sign * score)
    return total


def solve(objective, constraints=()):
    problem = cp.Problem(cp.Minimize(objective), list(constraints))
    tight = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
    problem.solve(solver=cp.CLARABEL, **tight)
    return problem.value


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("loss", LOSSES)
def test_value_is_the_definition(loss, columns):
    rng = np.random.default_rng(0)
    problem = make_problem(rng, columns=columns)
    F, b = rng.normal(size=problem.targets.shape), rng.normal(size=columns)
    b *= not isinstance(loss, Squared)
    expected = convex_loss(loss, cp.Constant(F), cp.Constant(b), problem).value
    assert loss.value(F, b, problem) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("loss", LOSSES)
def test_targets_cost_nothing(loss, columns):
    problem = make_problem(np.random.default_rng(1), columns=columns)
    assert loss.value(problem.targets, np.zeros(columns), problem) == 0.0


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("loss", LOSSES)
def test_prox_against_a_convex_solver(loss, columns):
    rng = np.random.default_rng(2)
    problem = make_problem(rng, columns=columns)
    E, r = rng.normal(size=problem.targets.shape), 0.8
    H, b = loss.prox(E, problem, r)
    free, bias = cp.Variable(E.shape), cp.Variable(columns)
    value = solve(convex_loss(loss, free, bias, problem) + r / 2 * cp.sum_squares(free - E))
    np.testing.assert_allclose(H, free.value, atol=1e-5)
    found = loss.value(H, b, problem) + r / 2 * np.sum((H - E) ** 2)
    assert found == pytest.approx(value, rel=1e-7)


@given(seed=st.integers(0, 10_000), columns=st.sampled_from(COLUMNS), hinge=st.booleans())
@settings(deadline=None, derandomize=True, max_examples=30)
def test_prox_is_not_beaten_nearby_nor_far_away(seed, columns, hinge):
    rng = np.random.default_rng(seed)
    loss = LOSSES[hinge]
    problem = make_problem(rng, columns=columns)
    E, r = 2 * rng.normal(size=problem.targets.shape), 10 ** rng.uniform(-2, 2)
    H, b = loss.prox(E, problem, r)

    def objective(H, b):
        return loss.value(H, b, problem) + r / 2 * np.sum((H - E) ** 2)

    least = objective(H, b)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(20):
            other = b + hinge * size * rng.normal(size=columns)
            assert objective(H + size * rng.normal(size=H.shape), other) >= least - 1e-9
            assert objective(H, other) >= least - 1e-9


@pytest.mark.parametrize("offset", [0.0, 0.25])
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("loss", LOSSES)
def test_kernel_step_against_a_convex_solver(loss, columns, offset):
    rng = np.random.default_rng(3)
    problem = make_problem(rng, columns=columns)
    lam, r, gamma = 0.3, 0.2, 0.4
    E = rng.normal(size=(problem.space.n_points, columns))
    step = loss.kernel_step(problem, lam=lam, r=r, gamma=gamma, offset=offset)
    W, F, b = step(E)

    free, bias = cp.Variable(W.shape), cp.Variable(columns)
    values = offset + problem.space.features @ free
    L = cp.psd_wrap(problem.graph.laplacian.toarray())
    objective = convex_loss(loss, values[problem.rows], bias, problem)
    objective += lam / 2 * cp.sum_squares(free) + r / 2 * cp.sum_squares(values - E)
    objective += gamma / 2 * sum(cp.quad_form(values[:, k], L) for k in range(columns))
    value = solve(objective)
    np.testing.assert_allclose(F, values.value, atol=1e-5)
    np.testing.assert_allclose(F, offset + problem.space.values(W), atol=1e-12)
    found = loss.value(F[problem.rows], b, problem) + lam / 2 * np.sum(W**2)
    found += r / 2 * np.sum((F - E) ** 2) + gamma / 2 * problem.graph.dirichlet(F).sum()
    assert found == pytest.approx(value, rel=1e-7)
    assert step.certificate <= 1e-8
    assert step.status is Status.CONVERGED


@pytest.mark.parametrize("offset", [0.0, 0.25])
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("loss", LOSSES)
def test_kernel_step_with_parts_of_the_rows_against_a_convex_solver(loss, columns, offset):
    rng = np.random.default_rng(8)
    problem = make_problem(rng, columns=columns, landmarks=5)
    lam, r = 0.3, 0.2
    E = rng.normal(size=(problem.space.n_points, columns))
    step = loss.kernel_step(problem, lam=lam, r=r, offset=offset, residual=True)
    W, F, _ = step(E)

    free, bias, own = cp.Variable(W.shape), cp.Variable(columns), cp.Variable(E.shape)
    root = np.sqrt(problem.space.residual)[:, None]
    values = offset + problem.space.features @ free + cp.multiply(root, own)
    objective = convex_loss(loss, values[problem.rows], bias, problem)
    objective += lam / 2 * (cp.sum_squares(free) + cp.sum_squares(own))
    objective += r / 2 * cp.sum_squares(values - E)
    value = solve(objective)
    np.testing.assert_allclose(F, values.value, atol=1e-5)
    np.testing.assert_allclose(W, free.value, atol=1e-5)
    assert step.energy == pytest.approx(value, rel=1e-7)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("loss", LOSSES)
def test_energy_of_a_step_is_the_objective(loss, columns):
    rng = np.random.default_rng(9)
    problem = make_problem(rng, columns=columns)
    E = rng.normal(size=(problem.space.n_points, columns))
    step = loss.kernel_step(problem, lam=0.3, r=0.2, gamma=0.4, offset=0.1)
    W, F, b = step(E)
    expected = loss.value(F[problem.rows], b, problem) + 0.15 * np.sum(W**2)
    expected += 0.1 * np.sum((F - E) ** 2) + 0.2 * problem.graph.dirichlet(F).sum()
    assert step.energy == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_kernel_step_forgets_the_calls_before(loss):
    rng = np.random.default_rng(4)
    problem = make_problem(rng, columns=3)
    first, second = rng.normal(size=(2, problem.space.n_points, 3))
    options = {"lam": 0.1, "r": 0.5, "gamma": 0.1}
    warm = loss.kernel_step(problem, **options)
    warm(first)
    for found, expected in zip(
        warm(second), loss.kernel_step(problem, **options)(second), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("loss", LOSSES)
def test_no_E_is_r_zero(loss, columns):
    rng = np.random.default_rng(5)
    problem = make_problem(rng, columns=columns)
    step = loss.kernel_step(problem, lam=0.2, gamma=0.3)
    E = rng.normal(size=(problem.space.n_points, columns))
    for found, expected in zip(step(E), step(None), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-7)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_labels_of_one_sign_cost_the_hinge_nothing(sign):
    rng = np.random.default_rng(6)
    base = make_problem(rng, columns=1)
    problem = Problem(base.space, base.rows, np.full((7, 1), sign), base.weights, base.graph)
    loss = Hinge(2.0)
    E = rng.normal(size=(base.space.n_points, 1))
    step = loss.kernel_step(problem, lam=0.1, r=0.3)
    _, F, b = step(E)
    assert loss.value(F[base.rows], b, problem) == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(F, base.space.quadratic(lam=0.1, r=0.3).solve(0.3 * E))
    H, b = loss.prox(E[base.rows], problem, 0.3)
    np.testing.assert_allclose(H, E[base.rows])
    assert loss.value(H, b, problem) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_weight_of_two_is_the_label_twice(loss, columns):
    rng = np.random.default_rng(7)
    base = make_problem(rng, columns=columns)
    twice = np.ones(7)
    twice[2] = 2.0
    heavy = Problem(base.space, base.rows, base.targets, twice, base.graph)
    again = np.r_[:7, 2]
    F, b = rng.normal(size=(7, columns)), np.zeros(columns)
    doubled = Problem(base.space, base.rows[again], base.targets[again], np.ones(8), base.graph)
    assert loss.value(F, b, heavy) == pytest.approx(loss.value(F[again], b, doubled))


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, np.nan])
@pytest.mark.parametrize("kind", [Squared, Hinge])
def test_strengths_must_be_positive(kind, value):
    with pytest.raises(ValueError, match="must be positive and finite"):
        kind(value)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_graph_term_needs_a_graph(loss):
    base = make_problem(np.random.default_rng(8), columns=1)
    problem = Problem(base.space, base.rows, base.targets, base.weights)
    with pytest.raises(ValueError, match="laplacian"):
        loss.kernel_step(problem, lam=1.0, gamma=1.0)
