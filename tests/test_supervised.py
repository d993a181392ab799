"""RLS and SVM: against scikit-learn, as functions of a problem and as classifiers."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.svm import SVC

from tvsvm import RLS, SVM
from tvsvm.kernel import RKHS
from tvsvm.losses import Hinge, Squared
from tvsvm.methods.supervised import supervised
from tvsvm.problem import Problem

LOSSES = [Squared(2.0), Hinge(1.5)]
LAM = 0.3


def make_data(rng, n_classes, n_rows=40):
    """Overlapping classes, so that some labels are on the wrong side."""
    codes = rng.permutation(np.arange(n_rows) % n_classes)
    return rng.normal(size=(n_rows, 2)) + 1.5 * np.eye(3)[codes][:, :2], codes


def make_problem(X, codes, n_classes, weights=None):
    targets = np.eye(n_classes)[codes] if n_classes > 2 else 2.0 * codes[:, None] - 1
    weights = np.ones(len(X)) if weights is None else weights
    return Problem(RKHS(X, gamma=0.5), np.arange(len(X)), targets, weights)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rls_is_kernel_ridge(n_classes):
    rng = np.random.default_rng(0)
    X, codes = make_data(rng, n_classes)
    weights = rng.uniform(0.5, 2.0, len(X))
    problem = make_problem(X, codes, n_classes, weights)
    result = supervised(problem, Squared(2.0), lam=LAM)
    ridge = KernelRidge(alpha=LAM / 2.0, kernel="rbf", gamma=0.5)
    ridge.fit(X, problem.targets, sample_weight=weights)
    np.testing.assert_allclose(result.solution, ridge.predict(X), atol=1e-8)
    new = rng.normal(size=(10, 2))
    found = problem.space.expansion(result.coordinates)(new) + result.intercept
    np.testing.assert_allclose(found, ridge.predict(new), atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_svm_is_svc_one_against_the_rest(n_classes):
    rng = np.random.default_rng(1)
    X, codes = make_data(rng, n_classes)
    weights = rng.uniform(0.5, 2.0, len(X))
    problem = make_problem(X, codes, n_classes, weights)
    result = supervised(problem, Hinge(1.5), lam=LAM)
    assert result.converged
    assert result.certificate <= 1e-8
    # Columns of several classes are coded 0 and 1.
    scores = result.solution if n_classes == 2 else 2 * result.solution - 1
    K = problem.space.apply(np.eye(len(X)))
    for y, score in zip(problem.signs.T, scores.T, strict=True):
        svc = SVC(C=1.5 / LAM, kernel="precomputed", tol=1e-9).fit(K, y, sample_weight=weights)
        np.testing.assert_allclose(score, svc.decision_function(K), atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_energy_is_the_least_there_is(loss):
    rng = np.random.default_rng(2)
    problem = make_problem(*make_data(rng, 3), 3)
    result = supervised(problem, loss, lam=LAM)
    for size in (1e-3, 1e-1):
        for _ in range(20):
            W = result.coordinates + size * rng.normal(size=result.coordinates.shape)
            value = loss.value(problem.space.values(W), result.intercept, problem)
            assert value + LAM / 2 * np.sum(W**2) >= result.energy_path[-1] - 1e-9


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
def test_rows_without_a_label_have_no_say(loss, n_classes):
    rng = np.random.default_rng(3)
    X, codes = make_data(rng, n_classes)
    alone = supervised(make_problem(X, codes, n_classes), loss, lam=LAM)
    among = make_problem(X, codes, n_classes)
    space = RKHS(np.r_[X, rng.normal(size=(15, 2))], gamma=0.5)
    among = Problem(space, among.rows, among.targets, among.weights)
    found = supervised(among, loss, lam=LAM)
    np.testing.assert_allclose(found.solution[: len(X)], alone.solution, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_weight_of_two_is_the_row_twice(loss, n_classes):
    rng = np.random.default_rng(4)
    X, codes = make_data(rng, n_classes, n_rows=20)
    weights = np.ones(20)
    weights[3] = 2.0
    again = np.r_[:20, 3]
    heavy = supervised(make_problem(X, codes, n_classes, weights), loss, lam=LAM)
    twice = supervised(make_problem(X[again], codes[again], n_classes), loss, lam=LAM)
    np.testing.assert_allclose(twice.solution, heavy.solution[again], atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_order_of_rows_and_classes_does_not_matter(loss):
    rng = np.random.default_rng(5)
    X, codes = make_data(rng, 3)
    rows, names = rng.permutation(len(X)), np.array([2, 0, 1])
    plain = supervised(make_problem(X, codes, 3), loss, lam=LAM)
    mixed = supervised(make_problem(X[rows], names[codes][rows], 3), loss, lam=LAM)
    np.testing.assert_allclose(mixed.solution[:, names], plain.solution[rows], atol=1e-6)


def test_strong_squared_loss_interpolates_the_labels():
    problem = make_problem(*make_data(np.random.default_rng(6), 3, n_rows=12), 3)
    result = supervised(problem, Squared(1e9), lam=LAM)
    np.testing.assert_allclose(result.solution, problem.targets, atol=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_label_a_class(loss, n_classes):
    X, codes = 3 * np.eye(3)[:n_classes], np.arange(n_classes)
    scores = supervised(make_problem(X, codes, n_classes), loss, lam=LAM).solution
    found = scores.argmax(axis=1) if n_classes > 2 else scores[:, 0] > 0
    np.testing.assert_array_equal(found, codes)


@pytest.mark.parametrize("loss", LOSSES)
def test_one_class_and_one_row(loss):
    result = supervised(make_problem(np.zeros((1, 2)), np.array([1]), 2), loss, lam=LAM)
    assert result.solution[0, 0] > 0


# ---- the classifiers: functions carried by the labelled rows ------------------------------------


def few_labels(n_classes):
    """More rows than an exact space of all of them may have, 40 of them labelled."""
    X, codes = make_data(np.random.default_rng(7), n_classes, n_rows=2500)
    rows = np.arange(0, 2000, 50)
    y = np.full(len(X), -1)
    y[rows] = codes[rows]
    return X, y, rows


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rls_among_many_rows_is_kernel_ridge_on_the_labelled(n_classes):
    X, y, rows = few_labels(n_classes)
    model = RLS(eta=2.0, lam=LAM, kernel_params={"gamma": 0.5}).fit(X, y)
    targets = np.eye(3)[y[rows]] if n_classes == 3 else 2.0 * y[rows] - 1
    ridge = KernelRidge(alpha=LAM / 2.0, kernel="rbf", gamma=0.5).fit(X[rows], targets)
    np.testing.assert_array_equal(model.X_fit_, X[rows])
    np.testing.assert_allclose(model.decision_function(X), ridge.predict(X), atol=1e-8)
    # Along eigenvectors of K as small as rounding, coefficients are known to the root of it only.
    coef, expected = model.dual_coef_.reshape(targets.shape), ridge.dual_coef_
    np.testing.assert_allclose(coef, expected, rtol=0, atol=1e-7 * np.abs(expected).max())
    np.testing.assert_array_equal(model.predict(X)[y < 0], model.transduction_[y < 0])


def test_svm_among_many_rows_is_svc_on_the_labelled():
    X, y, rows = few_labels(2)
    model = SVM(mu=1.5, lam=LAM, kernel_params={"gamma": 0.5})
    F = model.fit(X, y).decision_function(X)
    np.testing.assert_array_equal(model.X_fit_, X[rows])
    np.testing.assert_array_equal(model.predict(X)[y < 0], model.transduction_[y < 0])
    svc = SVC(C=1.5 / LAM, gamma=0.5, tol=1e-9).fit(X[rows], y[rows])
    np.testing.assert_allclose(F, svc.decision_function(X), atol=1e-5)  # its K is float32
    np.testing.assert_allclose(F, model.fit(X[rows], y[rows]).decision_function(X), atol=1e-8)


@pytest.mark.parametrize("Classifier", [RLS, SVM])
def test_fewer_landmarks_than_labels_are_labelled_rows_too(Classifier):
    X, y, rows = few_labels(3)
    model = Classifier(n_components=25, random_state=0).fit(X, y)
    assert model.X_fit_.shape == (25, 2)
    assert (model.X_fit_[:, None] == X[rows]).all(axis=2).any(axis=1).all()
    full = Classifier(random_state=0).fit(X, y)
    assert np.mean(model.transduction_ == full.transduction_) > 0.97


@pytest.mark.parametrize("Classifier", [RLS, SVM])
def test_width_of_the_kernel_is_that_of_all_rows(Classifier):
    X, y, _ = few_labels(2)
    gamma = RKHS(X, random_state=0, n_components=2).kernel.scale ** 2
    given = Classifier(kernel_params={"gamma": gamma}).fit(X, y)
    found = Classifier(random_state=0).fit(X, y)
    np.testing.assert_allclose(found.decision_function(X), given.decision_function(X), atol=1e-8)
