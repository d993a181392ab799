from dataclasses import replace
from itertools import product

import cvxpy as cp
import numpy as np
import pytest
from references import random_graph
from scipy.sparse import block_diag
from sklearn.datasets import load_digits
from test_losses import convex_loss, make_problem, solve
from threadpoolctl import threadpool_limits

import tvsvm
from tvsvm.graph import Graph, knn_graph
from tvsvm.kernel import RKHS
from tvsvm.losses import Hinge, Squared
from tvsvm.methods.laplacian import laplacian
from tvsvm.methods.supervised import supervised
from tvsvm.problem import Problem
from tvsvm.results import Status

LOSSES = [Squared(3.0), Hinge(2.0)]
COLUMNS = [1, 3]
LAM, GAMMA = 0.2, 0.3


@pytest.fixture(autouse=True)
def one_thread():
    """Matrices are tiny here, and threads that wait for each other cost most of the time."""
    with threadpool_limits(1):
        yield


def run(problem, loss, **options):
    """As printed in the paper unless options say otherwise."""
    settings = {"lam": LAM, "gamma": GAMMA, "paper": True, "tol": 1e-7, "max_iter": 5000}
    result = laplacian(problem, loss, **{**settings, **options})
    assert result.converged
    return result


def before_and_after(problem, loss, **options):
    """What the paper's iteration finds with squared weights, and what is made of it."""
    squared = replace(problem, graph=problem.graph.squared)
    return run(squared, loss, **options), run(problem, loss, paper=False, **options)


def functions(problem, result):
    """Values on the rows of f + b, before any projection."""
    return problem.space.values(result.coordinates) + result.intercept


def permuted(problem, order, names):
    """Row i of the new problem is row order[i], column names[k] is column k."""
    X = problem.space.landmarks[order]
    place = np.argsort(order)[problem.rows]
    ascending = np.argsort(place)
    return Problem(
        RKHS(X, gamma=0.5, unit_diagonal=True),
        place[ascending],
        problem.targets[ascending][:, np.argsort(names)],
        problem.weights[ascending],
        problem.graph.subgraph(order),
    )


@pytest.mark.parametrize("eta", [1.0, 50.0])
def test_laprls_is_the_formula_of_the_paper(eta):
    problem = make_problem(np.random.default_rng(0), columns=1)
    N = problem.space.n_points
    K, L = problem.space.apply(np.eye(N)), problem.graph.laplacian.toarray()
    J, y = np.zeros((N, N)), np.zeros((N, 1))
    J[problem.rows, problem.rows], y[problem.rows] = problem.weights, problem.targets
    a = np.linalg.solve(eta * J @ K + LAM * np.eye(N) + GAMMA * L @ K, eta * J @ y)
    result = run(problem, Squared(eta))
    np.testing.assert_allclose(result.solution, K @ a, atol=1e-8)
    assert result.intercept == 0.0


@pytest.mark.parametrize("mu", [0.1, 2.0, 50.0])
@pytest.mark.parametrize("seed", [1, 2])
def test_lapsvm_against_a_convex_solver(seed, mu):
    problem, loss = make_problem(np.random.default_rng(seed), columns=1), Hinge(mu)
    result = run(problem, loss)
    W, b = cp.Variable(result.coordinates.shape), cp.Variable(1)
    F = problem.space.features @ W
    L = cp.psd_wrap(problem.graph.laplacian.toarray())
    objective = convex_loss(loss, F[problem.rows], b, problem)
    objective += LAM / 2 * cp.sum_squares(W) + GAMMA / 2 * cp.quad_form(F[:, 0], L)
    value = solve(objective)
    np.testing.assert_allclose(functions(problem, result) - result.intercept, F.value, atol=1e-5)
    assert result.energy_path[-1] == pytest.approx(value, rel=1e-7)
    assert result.certificate <= 1e-8


@pytest.mark.parametrize("strengths", [(0.2, 0.3), (0.1, 0.01), (0.05, 0.0)])
@pytest.mark.parametrize("loss", [*LOSSES, Squared(50.0), Hinge(50.0)])
def test_many_classes_against_a_convex_solver(loss, strengths):
    """The paper's problem in f = Kα, although ours is written in f - 1/c."""
    lam, gamma = strengths
    problem = make_problem(np.random.default_rng(3), columns=3)
    result = run(problem, loss, lam=lam, gamma=gamma)
    W, b = cp.Variable(result.coordinates.shape), cp.Variable(3)
    F = problem.space.features @ W
    L = cp.psd_wrap(problem.graph.laplacian.toarray())
    objective = convex_loss(loss, F[problem.rows], b, problem)
    objective += lam / 2 * cp.sum_squares(W)
    objective += gamma / 2 * sum(cp.quad_form(F[:, k], L) for k in range(3))
    value = solve(objective, [F >= 0, cp.sum(F, axis=1) == 1])
    found = 1 / 3 + problem.space.values(result.coordinates)
    np.testing.assert_allclose(found, F.value, atol=1e-5)
    # Σ_k |f_k|² = Σ_k |f_k - 1/c|² + |1|²/c for f on the simplex.
    K = problem.space.apply(np.eye(problem.space.n_points))
    constant = lam / 2 * np.linalg.solve(K, np.ones(len(K))).sum() / 3
    assert result.energy_path[-1] + constant == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize("loss", [*LOSSES, Squared(50.0), Hinge(50.0)])
def test_acceleration_leads_to_the_same_end_in_fewer_steps(loss):
    steps = np.zeros(2)
    for seed, (lam, gamma) in product((3, 4, 5), ((0.2, 0.3), (0.1, 0.01), (0.05, 0.0))):
        problem = make_problem(np.random.default_rng(seed), columns=3)
        ends = before_and_after(problem, loss, lam=lam, gamma=gamma)
        plain, fast = ends
        np.testing.assert_allclose(fast.state.G, plain.state.G, atol=1e-5)
        assert fast.energy_path[-1] == pytest.approx(plain.energy_path[-1], rel=1e-5)
        steps += [end.n_iter for end in ends]
    assert steps[1] < 0.7 * steps[0]  # measured 0.33 to 0.60


@pytest.mark.parametrize("loss", LOSSES)
def test_the_simplex_matters_and_is_met(loss):
    problem = make_problem(np.random.default_rng(4), columns=3)
    result = run(problem, loss, gamma=1e-3)
    free = loss.kernel_step(problem, lam=LAM, gamma=1e-3, offset=1 / 3)(None)[1]
    assert free.min() < -1e-3
    F = 1 / 3 + problem.space.values(result.coordinates)
    assert F.min() > -1e-6
    np.testing.assert_allclose(F.sum(axis=1), 1.0, atol=1e-6)
    assert result.solution.min() >= 0
    np.testing.assert_allclose(result.solution.sum(axis=1), 1.0, atol=1e-12)
    scores = functions(problem, result)
    np.testing.assert_array_equal(result.solution.argmax(axis=1), scores.argmax(axis=1))


@pytest.mark.parametrize("loss", LOSSES)
def test_r_changes_the_path_and_not_its_end(loss):
    problem = make_problem(np.random.default_rng(5), columns=3)
    own, given = (run(problem, loss, r=r) for r in (None, 2.0))
    assert given.n_iter != own.n_iter
    np.testing.assert_allclose(given.solution, own.solution, atol=1e-5)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_unit_of_the_energy_does_not_matter(loss, columns):
    problem = make_problem(np.random.default_rng(6), columns=columns)
    (strength,) = vars(loss).values()
    plain = run(problem, loss)
    scaled = run(problem, type(loss)(1e6 * strength), lam=1e6 * LAM, gamma=1e6 * GAMMA)
    np.testing.assert_allclose(scaled.solution, plain.solution, atol=1e-6)
    assert scaled.n_iter == plain.n_iter


@pytest.mark.parametrize("loss", LOSSES)
def test_weak_graph_gives_the_method_without_one(loss):
    problem = make_problem(np.random.default_rng(7), columns=1)
    alone = supervised(problem, loss, lam=LAM)
    for gamma in (0.0, 1e-9):
        result = run(problem, loss, gamma=gamma)
        np.testing.assert_allclose(result.solution, alone.solution, atol=1e-6)


@pytest.mark.parametrize("columns", COLUMNS)
def test_strong_squared_loss_interpolates_the_labels(columns):
    problem = make_problem(np.random.default_rng(8), columns=columns)
    result = run(problem, Squared(1e5), tol=1e-5)
    np.testing.assert_allclose(result.solution[problem.rows], problem.targets, atol=1e-3)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("loss", LOSSES)
def test_order_of_rows_and_classes_does_not_matter(loss, columns):
    rng = np.random.default_rng(9)
    problem = make_problem(rng, columns=columns)
    order, names = rng.permutation(problem.space.n_points), rng.permutation(columns)
    plain = run(problem, loss).solution
    mixed = run(permuted(problem, order, names), loss).solution
    np.testing.assert_allclose(mixed[:, names], plain[order], atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_changed_signs_of_two_classes_change_the_sign(loss):
    problem = make_problem(np.random.default_rng(10), columns=1)
    other = Problem(problem.space, problem.rows, -problem.targets, problem.weights, problem.graph)
    np.testing.assert_allclose(run(other, loss).solution, -run(problem, loss).solution, atol=1e-6)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("loss", LOSSES)
def test_duplicate_rows_get_the_same_answer(loss, columns):
    rng = np.random.default_rng(11)
    X = np.repeat(rng.normal(size=(10, 2)), 2, axis=0)
    half = random_graph(rng, 10).affinity.toarray()
    codes = np.arange(6) % max(columns, 2)
    targets = np.eye(3)[codes] if columns > 1 else 2.0 * codes[:, None] - 1
    graph = Graph(np.kron(half, np.ones((2, 2))))
    problem = Problem(RKHS(X, gamma=0.5), np.arange(0, 12, 2), targets, np.ones(6), graph)
    solution = run(problem, loss).solution
    np.testing.assert_allclose(solution[::2], solution[1::2], atol=1e-6)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("loss", LOSSES)
def test_one_label_a_class_finds_the_clusters(loss, columns):
    rng = np.random.default_rng(12)
    n_classes = max(columns, 2)
    codes = np.arange(45) % n_classes
    X = rng.normal(scale=0.4, size=(45, 2)) + 3 * np.eye(3)[codes][:, :2]
    rows = np.arange(n_classes)
    targets = np.eye(n_classes)[codes[rows]] if columns > 1 else 2.0 * codes[rows, None] - 1
    graph = knn_graph(X, n_neighbors=5).scaled(mean_degree=1.0)
    problem = Problem(RKHS(X), rows, targets, np.ones(n_classes), graph)
    solution = run(problem, loss, gamma=1.0, tol=1e-4).solution
    found = solution.argmax(axis=1) if columns > 1 else solution[:, 0] > 0
    np.testing.assert_array_equal(found, codes)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_class_without_a_label_and_a_component_without_one(loss):
    rng = np.random.default_rng(13)
    parts = [random_graph(rng, 8, density=1.0).affinity for _ in range(2)]
    X = np.r_[rng.normal(size=(8, 2)), rng.normal(size=(8, 2)) + 100.0]
    graph = Graph(block_diag(parts))
    problem = Problem(RKHS(X, gamma=0.5), np.arange(4), np.eye(3)[[0, 1, 0, 1]], np.ones(4), graph)
    F = 1 / 3 + problem.space.values(run(problem, loss).coordinates)
    # Far from every label nothing speaks for a class.
    np.testing.assert_allclose(F[8:], 1 / 3, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_spaces_without_constants_can_meet_the_simplex(loss):
    rng = np.random.default_rng(14)
    X = rng.normal(size=(60, 3))
    rows, codes = np.arange(9), np.arange(9) % 3
    graph = knn_graph(X, n_neighbors=5).scaled(mean_degree=1.0)
    for space in (
        RKHS(X, n_components=10, random_state=0),
        RKHS(X.astype(np.float32), n_components=10, random_state=0),
        RKHS(X, kernel="linear"),
    ):
        problem = Problem(space, rows, np.eye(3)[codes], np.ones(9), graph)
        result = run(problem, loss, tol=1e-5)
        F = 1 / 3 + space.values(result.coordinates)
        assert F.min() > -1e-4
        np.testing.assert_allclose(F.sum(axis=1), 1.0, atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_out_of_iterations_it_says_so_and_returns_the_best(loss):
    problem = make_problem(np.random.default_rng(15), columns=3)
    result = laplacian(problem, loss, lam=LAM, gamma=1e-3, tol=1e-12, max_iter=5)
    assert result.status is Status.MAX_ITER
    assert result.n_iter == len(result.energy_path) == 5
    assert result.certificate > 1e-12
    more = laplacian(problem, loss, lam=LAM, gamma=1e-3, tol=1e-12, max_iter=50)
    assert more.certificate < result.certificate


# ---- the level of the functions ----------------------------------------------------------------


def two_clusters():
    """Thirty rows in two tight groups, twenty of one and ten of the other, one label each."""
    rng = np.random.default_rng(0)
    X = rng.normal(scale=0.3, size=(30, 2)) + np.repeat([[0.0, 0.0], [3.0, 0.0]], [20, 10], axis=0)
    graph = knn_graph(X, n_neighbors=12).scaled(mean_degree=1.0)
    space = RKHS(X, gamma=0.1, unit_diagonal=True)
    return Problem(space, np.array([0, 25]), np.array([[-1.0], [1.0]]), np.ones(2), graph)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("columns", COLUMNS)
def test_the_mean_over_rows_is_that_of_the_labels(loss, columns):
    problem = make_problem(np.random.default_rng(1), columns=columns)
    raw, moved = (functions(problem, end) for end in before_and_after(problem, loss))
    say = problem.graph.degrees / problem.graph.degrees.sum()
    middle, deviation = (0.0, 1.0) if columns == 1 else (1 / 3, np.sqrt(2) / 3)
    spreads = np.sqrt(say @ (raw - say @ raw) ** 2)
    spread = np.sqrt(np.mean(spreads**2)) / deviation
    share = (1 - spread**2) * GAMMA / (GAMMA + 1e-3 * LAM)
    labels = np.average(problem.targets, axis=0, weights=problem.weights)
    goal = (labels - middle) * spread + middle
    assert 0 < share < 1
    expected = say @ raw + share * (goal - say @ raw)
    np.testing.assert_allclose(say @ moved, expected, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_spreads_of_functions_come_near_to_those_of_the_labels(loss):
    problem = make_problem(np.random.default_rng(1), columns=3)
    raw, moved = (functions(problem, end) for end in before_and_after(problem, loss))
    say = problem.graph.degrees / problem.graph.degrees.sum()
    labels = np.average(problem.targets, axis=0, weights=problem.weights)

    def uneven(F):
        """How much the spreads relative to those of targets differ between the classes."""
        relative = np.sqrt(say @ (F - say @ F) ** 2 / (labels * (1 - labels)))
        return relative.max() / relative.min()

    assert uneven(moved) < 0.7 * uneven(raw) + 0.3


@pytest.mark.parametrize("loss", LOSSES)
def test_the_level_decides_with_one_label_a_class(loss):
    problem = two_clusters()
    truth = np.repeat([-1.0, 1.0], [20, 10])
    found = run(problem, loss, lam=1e-3, gamma=10.0, paper=False)
    np.testing.assert_array_equal(np.sign(found.solution[:, 0]), truth)


def test_far_from_all_rows_the_squared_loss_still_says_nothing():
    result = run(two_clusters(), Squared(3.0), paper=False)
    np.testing.assert_array_equal(result.intercept, 0.0)


@pytest.mark.parametrize("loss", LOSSES)
def test_without_a_graph_nothing_is_moved(loss):
    problem = two_clusters()
    for gamma in (0.0, 1e-12):
        plain, moved = before_and_after(problem, loss, gamma=gamma)
        np.testing.assert_allclose(moved.solution, plain.solution, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_last_state_leads_to_the_same_end_and_is_one_itself(loss):
    problem = make_problem(np.random.default_rng(9), columns=3, n_points=40, n_labelled=12)
    part = slice(None, -1)  # without the last label
    fewer = replace(
        problem,
        rows=problem.rows[part],
        targets=problem.targets[part],
        weights=problem.weights[part],
    )
    last = run(fewer, loss, tol=1e-5)
    state = [array.copy() for array in (last.state.G, last.state.multiplier)]
    cold, warm = (run(problem, loss, start=start, tol=1e-5) for start in (None, last.state))
    np.testing.assert_allclose(functions(problem, warm), functions(problem, cold), atol=1e-3)
    assert run(fewer, loss, start=last.state, tol=1e-5).n_iter <= 2
    np.testing.assert_array_equal([last.state.G, last.state.multiplier], state)


@pytest.mark.parametrize("Classifier", [tvsvm.LapRLS, tvsvm.LapSVM])
def test_a_space_without_constants(Classifier):
    # The mean of the functions of a linear kernel on centred rows is zero, and cannot be scaled.
    X = np.array([[-2.0], [-1], [1], [2]])
    model = Classifier(kernel="linear").fit(X, [0, 0, 1, -1])
    np.testing.assert_array_equal(model.transduction_, [0, 0, 1, 1])
    assert np.abs(model.dual_coef_).max() < 100


@pytest.mark.parametrize("Classifier", [tvsvm.LapRLS, tvsvm.LapSVM])
def test_nearly_flat_functions_are_not_taken_for_found(Classifier):
    X, y = load_digits(return_X_y=True)
    X, y = X[np.isin(y, [0, 1, 4, 9])], y[np.isin(y, [0, 1, 4, 9])]
    known = np.unique(y, return_index=True)[1]
    partial = np.where(np.isin(np.arange(len(y)), known), y, -1)
    usual, exact = (Classifier(gamma=1e3, tol=tol).fit_predict(X, partial) for tol in (1e-3, 1e-5))
    # Measured by the size of the functions, and not of what they say, a third after one step.
    assert np.mean(usual == exact) > 0.9


@pytest.mark.parametrize("Classifier", [tvsvm.LapRLS, tvsvm.LapSVM])
def test_functions_that_can_say_nothing_are_found_at_once(Classifier):
    # Every class is at every place as often as any other: what is left is rounding.
    random = np.random.default_rng(9)
    n_classes, n_places = 6, 4
    X = np.repeat(random.normal(size=(n_places, 2)), 2 * n_classes, axis=0)
    y = np.tile(np.arange(n_classes), 2 * n_places)
    model = Classifier(graph=np.zeros((len(X), len(X)))).fit(X, y)
    assert model.converged_
    assert model.n_iter_ < 50
