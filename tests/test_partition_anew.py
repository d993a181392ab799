"""A partition sought from nothing: rough ones, what they have in common, and when it is trusted."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from references import random_graph
from scipy.optimize import linear_sum_assignment
from scipy.sparse import block_diag, csr_array
from sklearn.datasets import make_blobs

from tvsvm import AutoTV
from tvsvm.graph import Graph, knn_graph
from tvsvm.methods import auto_candidates as auto
from tvsvm.solvers import _partition_anew as anew
from tvsvm.solvers import _partition_kernels as kernels
from tvsvm.solvers._partition_levels import finest_level, partition_ratio
from tvsvm.solvers.partition import clear_partition

rough = anew._rough
cases = settings(deadline=None, derandomize=True, max_examples=25)
seeds = st.integers(0, 2**31 - 1)


def clusters(c, size=150, seed=0, spread=1.0):
    """Clusters in eight dimensions, rows in any order, and the graph of their neighbours."""
    rng = np.random.default_rng(seed)
    centers = 12 * rng.standard_normal((c, 8))
    X, truth = make_blobs(c * size, centers=centers, cluster_std=spread, random_state=seed)
    return X, truth, knn_graph(X, random_state=0, bridges=True)


def agree(part, truth):
    """Share of the rows in the same class, whatever the classes are called."""
    both = np.zeros((truth.max() + 1,) * 2)
    np.add.at(both, (truth, part), 1)
    return both[linear_sum_assignment(-both)].sum() / truth.size


@cases
@given(seed=seeds, n=st.integers(2, 14), c=st.integers(1, 6))
def test_nodes_are_united_pair_by_pair_the_best_first(seed, n, c):
    c = min(c, n)
    rng = np.random.default_rng(seed)
    level, _ = finest_level(csr_array(random_graph(rng, n).affinity))
    sizes = rng.integers(1, 9, n).astype(float)
    W = np.zeros((n, n))
    for i in range(n):
        for e in range(int(level.indptr[i]), int(level.indptr[i + 1])):
            W[i, level.indices[e]] += level.weights[e]
    groups, size = [{i} for i in range(n)], list(sizes)
    while len(groups) > c:
        rate = [
            (W[np.ix_(sorted(a), sorted(b))].sum() / (size[i] * size[j]) ** 0.75, -i, -j)
            for i, a in enumerate(groups)
            for j, b in enumerate(groups[:i])
        ]
        best, i, j = max(rate)
        if best == 0:  # what nothing links: the two smallest
            i, j = sorted(np.argsort(size, kind="stable")[:2])[::-1]
        else:
            i, j = -i, -j
        groups[j] |= groups.pop(i)
        size[j] += size.pop(i)
    part = kernels.agglomerated(*level[:3], sizes, c)
    assert set(part) == set(range(c))
    found = {frozenset(np.flatnonzero(part == k).tolist()) for k in range(c)}
    assert found == {frozenset(group) for group in groups}


@cases
@given(seed=seeds, c=st.sampled_from([2, 3, 5]))
def test_climbing_never_ends_higher_and_keeps_what_is_fixed(seed, c):
    rng = np.random.default_rng(seed)
    level, _ = finest_level(csr_array(random_graph(rng, 25).affinity))
    part = np.concatenate([np.arange(c), rng.integers(0, c, 25 - c)]).astype(np.int32)
    fixed, start = np.arange(25) < c, part.copy()
    kernels.climb(*level, part, fixed, c, 20)
    before, after = (partition_ratio(level, p, c) for p in (start, part))
    assert after <= before * (1 + 1e-9)
    np.testing.assert_array_equal(part[fixed], start[fixed])
    one_by_one = start.copy()
    kernels.descend(*level, one_by_one, fixed, c, 1)
    if before > 0 and (one_by_one != start).any():  # whoever goes down one step goes up there first
        assert after < before


@pytest.mark.parametrize("c", [3, 6, 12])
def test_clusters_are_found_without_a_start(c):
    _, truth, graph = clusters(c)
    part = clear_partition(csr_array(graph.affinity), c)
    assert agree(part, truth) == 1.0
    assert set(part) == set(range(c))
    again = clear_partition(csr_array(graph.affinity), c)
    np.testing.assert_array_equal(again, part)


def test_order_of_rows_and_unit_of_weights_do_not_matter():
    _, truth, graph = clusters(5)
    order = np.random.default_rng(0).permutation(truth.size)
    W = csr_array(graph.affinity)
    moved = clear_partition(W[order][:, order] * 2.0**-600, 5)
    assert agree(moved, truth[order]) == 1.0


@pytest.mark.parametrize(("n_columns", "n_ends"), [(2, 4 * anew.ENDS), (12, 2)])
def test_no_partition_where_searches_end_at_different_ones(n_columns, n_ends, monkeypatch):
    """A single cloud: it is given up as soon as two rough partitions have little in common."""
    seeds_tried = []
    monkeypatch.setattr(anew, "_rough", lambda *args: seeds_tried.append(args[2]) or rough(*args))
    X = np.random.default_rng(0).standard_normal((1500, n_columns))
    assert clear_partition(csr_array(knn_graph(X, random_state=0).affinity), 9) is None
    assert sorted(seeds_tried) == list(range(n_ends))


def test_the_same_for_any_number_of_threads(monkeypatch):
    _, _, graph = clusters(4, spread=3.0)
    W = csr_array(graph.affinity)
    monkeypatch.setattr(anew, "map_batches", map)
    expected = clear_partition(W, 4)
    assert expected is not None
    for n_threads in (2, 3):
        with ThreadPoolExecutor(n_threads) as pool:
            monkeypatch.setattr(anew, "map_batches", pool.map)
            np.testing.assert_array_equal(clear_partition(W, 4), expected)


def test_degenerate_graphs_have_no_clear_partition_or_the_obvious_one():
    _, truth, graph = clusters(3)
    W = csr_array(graph.affinity)
    n = truth.size
    assert clear_partition(csr_array((n, n)), 3) is None  # no edges
    assert clear_partition(W, 1) is None
    assert clear_partition(W, anew.MOST_CLASSES + 1) is None
    assert clear_partition(W[:100][:, :100], 3) is None  # too few rows to be worth it
    with_strays = csr_array(block_diag([W, csr_array((2000, 2000))]))
    assert clear_partition(with_strays, 3) is None  # next to nothing hangs together
    apart = csr_array(block_diag([W, W]))  # components, which need not be cut
    part = clear_partition(apart, 2)
    assert set(part) == {0, 1}
    assert partition_ratio(finest_level(apart)[0], part, 2) == 0.0


def test_rows_without_edges_among_many_classes_take_no_time():
    _, _, graph = clusters(20, size=60)
    strays = csr_array(block_diag([graph.affinity, csr_array((700, 700))]))
    calls = []
    original = kernels.agglomerated

    def counted(*args):
        calls.append(args[3].size)
        return original(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(anew, "agglomerated", counted)
        assert clear_partition(strays, 20) is None
    assert max(calls, default=0) <= anew.MOST_PIECES * 20


def labelled(truth, per_class=1):
    y = np.full(truth.size, -1)
    for k in np.unique(truth):
        y[np.flatnonzero(truth == k)[:per_class]] = k
    return y


def test_a_clear_partition_needs_no_first_guess(monkeypatch):
    X, truth, _ = clusters(5)
    monkeypatch.setattr(auto, "poisson", lambda *args: pytest.fail("there was a first guess"))
    model = AutoTV(random_state=0).fit(X, labelled(truth))
    assert model.report_["method"] == "balanced"
    np.testing.assert_array_equal(model.transduction_, truth)


def test_labels_that_two_parts_share_are_not_placed(monkeypatch):
    """Two classes have their labels in one cluster: which part is which class is not clear."""
    X, truth, _ = clusters(5)
    y = labelled(truth)
    y[np.flatnonzero(truth == 1)[0]] = -1
    y[np.flatnonzero(truth == 0)[1]] = 1
    guesses = []
    first = auto.poisson

    def noted(*args, **options):
        guesses.append(args)
        return first(*args, **options)

    monkeypatch.setattr(auto, "poisson", noted)
    model = AutoTV(random_state=0).fit(X, y)
    assert guesses
    np.testing.assert_array_equal(model.transduction_[y >= 0], y[y >= 0])


def test_uneven_classes_are_left_to_the_search_with_labels(monkeypatch):
    rng = np.random.default_rng(0)
    sizes = (1000, 60, 60)
    X = np.concatenate(
        [rng.normal(center, 1.0, (n, 6)) for center, n in zip((0, 20, 40), sizes, strict=True)]
    )
    truth = np.repeat(np.arange(3), sizes)
    guesses = []
    first = auto.poisson
    monkeypatch.setattr(auto, "poisson", lambda *a, **o: guesses.append(a) or first(*a, **o))
    model = AutoTV(random_state=0).fit(X, labelled(truth))
    assert guesses
    assert np.mean(model.transduction_ == truth) > 0.99


def test_a_refit_with_other_labels_is_the_cold_fit(monkeypatch):
    X, truth, _ = clusters(5, spread=3.5)
    y = labelled(truth)
    warm = AutoTV(random_state=0, warm_start=True).fit(X, y)
    monkeypatch.setattr(
        auto, "clear_cut", lambda *args: pytest.fail("what is known was sought again")
    )
    wrong = np.flatnonzero((warm.transduction_ != truth) & (y < 0))
    assert wrong.size
    y[wrong[0]] = truth[wrong[0]]
    warm.fit(X, y)
    monkeypatch.undo()
    cold = AutoTV(random_state=0).fit(X, y)
    np.testing.assert_array_equal(warm.transduction_, cold.transduction_)
    np.testing.assert_allclose(warm.label_distributions_, cold.label_distributions_, atol=1e-6)


def test_more_clusters_than_classes():
    """All rows get a class, and labels keep theirs."""
    X, truth, _ = clusters(6)
    y = labelled(truth % 3)
    model = AutoTV(random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.transduction_[y >= 0], y[y >= 0])
    assert set(model.transduction_) == {0, 1, 2}
    assert np.isfinite(model.label_distributions_).all()


def test_a_given_graph_decides():
    _, truth, graph = clusters(4)
    model = AutoTV(graph=graph, kernel="precomputed", random_state=0)
    model.fit(np.eye(truth.size), labelled(truth))
    np.testing.assert_array_equal(model.transduction_, truth)
    assert isinstance(model.graph_, Graph)
