"""How sure the classifiers are of a class: low where they err."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs

from tvsvm import TVRLS, AutoTV, CheegerRLS, CheegerSVM, LapRLS
from tvsvm.graph import Graph
from tvsvm.kernel import RKHS
from tvsvm.labels import codes_of, distributions_of
from tvsvm.methods.doubt import softened, softened_by_names, softened_by_neighbours
from tvsvm.problem import MethodResult, Problem
from tvsvm.results import Status


@pytest.fixture(scope="module")
def digits():
    """Rows, their classes, and y with five labels a class."""
    X, truth = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    y = np.full(len(truth), -1)
    for k in range(10):
        y[rng.choice(np.flatnonzero(truth == k), 5, replace=False)] = k
    return X, truth, y


@pytest.mark.parametrize("Classifier", [LapRLS, TVRLS, CheegerRLS])
def test_errors_are_where_confidence_is_low(Classifier, digits):
    X, truth, y = digits
    model = Classifier(random_state=0).fit(X, y)
    confidence = model.label_distributions_[y < 0].max(axis=1)
    wrong = (model.transduction_ != truth)[y < 0][np.argsort(confidence, kind="stable")]
    tenth = len(wrong) // 10
    assert wrong[:tenth].mean() > 4 * wrong[tenth:].mean()


@pytest.mark.parametrize("n_rows", [300, 3000])
def test_the_recommended_classifier_is_not_sure_of_what_it_misses(n_rows):
    X, truth = make_blobs(n_rows, centers=3 * np.eye(4)[:3], random_state=0)
    y = np.where(np.arange(n_rows) < 30, truth, -1)
    model = AutoTV(random_state=0).fit(X, y)
    confidence = model.label_distributions_.max(axis=1)
    wrong = model.transduction_ != truth
    assert 0.01 < wrong.mean() < 0.2
    assert confidence[wrong].mean() < confidence[~wrong].mean() - 0.05
    assert confidence[wrong].mean() < 0.9


@pytest.mark.parametrize("Classifier", [CheegerRLS, CheegerSVM])
@pytest.mark.parametrize("classes", [(4, 9), (1, 4, 8, 9)])
def test_a_cut_is_surer_of_rows_deep_in_a_class(Classifier, classes, digits):
    X, truth, y = digits
    part = np.isin(truth, classes)
    X, y = X[part], y[part]
    model = Classifier(random_state=0).fit(X, y)
    confidence = model.label_distributions_[y < 0].max(axis=1)
    assert len(np.unique(confidence)) > 0.5 * len(confidence)
    denied = (model.predict(X) != model.transduction_)[y < 0]
    assert confidence[~denied].mean() > 0.8
    assert confidence[denied].max(initial=0.5) < confidence[~denied].mean()


@pytest.mark.parametrize("n_columns", [1, 3])
def test_doubt_never_changes_a_class(n_columns):
    rng = np.random.default_rng(0)
    space = RKHS(rng.normal(size=(40, 2)))
    rows = np.arange(3)
    targets = np.eye(3) if n_columns == 3 else np.array([[1.0], [-1.0], [1.0]])
    solution = np.eye(3)[rng.integers(3, size=40)][:, :n_columns] - 0.5 * (n_columns == 1)
    solution[rows] = targets
    result = MethodResult(
        solution=solution,
        status=Status.CONVERGED,
        n_iter=1,
        certificate=0.0,
        coordinates=10 * rng.normal(size=(space.rank, n_columns)),  # denies many a class, loudly
        intercept=np.zeros(n_columns),
        energy_path=np.zeros(1),
    )
    soft = softened(Problem(space, rows, targets, np.ones(3)), result).solution
    np.testing.assert_array_equal(codes_of(soft), codes_of(solution))
    np.testing.assert_array_equal(soft[rows], targets)
    P = distributions_of(soft, max(n_columns, 2))
    np.testing.assert_array_equal(P.argmax(axis=1), codes_of(solution))
    assert P.max(axis=1).min() < 0.6


def test_neighbours_in_other_classes_raise_doubt_that_changes_no_class():
    """A path in two classes, and a row without neighbours."""
    n = 9
    W = np.diag(np.ones(n - 2), 1)[: n - 1, : n - 1]
    W = np.pad(W + W.T, (0, 1))  # the last row is alone
    part = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2])
    rows = np.array([0, 7, 8])
    problem = Problem(RKHS(np.eye(n)), rows, np.eye(3), np.ones(3), Graph(W))
    result = MethodResult(
        solution=np.eye(3)[part],
        status=Status.CONVERGED,
        n_iter=1,
        certificate=0.0,
        coordinates=np.zeros((n, 3)),
        intercept=np.zeros(3),
        energy_path=np.zeros(1),
    )
    soft = softened_by_neighbours(problem, result).solution
    np.testing.assert_array_equal(soft.argmax(axis=1), part)
    np.testing.assert_allclose(soft.sum(axis=1), 1.0)
    np.testing.assert_array_equal(soft[rows], np.eye(3))
    walk = W[:8, :8] / W[:8, :8].sum(axis=1, keepdims=True)
    away = np.linalg.matrix_power(walk, 4)[:4, 4:].sum(axis=1)
    np.testing.assert_allclose(soft[1:4, 1], 0.49 * away[1:])
    assert (soft[1:4, 1] > 0).all()


@pytest.mark.parametrize("seed", range(4))
def test_doubt_about_names_changes_no_class_and_keeps_distributions(seed):
    rng = np.random.default_rng(seed)
    solution = rng.dirichlet(np.ones(4), 60)
    rows = np.arange(4)
    solution[rows] = np.eye(4)
    problem = Problem(RKHS(np.eye(60)), rows, np.eye(4), np.ones(4))
    result = MethodResult(
        solution=solution,
        status=Status.CONVERGED,
        n_iter=1,
        certificate=0.0,
        coordinates=np.zeros((60, 4)),
        intercept=np.zeros(4),
        energy_path=np.zeros(1),
    )
    doubt = np.zeros((4, 4))
    doubt[0, 1] = doubt[1, 0] = 0.5
    soft = softened_by_names(problem, result, doubt).solution
    np.testing.assert_array_equal(soft.argmax(axis=1), solution.argmax(axis=1))
    np.testing.assert_allclose(soft.sum(axis=1), 1.0)
    np.testing.assert_array_equal(soft[rows], np.eye(4))
    sure = solution.argmax(axis=1) >= 2
    np.testing.assert_array_equal(soft[sure], solution[sure])
    other = ~sure & ~np.isin(np.arange(60), rows)
    assert (soft[other].max(axis=1) <= solution[other].max(axis=1)).all()
    assert (soft[other].max(axis=1) < solution[other].max(axis=1)).any()


@pytest.mark.parametrize("seed", range(3))
def test_two_labels_in_one_cluster_leave_doubt_about_both_classes_alone(seed):
    """Which of the two is in the wrong place nobody knows, so nobody should be sure."""
    X, truth = make_blobs([400] * 4, n_features=6, cluster_std=0.7, random_state=seed)
    y = np.full(1600, -1)
    for k in range(4):
        y[np.flatnonzero(truth == k)[0]] = k
    y[y == 1] = -1
    y[np.flatnonzero(truth == 0)[5]] = 1
    model = AutoTV(random_state=0).fit(X, y)
    confidence = model.label_distributions_.max(axis=1)
    assert confidence[(truth < 2) & (y < 0)].mean() < 0.8
    if model.report_["method"] == "balanced":
        assert confidence[truth >= 2].mean() > 0.95
