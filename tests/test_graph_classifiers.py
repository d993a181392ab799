"""Classifiers with a graph: where it comes from, what it adds, kernel spaces that are shared."""

from threading import get_ident

import numpy as np
import pytest
from classifiers import each_graph_classifier, make_rows, two_and_three_classes
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_moons
from sklearn.metrics.pairwise import rbf_kernel

from tvsvm import RLS, SVM, AutoTV, CheegerRLS, LapRLS, LapSVM, knn_graph
from tvsvm.graph import Graph
from tvsvm.kernel import RKHS
from tvsvm.kernel.features import factorise

pytestmark = pytest.mark.usefixtures("single_thread")


@each_graph_classifier
def test_the_graph_helps_where_classes_are_bent(Classifier):
    X, truth = make_moons(200, noise=0.05, random_state=0)
    y = np.where(np.isin(np.arange(200), [np.argmin(X[:, 0]), np.argmax(X[:, 0])]), truth, -1)
    options = {"lam": 0.01, "kernel_params": {"gamma": 5.0}, "random_state": 0}
    assert np.mean(Classifier(**options).fit(X, y).transduction_ == truth) > 0.97
    assert np.mean(RLS(**options).fit(X, y).transduction_ == truth) < 0.8


@each_graph_classifier
def test_graph_in_every_form(Classifier):
    X, _, y = make_rows(3)
    graph = knn_graph(X, n_neighbors=5)
    W = graph.affinity
    default = Classifier(n_neighbors=5, random_state=0).fit(X, y)
    from_affinity = Classifier(graph=Graph(W), random_state=0).fit(X, y)
    assert default.graph_.degrees.mean() == pytest.approx(1.0)
    plain = [W, sparse.coo_matrix(7 * W), W.toarray(), W.toarray().tolist(), lambda X: W]
    for expected, forms in (
        (default, [graph, lambda X: knn_graph(X, n_neighbors=5)]),
        (from_affinity, plain),  # an affinity does not tell other masses than the degrees
    ):
        for form in forms:
            model = Classifier(graph=form, random_state=0).fit(X, y)
            np.testing.assert_allclose(
                model.graph_.affinity.toarray(), default.graph_.affinity.toarray()
            )
            # Coefficients cancel: their digits are those of the largest one.
            off = np.abs(model.dual_coef_ - expected.dual_coef_).max()
            assert off <= 1e-6 * np.abs(expected.dual_coef_).max()


@each_graph_classifier
def test_graph_alone(Classifier):
    """Two rings joined by one weak edge; X holds nothing but the identity, or indices."""
    ring = sparse.diags_array([1.0, 1.0, 1.0, 1.0], offsets=[-1, 1, 14, -14], shape=(15, 15))
    W = sparse.lil_array(sparse.block_diag([ring, ring]))
    W[0, 15] = W[15, 0] = 0.01
    truth = np.repeat([0, 1], 15)
    y = np.where(np.arange(30) % 15 == 7, truth, -1)
    model = Classifier(graph=W, kernel="precomputed", lam=1e-3).fit(np.eye(30), y)
    np.testing.assert_array_equal(model.transduction_, truth)
    assert Classifier(graph=W).fit(np.arange(30)[:, None], y).transduction_.shape == (30,)


@each_graph_classifier
def test_graph_of_other_rows_is_refused(Classifier):
    X, _, y = make_rows(2)
    with pytest.raises(ValueError, match=r"one node for every row of X. Got 5 nodes for 28 rows"):
        Classifier(graph=np.ones((5, 5))).fit(X, y)


@each_graph_classifier
@two_and_three_classes
def test_component_without_label_is_left_to_the_kernel(Classifier, n_classes):
    X, truth, y = make_rows(n_classes)
    apart = np.flatnonzero((y < 0) & (truth == 1))[:5]
    group = truth.copy()
    group[apart] = n_classes
    model = Classifier(graph=1.0 * (group[:, None] == group), random_state=0).fit(X, y)
    np.testing.assert_array_equal(np.flatnonzero(~model.reachable_), apart)
    np.testing.assert_array_equal(model.transduction_[apart], model.predict(X[apart]))
    np.testing.assert_array_equal(model.transduction_, truth)


@each_graph_classifier
def test_graph_without_edges(Classifier):
    X, truth, y = make_rows(2)
    model = Classifier(graph=sparse.csr_array((28, 28)), random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.reachable_, y >= 0)
    np.testing.assert_array_equal(model.transduction_, truth)


@pytest.mark.parametrize(("Classifier", "plain"), [(LapRLS, RLS), (LapSVM, SVM)])
def test_graph_of_weight_zero_is_no_graph(Classifier, plain):
    X, _, y = make_rows(2)
    np.testing.assert_allclose(
        Classifier(gamma=0.0, random_state=0).fit(X, y).decision_function(X),
        plain(random_state=0).fit(X, y).decision_function(X),
        atol=1e-6,
    )


@each_graph_classifier
def test_a_given_space_is_shared(Classifier):
    X, _, y = make_rows(3)
    space = RKHS(X, unit_diagonal=True, random_state=0)
    own = Classifier(random_state=0).fit(X, y)
    given = Classifier(kernel=space, random_state=0)
    np.testing.assert_allclose(
        given.fit(X, y).label_distributions_, own.label_distributions_, atol=1e-6
    )
    assert clone(given).kernel is space
    for other in (X[1:], X[::-1]):
        with pytest.raises(ValueError, match="must be the RKHS of the rows of X"):
            given.fit(other, y[: len(other)])
    with pytest.raises(ValueError, match="belong to the RKHS"):
        Classifier(kernel=space, n_components=5).fit(X, y)
    K = rbf_kernel(X)
    with pytest.raises(ValueError, match="must be the RKHS of the rows of X"):
        Classifier(kernel=RKHS(K, kernel="precomputed")).fit(K, y)


def test_a_given_space_of_sparse_rows_is_shared():
    X, _, y = make_rows(3)
    rows = sparse.csr_array(np.where(np.abs(X) < 1, 0.0, X))
    space = RKHS(rows, unit_diagonal=True, random_state=0)
    LapRLS(kernel=space).fit(rows, y)
    with pytest.raises(ValueError, match="must be the RKHS of the rows of X"):
        LapRLS(kernel=space).fit(rows[::-1], y)


@pytest.mark.parametrize(
    ("make", "n_jobs", "beside"), [(AutoTV, 2, True), (AutoTV, 1, False), (CheegerRLS, 2, True)]
)
def test_the_kernel_space_is_made_beside_the_search(make, n_jobs, beside, monkeypatch):
    threads = []

    def noted(*args, **options):
        threads.append(get_ident())
        return factorise(*args, **options)

    monkeypatch.setattr("tvsvm.kernel.space.factorise", noted)
    X, truth = make_blobs(2100, centers=3, random_state=0)
    y = np.where(np.arange(2100) < 30, truth, -1)
    model = make(n_jobs=n_jobs, random_state=0).fit(X, y)
    assert np.mean(model.predict(X) == truth) > 0.9
    assert len(threads) == 1
    assert (threads[0] != get_ident()) is beside
