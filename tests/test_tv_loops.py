"""Loops of the graph-TV prox by themselves: flow, sweeps, gaps."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from references import grid, random_graph, tv_problem_with_known_solution

from tvsvm.solvers import _tv_edges, _tv_flow, _tv_sweeps, graph_tv_prox
from tvsvm.solvers._helper import Helper
from tvsvm.solvers._tv_edges import Edges
from tvsvm.solvers._tv_sweeps import HALF_REGISTER


def everything(graph):
    """All nodes, where their edges begin and where these end."""
    return np.arange(graph.n_nodes), graph.indptr[:-1], graph.indptr[1:]


def solved_by_flow(graph, bound, g, p, x, *, allowed=0.0, limit=10**9, helper=None):
    """Whether flow comes to its end; g and p are changed."""
    layout = _tv_flow.arcs(graph.indptr, graph.heads)
    helper = helper or Helper(False)
    return _tv_flow.solve_column(*layout, bound, np.ones_like(g), g, p, x, allowed, limit, helper)


@pytest.mark.parametrize("seed", range(5))
def test_flow_alone_solves_from_any_feasible_dual(seed):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 30, density=0.2, spread=2.0)
    Z, strength, G, _ = tv_problem_with_known_solution(rng, graph)
    bound = strength * graph.edge_weights
    p = rng.uniform(-1, 1, bound.size) * bound
    g = (Z - graph.difference_adjoint(p))[graph.order]
    x = np.empty_like(g)
    assert solved_by_flow(graph, bound, g, p, x)
    np.testing.assert_allclose(x, G[graph.order], atol=1e-9)
    np.testing.assert_allclose(g, x, atol=1e-9)
    assert np.all(np.abs(p) <= bound)


@pytest.mark.parametrize("allowed", [1e-2, 1e-4])
def test_flow_leaves_no_more_gap_than_allowed(allowed):
    rng = np.random.default_rng(0)
    graph = grid(20)
    z = np.where(np.arange(400) < 150, 1.0, -1.0) + rng.standard_normal(400)
    bound, p, x = graph.edge_weights * 2.0, np.zeros(graph.n_edges), np.empty(400)
    g = z[graph.order]
    assert solved_by_flow(graph, bound, g, p, x, allowed=allowed)
    gap, _ = _tv_sweeps.gap_and_value(
        *everything(graph), graph.heads, graph.edge_weights, np.array([2.0]),
        z[graph.order][:, None], g[:, None], p[:, None], x[:, None], 0, 1,
    )  # fmt: skip
    assert 0 < gap[0] <= 400 * allowed


@pytest.mark.parametrize("limit", [500, 3000])
def test_flow_out_of_work_leaves_a_feasible_dual(limit):
    rng = np.random.default_rng(0)
    graph = grid(12)
    z = rng.standard_normal(144)
    bound, p, x = graph.edge_weights * 3.0, np.zeros(graph.n_edges), np.empty(144)
    g = z[graph.order]
    assert not solved_by_flow(graph, bound, g, p, x, limit=limit)
    assert np.all(np.abs(p) <= bound)
    np.testing.assert_allclose(g, (z - graph.difference_adjoint(p))[graph.order], atol=1e-12)


def test_flow_has_the_same_digits_with_a_second_thread():
    z = np.where(np.arange(400) < 150, 1.0, -1.0) + np.random.default_rng(0).standard_normal(400)
    graph = grid(20)

    def solved(helper):
        g, p, x = z[graph.order], np.zeros(graph.n_edges), np.empty(400)
        assert solved_by_flow(graph, graph.edge_weights / 4, g, p, x, helper=helper)
        return g, p, x

    alone = solved(Helper(False))
    assert len(np.unique(alone[2])) > 2
    results = []
    with Helper(True) as helper:
        results.append(solved(helper))
        begun = threading.Event()
        helper.give(lambda: (begun.set(), results.append(solved(helper))))
        assert begun.wait(10)  # else its owner might do it
        helper.finish()
    for result in results:
        for one, other in zip(alone, result, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("scattered", [None, True])
@pytest.mark.parametrize("within", [None, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("halves", range(1, 10))
def test_vector_sweep_equals_scalar_sweep(dtype, halves, within, scattered):
    rng = np.random.default_rng(0)
    graph = random_graph(rng, 40, density=0.2)
    c = halves * HALF_REGISTER // np.dtype(dtype).itemsize
    Z = rng.standard_normal((40, c)).astype(dtype)
    strength = rng.random(c).astype(dtype)
    weights = graph.edge_weights.astype(dtype)
    edges = *everything(graph), graph.heads
    g, p = Z.copy(), np.zeros((graph.n_edges, c), dtype)
    for _ in range(3):
        _tv_sweeps.sweep_blocks(*edges, weights, strength, g, p, within, scattered)
    for k in range(c):
        g1, p1 = Z[:, [k]].copy(), np.zeros((graph.n_edges, 1), dtype)
        for _ in range(3):
            _tv_sweeps.sweep_column(*edges, weights, strength[[k]], g1, p1, within, None)
        np.testing.assert_array_equal(g[:, k], g1[:, 0])
        np.testing.assert_array_equal(p[:, k], p1[:, 0])


@pytest.mark.parametrize("columns", [1, 12])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_last_sweep_of_a_run_ends_within_the_bounds(dtype, columns):
    """Weights below the rounding of g: sweeps that do not hold duals within lead beyond."""
    rng = np.random.default_rng(0)
    graph = random_graph(rng, 40, density=0.2)
    weights = (graph.edge_weights * 0.3 * np.finfo(dtype).eps).astype(dtype)
    edges = Edges.of(graph, weights, Helper(False))
    strength = np.ones(columns, dtype)
    Z = rng.standard_normal((40, columns)).astype(dtype)
    g, p = Z.copy(), np.zeros((graph.n_edges, columns), dtype)
    loop = _tv_sweeps.sweep_column if columns == 1 else _tv_sweeps.sweep_blocks
    for _ in range(20):
        loop(*everything(graph), edges.heads, weights, strength, g, p, None, None)
    assert (np.abs(p) > weights[:, None]).any()
    edges.sweep(strength, g, p, 20)
    assert (np.abs(p) <= weights[:, None]).all()
    np.testing.assert_allclose(g, Z, atol=100 * np.finfo(dtype).eps)


def test_rounding_of_short_duals_joins_no_pieces():
    """Bounds are so small that a dual at its bound is off it by much more than SLACK allows."""
    rng = np.random.default_rng(0)
    graph = random_graph(rng, 300, density=0.02, spread=1.0)
    z = np.where(np.arange(300) < 100, 1.0, -1.0) + 0.05 * rng.standard_normal(300)
    exact = graph_tv_prox(graph, z, 1e-3, tol=1e-14)
    p, g = exact.dual[:, None], exact.solution[graph.order][:, None]
    with Helper(False) as helper:
        edges = Edges.of(graph, graph.edge_weights.copy(), helper)

        def pieces(dual):
            x = np.empty_like(g)
            count = edges.polish(np.array([1e-3]), g, dual, np.array([0]), x)
            return int(count[0]), x

        count, x = pieces(p)
        np.testing.assert_allclose(x, g, atol=1e-9)
        short = (p - np.sign(p) * np.finfo(np.float32).eps).astype(np.float32)
        assert 10 < count == pieces(short)[0] < 300


@pytest.mark.parametrize("p_type", [np.float64, np.float32])
@pytest.mark.parametrize("c", [1, 3, 4, 7, 12])
def test_vector_loops_equal_their_formulas(p_type, c):
    rng = np.random.default_rng(0)
    graph = random_graph(rng, 30, density=0.2)
    z, g, x = rng.standard_normal((3, 30, c))
    p = rng.standard_normal((graph.n_edges, c)).astype(p_type)
    strength, w = rng.random(c), graph.edge_weights
    tails = np.repeat(np.arange(30), np.diff(graph.indptr))
    steps = x[tails] - x[graph.heads]
    terms = w[:, None] * strength * np.abs(steps)
    true_value = terms.sum(axis=0) + 0.5 * ((x - z) ** 2).sum(axis=0)
    true_gap = (terms - p * steps).sum(axis=0) + 0.5 * ((x - g) ** 2).sum(axis=0)
    for first, last in ((0, c), (c - 1, c), (c // 2, c - c // 4)):
        gap, value = _tv_sweeps.gap_and_value(
            *everything(graph), graph.heads, w, strength, z, g, p, x, first, last
        )
        np.testing.assert_allclose(value[first:last], true_value[first:last])
        np.testing.assert_allclose(gap[first:last], true_gap[first:last])
    primal = z.copy()
    _tv_sweeps.push_dual(*everything(graph), graph.heads, p, primal)
    np.add.at(primal, tails, p)
    np.subtract.at(primal, graph.heads, p)
    np.testing.assert_allclose(primal, z, atol=1e-12)


@pytest.mark.parametrize("source_type", [np.float64, np.float32])
def test_columns_are_put_where_they_belong(source_type):
    rng = np.random.default_rng(0)
    source = rng.standard_normal((9, 5)).astype(source_type)
    target, expected = np.zeros((2, 9, 7))
    into, columns = np.array([6, 0, 3]), np.array([1, 4, 2])
    expected[:, into] = source[:, columns]
    _tv_sweeps.put_columns(target, into, source, columns)
    np.testing.assert_array_equal(target, expected)


@given(seed=st.integers(0, 10**6), n=st.integers(1, 30), density=st.floats(0.0, 0.6))
def test_stages_take_every_edge_once_and_their_halves_share_no_node(seed, n, density):
    graph = random_graph(np.random.default_rng(seed), n, density=density)
    edges = Edges.of(graph, graph.edge_weights.copy(), Helper(False))
    taken = []
    for stage in edges.stages:
        touched = []
        for nodes, begins, ends in stage:
            ranges = [range(b, e) for b, e in zip(begins, ends, strict=True)]
            taken += [e for range_ in ranges for e in range_]
            tails = {int(i) for i, range_ in zip(nodes, ranges, strict=True) if range_}
            touched.append(tails | {int(edges.heads[e]) for range_ in ranges for e in range_})
        assert not touched[0] & touched[1]
    assert sorted(taken) == list(range(graph.n_edges))
    between, late = (int(np.sum(span.ends - span.begins)) for span in edges.stages[1])
    assert late <= 2 * between + np.diff(graph.indptr).max(initial=0)


def test_both_threads_have_about_as_much_work():
    """An edge between the halves counts twice: the nodes at its ends are not at hand."""
    graph = grid(60)
    edges = Edges.of(graph, graph.edge_weights.copy(), Helper(False))
    (first, early), (between, late) = (
        [int(np.sum(span.ends - span.begins)) for span in stage] for stage in edges.stages
    )
    assert abs(first + 2 * between - early - late) < 0.1 * graph.n_edges
    assert 0 < 2 * between <= late <= 2 * between + 4


@pytest.mark.parametrize("times", [1, 4])
@pytest.mark.parametrize("patience", [1, 10**6])
@pytest.mark.parametrize("columns", [1, 4, 12])
def test_two_threads_sweep_as_one_does(monkeypatch, columns, patience, times):
    monkeypatch.setattr(_tv_edges, "PATIENCE", patience)
    graph = grid(20)
    Z = np.random.default_rng(0).standard_normal((400, columns))
    ends = []
    for present in (False, True):
        g, p = Z.copy(), np.zeros((graph.n_edges, columns))
        with Helper(present) as helper:
            edges = Edges.of(graph, graph.edge_weights.copy(), helper)
            edges.sweep(np.full(columns, 0.3), g, p, times)
        ends.append((g, p))
    np.testing.assert_array_equal(ends[0][0], ends[1][0])
    np.testing.assert_array_equal(ends[0][1], ends[1][1])


def test_after_waiting_for_long_one_thread_goes_on_alone(monkeypatch):
    monkeypatch.setattr(_tv_edges, "LONG", -1.0)
    graph = grid(20)
    with Helper(True) as helper:
        edges = Edges.of(graph, graph.edge_weights.copy(), helper)
        assert helper.free
        edges.sweep(np.ones(4), np.zeros((400, 4)), np.zeros((graph.n_edges, 4)), 5)
        assert not helper.free


@pytest.mark.parametrize("begun", [False, True])
def test_a_thread_that_is_interrupted_leaves_nobody_waiting(monkeypatch, begun):
    def interrupted(work):
        def mine(*arguments):
            if threading.current_thread() is threading.main_thread():
                raise KeyboardInterrupt
            return work(*arguments)

        return mine

    def share(work, mine, others):
        return shared(work if begun else interrupted(work), mine, others)

    if begun:
        monkeypatch.setattr(_tv_edges, "sweep_half", interrupted(_tv_sweeps.sweep_half))
    graph = grid(20)
    with Helper(True) as helper:  # which at the end waits for the other one
        shared = helper.share
        monkeypatch.setattr(helper, "share", share)
        edges = Edges.of(graph, graph.edge_weights.copy(), helper)
        with pytest.raises(KeyboardInterrupt):
            edges.sweep(np.ones(4), np.zeros((400, 4)), np.zeros((graph.n_edges, 4)), 5)
