import numpy as np
import pytest
from scipy.sparse import diags_array
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, make_blobs, make_gaussian_quantiles
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from tvsvm import AutoTV
from tvsvm.graph import Graph, knn_graph
from tvsvm.kernel import RKHS
from tvsvm.losses import Squared
from tvsvm.methods.auto import _from_the_cut, _short
from tvsvm.methods.judging import against_the_cut
from tvsvm.methods.partition import PartitionSearch
from tvsvm.methods.total_variation import TVStrengths, from_partition, many_classes
from tvsvm.problem import Problem


def partly(truth, per_class, seed=0):
    rng = np.random.default_rng(seed)
    y = np.full(len(truth), -1)
    for k in np.unique(truth):
        known = rng.choice(np.flatnonzero(truth == k), per_class, replace=False)
        y[known] = truth[known]
    return y


def all_of(problem):
    return np.ones(problem.rows.size, dtype=bool)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_clusters_are_cut(n_classes):
    X, truth = make_blobs(200, centers=n_classes, cluster_std=0.5, random_state=1)
    model = AutoTV(random_state=0).fit(X, partly(truth, 1))
    np.testing.assert_array_equal(model.transduction_, truth)
    np.testing.assert_array_equal(model.predict(X), truth)
    assert model.report_["method"] == "balanced"
    assert "clusters" in model.report_["reason"]
    assert model.report_["held_back"] == {}


def test_a_method_that_misses_clearly_fewer_labels_takes_the_place_of_the_favourite():
    """A graph that joins rows of different classes misleads the methods that trust it most."""
    X, truth = make_blobs(150, centers=3, cluster_std=1.0, random_state=3)
    rng = np.random.default_rng(0)
    W = np.triu((rng.random((150, 150)) < 0.1) & (truth[:, None] != truth), 1)
    model = AutoTV(graph=1.0 * (W + W.T), random_state=0).fit(X, partly(truth, 10))
    missed = model.report_["held_back"]
    assert missed[model.report_["method"]] == min(missed.values()) < max(missed.values())
    assert "30 labels held back" in model.report_["reason"]
    assert model.report_["method"] in ("kernel", "laplacian", "pairs")


def test_functions_that_have_a_say_are_added_up():
    """On the rows and for new ones, and the reports agree."""
    X, truth = make_blobs(150, centers=3, cluster_std=3.0, random_state=1)
    y = partly(truth, 4)
    model = AutoTV(random_state=0).fit(X, y)
    report = model.report_
    assert len(report["say"]) > 1
    assert sum(report["say"].values()) == pytest.approx(1.0)
    assert report["say"][report["method"]] == max(report["say"].values())
    assert set(report["say"]) <= set(report["held_back"]) | {"smooth"}
    assert model.agreement_ > 0.8
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X), model.classes_[model._values(X).argmax(axis=1)])


def test_labels_alone_decide_where_classes_lie_around_each_other():
    """No thin places anywhere: the graph tells nothing, and labels are many."""
    X, truth = make_gaussian_quantiles(n_samples=600, n_features=5, n_classes=3, random_state=0)
    y = partly(truth, 40)
    model = AutoTV(random_state=0).fit(X, y)
    hidden = y < 0
    error = np.mean(model.transduction_[hidden] != truth[hidden])
    alone = SVC().fit(X[~hidden], y[~hidden]).predict(X[hidden])
    assert model.report_["method"] == "pairs"
    assert error < np.mean(alone != truth[hidden]) + 0.05  # 0.2 more with RLS instead


@pytest.mark.parametrize(("few", "judged"), [(2, False), (3, True)])
def test_pairs_are_judged_only_if_every_class_is_in_every_fold(few, judged, monkeypatch):
    X, truth = make_blobs(120, centers=2, cluster_std=4.0, random_state=0)
    y = np.full(120, -1)
    for k, count in enumerate((12, few)):
        y[np.flatnonzero(truth == k)[:count]] = k
    seen = []
    monkeypatch.setattr(
        "tvsvm.methods.auto.held_back",
        lambda problem, methods, favourite, fair, few=0.0: seen.extend(methods) or ({}, 0),
    )
    AutoTV(random_state=0).fit(X, y)
    assert ("pairs" in seen) is judged


def test_digits_with_one_label_a_class():
    X, truth = load_digits(return_X_y=True)
    known = np.unique(truth, return_index=True)[1]
    y = np.full(len(truth), -1)
    y[known] = truth[known]
    model = AutoTV(random_state=0).fit(X, y)
    assert np.mean(model.transduction_ != truth) < 0.06
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(again.transduction_, model.transduction_)


def test_one_class_is_told():
    model = AutoTV().fit(np.arange(6.0)[:, None], ["a", None, None, "a", None, None])
    assert set(model.transduction_) == {"a"}
    assert model.report_["method"] == "constant"


@pytest.mark.parametrize("few", [1, 2, 5])
def test_a_class_with_few_labels_is_not_outvoted(few):
    # Labels held back are nearly all of one class, and a method that knows no other misses none.
    X, truth = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    y = np.full(len(truth), -1)
    for k, count in enumerate((100, few)):
        y[np.random.RandomState(0).permutation(np.flatnonzero(truth == k))[:count]] = k
    model = AutoTV(random_state=0).fit(X, y)
    assert np.mean(model.transduction_[y < 0] != truth[y < 0]) < 0.1


@pytest.mark.parametrize("seed", range(4))
def test_swapping_the_names_of_two_classes_swaps_the_answer(seed):
    rng = np.random.default_rng(seed)
    truth = np.repeat([0, 1], 60)
    X = rng.standard_normal((120, 4)) + 2 * truth[:, None] * [1, 0, 0, 0]
    y = np.where(rng.random(120) < 0.2, truth, -1)
    found = AutoTV(random_state=0).fit(X, y)
    swapped = AutoTV(random_state=0).fit(X, np.where(y < 0, -1, 1 - y))
    assert swapped.report_["method"] == found.report_["method"]
    np.testing.assert_array_equal(swapped.transduction_, 1 - found.transduction_)


def test_a_cut_between_clusters_yields_to_numbers_of_labels_that_contradict_it():
    # Digits 3 and 8 against all others: the shortest cut of their graph is somewhere else.
    X, digit = load_digits(return_X_y=True)
    truth = np.isin(digit, (3, 8)).astype(int)
    errors, reasons = [], []
    for seed in range(100, 103):
        rows = np.random.default_rng(seed).choice(len(truth), 10, replace=False)
        y = np.full(len(truth), -1)
        y[rows] = truth[rows]
        model = AutoTV(random_state=0).fit(X, y)
        errors.append(np.mean(model.transduction_ != truth))
        assert model.report_["method"] in ("laplacian", "kernel", "pairs")
        reasons.append(model.report_["reason"])
    assert any("contradict" in reason for reason in reasons)
    assert np.mean(errors) < 0.2  # 0.26 if the cut is trusted


@pytest.mark.parametrize(
    ("counts", "missed", "doubtful"),
    [
        ((8, 2), 0.4, True),
        ((8, 2), None, True),
        ((8, 2), 0.1, False),  # a single label: by chance
        ((6, 4), 0.4, False),
        ((5, 5), 0.4, False),
        ((10, 1), 0.4, False),
    ],
)
def test_when_a_cut_is_doubtful(counts, missed, doubtful):
    X, group = make_blobs(100, centers=[[0, 0], [20, 0]], random_state=0)
    rows = np.r_[np.flatnonzero(group == 0)[: counts[0]], np.flatnonzero(group == 1)[: counts[1]]]
    graph = knn_graph(X, random_state=0)
    problem = Problem(None, rows, np.eye(2)[group[rows]], np.ones(rows.size), graph)
    against = against_the_cut(problem, np.eye(2)[group], True, missed, all_of(problem))
    assert ("numbers of labels" in against) is bool(against) is doubtful
    assert not against_the_cut(problem, np.eye(2)[group], False, missed, all_of(problem))
    assert _short(problem, np.eye(2)[group])
    assert not _short(problem, np.eye(2)[np.random.default_rng(0).permutation(group)])


@pytest.mark.parametrize(
    ("n_labels", "elsewhere", "against"),
    [(10, 3, False), (10, 4, True), (20, 7, False), (20, 8, True), (5, 2, False)],
)
def test_labels_among_rows_of_the_other_side_speak_against_a_cut(n_labels, elsewhere, against):
    X, group = make_blobs(200, centers=[[0, 0], [20, 0]], random_state=0)
    rows = np.random.default_rng(0).choice(200, n_labels, replace=False)
    codes = np.where(np.arange(n_labels) < elsewhere, 1 - group[rows], group[rows])
    graph = knn_graph(X, random_state=0)
    problem = Problem(None, rows, np.eye(2)[codes], np.ones(n_labels), graph)
    told = against_the_cut(problem, np.eye(2)[group], False, None, all_of(problem))
    assert ("labels lie among" in told) is bool(told) is against
    # Corrections of an earlier answer are no judges.
    fair = np.arange(n_labels) >= elsewhere
    assert not against_the_cut(problem, np.eye(2)[group], False, None, fair)


def test_a_cut_that_labels_contradict_by_chance_is_not_followed():
    """Two clusters, and classes that have nothing to do with them."""
    X, group = make_blobs(400, centers=np.eye(5)[:2] * 5, random_state=0)
    truth = (X[:, 4] > np.median(X[:, 4])).astype(int)
    y = np.full(400, -1)
    for part in range(4):  # three rows of each class in each cluster
        y[np.flatnonzero(2 * group + truth == part)[:3]] = part % 2
    model = AutoTV(random_state=0).fit(X, y)
    assert "balanced" not in model.report_["say"]
    assert np.mean(model.transduction_ != truth) < 0.35  # 0.5 if the cut is trusted


@pytest.mark.parametrize(
    ("sizes", "favourite"),
    [((14, 14, 14), "balanced"), ((9, 9, 9), "smooth"), ((52, 5, 3), "smooth")],
)
def test_a_long_cut_or_one_that_leaves_a_class_next_to_nothing_is_not_trusted(sizes, favourite):
    # A ring cut in 14 places: 7 % of its edges, 11 %, 5 %; equal classes the first guess has.
    blocks = [0, 1, 2] * 4 + [0, 1]
    part = np.repeat(blocks, [sizes[k] for k in blocks])
    n = part.size
    ring = diags_array([1.0, 1.0, 1.0, 1.0], offsets=[1, -1, n - 1, 1 - n], shape=(n, n))
    guess = np.arange(n) * 3 // n
    rows = np.array([np.flatnonzero((part == k) & (guess == k))[0] for k in range(3)])
    problem = Problem(None, rows, np.eye(3), np.ones(3), Graph(ring.tocsr()))
    assert _from_the_cut(problem, np.eye(3)[part], np.eye(3)[guess])[0] == favourite


@pytest.mark.parametrize(
    ("sizes", "home", "astray"),
    [
        ((20, 20, 20), 1, False),  # as even as before
        ((34, 13, 13), 1, True),  # less even, and the label of class 1 is elsewhere
        ((34, 13, 13), 0, False),  # less even, but its walks end at home now
    ],
)
def test_a_cut_whose_search_leads_astray_is_not_trusted(sizes, home, astray, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2)) * 0.3 + np.repeat(np.arange(3), 20)[:, None] * [5, 0]
    near, far = np.repeat(np.arange(3), 20), np.repeat(np.arange(3), sizes)
    rows = np.array([0, 25 if home else 50, 59])
    y = np.full(60, -1)
    y[rows] = [0, 1, 2] if home else [0, 2, 1]
    if not home:
        far = np.array([0, 2, 1])[far]
    monkeypatch.setattr(
        PartitionSearch, "nearby", lambda self, start, hasty: (np.eye(3)[near], [1.0])
    )
    monkeypatch.setattr(PartitionSearch, "everywhere", lambda self, start: (np.eye(3)[far], [0.9]))
    model = AutoTV(random_state=0).fit(X, y)
    report = model.report_
    assert ("away from the labels" in report["reason"]) == astray
    assert set(report["say"]) == ({"smooth", "laplacian", "kernel"} if astray else {"balanced"})
    if not astray:
        cut = model.reachable_ & (y < 0)  # the kernel classifies the others
        np.testing.assert_array_equal(model.transduction_[cut], far[cut])


@pytest.mark.parametrize(("homeless", "trusted"), [(0, True), (1, True), (2, False)])
def test_a_cut_without_a_place_for_several_classes_is_not_trusted(homeless, trusted, monkeypatch):
    X, truth = make_blobs(200, centers=5, cluster_std=0.5, random_state=1)
    monkeypatch.setattr(PartitionSearch, "homeless", lambda self, partition: homeless)
    report = AutoTV(random_state=0).fit(X, partly(truth, 1)).report_
    assert set(report["say"]) == ({"balanced"} if trusted else {"smooth", "laplacian", "kernel"})
    assert ("no place" in report["reason"]) != trusted


def test_corrections_are_neither_counted_nor_held_back():
    X, truth = make_blobs(300, centers=3, cluster_std=1.5, random_state=2)
    y = partly(truth, 2)
    model = AutoTV(random_state=0, warm_start=True).fit(X, y)
    chosen, corrected = model.report_["method"], []
    for _ in range(8):
        wrong = np.flatnonzero((model.transduction_ != truth) & (y < 0))
        if not wrong.size:
            break
        y = y.copy()
        y[wrong[0]] = truth[wrong[0]]
        corrected.append(wrong[0])
        report = model.fit(X, y).report_
        assert report["method"] == chosen
        assert report["n_labels"] == 6
        assert report["corrections"] == tuple(sorted(corrected))
    assert len(corrected) > 2
    # A label that is taken back is no correction any more, and a cold fit knows of none.
    y = y.copy()
    y[corrected[0]] = -1
    assert corrected[0] not in model.fit(X, y).report_["corrections"]
    assert clone(model).fit(X, y).report_["corrections"] == ()


@pytest.mark.parametrize("method", [from_partition, many_classes])
def test_rows_have_parts_to_themselves_only_where_the_cut_is_trusted(method):
    asked = []

    class Spied(Squared):
        def kernel_step(self, problem, **options):
            asked.append(options["residual"])
            return super().kernel_step(problem, **options)

    X, y = make_blobs(90, cluster_std=0.5, random_state=0)
    graph = knn_graph(X).scaled(mean_degree=1.0)
    rows = np.array([np.flatnonzero(y == k)[0] for k in range(3)])
    problem = Problem(RKHS(X, n_components=10), rows, np.eye(3), np.ones(3), graph)
    strengths = TVStrengths(0.2, 0.05, 0.3)
    found = method(problem, Spied(1.0), np.eye(3)[y], strengths, tol=1e-3, max_iter=5)
    assert asked == [method is many_classes]
    assert np.mean(found.solution.argmax(axis=1) == y) > 0.95


@pytest.mark.parametrize("n_classes", [2, 3])
def test_cuts_of_many_classes_are_sought_on_the_confirmed_graph(n_classes, monkeypatch):
    seen = []

    class Spied(PartitionSearch):
        def everywhere(self, near):
            seen.append(self._graph)
            return super().everywhere(near)

        def again(self, last):
            seen.append(self._graph)
            return super().again(last)

    monkeypatch.setattr("tvsvm.methods.auto_candidates.PartitionSearch", Spied)
    X, truth = make_blobs(90, centers=np.eye(3)[:n_classes] * 20, n_features=3, random_state=0)
    y = np.full(90, -1)
    for k in range(n_classes):
        y[np.flatnonzero(truth == k)[0]] = k
    model = AutoTV(random_state=0, warm_start=True).fit(X, y)
    assert model.report_["method"] == "balanced"
    assert seen == [model.graph_.confirmed] * (n_classes > 2)
    y[np.flatnonzero(truth == 0)[1]] = 1  # a contradiction: the search goes on
    model.fit(X, y)
    assert seen == [model.graph_.confirmed] * 2 * (n_classes > 2)
