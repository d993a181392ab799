"""The graph-TV prox: right answers, honest certificates, every method, degenerate input."""

import numpy as np
import pytest
from references import (
    grid,
    random_graph,
    tv_objective,
    tv_problem_with_known_solution,
    tv_prox_by_dual,
)
from scipy.optimize import minimize
from scipy.sparse import diags_array
from sklearn.datasets import make_moons

from tvsvm.graph import Graph, knn_graph
from tvsvm.results import Status
from tvsvm.solvers import _tv_rows, graph_tv_prox, total_variation

pytestmark = pytest.mark.usefixtures("single_thread")
METHODS = ["hybrid", "primal-dual"]
REACHABLE = {"hybrid": 1e-12, "primal-dual": 1e-5}  # the paper's O(1/n²) is slow at the end


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_general_optimiser(method, seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, int(rng.integers(2, 14)))
    Z = rng.standard_normal((graph.n_nodes, 3))
    strength = np.array([0.05, 0.5, 5.0])
    result = graph_tv_prox(graph, Z, strength, tol=REACHABLE[method], method=method)
    assert result.converged
    expected = [tv_prox_by_dual(graph, Z[:, k], strength[k]) for k in range(3)]
    distance = np.linalg.norm(result.solution - np.transpose(expected))
    assert distance <= np.sqrt(2 * result.gap) + 1e-5


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(6))
def test_recovers_solution_built_backwards(method, seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 25, density=0.3)
    Z, strength, G, _ = tv_problem_with_known_solution(rng, graph)
    result = graph_tv_prox(graph, Z, strength, tol=REACHABLE[method], method=method)
    assert result.converged
    true_excess = tv_objective(graph, result.solution, Z, strength) - tv_objective(
        graph, G, Z, strength
    )
    assert true_excess <= result.gap + 1e-12
    assert np.sum((result.solution - G) ** 2) <= 2 * result.gap + 1e-12


def test_flow_is_exact_where_sweeps_are_slow():
    rng = np.random.default_rng(0)
    graph = grid(30)
    Z = np.where(np.arange(900) % 30 < 15, 1.0, -1.0) + 0.5 * rng.standard_normal(900)
    result = graph_tv_prox(graph, Z, 5.0, tol=1e-12, max_iter=60)
    assert result.converged  # 60 sweeps alone do not come near, see the next line
    assert not graph_tv_prox(graph, Z, 5.0, tol=1e-12, max_iter=60, method="primal-dual").converged
    assert result.certificate < 1e-12


@pytest.mark.parametrize("strength", [0.05, 0.5, 5.0])
def test_dual_in_single_precision_is_feasible_with_a_true_gap(strength):
    rng = np.random.default_rng(0)
    graph = random_graph(rng, 200, density=0.05, spread=2.0)
    Z = np.pi + rng.standard_normal((200, 5))
    bound = strength * graph.edge_weights[:, None]
    result = graph_tv_prox(graph, Z, strength, tol=1e-5)
    assert result.converged
    dual = result.dual.astype(np.float64)
    assert np.all(np.abs(dual) <= bound)
    # The dual's lower bound of the objective, from the definition and in double precision.
    lower = 0.5 * np.sum(Z**2) - 0.5 * np.sum((Z - graph.difference_adjoint(dual)) ** 2)
    gap = tv_objective(graph, result.solution, Z, strength) - lower
    assert gap == pytest.approx(result.gap, rel=1e-6, abs=1e-10)
    again = graph_tv_prox(graph, Z, strength, tol=1e-5, dual=result.dual)
    assert again.n_iter == 0
    exact = graph_tv_prox(graph, Z, strength, tol=1e-12, dual=result.dual)
    assert np.sum((exact.solution - result.solution) ** 2) <= 2 * result.gap + 1e-12


def test_duals_far_larger_than_the_functions_are_ended_in_double_precision():
    """Mass travels along half a path: rounded to single precision the duals leave a large gap."""
    n = 500_000
    path = Graph(diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1], format="csr"))
    t = np.linspace(-1, 1, n)
    Z = np.column_stack([np.sign(t), t]) + 0.1 * np.random.default_rng(0).standard_normal((n, 2))
    tails, heads = path.edges.T
    exact = np.cumsum(Z - Z.mean(axis=0), axis=0)[np.minimum(tails, heads)]  # of the constant
    start = exact * np.where(tails < heads, 1, -1)[:, None]
    result = graph_tv_prox(path, Z, n, tol=1e-5, max_iter=100, dual=start)
    assert result.converged
    assert result.dual.dtype == np.float64


@pytest.mark.parametrize("unit", [1e-60, 1e60])
def test_dual_of_another_scale_than_single_precision_has(unit):
    rng = np.random.default_rng(0)
    graph = random_graph(rng, 50, density=0.1)
    Z = rng.standard_normal((50, 5))
    dual = graph_tv_prox(graph, unit * Z, 0.1 * unit).dual
    assert dual.dtype == np.float64
    usual = graph_tv_prox(graph, Z, 0.1)
    np.testing.assert_allclose(dual / unit, usual.dual, atol=0.02)
    assert np.all(np.abs(dual) <= 0.1 * unit * graph.edge_weights[:, None])
    assert graph_tv_prox(graph, unit * Z, 0.1 * unit, dual=dual).n_iter == 0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("with_fixed", [False, True])
def test_simplex_rows_against_general_optimiser(method, with_fixed):
    rng = np.random.default_rng(1)
    graph = random_graph(rng, 7, density=0.5)
    n, c = 7, 3
    Z = rng.uniform(-0.5, 1.0, (n, c))
    fixed = np.array([0, 3]) if with_fixed else None
    if with_fixed:
        Z[fixed] = np.eye(c)[[0, 2]]
    strength = np.array([0.1, 0.3, 0.2])
    result = graph_tv_prox(
        graph, Z, strength, simplex=True, fixed=fixed, tol=1e-9, method=method, max_iter=100_000
    )
    assert result.converged
    X = result.solution
    assert X.min() >= 0
    np.testing.assert_allclose(X.sum(axis=1), 1.0, atol=1e-12)
    if with_fixed:
        np.testing.assert_array_equal(X[fixed], Z[fixed])
    # Smooth reformulation: variables x and t ≥ |differences|.
    pairs = graph.edges
    m = len(pairs) * c

    def split(v):
        return v[: n * c].reshape(n, c), v[n * c :].reshape(-1, c)

    def objective(v):
        x, t = split(v)
        return 0.5 * np.sum((x - Z) ** 2) + np.sum(graph.edge_weights[:, None] * strength * t)

    def slack(v):
        x, t = split(v)
        steps = x[pairs[:, 0]] - x[pairs[:, 1]]
        return np.concatenate([(t - steps).ravel(), (t + steps).ravel()])

    constraints = [
        {"type": "ineq", "fun": slack},
        {"type": "eq", "fun": lambda v: split(v)[0].sum(axis=1) - 1.0},
    ]
    if with_fixed:
        constraints[1] = {
            "type": "eq",
            "fun": lambda v: np.concatenate(
                [
                    np.delete(split(v)[0].sum(axis=1) - 1.0, fixed),
                    (split(v)[0][fixed] - Z[fixed]).ravel(),
                ]
            ),
        }
    start = np.concatenate([np.full(n * c, 1 / c), np.ones(m)])
    found = minimize(
        objective,
        start,
        constraints=constraints,
        bounds=[(0, None)] * (n * c + m),
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert found.success
    ours = tv_objective(graph, X, Z, strength)
    assert ours == pytest.approx(found.fun, rel=1e-6)


def test_fixed_rows_without_simplex():
    path = Graph([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    # The middle goes to its own value, pulled by one neighbour at 0 and one at 10: forces cancel.
    result = graph_tv_prox(path, [0.0, 4.0, 10.0], 1.0, fixed=[0, 2], tol=1e-10)
    np.testing.assert_allclose(result.solution, [0, 4, 10], atol=1e-6)
    # Pulled by two neighbours at 0 with strength 1 each.
    result = graph_tv_prox(path, [0.0, 5.0, 0.0], 1.0, fixed=[True, False, True], tol=1e-10)
    np.testing.assert_allclose(result.solution, [0, 3, 0], atol=1e-6)


@pytest.mark.parametrize("strength", [3.0, 30.0])
def test_fixed_rows_where_sweeps_alone_are_slow(strength, monkeypatch):
    rng = np.random.default_rng(0)
    graph = grid(20)
    Z = rng.standard_normal((400, 2)) + np.repeat([-1.0, 1.0], 200)[:, None]
    fixed = rng.choice(400, 9, replace=False)
    Z[fixed] = rng.choice([-3.0, 3.0], (9, 2))
    result = graph_tv_prox(graph, Z, strength, fixed=fixed, tol=1e-6)
    assert result.converged
    np.testing.assert_array_equal(result.solution[fixed], Z[fixed])
    monkeypatch.setattr(_tv_rows, "FLOW_SWEEPS", np.inf)
    by_sweeps = graph_tv_prox(graph, Z, strength, fixed=fixed, tol=1e-6, max_iter=100_000)
    assert by_sweeps.n_iter > 3 * result.n_iter
    apart = np.linalg.norm(result.solution - by_sweeps.solution)
    assert apart <= np.sqrt(2 * result.gap) + np.sqrt(2 * by_sweeps.gap)


@pytest.mark.parametrize("strength", [300.0, 1e3, 1e4])
def test_fixed_rows_that_edges_pull_at_strongly_need_few_sweeps(strength):
    X, y = make_moons(500, noise=0.15, random_state=0)
    z = np.where(y, 1.0, -1.0) + np.random.default_rng(0).standard_normal(500)
    z[:2] = 3.0, -3.0
    graph = knn_graph(X).scaled(mean_degree=1.0)
    result = graph_tv_prox(graph, z, strength, fixed=[0, 1], tol=1e-6)
    assert result.converged
    assert result.n_iter <= 100
    np.testing.assert_array_equal(result.solution[:2], z[:2])


def test_warm_start_from_the_solution_needs_no_sweep():
    rng = np.random.default_rng(0)
    graph = grid(15)
    Z = rng.standard_normal((225, 5))
    cold = graph_tv_prox(graph, Z, 0.3, tol=1e-6)
    warm = graph_tv_prox(graph, Z, 0.3, tol=1e-6, dual=cold.dual)
    assert cold.n_iter > 0
    assert warm.n_iter == 0
    nearby = graph_tv_prox(graph, Z + 1e-3, 0.3, tol=1e-6, dual=cold.dual)
    assert nearby.n_iter < cold.n_iter


def test_warm_start_with_less_strength_is_clipped():
    graph = grid(8)
    Z = np.random.default_rng(0).standard_normal(64)
    strong = graph_tv_prox(graph, Z, 2.0, tol=1e-8)
    weak = graph_tv_prox(graph, Z, 0.1, tol=1e-8, dual=strong.dual)
    np.testing.assert_allclose(
        weak.solution, graph_tv_prox(graph, Z, 0.1, tol=1e-10).solution, atol=1e-3
    )
    assert np.all(np.abs(weak.dual) <= 0.1 * graph.edge_weights + 1e-15)


@pytest.mark.parametrize("strength", [0.05, 0.5, 20.0])
@pytest.mark.parametrize("options", [{}, {"simplex": True}, {"fixed": [0, 7]}, {"tol": 1e-8}])
def test_threads_give_the_same_digits(monkeypatch, options, strength):
    monkeypatch.setattr(total_variation, "WORTH_THREADS", 1)
    monkeypatch.setattr(total_variation, "a_core_is_free", lambda: True)
    graph = grid(20)
    Z = np.random.default_rng(0).standard_normal((400, 7))
    one = graph_tv_prox(graph, Z, strength, **options)
    assert one.converged
    for n_jobs in (2, 3, -1):
        more = graph_tv_prox(graph, Z, strength, n_jobs=n_jobs, **options)
        np.testing.assert_array_equal(more.solution, one.solution)
        np.testing.assert_array_equal(more.dual, one.dual)
        assert (more.gap, more.n_iter) == (one.gap, one.n_iter)


def test_float32_stays_float32_and_is_close():
    rng = np.random.default_rng(0)
    graph = grid(20)
    Z = rng.standard_normal((400, 6))
    double = graph_tv_prox(graph, Z, 0.3, tol=1e-5)
    single = graph_tv_prox(graph, Z.astype(np.float32), 0.3, tol=1e-5)
    assert single.solution.dtype == single.dual.dtype == np.float32
    assert single.converged
    np.testing.assert_allclose(single.solution, double.solution, atol=0.02)


@pytest.mark.parametrize("scale", [1e-150, 1e-12, 1e12, 1e150])
def test_scale_and_shift_equivariance(scale):
    rng = np.random.default_rng(0)
    graph = grid(6)
    Z = rng.standard_normal((36, 2))
    base = graph_tv_prox(graph, Z, 0.4, tol=1e-9)
    scaled = graph_tv_prox(graph, Z * scale, 0.4 * scale, tol=1e-9)
    np.testing.assert_allclose(scaled.solution / scale, base.solution, atol=1e-6)
    shifted = graph_tv_prox(graph, Z + 1e6, 0.4, tol=1e-9)
    np.testing.assert_allclose(shifted.solution - 1e6, base.solution, atol=1e-6)


def test_disconnected_isolated_and_edgeless_graphs():
    two_pairs = np.zeros((5, 5))
    two_pairs[0, 1] = two_pairs[1, 0] = two_pairs[2, 3] = two_pairs[3, 2] = 1.0
    z = np.array([0.0, 2.0, 10.0, 20.0, 7.0])
    result = graph_tv_prox(Graph(two_pairs), z, 100.0, tol=1e-12)
    np.testing.assert_allclose(result.solution, [1, 1, 15, 15, 7])
    edgeless = graph_tv_prox(Graph(np.zeros((3, 3))), [1.0, 2.0, 3.0], 5.0)
    np.testing.assert_array_equal(edgeless.solution, [1, 2, 3])
    alone = graph_tv_prox(Graph(np.zeros((1, 1))), [4.0])
    np.testing.assert_array_equal(alone.solution, [4])


@pytest.mark.parametrize("method", METHODS)
def test_constant_columns_and_zero_strength_are_returned_as_they_are(method):
    graph = grid(5)
    Z = np.column_stack([np.full(25, 3.25), np.arange(25.0)])
    result = graph_tv_prox(graph, Z, [1.0, 0.0], method=method)
    np.testing.assert_allclose(result.solution, Z, rtol=1e-14)
    assert result.converged
    assert result.gap == pytest.approx(0.0, abs=1e-20)


@pytest.mark.parametrize("simplex", [False, True])
def test_constant_columns_from_any_dual(simplex):
    graph = grid(5)
    dual = np.random.default_rng(0).standard_normal((graph.n_edges, 2))
    Z = np.full((25, 2), 0.5)
    result = graph_tv_prox(graph, Z, 1.0, dual=dual, simplex=simplex)
    assert result.converged
    np.testing.assert_allclose(result.solution, Z, atol=1e-6)


def test_huge_strength_gives_the_mean():
    graph = grid(5)
    Z = np.arange(25.0)
    for strength in (1e3, 1e300):
        np.testing.assert_allclose(graph_tv_prox(graph, Z, strength).solution, 12.0, atol=1e-9)


@pytest.mark.parametrize("tol", [1e-8, 1e-4])
@pytest.mark.parametrize("unit", [1.0, 1e-30, 1e30])
def test_weights_over_many_decades(tol, unit):
    rng = np.random.default_rng(3)
    graph = random_graph(rng, 40, density=0.2, spread=8.0)
    Z = rng.standard_normal((40, 3)) * [1e6, 1.0, 1e-3]
    result = graph_tv_prox(graph.scaled(mean_degree=unit), Z, 1.0 / unit, tol=tol)
    assert result.converged


def test_input_is_not_modified_and_may_be_read_only():
    graph = grid(5)
    Z = np.random.default_rng(0).standard_normal((25, 2))
    first = graph_tv_prox(graph, Z, 0.5)
    dual = first.dual.copy()
    for array in (Z, dual):
        array.flags.writeable = False
    again = graph_tv_prox(graph, Z, 0.5, dual=dual)
    np.testing.assert_allclose(again.solution, first.solution, atol=0.05)
    integers = graph_tv_prox(graph, np.arange(25), 1)
    assert integers.solution.dtype == np.float64


def test_hitting_the_limit_is_reported_with_a_true_gap():
    graph = grid(20)
    Z = np.random.default_rng(0).standard_normal(400)
    exact = graph_tv_prox(graph, Z, 0.5, tol=1e-13)
    short = graph_tv_prox(graph, Z, 0.5, tol=1e-13, max_iter=3, method="primal-dual")
    assert short.status is Status.MAX_ITER
    assert short.n_iter == 3
    excess = tv_objective(graph, short.solution[:, None], Z[:, None], 0.5) - tv_objective(
        graph, exact.solution[:, None], Z[:, None], 0.5
    )
    assert 0 < excess <= short.gap


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"Z": [1.0, 2.0]}, r"`Z` must have shape \(4,\)"),
        ({"Z": [1.0, 2.0, 3.0, np.nan]}, "`Z` must be finite"),
        ({"strength": -1.0}, "`strength` must be finite and not negative"),
        ({"strength": [1.0, 2.0]}, "one entry a column"),
        ({"tol": 0.0}, "`tol` must be positive"),
        ({"max_iter": 0}, "`max_iter` must be at least 1"),
        ({"method": "magic"}, "`method` must be one of"),
        ({"dual": np.zeros(7)}, "`dual` must have shape"),
        ({"fixed": [9]}, "`fixed` must hold node numbers"),
        ({"fixed": [True, False]}, "`fixed` as a mask must have shape"),
        ({"simplex": True, "fixed": [0], "Z": np.full((4, 2), 3.0)}, "must lie on the simplex"),
    ],
)
def test_bad_input_gets_one_clear_sentence(arguments, message):
    arguments = {"Z": np.arange(4.0), **arguments}
    with pytest.raises(ValueError, match=message):
        graph_tv_prox(grid(2), **arguments)


@pytest.mark.parametrize("simplex", [False, True])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f8", "g", "i4"])
def test_a_dual_of_any_type_ends_within_its_bounds(dtype, simplex):
    rng = np.random.default_rng(0)
    graph, Z = random_graph(rng, 40), rng.random((40, 4))
    given = graph_tv_prox(graph, Z, 0.05, tol=1e-12, simplex=simplex).dual.astype(dtype)
    for tol in (0.5, 1e-4):
        result = graph_tv_prox(graph, Z, 0.05, dual=given, tol=tol, simplex=simplex)
        assert result.converged
        assert result.gap >= 0
        assert np.all(np.abs(result.dual) <= 0.05 * graph.edge_weights[:, None])


@pytest.mark.parametrize(
    ("dtype", "scale"), [("f4", 1e-24), ("f4", 1e20), ("f4", 1e38), ("f8", 1e307)]
)
def test_a_gap_at_the_ends_of_the_scale(dtype, scale):
    rng = np.random.default_rng(0)
    graph, Z = random_graph(rng, 40), rng.uniform(-1, 1, (40, 2))
    plain = graph_tv_prox(graph, Z, 0.1, tol=1e-3)
    result = graph_tv_prox(graph, (scale * Z).astype(dtype), 0.1 * scale, tol=1e-3)
    assert result.converged
    assert result.certificate <= 1e-3
    assert result.gap > 0
    np.testing.assert_allclose(result.solution / scale, plain.solution, atol=0.05)
