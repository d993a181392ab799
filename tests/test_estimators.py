"""The classifiers: what they take, what they promise, and what must not change their answer."""

import warnings

import numpy as np
import pandas as pd
import pytest
from classifiers import each_classifier, make_rows, two_and_three_classes
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

from tvsvm import RLS, SVM, TVRLS, LapRLS, LapSVM

pytestmark = pytest.mark.usefixtures("single_thread")
# ---- what is found -----------------------------------------------------------------------------


# Whose energies begin with that of the start.
STARTS_TOLD = {
    *(("AutoTV", 2), ("CheegerRLS", 2), ("CheegerSVM", 2)),
    *(("AutoTV", 3), ("TVRLS", 3), ("TVSVM", 3)),
}


@each_classifier
@two_and_three_classes
def test_few_labels_are_enough_and_all_results_fit_together(Classifier, n_classes):
    X, truth, y = make_rows(n_classes)
    model = Classifier(random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.transduction_, truth)
    np.testing.assert_array_equal(model.fit_predict(X, y), truth)
    np.testing.assert_array_equal(model.classes_, np.arange(n_classes))
    np.testing.assert_allclose(model.class_prior_, 1 / n_classes)
    assert model.label_distributions_.shape == (len(X), n_classes)
    np.testing.assert_array_equal(model.label_distributions_[y >= 0], np.eye(n_classes)[y[y >= 0]])
    np.testing.assert_array_equal(model.label_distributions_.argmax(axis=1), truth)
    assert model.reachable_.dtype == bool
    assert model.converged_
    start_too = (Classifier.__name__, n_classes) in STARTS_TOLD
    assert len(model.energy_path_) == model.n_iter_ + start_too
    assert model.agreement_ == np.mean(model.predict(X) == model.transduction_)


@each_classifier
@two_and_three_classes
def test_attributes_give_the_decision_function(Classifier, n_classes):
    X, _, y = make_rows(n_classes)
    model = Classifier(kernel_params={"gamma": 0.2}, n_components=20, random_state=0).fit(X, y)
    new = X + 0.1
    by_hand = rbf_kernel(new, model.X_fit_, gamma=0.2) @ model.dual_coef_ + model.intercept_
    F = model.decision_function(new)
    assert F.shape == ((len(X),) if n_classes == 2 else (len(X), n_classes))
    np.testing.assert_allclose(F.reshape(len(X), -1), by_hand, atol=1e-10)
    codes = (F > 0).astype(int) if n_classes == 2 else F.argmax(axis=1)
    np.testing.assert_array_equal(model.predict(new), codes)
    np.testing.assert_array_equal(model.predict_proba(new).argmax(axis=1), codes)


@each_classifier
@pytest.mark.parametrize("distance", [1e3, 1e150])
@two_and_three_classes
def test_far_from_all_data_only_the_intercept_speaks(Classifier, distance, n_classes):
    X, _, y = make_rows(n_classes)
    model = Classifier(random_state=0).fit(X, y)
    far = np.array([[distance, -distance], [0.0, distance]])
    P = model.predict_proba(far)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_allclose(
        model.decision_function(far).reshape(2, -1), np.tile(model.intercept_, (2, 1)), atol=1e-12
    )
    np.testing.assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(far))


@pytest.mark.parametrize("Classifier", [RLS, LapRLS])
@two_and_three_classes
def test_far_from_all_data_the_squared_loss_favours_no_class(Classifier, n_classes):
    X, _, y = make_rows(n_classes)
    P = Classifier().fit(X, y).predict_proba([[1e4, 1e4]])
    np.testing.assert_allclose(P, 1 / n_classes, atol=1e-12)


# ---- labels ------------------------------------------------------------------------------------


@each_classifier
@pytest.mark.parametrize(
    "rename",
    [
        lambda y: np.where(y < 0, None, np.array(["ant", "bee", "-"])[y]),
        lambda y: pd.Series(y).map({0: False, 1: True}).astype("boolean"),
        lambda y: pd.Categorical.from_codes(y, ["ant", "bee"]),
        lambda y: pd.Series(y).where(y >= 0).astype("Int64"),
        lambda y: np.where(y < 0, np.nan, y + 5.0),
    ],
)
def test_names_of_the_classes_do_not_matter(Classifier, rename):
    X, truth, y = make_rows(2)
    plain = Classifier(random_state=0).fit(X, y)
    renamed = Classifier(random_state=0).fit(X, rename(y))
    np.testing.assert_array_equal(plain.dual_coef_, renamed.dual_coef_)
    np.testing.assert_array_equal(renamed.predict(X), renamed.classes_[plain.predict(X)])
    np.testing.assert_array_equal(renamed.transduction_, renamed.classes_[truth])


@each_classifier
@two_and_three_classes
def test_order_of_the_classes_does_not_matter(Classifier, n_classes):
    X, truth, y = make_rows(n_classes)
    reverse = np.where(y < 0, y, n_classes - 1 - y)
    model = Classifier(random_state=0).fit(X, reverse)
    np.testing.assert_array_equal(model.transduction_, n_classes - 1 - truth)


@each_classifier
def test_unlabeled_value(Classifier):
    X, truth, y = make_rows(2)
    model = Classifier(unlabeled=99).fit(X, np.where(y < 0, 99, 2 * y - 1))
    np.testing.assert_array_equal(model.classes_, [-1, 1])
    np.testing.assert_array_equal(model.transduction_, 2 * truth - 1)


@each_classifier
def test_one_class_is_the_answer_everywhere(Classifier):
    X, _, y = make_rows(2)
    model = Classifier().fit(X, np.where(y == 1, "only", None))
    assert set(model.transduction_) == {"only"} == set(model.predict(X + 100))
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((len(X), 1)))
    np.testing.assert_array_equal(model.class_prior_, [1.0])
    assert model.decision_function(X).shape == (len(X),)
    assert model.agreement_ == 1.0


@each_classifier
@pytest.mark.parametrize("n_labels", [1, 14])
@two_and_three_classes
def test_one_label_a_class_and_all_labelled(Classifier, n_labels, n_classes):
    X, truth, y = make_rows(n_classes, n_labels=n_labels)
    np.testing.assert_array_equal(Classifier(random_state=0).fit_predict(X, y), truth)


@each_classifier
def test_given_labels_are_kept(Classifier):
    X, truth, y = make_rows(2, n_labels=7)
    wrong = np.flatnonzero(y >= 0)[0]
    y[wrong] = 1 - y[wrong]
    model = Classifier(random_state=0).fit(X, y)
    assert model.transduction_[wrong] == y[wrong]
    np.testing.assert_array_equal(np.delete(model.transduction_, wrong), np.delete(truth, wrong))


@each_classifier
def test_no_label_is_refused(Classifier):
    with pytest.raises(ValueError, match="Got 0 labels for 4 rows; label at least one row"):
        Classifier().fit(np.eye(4), [-1, -1, -1, -1])


# ---- confidence --------------------------------------------------------------------------------


@each_classifier
@two_and_three_classes
def test_weight_zero_is_unknown_and_weight_one_is_none(Classifier, n_classes):
    X, _, y = make_rows(n_classes, n_labels=4)
    F = Classifier(random_state=0).fit(X, y).decision_function(X)
    ones = Classifier(random_state=0).fit(X, y, sample_weight=np.ones(len(X)))
    np.testing.assert_array_equal(ones.decision_function(X), F)
    weights = (np.arange(len(X)) % 3 > 0).astype(float)
    zero = Classifier(random_state=0).fit(X, y, sample_weight=weights)
    unknown = Classifier(random_state=0).fit(X, np.where(weights == 0, -1, y))
    np.testing.assert_array_equal(zero.decision_function(X), unknown.decision_function(X))
    beside = Classifier(random_state=0).fit(X, y, sample_weight=np.where(y < 0, 7.0, 1.0))
    np.testing.assert_array_equal(beside.decision_function(X), F)


@pytest.mark.parametrize("Classifier", [RLS, SVM])
@two_and_three_classes
def test_weight_two_is_the_row_twice(Classifier, n_classes):
    X, truth, _ = make_rows(n_classes)
    weights = 1.0 + np.arange(len(X)) % 3
    model = Classifier(kernel_params={"gamma": 0.3})
    twice = np.repeat(np.arange(len(X)), weights.astype(int))
    F = model.fit(X[twice], truth[twice]).decision_function(X)
    weighted = model.fit(X, truth, sample_weight=weights).decision_function(X)
    np.testing.assert_allclose(weighted, F, atol=1e-5)


@each_classifier
def test_doubtful_label_gives_way(Classifier):
    X, truth, y = make_rows(2, n_labels=3)
    wrong = np.flatnonzero(y >= 0)[0]
    y[wrong] = 1 - y[wrong]
    weights = np.where(np.arange(len(X)) == wrong, 1e-6, 1.0)
    model = Classifier(random_state=0).fit(X, y, sample_weight=weights)
    assert model.predict(X)[wrong] == truth[wrong]


@each_classifier
@pytest.mark.parametrize(
    ("weight", "message"),
    [(-2, "must not be negative. Got -2.0; pass 0"), (1e20, r"not be above 1e\+12. Got 1e\+20")],
)
def test_absurd_weight_is_refused(Classifier, weight, message):
    with pytest.raises(ValueError, match=message):
        Classifier().fit(np.eye(3), [0, 1, -1], sample_weight=[1, weight, 1])


# ---- what must not change the answer -----------------------------------------------------------


@each_classifier
@two_and_three_classes
def test_order_of_the_rows(Classifier, n_classes):
    X, _, y = make_rows(n_classes)
    order = np.random.default_rng(1).permutation(len(X))
    model = Classifier(random_state=0).fit(X, y)
    permuted = Classifier(random_state=0).fit(X[order], y[order])
    np.testing.assert_array_equal(permuted.transduction_, model.transduction_[order])


@each_classifier
@pytest.mark.parametrize("unit", [1e-150, 1e-3, 1e3, 1e150])
@two_and_three_classes
def test_unit_and_origin_of_the_rows(Classifier, unit, n_classes):
    X, truth, y = make_rows(n_classes)
    model = Classifier(random_state=0).fit(unit * (X + 5), y)
    np.testing.assert_array_equal(model.transduction_, truth)
    np.testing.assert_array_equal(model.predict(unit * (X + 5)), truth)


@each_classifier
def test_copies_of_rows(Classifier):
    X, truth, y = make_rows(2)
    again = np.concatenate([np.arange(28), np.repeat(np.flatnonzero(y < 0)[:3], 4)])
    model = Classifier(random_state=0).fit(X[again], y[again])
    np.testing.assert_array_equal(model.transduction_, truth[again])


@each_classifier
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "linear", "cosine", rbf_kernel])
def test_kernels(Classifier, kernel):
    X, truth, y = make_rows(2)
    np.testing.assert_array_equal(Classifier(kernel=kernel).fit(X, y).transduction_, truth)


@each_classifier
@two_and_three_classes
def test_precomputed_kernel(Classifier, n_classes):
    X, truth, y = make_rows(n_classes)
    model = Classifier(kernel_params={"gamma": 0.2}, random_state=0).fit(X, y)
    known = Classifier(kernel="precomputed", random_state=0).fit(rbf_kernel(X, gamma=0.2), y)
    np.testing.assert_array_equal(known.transduction_, truth)
    new = X[:5] + 0.1
    np.testing.assert_array_equal(known.predict(rbf_kernel(new, X, gamma=0.2)), model.predict(new))


@each_classifier
def test_float32_is_float64(Classifier):
    X, truth, y = make_rows(3)
    single = Classifier(random_state=0).fit(X.astype(np.float32), y)
    double = Classifier(random_state=0).fit(X, y)
    np.testing.assert_array_equal(single.transduction_, truth)
    np.testing.assert_allclose(single.predict_proba(X), double.predict_proba(X), atol=2e-3)


@each_classifier
def test_the_callers_arrays(Classifier):
    X, _, y = make_rows(2)
    frozen = X.copy()
    frozen.flags.writeable = y.flags.writeable = False
    model = Classifier().fit(frozen, y)
    mine = X.copy()
    model.fit(mine, y)
    before = model.predict_proba(X)
    mine[:] = 0.0
    np.testing.assert_array_equal(model.predict_proba(X), before)


@each_classifier
def test_two_rows_and_constant_rows(Classifier):
    model = Classifier().fit([[0.0], [1.0]], [0, 1])
    np.testing.assert_array_equal(model.predict([[0.1], [0.9]]), [0, 1])
    constant = Classifier().fit(np.ones((5, 2)), [0, 1, -1, -1, -1])
    assert np.isfinite(constant.label_distributions_).all()


# ---- warnings and errors -----------------------------------------------------------------------


@pytest.mark.parametrize("Classifier", [LapRLS, LapSVM])
def test_too_few_iterations_are_reported(Classifier):
    X, _, y = make_rows(3)
    message = rf"{Classifier.__name__} did not converge: after 1 iterations .* raise `max_iter`"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        model = Classifier(max_iter=1).fit(X, y)
    assert caught[0].filename == __file__
    assert not model.converged_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Classifier().fit(X, y).converged_


@each_classifier
def test_predict_before_fit(Classifier):
    for method in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(Classifier(), method)(np.eye(2))


def test_a_tolerance_below_rounding_ends():
    X, truth = make_moons(60, noise=0.25, random_state=1)
    y = np.full(60, -1)
    rows = np.random.RandomState(1).choice(60, 6, replace=False)
    y[rows] = truth[rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = TVRLS(tol=1e-17, max_iter=20, random_state=0).fit(X, y)
    assert model.n_iter_ <= 20
