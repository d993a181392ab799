"""Refits with `warm_start`: what is kept, when it is not, the answer; what `verbose` says."""

import pickle
import re
from copy import deepcopy

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from threadpoolctl import threadpool_info, threadpool_limits

import tvsvm
from tvsvm import RLS, TVRLS, TVSVM, AutoTV, CheegerRLS, Graph, LapRLS, LapSVM, knn_graph
from tvsvm.estimators import __all__ as names
from tvsvm.estimators import balanced
from tvsvm.estimators.balanced import BalancedMethod
from tvsvm.estimators.graph import GraphClassifier
from tvsvm.methods import total_variation
from tvsvm.methods.partition import PartitionSearch

CLASSIFIERS = [getattr(tvsvm, name) for name in names]
BALANCED = [Classifier for Classifier in CLASSIFIERS if issubclass(Classifier, BalancedMethod)]
each_classifier = pytest.mark.parametrize("Classifier", CLASSIFIERS)
each_balanced = pytest.mark.parametrize("Classifier", BALANCED)
N_ROWS = 48
CENTERS = np.array([[-4.0, 0.0], [4.0, 0.0], [0.0, 6.0]])

# Another value of every parameter.
CHANGED = {
    "lam": 0.5,
    "kernel": "laplacian",
    "kernel_params": {"gamma": 3.0},
    "n_components": 15,
    "unlabeled": -7,
    "random_state": 1,
    "warm_start": False,
    "verbose": 1,
    "graph": lambda X: knn_graph(X, n_neighbors=4, weights="uniform"),
    "n_neighbors": 4,
    "metric": "manhattan",
    "n_jobs": 1,
    "gamma": 0.3,
    "class_prior": "uniform",
    "r": 0.3,
    "step": 0.3,
    "n_init": 1,
    "algorithm": "paper",
    "tol": 3e-3,
    "max_iter": 200,
    "eta": 2.0,
    "mu": 2.0,
}


def make_rows(n_classes=3, n_labels=2):
    """Blobs, their classes, and y with the first rows of each class labelled."""
    X, truth = make_blobs(N_ROWS, centers=CENTERS[:n_classes], random_state=0)
    y = np.full(N_ROWS, -1)
    for k in range(n_classes):
        y[np.flatnonzero(truth == k)[:n_labels]] = k
    return X, truth, y


def with_label(y, row, label):
    y = y.copy()
    y[row] = label
    return y


def keeps_ground(model, X, y):
    """Whether the next fit makes neither kernel space nor graph."""
    space = model._memory.problem.space
    model.fit(X, y)
    return hasattr(model, "_memory") and model._memory.problem.space is space


def assert_same_fit(one, other):
    np.testing.assert_array_equal(one.transduction_, other.transduction_)
    np.testing.assert_allclose(one.label_distributions_, other.label_distributions_, atol=1e-8)
    np.testing.assert_allclose(one.dual_coef_, other.dual_coef_, atol=1e-8)


# ---- the answer --------------------------------------------------------------------------------


@each_classifier
@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_more_label_gives_the_classes_of_a_cold_fit(Classifier, n_classes):
    X, truth, y = make_rows(n_classes)
    model = Classifier(random_state=0, warm_start=True).fit(X, y)
    for row in np.flatnonzero(y < 0)[:3]:
        y = with_label(y, row, truth[row])
        assert keeps_ground(model, X, y) == issubclass(Classifier, GraphClassifier)
        cold = Classifier(random_state=0).fit(X, y)
        np.testing.assert_array_equal(model.transduction_, cold.transduction_)
        np.testing.assert_array_equal(model.labeled_, y >= 0)
        assert model.label_distributions_[row, truth[row]] == 1.0


@pytest.mark.parametrize("Classifier", [*BALANCED, tvsvm.AutoTV])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_label_that_confirms_costs_no_iteration(Classifier, n_classes, monkeypatch):
    X, truth, y = make_rows(n_classes)
    model = Classifier(random_state=0, warm_start=True).fit(X, y)
    F = model.decision_function(X)
    for method in ("_follow", "_solve"):  # not to be called
        monkeypatch.setattr(Classifier, method, None, raising=False)
    row = np.flatnonzero((y < 0) & (model.transduction_ == truth))[0]
    model.fit(X, with_label(y, row, truth[row]))
    np.testing.assert_array_equal(model.decision_function(X), F)


@pytest.mark.parametrize("Classifier", [LapRLS, LapSVM])
def test_laplacian_methods_go_on_from_their_functions(Classifier):
    X, truth, y = make_rows()
    model = Classifier(random_state=0, warm_start=True).fit(X, y)
    n_iter, row = model.n_iter_, np.flatnonzero(y < 0)[0]
    assert model.fit(X, y).n_iter_ <= 2
    assert model.fit(X, with_label(y, row, truth[row])).n_iter_ < n_iter


@each_balanced
def test_labels_that_contradict_move_a_whole_cluster(Classifier):
    # Three separate groups and two classes: where the third belongs only a label can tell.
    X, group = make_blobs(90, centers=CENTERS, random_state=0)
    first = [np.flatnonzero(group == k)[0] for k in range(3)]
    y = np.full(90, -1)
    y[first[:2]] = [0, 1]
    graph = knn_graph(X, n_neighbors=5, random_state=0)
    weak = Graph(graph.affinity + 1e-3 * knn_graph(X, n_neighbors=40, random_state=0).affinity)
    model = Classifier(graph=weak, random_state=0, warm_start=True).fit(X, y)
    other = 1 - model.transduction_[first[2]]
    model.fit(X, with_label(y, first[2], other))
    assert (model.transduction_[group == 2] == other).mean() > 0.95


@each_balanced
@pytest.mark.parametrize("change", ["label", "removal", "weight", "component"])
def test_other_changes_of_labels_are_followed(Classifier, change, monkeypatch):
    X, truth, y = make_rows(2)
    if change == "component":
        X = np.vstack([X, X[truth == 0] + 100])
        y = np.append(y, np.full(len(X) - len(y), -1))
    model = Classifier(random_state=0, warm_start=True).fit(X, y)
    starts = []
    follow = Classifier._follow
    monkeypatch.setattr(
        Classifier,
        "_follow",
        lambda self, problem, given, **options: (
            starts.append(given) or follow(self, problem, given, **options)
        ),
    )
    weights = np.ones(len(y))
    labelled = np.flatnonzero(y >= 0)
    if change == "label":
        y = with_label(y, labelled[0], 1 - y[labelled[0]])
    elif change == "removal":
        y = with_label(y, labelled[0], -1)
    elif change == "weight":
        weights[labelled[0]] = 0.5
    else:
        y = with_label(y, len(y) - 1, model.transduction_[-1])
    functions = model._memory.result.solution
    model.fit(X, y, sample_weight=weights)
    assert len(starts) == 1
    assert starts[0][-1] is functions


# ---- what is kept, and when --------------------------------------------------------------------


@each_classifier
def test_every_changed_parameter_gives_the_cold_fit(Classifier):
    X, _, y = make_rows(2)
    assert set(Classifier().get_params()) <= set(CHANGED)
    first = Classifier(random_state=0, warm_start=True).fit(X, y)
    for name in set(Classifier().get_params()) - {"unlabeled", "verbose", "warm_start"}:
        model = deepcopy(first).set_params(**{name: CHANGED[name]}).fit(X, y)
        assert_same_fit(model, Classifier(**{"random_state": 0, name: CHANGED[name]}).fit(X, y))


@each_classifier
def test_a_parameter_of_the_method_keeps_the_ground(Classifier):
    X, _, y = make_rows(2)
    model = Classifier(random_state=0, warm_start=True).fit(X, y)
    assert keeps_ground(model.set_params(lam=0.3), X, y)
    assert not keeps_ground(model.set_params(n_components=20), X, y)
    if issubclass(Classifier, GraphClassifier):
        assert not keeps_ground(model.set_params(n_neighbors=6), X, y)


@each_classifier
def test_a_new_class_keeps_the_ground_and_is_a_cold_fit(Classifier):
    X, _, y = make_rows()
    model = Classifier(random_state=0, warm_start=True).fit(X, np.where(y == 2, -1, y))
    of_all_rows = issubclass(Classifier, GraphClassifier)
    assert keeps_ground(model, X, y) == of_all_rows
    assert_same_fit(model, Classifier(random_state=0).fit(X, y))
    renamed = np.where(y == 2, 5, y)
    assert keeps_ground(model, X, renamed)
    assert set(model.transduction_) == {0, 1, 5}
    assert keeps_ground(model, X, np.where(y > 0, -1, y)) == of_all_rows  # a single class
    assert set(model.transduction_) == {0}


@pytest.mark.parametrize("Classifier", [RLS, LapRLS, TVRLS])
@pytest.mark.parametrize("container", [np.array, np.asfortranarray, sparse.csr_array])
def test_rows_are_compared_by_content(Classifier, container):
    X, _, y = make_rows(2)
    model = Classifier(random_state=0, warm_start=True).fit(container(X), y)
    assert keeps_ground(model, container(X), y)
    moved = X.copy()
    moved[7, 1] = np.nextafter(moved[7, 1], np.inf)
    assert not keeps_ground(model, container(moved), y)
    assert not keeps_ground(model, container(moved.astype(np.float32)), y)
    assert not keeps_ground(model, container(moved[:-1]), y[:-1])


def test_rows_changed_in_place_are_other_rows():
    X, _, y = make_rows()
    model = LapRLS(random_state=0, warm_start=True).fit(X, y)
    X[:, 0] *= 2
    assert not keeps_ground(model, X, y)
    assert_same_fit(model, LapRLS(random_state=0).fit(X, y))


@pytest.mark.parametrize("form", [sparse.csr_array, np.array, Graph])
def test_a_given_graph_is_compared_too(form):
    X, _, y = make_rows()
    affinity = knn_graph(X, n_neighbors=5).affinity.toarray()
    model = LapRLS(graph=form(affinity), random_state=0, warm_start=True).fit(X, y)
    assert keeps_ground(model, X, y)
    affinity[:20] *= 2
    affinity[:, :20] *= 2
    assert not keeps_ground(model.set_params(graph=form(affinity)), X, y)


def test_an_end_that_had_not_converged_is_not_taken_for_the_answer():
    X, _, y = make_rows()
    model = TVRLS(random_state=0, warm_start=True, tol=1e-9, max_iter=1)
    with pytest.warns(UserWarning, match="did not converge"):
        model.fit(X, y)
    with pytest.warns(UserWarning, match="did not converge"):
        model.fit(X, y)


@each_classifier
def test_memory_pickles_is_not_cloned_and_is_dropped(Classifier):
    X, _, y = make_rows(2)
    model = Classifier(random_state=0, warm_start=True).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert keeps_ground(copy, X, y)
    assert_same_fit(copy, model)
    assert not hasattr(clone(model), "_memory")
    assert not hasattr(model.set_params(warm_start=False).fit(X, y), "_memory")
    assert not hasattr(Classifier().fit(X, y), "_memory")


# ---- what is said ------------------------------------------------------------------------------


def test_verbose_says_a_line_a_stage(capsys):
    X, truth, y = make_rows()
    model = CheegerRLS(random_state=0, warm_start=True, verbose=1).fit(X, y)
    row = np.flatnonzero((y < 0) & (model.transduction_ == truth))[0]
    model.fit(X, with_label(y, row, truth[row]))
    lines = capsys.readouterr().out.splitlines()
    assert all(re.fullmatch(r"\[CheegerRLS\] .* \(\d+\.\d s\)", line) for line in lines)
    kernel, graph, iterations, ground, functions = lines
    assert f"kernel space: {N_ROWS} landmarks (" in kernel
    edges, components = model.graph_.n_edges, model.graph_.n_components
    assert f"graph: {N_ROWS} rows, {edges} edges, {components} component" in graph
    energy = model.energy_path_[-1]
    ended = f"{model.n_iter_} iterations?, converged, energy {energy:.4g}"
    assert re.search(ended, iterations)
    assert "kernel space and graph: kept from the last fit" in ground
    assert "functions: kept from the last fit" in functions


@each_classifier
def test_silent_by_default(Classifier, capsys):
    X, _, y = make_rows(2)
    Classifier().fit(X, y)
    assert capsys.readouterr().out == ""


# ---- threads -----------------------------------------------------------------------------------


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_blas_has_one_thread_for_few_rows():
    X, _, y = make_rows(2)
    during = []

    def graph(X):
        during.append(blas_threads())
        return knn_graph(X)

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        LapRLS(graph=graph).fit(X, y)
        assert blas_threads() == before
    assert during == [{1}]


@pytest.mark.filterwarnings("ignore:CheegerRLS did not converge")  # cold, it crawls here
@pytest.mark.parametrize("Classifier", [TVRLS, TVSVM, CheegerRLS, AutoTV])
def test_corrections_of_two_classes_do_not_add_errors(Classifier, monkeypatch):
    """Rows beyond the border are strays: islands around them, or a new cut, would be worse."""
    X, truth = make_moons(1500, noise=0.15, random_state=0)
    y = np.full(1500, -1)
    for k in (0, 1):
        y[np.flatnonzero(truth == k)[:3]] = k
    model = Classifier(random_state=0, warm_start=True).fit(X, y)
    monkeypatch.setattr(PartitionSearch, "everywhere", None)  # takes seconds with many rows
    assert np.sum(model.transduction_ != truth) < 20
    for _ in range(8):
        row = np.flatnonzero(model.transduction_ != truth)[0]
        y = with_label(y, row, truth[row])
        model.fit(X, y)
        assert model.transduction_[row] == truth[row]
        assert np.sum(model.transduction_ != truth) < 25  # beginning anew there are up to 300


@pytest.mark.parametrize("Classifier", [TVRLS, TVSVM])
def test_a_refit_of_two_classes_begins_once(Classifier, monkeypatch):
    X, truth = make_moons(400, noise=0.15, random_state=0)
    y = np.full(400, -1)
    for k in (0, 1):
        y[np.flatnonzero(truth == k)[:3]] = k
    model = Classifier(random_state=0, warm_start=True).fit(X, y)
    runs = []
    run = total_variation._iterate_two
    monkeypatch.setattr(
        total_variation, "_iterate_two", lambda *a, **kw: runs.append(a) or run(*a, **kw)
    )
    row = np.flatnonzero(model.transduction_ != truth)[0]
    model.fit(X, with_label(y, row, truth[row]))
    assert len(runs) == 1


def test_a_refit_of_many_classes_ends_earlier(monkeypatch):
    X, truth = make_blobs(150, centers=CENTERS / 2.2, random_state=0)
    y = np.where(np.arange(150) < 12, truth, -1)
    first = TVRLS(random_state=0, warm_start=True).fit(X, y)
    row = np.flatnonzero(first.transduction_ != truth)[0]
    n_iter = []
    for nearby in (1, total_variation.NEARBY):
        monkeypatch.setattr(total_variation, "NEARBY", nearby)
        n_iter.append(deepcopy(first).fit(X, with_label(y, row, truth[row])).n_iter_)
    assert n_iter[1] < n_iter[0]


def test_a_label_that_corrects_an_error_does_not_overturn_two_classes():
    """Where moons touch, the only wrong row is untypical: Poisson learning gives its side away."""
    X, truth = make_moons(800, noise=0.12, random_state=5)
    rng = np.random.RandomState(5)
    y = np.full(800, -1)
    for k in (0, 1):
        y[rng.choice(np.flatnonzero(truth == k))] = k
    model = AutoTV(random_state=0, warm_start=True).fit(X, y)
    wrong = np.flatnonzero(model.transduction_ != truth)
    assert 0 < wrong.size < 8
    y[wrong[0]] = truth[wrong[0]]
    assert np.mean(model.fit(X, y).transduction_ != truth) < 0.01


@pytest.mark.parametrize("Classifier", [TVRLS, CheegerRLS])
def test_class_prior_of_two_classes_counts_in_a_refit(Classifier, monkeypatch):
    X, _, y = make_rows(2)
    asked = []
    monkeypatch.setattr(balanced, "_recut", lambda *args: asked.append(args) or [])
    model = Classifier(class_prior=[0.75, 0.25], warm_start=True, random_state=0).fit(X, y)
    row = np.flatnonzero(y < 0)[0]
    other = model.classes_[model.classes_ != model.transduction_[row]][0]
    model.fit(X, with_label(y, row, other))
    assert len(asked) == 2
