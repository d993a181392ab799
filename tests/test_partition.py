from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from references import random_graph
from scipy.sparse import csr_array

from tvsvm import TVRLS
from tvsvm.graph import Graph, knn_graph
from tvsvm.methods.ratio import ratio_energy
from tvsvm.solvers import _partition_kernels as kernels
from tvsvm.solvers import partition, ratio_partition
from tvsvm.solvers._partition_levels import Level, partition_ratio
from tvsvm.solvers._partition_proposals import _sharpened, resettled

cases = settings(deadline=None, derandomize=True, max_examples=15)
seeds = st.integers(0, 2**31 - 1)


def level_of(graph):
    W = csr_array(graph.affinity)
    return Level(
        W.indptr.astype(np.uint64),
        W.indices.astype(np.uint32),
        W.data.astype(np.float32),
        np.ones(graph.n_nodes),
    )


def make(seed, n, c):
    """A graph, a partition in which every class occurs, and one fixed node for each class."""
    rng = np.random.default_rng(seed)
    # Weights as the search holds them.
    graph = Graph(random_graph(rng, n).affinity.astype(np.float32).astype(np.float64))
    part = np.concatenate([np.arange(c), rng.integers(0, c, n - c)])
    fixed = np.arange(n) < c
    return graph, part, fixed


@cases
@given(seed=seeds, c=st.sampled_from([2, 3, 5]))
def test_energy_is_the_ratio_of_the_indicators(seed, c):
    graph, part, _ = make(seed, 20, c)
    expected = ratio_energy(graph, np.eye(c)[part])
    assert partition_ratio(level_of(graph), part, c) == pytest.approx(expected, rel=1e-12)


@cases
@given(seed=seeds, c=st.sampled_from([2, 3, 5]))
def test_a_move_changes_the_energy_by_what_is_said(seed, c):
    graph, part, _ = make(seed, 20, c)
    level = level_of(graph)
    cut, size = kernels.statistics(*level, part, c)
    for i in range(20):
        b, change, cut_a, cut_b = kernels.best_move(i, *level, part, cut, size, 20.0, np.zeros(c))
        energies = []
        for k in range(c):
            moved = part.copy()
            moved[i] = k
            energies.append(partition_ratio(level, moved, c))
        if b >= 0:
            assert energies[b] - energies[part[i]] == pytest.approx(change, abs=1e-12)
            moved = part.copy()
            moved[i] = b
            after, _ = kernels.statistics(*level, moved, c)
            assert (cut_a, cut_b) == pytest.approx((after[part[i]], after[b]))
            near = {part[j] for j in np.flatnonzero(graph.affinity[[i]].toarray())} - {part[i]}
            assert energies[b] <= min(energies[k] for k in near) + 1e-12


@cases
@given(seed=seeds, c=st.sampled_from([2, 3]))
def test_never_rises_keeps_fixed_nodes_and_finds_the_best_of_few(seed, c):
    graph, part, fixed = make(seed, 8, c)
    level = level_of(graph)
    found, energies = ratio_partition(csr_array(graph.affinity), part, fixed)
    assert (np.diff(energies) <= 0).all()
    assert energies[0] == partition_ratio(level, part, c)
    assert energies[-1] == pytest.approx(partition_ratio(level, found, c))
    np.testing.assert_array_equal(found[fixed], part[fixed])
    assert set(found) == set(range(c))
    free = [
        partition_ratio(level, np.concatenate([np.arange(c), rest]), c)
        for rest in product(range(c), repeat=8 - c)
    ]
    assert min(free) - 1e-12 <= energies[-1] <= np.median(free) + 1e-12


def cliques(n_groups, size, between=0.02):
    """Groups of nodes, each linked within, and weakly to the next group."""
    W = np.kron(np.eye(n_groups), np.ones((size, size)))
    for k in range(n_groups - 1):
        W[k * size, (k + 1) * size] = W[(k + 1) * size, k * size] = between
    return Graph(W - np.diag(np.diag(W)))


@pytest.mark.parametrize("c", [2, 3, 6])
def test_groups_are_found_from_noise(c):
    graph = cliques(c, 30)
    truth = np.repeat(np.arange(c), 30)
    fixed = np.arange(c * 30) % 30 == 7
    rng = np.random.default_rng(0)
    start = np.where(
        fixed, truth, np.where(rng.random(truth.size) < 0.6, truth, rng.permuted(truth))
    )
    found, _ = ratio_partition(csr_array(graph.affinity), start, fixed)
    np.testing.assert_array_equal(found, truth)


def test_classes_that_took_each_others_place_are_exchanged():
    """Each class has all of the other's group, where no single node gains by moving."""
    graph = cliques(2, 60)
    truth = np.repeat([0, 1], 60)
    fixed = np.arange(120) % 60 == 7
    start = np.where(fixed, truth, 1 - truth)
    found, energies = ratio_partition(csr_array(graph.affinity), start, fixed)
    np.testing.assert_array_equal(found, truth)
    assert energies[-1] < energies[0]


def test_twice_the_same():
    graph, part, fixed = make(3, 400, 4)
    W = csr_array(graph.affinity)
    before = part.copy()
    first, second = (ratio_partition(W, part, fixed)[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(part, before)


@pytest.mark.parametrize("exponent", [-900, 900])
def test_the_unit_of_the_weights_does_not_matter(exponent):
    graph, part, fixed = make(3, 200, 4)
    W = csr_array(graph.affinity)
    found, energies = ratio_partition(W, part, fixed)
    other, others = ratio_partition(W * 2.0**exponent, part, fixed)
    np.testing.assert_array_equal(other, found)
    np.testing.assert_array_equal(others, energies * 2.0**exponent)
    # A limit above the energy that moves of single nodes lead to, and one below.
    for limit in (2 * energies[0], energies[-1] / 2):
        options = {"split": False, "max_cycles": 1}
        found, energies = ratio_partition(W, part, fixed, limit=limit, **options)
        scaled = limit * 2.0**exponent
        other, others = ratio_partition(W * 2.0**exponent, part, fixed, limit=scaled, **options)
        np.testing.assert_array_equal(other, found)
        np.testing.assert_array_equal(others, energies * 2.0**exponent)


def test_cycles_one_by_one_end_alike(monkeypatch):
    graph, part, fixed = make(3, 200, 4)
    W = csr_array(graph.affinity)
    at_once = ratio_partition(W, part, fixed)
    monkeypatch.setattr(partition, "ONE_BY_ONE", 0)
    for one, both in zip(ratio_partition(W, part, fixed), at_once, strict=True):
        np.testing.assert_array_equal(one, both)


def test_coarse_graph_keeps_cuts_and_sizes():
    graph, part, _ = make(5, 100, 3)
    level = level_of(graph)
    coarse, count = kernels.match(*level, part, np.arange(100), 10.0)
    sizes = np.bincount(coarse, level.sizes, count)
    smaller = Level(*kernels.contract(*level[:3], coarse, count), sizes)
    assert count < 100
    assert np.bincount(coarse).max() == 2
    coarse_part = np.empty(count, dtype=np.int64)
    coarse_part[coarse] = part
    np.testing.assert_array_equal(coarse_part[coarse], part)  # only nodes of one class are merged
    assert partition_ratio(smaller, coarse_part, 3) == pytest.approx(
        partition_ratio(level, part, 3)
    )


def test_graph_without_edges():
    part = np.array([0, 1, 0, 1])
    fixed = np.array([True, True, False, False])
    found, energies = ratio_partition(csr_array((4, 4)), part, fixed)
    np.testing.assert_array_equal(found, part)
    np.testing.assert_array_equal(energies, 0.0)


def three_clusters(rng, size):
    """Clusters A, B and C of one size, B and C being linked more than A is to either."""
    X = np.concatenate([rng.normal(centre, 0.5, (size, 2)) for centre in ((0, 0), (9, 0), (9, 3))])
    return knn_graph(X, random_state=0), np.repeat(np.arange(3), size)


@pytest.mark.parametrize("seed", range(3))
def test_a_class_comes_back_to_its_fixed_node(seed):
    rng = np.random.default_rng(seed)
    graph, truth = three_clusters(rng, 120)
    fixed = np.isin(np.arange(360), [5, 125, 245])
    start = np.where(truth == 2, 1, truth)  # class 1 covers two clusters, class 2 half of another
    start[60:120] = 2
    start[fixed] = truth[fixed]
    found, energies = ratio_partition(csr_array(graph.affinity), start, fixed)
    assert (found == truth).mean() > 0.97
    assert energies[-1] < energies[0]


@pytest.mark.parametrize("typical", [True, False])
def test_a_class_without_a_place_gets_one(typical):
    """Class 1 covers two clusters and class 2 half of another one; cycles mend it here as well.

    Class 2's walks end in its own cluster, or, the label being untypical, all over the graph: then
    the largest classes are tried, of which class 1 is one.
    """
    graph, truth = three_clusters(np.random.default_rng(0), 120)
    level = level_of(graph)
    part = np.where(truth == 2, 1, truth).astype(np.int32)
    part[60:120] = 2
    home = np.eye(3)[truth] / 360
    home[:, 2] = np.where(truth == 2, 1 / 360, 0.0) if typical else 1 / 1080
    ends = np.stack([np.bincount(part, column, 3) for column in home.T])
    trials = list(resettled(level, part, home, ends, [2]))
    before = partition_ratio(level, part, 3)
    best, classes = min(trials, key=lambda trial: partition_ratio(level, trial[0], 3))
    assert partition_ratio(level, best, 3) < before
    assert np.mean(best == truth) > 0.97
    assert classes == {0, 1, 2}


def test_classes_without_a_place_are_those_with_twice_as_much_elsewhere():
    ends = np.array([[0.5, 0.5, 0.0], [0.7, 0.2, 0.1], [0.0, 0.9, 0.1]])
    assert partition.homeless(ends) == [2, 1]


@cases
@given(seed=seeds)
def test_who_is_loyal_enough_does_not_move(seed):
    graph, part, fixed = make(seed, 30, 3)
    home = np.eye(3)[part] / 30
    found, _ = ratio_partition(csr_array(graph.affinity), part, fixed, home=home, loyalty=1e9)
    np.testing.assert_array_equal(found, part)


def test_weights_of_very_different_size_come_to_an_end():
    rng = np.random.RandomState(33)
    n, m = 40, int(rng.randint(3, 14))
    group = np.arange(n) // m
    W = np.where(group[:, None] == group, rng.rand(n, n), 0)
    W += (rng.rand(n, n) < 0.05) * 10.0 ** -rng.randint(14, 17)
    W += W.T
    np.fill_diagonal(W, 0)
    known = rng.permutation(n)[:3]
    part = rng.randint(0, 3, n)
    part[known] = np.arange(3)
    _, energies = ratio_partition(csr_array(W), part, np.isin(np.arange(n), known))
    assert np.all(np.diff(energies) <= 0)


def test_a_star_is_cut_the_same_way_in_every_run():
    W = np.zeros((100, 100))
    W[0, 1:] = W[1:, 0] = 1.0
    y = np.full(100, -1)
    y[:2] = 0, 1
    first, second = (TVRLS(graph=W, random_state=0).fit(np.eye(100), y) for _ in range(2))
    np.testing.assert_array_equal(first.transduction_, second.transduction_)


def test_without_fixed_nodes_two_classes_unite_and_a_third_one_divides():
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(3), 60)
    X = np.array([[0, 0], [6, 0], [3, 5]])[cluster] + rng.normal(0, 1, (180, 2))
    W = csr_array(knn_graph(X, random_state=0).affinity)
    halves = (X[:, 1] > 0).astype(int)
    part = np.where(cluster == 0, halves, 2)  # one cluster is two classes, two are one
    found, energies = ratio_partition(W, part, np.zeros(180, dtype=bool))
    _, energy = ratio_partition(W, cluster, np.zeros(180, dtype=bool))
    assert energies[-1] == pytest.approx(energy[-1])
    pairs = np.unique(np.stack([found, cluster]), axis=1, return_counts=True)[1]
    assert np.sort(pairs)[-3:].sum() > 170
    assert np.all(np.diff(energies) <= 0)


def test_no_edges_at_all():
    y = np.full(40, -1)
    y[:3] = 0, 1, 2
    model = TVRLS(graph=csr_array((40, 40))).fit(np.random.RandomState(0).randn(40, 2), y)
    assert np.isfinite(model.label_distributions_).all()
    np.testing.assert_array_equal(model.transduction_[:3], [0, 1, 2])


def test_a_class_of_isolated_rows_next_to_a_ring():
    ring = np.arange(12, 60)
    W = csr_array((np.ones(48), (ring, np.roll(ring, 1))), shape=(60, 60))
    y = np.full(60, -1)
    y[:12], y[[15, 16]], y[[40, 41]] = 0, 1, 2
    model = TVRLS(graph=W + W.T).fit(np.random.RandomState(0).randn(60, 2), y)
    np.testing.assert_array_equal(model.transduction_[y >= 0], y[y >= 0])
    assert set(model.transduction_[12:]) == {1, 2}


def test_a_cut_through_a_class_is_sharpened():
    # Two groups in one class; the cut to start from takes a quarter of each to the wrong side.
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 40)
    X = rng.standard_normal((120, 2)) + 5.0 * truth[:, None] * [1, 0]
    level = level_of(knn_graph(X, n_neighbors=6, random_state=0))
    part = np.minimum(truth, 1).astype(np.int32)
    stray = np.r_[np.arange(40, 50), np.arange(80, 90)]
    end = np.setxor1d(np.flatnonzero(truth == 2), stray)
    found = _sharpened(level, part, 1, end, 3)
    assert set(truth[found]) == {2}
    assert found.size >= 38


@pytest.mark.parametrize("weight", [0.0, 1e-37, 1e37])
def test_a_cut_that_cannot_be_sharpened_stays(weight):
    W = np.zeros((6, 6))
    W[[0, 1, 3, 4], [1, 2, 4, 5]] = weight
    level = level_of(Graph(csr_array(W + W.T)))
    end = np.array([0, 1])
    part = np.zeros(6, dtype=np.int32)
    found = _sharpened(level, part, 0, end, 2)
    assert 0 < found.size < 6


@pytest.mark.parametrize(
    ("split", "expected"), [({1}, {1}), (True, {0, 1, 2, 3}), ((), set()), (False, set())]
)
def test_only_the_classes_named_are_split(split, expected, monkeypatch):
    groups = []

    def propose(level, part, fixed, group, c):
        groups.append(group)
        return iter(())

    monkeypatch.setattr(partition, "given_away", propose)
    monkeypatch.setattr(partition, "exchanged", propose)
    graph, part, fixed = make(0, 60, 4)
    ratio_partition(csr_array(graph.affinity), part, fixed, split=split, max_cycles=1)
    assert {group[0] for group in groups if len(group) == 1} == expected
    assert all(set(group) & expected for group in groups)
