"""TVRLS and TVSVM: the printed iteration in dense algebra, stopping, class sizes, answers."""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs
from test_losses import LOSSES, convex_loss, make_problem, solve
from threadpoolctl import threadpool_limits

from tvsvm import TVRLS, TVSVM, CheegerRLS, CheegerSVM, knn_graph
from tvsvm.kernel import RKHS
from tvsvm.methods import total_variation as module
from tvsvm.methods.candidates import Progress, lowest
from tvsvm.methods.ratio import partition_energy
from tvsvm.methods.total_variation import TVStrengths, total_variation
from tvsvm.problem import Problem
from tvsvm.results import Status
from tvsvm.solvers import graph_tv_prox, simplex_projection

LAM, GAMMA, R = 0.2, 0.05, 0.3
STRENGTHS = TVStrengths(LAM, GAMMA, R)
each_loss = pytest.mark.parametrize("loss", LOSSES)
each_method = pytest.mark.parametrize("Classifier", [TVRLS, TVSVM])


@pytest.fixture(autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


def recorded_iterates(monkeypatch, module):
    """Every iterate of the next runs, with the inner prox solved to rounding."""
    iterates = []

    class Recorder(Progress):
        def add(self, solution, energy, change):
            iterates.append(solution)
            super().add(solution, energy, change)
            return False

    monkeypatch.setattr(module, "Progress", Recorder)
    for name in ("PROX_TOL", "PROX_TOL_MOST"):
        monkeypatch.setattr(module, name, 1e-14, raising=False)
    return iterates


def prox(graph, Z, strength):
    return graph_tv_prox(graph, Z, strength, tol=1e-14).solution


def best_function(problem, loss, E, *, lam, r, offset=0.0):
    """f + b of min loss(f + b) + λ/2 |w|² + r/2 |f - E|², f = offset + Φw, by a convex solver."""
    w = cp.Variable((problem.space.rank, problem.n_columns))
    b = cp.Variable(problem.n_columns)
    f = offset + problem.space.features @ w
    price = 0 if loss is None else convex_loss(loss, f[problem.rows], b, problem)
    hinge = loss is not None and hasattr(loss, "mu")
    solve(
        price + lam / 2 * cp.sum_squares(w) + r / 2 * cp.sum_squares(f - E),
        [] if hinge else [b == 0],
    )
    return f.value, b.value if hinge else np.zeros(problem.n_columns)


def best_labelled(problem, loss, e, r):
    """h of min loss(h + b) + r/2 |h - e|² on the labelled rows, by a convex solver."""
    h, b = cp.Variable(e.shape), cp.Variable(problem.n_columns)
    fixed = [] if hasattr(loss, "mu") else [b == 0]
    solve(convex_loss(loss, h, b, problem) + r / 2 * cp.sum_squares(h - e), fixed)
    return h.value


def centred(g):
    g = g - g.mean(axis=0)
    return np.sqrt(len(g)) * g / np.linalg.norm(g, axis=0)


# ---- the iteration -----------------------------------------------------------------------------


@each_loss
def test_two_classes_iterate_the_printed_formulas(loss, monkeypatch):
    rng = np.random.default_rng(3)
    problem = make_problem(rng, columns=1)
    start = rng.normal(size=(problem.space.n_points, 1))
    found = recorded_iterates(monkeypatch, module)
    total_variation(problem, loss, [start], strengths=STRENGTHS, paper=True, max_iter=3)

    K = problem.space.apply(np.eye(len(start)))
    g = centred(start)
    l1, l2 = np.zeros_like(g), np.zeros_like(g)
    for iterate in found:
        f = K @ np.linalg.solve(LAM * np.eye(len(g)) + R * K, R * g - l1)
        h = g - l2 / R
        h[problem.rows] = best_labelled(problem, loss, h[problem.rows], R)
        g = centred(prox(problem.graph, (f + h + (l1 + l2) / R) / 2, GAMMA / (2 * R)))
        l1, l2 = l1 + R * (f - g), l2 + R * (h - g)
        np.testing.assert_allclose(iterate, g, atol=1e-5)
    assert len(found) == 3


@each_loss
def test_many_classes_iterate_the_printed_formulas(loss, monkeypatch):
    rng = np.random.default_rng(4)
    problem = make_problem(rng, columns=3)
    start = simplex_projection(rng.normal(size=(problem.space.n_points, 3)))
    found = recorded_iterates(monkeypatch, module)
    total_variation(problem, loss, [start], strengths=STRENGTHS, paper=True, max_iter=3)

    g = start
    for iterate in found:
        f, _ = best_function(problem, loss, g, lam=LAM, r=R, offset=1 / 3)
        g = simplex_projection(prox(problem.graph, f, GAMMA / R))
        g = np.sqrt(len(g) / 3) * g / np.linalg.norm(g, axis=0)
        np.testing.assert_allclose(iterate, simplex_projection(g), atol=1e-5)
    assert len(found) == 3


@each_loss
def test_energy_of_two_classes_is_the_definition(loss):
    """The last energy is that of the only iterate: loss + kernel norm + tie + total variation."""
    rng = np.random.default_rng(5)
    problem = make_problem(rng, columns=1)
    start = rng.normal(size=(problem.space.n_points, 1))
    result = total_variation(problem, loss, [start], strengths=STRENGTHS, paper=True, max_iter=1)
    g = result.solution
    w = cp.Variable((problem.space.rank, 1))
    tied = solve(
        LAM / 2 * cp.sum_squares(w) + R / 2 * cp.sum_squares(problem.space.features @ w - g)
    )
    variation = GAMMA * problem.graph.total_variation(g).sum()
    h = centred(start)[problem.rows]
    _, intercept = loss.prox(h, problem, R)
    price = loss.value(g[problem.rows], intercept, problem)
    assert result.energy_path[0] == pytest.approx(price + tied + variation, rel=1e-6)


@each_loss
def test_prox_that_flattens_everything_leaves_the_start(loss):
    rng = np.random.default_rng(6)
    problem = make_problem(rng, columns=1)
    start = rng.normal(size=(problem.space.n_points, 1))
    result = total_variation(problem, loss, [start], strengths=replace(STRENGTHS, gamma=1e6))
    assert np.linalg.norm(result.solution) == pytest.approx(np.sqrt(len(start)))


@each_loss
@pytest.mark.parametrize("columns", [1, 3])
def test_of_several_starts_the_lowest_energy_is_kept(loss, columns):
    rng = np.random.default_rng(7)
    problem = make_problem(rng, columns=columns)
    starts = [rng.normal(size=(problem.space.n_points, columns)) for _ in range(3)]
    options = {"strengths": STRENGTHS, "paper": columns == 1}
    single = [total_variation(problem, loss, [s], **options) for s in starts]
    together = total_variation(problem, loss, starts, **options)

    def energy(result):
        if columns == 1:
            return result.energy_path.min()
        return partition_energy(problem, problem.graph, result.solution)

    best = min(single, key=energy)
    np.testing.assert_array_equal(together.solution, best.solution)
    if columns == 1:
        assert np.abs(together.solution.mean()) < 1e-12
        assert np.linalg.norm(together.solution) == pytest.approx(np.sqrt(len(starts[0])))
    else:
        np.testing.assert_allclose(together.solution.sum(axis=1), 1.0)
        assert together.solution.min() >= 0


@each_loss
def test_two_classes_go_on_from_their_last_cut(loss, monkeypatch):
    monkeypatch.setattr(module, "BAD_CUT", np.inf)  # as the printed iteration, however bad,
    monkeypatch.setattr(module.TwoSided, "suits", lambda *args: False)  # and by the same names
    rng = np.random.default_rng(9)
    gains = []
    for _ in range(5):
        problem = make_problem(rng, columns=1, n_points=40)
        start = rng.normal(size=(40, 1))
        once, on = (
            total_variation(problem, loss, [start], strengths=STRENGTHS, paper=paper)
            for paper in (True, False)
        )
        gains.append(once.energy_path.min() - on.energy_path.min())
    assert min(gains) >= 0
    assert max(gains) > 0


@each_loss
def test_many_classes_end_where_nothing_moves(loss):
    X, truth = make_blobs(60, centers=[[0, 0], [5, 0], [0, 5]], random_state=0)
    graph, rows = knn_graph(X).scaled(mean_degree=1.0), np.arange(12)
    space, targets = RKHS(X, unit_diagonal=True), np.eye(3)[truth]
    problem = Problem(space, rows, targets[rows], np.ones(12), graph)
    result = total_variation(problem, loss, [targets], strengths=TVStrengths(0.1, 1.2, 1.0))
    assert result.converged
    assert 0 < result.certificate <= 1e-3
    assert result.n_iter > 2
    np.testing.assert_array_equal(result.solution.argmax(axis=1), truth)


@each_loss
def test_many_classes_end_before_a_class_collapses(loss):
    rng = np.random.default_rng(10)
    problem = make_problem(rng, columns=3, n_points=40)
    start = rng.normal(size=(40, 3))
    result = total_variation(problem, loss, [start], strengths=TVStrengths(LAM, 100.0, 1.0))
    assert result.converged
    assert result.certificate == 0
    partition = np.eye(3)[result.partition]
    limit = module.COLLAPSE * partition_energy(problem, problem.graph, partition)
    assert partition_energy(problem, problem.graph, result.solution) <= limit


@each_loss
def test_energy_of_many_classes_is_the_definition(loss):
    rng = np.random.default_rng(11)
    problem = make_problem(rng, columns=3)
    start = rng.normal(size=(problem.space.n_points, 3))
    result = total_variation(problem, loss, [start], strengths=STRENGTHS, max_iter=1)
    g = np.eye(3)[result.partition]  # the first energy is that of the partition
    f, b = best_function(problem, loss, g, lam=LAM, r=R, offset=1 / 3)
    w = np.linalg.lstsq(problem.space.features, f - 1 / 3, rcond=None)[0]
    expected = loss.value(f[problem.rows], b, problem) + LAM / 2 * np.sum(w**2)
    expected += R / 2 * np.sum((f - g) ** 2) + GAMMA * problem.graph.total_variation(g).sum()
    assert result.energy_path[0] == pytest.approx(expected, rel=1e-6)


# ---- progress ----------------------------------------------------------------------------------


def test_progress_stops_when_nothing_moves():
    progress = Progress(tol=0.1)
    assert not progress.add(np.zeros(1), 3.0, 1.0)
    assert progress.add(np.ones(1), 2.0, 0.1)
    end = progress.candidate()
    assert (end.n_iter, end.status, end.energy, end.change) == (2, Status.CONVERGED, 2.0, 0.1)


def test_progress_stops_when_the_energy_stays_and_returns_the_best():
    progress = Progress(tol=0.01, patience=4)
    energies = [5.0, 3.0, *[4.0] * 4]
    stops = [progress.add(np.array([e]), e, 1.0) for e in energies]
    assert stops == [False] * (len(energies) - 1) + [True]
    end = progress.candidate()
    assert end.solution == end.energy == 3.0
    assert end.status is Status.CONVERGED
    assert list(end.energies) == energies


def test_progress_takes_small_gains_but_does_not_wait_for_them():
    progress = Progress(tol=0.1)
    energies = [1.0 - 1e-4 * k for k in range(8 + 1)]
    stops = [progress.add(np.array([e]), e, 1.0) for e in energies]
    assert stops.index(True) == 8
    assert progress.candidate().energy == energies[-1]


def test_progress_does_not_count_the_start():
    progress = Progress(1e-3)
    progress.add(np.zeros(2), 2.0, np.inf)
    progress.add(np.ones(2), 1.0, 0.5)
    assert progress.candidate().n_iter == 1
    assert progress.candidate().energies == [2.0, 1.0]


def test_progress_cut_short_has_not_converged():
    progress = Progress(tol=0.1)
    progress.add(np.zeros(1), 1.0, 0.5)
    assert progress.candidate().status is Status.MAX_ITER


def test_new_points_get_the_nearest_function_of_the_space():
    rng = np.random.default_rng(8)
    problem = make_problem(rng, columns=3)
    progress = Progress(tol=0.1)
    progress.add(simplex_projection(rng.normal(size=(problem.space.n_points, 3))), 1.0, 0.0)
    result = lowest(problem, [progress.candidate()], 0.7)
    values = problem.space.values(result.coordinates) + result.intercept
    expected, _ = best_function(problem, None, result.solution, lam=0.7, r=1.0, offset=1 / 3)
    np.testing.assert_allclose(values, expected, atol=1e-6)


# ---- class sizes -------------------------------------------------------------------------------


each_balanced_method = pytest.mark.parametrize("Classifier", [TVRLS, TVSVM, CheegerRLS, CheegerSVM])


@pytest.fixture(scope="module")
def unequal_blobs():
    centers = [[-4, 0], [4, 0], [0, 6]]
    X, truth = make_blobs([40, 25, 10], centers=centers, random_state=0)
    y = np.where(np.isin(np.arange(75), [np.argmax(truth == k) for k in range(3)]), truth, -1)
    return X, truth, y


@each_balanced_method
@pytest.mark.parametrize(
    "class_prior",
    [
        None,
        "uniform",
        [0.5, 0.3, 0.2],
        [0.1, 0.1, 0.8],
        [2, 1, 1],
        [[0.2, 0.2, 0.1], [0.6, 0.6, 0.6]],
    ],
)
def test_class_prior_right_or_wrong_leaves_clear_classes_alone(
    Classifier, class_prior, unequal_blobs
):
    X, truth, y = unequal_blobs
    model = Classifier(class_prior=class_prior, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.transduction_, truth)
    np.testing.assert_allclose(model.class_prior_, np.bincount(truth) / len(truth))


@each_balanced_method
@pytest.mark.parametrize(
    "class_prior",
    [
        [0.5, 0.5],
        [0.5, -0.1, 0.6],
        [0.5, 0.5, 0.0],
        [0.5, np.nan, 0.5],
        [0.4, np.inf, 0.3],
        [[0.5, 0.5, 0.5], [0.2, 0.2, 0.2]],
        [[[0.5, 0.5, 0.5]]],
        "large",
        ["a", "b", "c"],
    ],
)
def test_class_prior_that_is_none_is_refused(Classifier, class_prior, unequal_blobs):
    X, _, y = unequal_blobs
    with pytest.raises(ValueError, match="class_prior"):
        Classifier(class_prior=class_prior).fit(X, y)


def one_to_three(seed, first=3, second=8):
    """Two digits, three times as many of the first, two labels each."""
    X, digits = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    many, few = (np.flatnonzero(digits == k) for k in (first, second))
    rows = np.r_[many, rng.choice(few, len(many) // 3, replace=False)]
    truth = (digits[rows] == second).astype(int)
    y = np.full(len(rows), -1)
    for k in (0, 1):
        y[rng.choice(np.flatnonzero(truth == k), 2, replace=False)] = k
    return X[rows], truth, y


@each_balanced_method
def test_class_prior_of_two_classes_helps_if_right_and_hurts_little_if_wrong(Classifier):
    priors = {"none": None, "right": [0.75, 0.25], "even": "uniform", "wrong": [0.25, 0.75]}
    errors = {name: [] for name in priors}
    for seed in (1, 2):  # of the first four draws, those where a prior matters, right or wrong
        X, truth, y = one_to_three(seed)
        graph = knn_graph(X, random_state=0)
        for name, prior in priors.items():
            model = Classifier(class_prior=prior, graph=graph, random_state=0).fit(X, y)
            errors[name].append(np.mean(model.transduction_ != truth))
    none, right, even, wrong = map(np.mean, errors.values())
    assert right <= none
    assert max(even, wrong) <= none + 0.01
    if Classifier is TVSVM:
        assert right < none - 0.03


@each_balanced_method
def test_bounds_that_hold_change_nothing(Classifier):
    X, _, y = one_to_three(0)
    free, bound = (
        Classifier(class_prior=prior, random_state=0).fit(X, y)
        for prior in (None, [[0.05, 0.05], [0.95, 0.95]])
    )
    np.testing.assert_array_equal(bound.decision_function(X), free.decision_function(X))


@each_balanced_method
def test_class_prior_of_two_classes_has_two_entries(Classifier):
    X, _, y = one_to_three(0)
    with pytest.raises(ValueError, match="shares of 2 classes"):
        Classifier(class_prior=[0.2, 0.3, 0.5]).fit(X, y)
