"""The balanced ratio: its parts against their definitions, and that nothing ever raises it."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from references import random_graph
from test_losses import make_problem

from tvsvm.graph import Graph, knn_graph
from tvsvm.kernel import RKHS
from tvsvm.losses import Squared
from tvsvm.methods.partition import PartitionSearch, less_even
from tvsvm.methods.ratio import (
    balance,
    best_level,
    one_hot,
    partition_energy,
    ratio_energy,
    refine,
    rounded,
    shares_of,
)
from tvsvm.problem import Problem
from tvsvm.start import poisson

pytestmark = pytest.mark.usefixtures("single_thread")
cases = settings(deadline=None, derandomize=True, max_examples=40)
seeds = st.integers(0, 10_000)
columns = st.sampled_from([1, 2, 3, 5])
NO_SPACE = SimpleNamespace(begin=lambda: None)  # walks from labels need none


def functions(rng, n_rows, n_columns, *, ties):
    """Random values, or few levels so that many rows lie at the quantile."""
    shape = (n_rows, n_columns)
    return rng.integers(0, 3, shape).astype(float) if ties else rng.normal(size=shape)


def balance_by_search(f, lam):
    """B(f) = min_m Σ_i |f_i - m|_λ, tried at every value of f."""
    return min(np.sum(np.where(f > m, lam * (f - m), m - f)) for m in f)


@cases
@given(seed=seeds, c=columns, ties=st.booleans())
def test_balance_is_convex_with_a_subgradient_of_zero_sum(seed, c, ties):
    rng = np.random.default_rng(seed)
    F, G = (functions(rng, int(rng.integers(1, 15)), c, ties=ties) for _ in range(2))
    G = np.resize(G, F.shape)
    B, V = balance(F)
    np.testing.assert_allclose(B, [balance_by_search(f, max(c - 1, 1)) for f in F.T], atol=1e-12)
    np.testing.assert_allclose(V.sum(axis=0), 0.0, atol=1e-10)
    assert V.min() >= -1 - 1e-12
    assert V.max() <= max(c - 1, 1) + 1e-12
    assert (balance(G)[0] >= B + (V * (G - F)).sum(axis=0) - 1e-10).all()


@cases
@given(seed=seeds, n=st.integers(1, 20))
def test_balance_of_one_function_is_its_distance_from_the_median(seed, n):
    f = np.random.default_rng(seed).normal(size=(n, 1))
    assert balance(f)[0][0] == pytest.approx(np.abs(f - np.median(f)).sum(), abs=1e-12)


def test_balance_of_an_indicator_is_largest_at_its_share():
    """λ = c - 1 makes a class of N/c rows the balanced one."""
    sizes = np.arange(1, 12)
    indicators = [np.arange(12)[:, None] < [size, 12, 12, 12] for size in sizes]
    B = [balance(indicator.astype(float))[0][0] for indicator in indicators]
    assert sizes[np.argmax(B)] == 3


@cases
@given(seed=seeds, c=columns)
def test_ratio_has_no_scale_and_no_origin(seed, c):
    rng = np.random.default_rng(seed)
    graph, F = random_graph(rng, 12), rng.normal(size=(12, c))
    moved = F * rng.uniform(0.1, 10, c) + rng.normal(size=c)
    assert ratio_energy(graph, moved) == pytest.approx(ratio_energy(graph, F), rel=1e-9)


def test_ratio_of_a_constant_is_infinite():
    graph = random_graph(np.random.default_rng(0), 6)
    assert ratio_energy(graph, np.ones((6, 1))) == np.inf
    assert ratio_energy(graph, np.column_stack([np.arange(6.0), np.ones(6)])) == np.inf


def test_ratio_of_a_cut():
    """Two edges of weight 3 and 1 between two rows and four: TV 4, B = 2."""
    W = np.zeros((6, 6))
    W[0, 1], W[0, 2], W[1, 3], W[4, 5] = 7.0, 3.0, 1.0, 7.0
    cut = (np.arange(6) < 2)[:, None].astype(float)
    assert ratio_energy(Graph(W + W.T), cut) == pytest.approx(4 / 2)


def test_partition_keeps_the_labels():
    problem = make_problem(np.random.default_rng(0), columns=3)
    F = np.random.default_rng(1).normal(size=(problem.space.n_points, 3))
    partition = rounded(problem, F)
    np.testing.assert_array_equal(partition[problem.rows], problem.targets)
    others = np.delete(np.arange(len(F)), problem.rows)
    np.testing.assert_array_equal(partition[others], np.eye(3)[F.argmax(axis=1)][others])
    np.testing.assert_array_equal(one_hot(F), np.eye(3)[F.argmax(axis=1)])
    assert partition_energy(problem, problem.graph, F) == ratio_energy(problem.graph, partition)
    np.testing.assert_allclose(shares_of(partition), partition.sum(axis=0) / len(F))


@cases
@given(seed=seeds, ties=st.booleans())
def test_best_level_is_the_best_of_all_cuts_that_keep_the_labels(seed, ties):
    rng = np.random.default_rng(seed)
    problem = make_problem(rng, columns=1)
    f = functions(rng, problem.space.n_points, 1, ties=ties) - ties
    f[problem.rows] = 5 * problem.targets

    guess = rng.normal(size=f.shape)

    def ratio(t):
        return ratio_energy(problem.graph, 1.0 * (f > t))

    def disagreement(t):
        return np.mean((f > t) != (guess > 0))

    levels = np.unique(f)[:-1]
    closest = min(disagreement(t) for t in levels)

    def cost(t):
        return ratio(t) * (1 + disagreement(t) - closest)

    found = best_level(problem, problem.graph, f, guess)
    assert ((f[problem.rows] > found) == (problem.targets > 0)).all()
    kept = [t for t in levels if ((f[problem.rows] > t) == (problem.targets > 0)).all()]
    assert cost(found) == pytest.approx(min(cost(t) for t in kept), abs=1e-12)
    assert min(ratio(t) for t in levels) <= ratio_energy(problem.graph, f) + 1e-12  # co-area
    mirrored = best_level(replace(problem, targets=-problem.targets), problem.graph, -f, -guess)
    assert cost(-mirrored) == pytest.approx(cost(found), abs=1e-12)


def test_best_level_follows_the_guess_where_the_ratio_is_indifferent():
    """A row that hangs on both sides alike goes where the first guess has it."""
    W = np.zeros((9, 9))
    W[:4, :4] = W[5:, 5:] = 1.0
    W[3, 4] = W[4, 3] = W[4, 5] = W[5, 4] = 0.1
    problem = make_problem(np.random.default_rng(0), columns=1, n_points=9)
    problem = replace(problem, rows=np.array([0, 8]), targets=np.array([[-1.0], [1.0]]))
    f = np.repeat([-1.0, 0.0, 1.0], [4, 1, 4])[:, None]
    for side in (-1.0, 1.0):
        guess = f + side * (f == 0)
        level = best_level(problem, Graph(W), f, guess)
        assert (f[4, 0] > level) == (side > 0)


@cases
@given(seed=seeds, c=st.sampled_from([2, 3, 4]))
def test_refine_never_raises_the_energy_and_keeps_the_labels(seed, c):
    rng = np.random.default_rng(seed)
    problem = make_problem(rng, columns=c, n_points=20)
    step = Squared(3.0).clamped_step(problem, lam=0.1, r=0.2, offset=1 / c)
    start = rng.normal(size=(20, c))
    best, energies, _ = refine(problem, problem.graph, start, step, r=0.2)

    def energy(partition):
        """The ratio, and λ/2 |e|² + r/2 |e - F|² at its minimum, over rN."""
        W, e, _ = step(partition)
        away = 0.1 / 2 * np.sum(W**2) + 0.2 / 2 * np.sum((e - partition) ** 2)
        return ratio_energy(problem.graph, partition) + away / (0.2 * 20)

    assert energies[0] == pytest.approx(energy(rounded(problem, start)), rel=1e-9)
    assert energies[-1] == pytest.approx(energy(best), rel=1e-9)
    assert (np.diff(energies) < 0).all()
    np.testing.assert_array_equal(best[problem.rows], problem.targets)
    np.testing.assert_array_equal(best, one_hot(best))


class NoKernel:
    """A step of a space that holds every function at no price."""

    energy = 0.0

    def values(self, E):
        return E, None


def test_refine_finds_two_cliques():
    """A row on the wrong side is brought back, and then nothing more is gained."""
    W = np.kron(np.eye(2), np.ones((8, 8)))
    W[0, 8] = W[8, 0] = 0.1
    space = make_problem(np.random.default_rng(0), columns=2, n_points=16).space
    rows = np.array([3, 12])
    problem = Problem(space, rows, np.eye(2), np.ones(2), Graph(W).scaled(mean_degree=1.0))
    truth = np.eye(2)[np.repeat([0, 1], 8)]
    start = truth.copy()
    start[[1, 2, 9]] = start[[1, 2, 9], ::-1]
    best, energies, ended = refine(problem, problem.graph, start, NoKernel(), r=1.0)
    np.testing.assert_array_equal(best, truth)
    assert ended
    assert len(energies) > 1


@pytest.mark.parametrize("swapped", [False, True])
def test_parts_get_the_names_of_the_labels_around_them(swapped):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (80, 2)), rng.normal(8, 1, (80, 2))])
    graph = knn_graph(X, random_state=0).scaled(mean_degree=1.0)
    truth = np.repeat([0, 1], 80)
    space = RKHS(X, unit_diagonal=True, random_state=0)
    problem = Problem(space, np.array([0, 80]), np.eye(2), np.ones(2), graph)
    guess = 1 - truth if swapped else truth
    partition, energies = PartitionSearch(problem, graph).search(np.eye(2)[guess])
    np.testing.assert_array_equal(partition.argmax(axis=1), truth)
    assert np.all(np.diff(energies) <= 0)


def test_a_partition_is_less_even_than_another():
    equal, unequal = np.full(3, 1 / 3), np.array([10, 1, 1]) / 12
    assert less_even(unequal, equal)
    assert not less_even(equal, unequal)
    assert not less_even(equal, equal)


def test_of_two_classes_one_must_be_next_to_nothing():
    equal, small, nothing = (np.array([share, 1 - share]) for share in (0.5, 0.15, 0.01))
    assert not less_even(small, equal)
    assert less_even(nothing, equal)
    assert not less_even(nothing, nothing)


def test_labels_in_a_foreign_cluster_do_not_keep_their_class_there():
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0], [5, 0], [0, 5], [5, 5]])
    truth = np.repeat(np.arange(4), 80)
    X = centres[truth] + rng.normal(0, 1, (320, 2))
    # Class 3 is known only by a row in the midst of cluster 0: its name may go either way, but
    # every cluster must be one class.
    middle = np.argsort(np.linalg.norm(X - centres[0], axis=1))[5]
    rows = np.array([10, 90, 170, middle])
    graph = knn_graph(X, random_state=0).scaled(mean_degree=1.0)
    space = RKHS(X, unit_diagonal=True, random_state=0)
    problem = Problem(space, rows, np.eye(4), np.ones(4), graph)
    partition, energies = PartitionSearch(problem, graph).search(poisson(problem, graph))
    most = [np.bincount(partition.argmax(axis=1)[truth == k], minlength=4) for k in range(4)]
    assert set(np.argmax(most, axis=1)) == {0, 1, 2, 3}
    assert np.max(most, axis=1).sum() > 300
    assert np.all(np.diff(energies) <= 0)


@pytest.mark.parametrize("n_labels", [3, 12])
def test_edges_of_labelled_rows_do_not_name_a_part(n_labels):
    rng = np.random.default_rng(0)
    W = np.triu(rng.uniform(0.1, 1, (30, 30)) * (rng.random((30, 30)) < 0.3), 1)
    W = W + W.T
    graph = Graph(W)
    rows, free = np.arange(n_labels), np.arange(n_labels, 30)
    targets = np.eye(3)[rows % 3]
    search = PartitionSearch(Problem(NO_SPACE, rows, targets, np.ones(n_labels), graph), graph)
    partition = rounded(search.problem, rng.random((30, 3)))
    expected = ratio_energy(Graph(W[np.ix_(free, free)]), partition[free]) * search.price(partition)
    assert search._among_the_rest(partition) == pytest.approx(expected)
    partition[free] = np.eye(3)[0]
    assert search._among_the_rest(partition) == np.inf


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_a_misplaced_hub_does_not_take_the_rows_of_its_class_along(n_classes):
    m = 40
    for seed in range(4):
        rng = np.random.default_rng(seed)
        W = np.zeros((n_classes * m, n_classes * m))
        for b in range(n_classes):
            block = slice(b * m, (b + 1) * m)
            W[block, block] = np.triu((rng.random((m, m)) < 0.25) * rng.uniform(0.5, 1, (m, m)), 1)
        W = W + W.T
        W[0, 1:m] = W[1:m, 0] = 1.0
        for row in (1, m):  # lightly linked
            light = np.flatnonzero(W[row])[2:]
            W[row, light] = W[light, row] = 0.0
        W[0, 1] = W[1, 0] = 0.0
        for b in range(n_classes):
            i, j = b * m + 5, (b + 1) % n_classes * m + 6
            W[i, j] = W[j, i] = 0.1
        graph = Graph(W).scaled(mean_degree=1.0)
        rows = np.array([0, 1, m, *(np.arange(2, n_classes) * m)])
        targets = np.eye(n_classes)[[0, 1, 0, *range(2, n_classes)]]
        problem = Problem(NO_SPACE, rows, targets, np.ones(len(rows)), graph)
        partition, _ = PartitionSearch(problem, graph).search(poisson(problem, graph))
        assert partition.sum(axis=0).min() >= m - 5
