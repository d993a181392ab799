"""scikit-learn's contract: its own checks, cloning, pickling, pipelines, searches, routing."""

import inspect
import pickle
import re
import subprocess
import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest
import sklearn
from classifiers import CLASSIFIERS, each_classifier
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
    parametrize_with_checks,
)

import tvsvm
from tvsvm import Graph, LapRLS

pytestmark = pytest.mark.usefixtures("single_thread")
WEIGHT_IS_CONFIDENCE = (
    "a weight of 0 makes a label unknown, which is what -1 means: the row stays in the graph and "
    "in the kernel's width, where the check takes it away, as it takes larger weights for several "
    "rows; without a graph and with a given width the check passes, see below"
)
EXPECTED_FAILURES = {
    "check_classifiers_classes": "labels are -1 and 1, and -1 means unknown",
    "check_sample_weight_equivalence_on_dense_data": WEIGHT_IS_CONFIDENCE,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHT_IS_CONFIDENCE,
}


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(60, centers=[[-3, 0], [3, 0], [0, 4]], random_state=0)


@pytest.fixture(scope="module")
def frame(blobs):
    return pd.DataFrame(blobs[0], columns=["a", "b"])


@pytest.fixture(scope="module")
def fitted(blobs, frame):
    """A function that gives the classifier fitted to the blobs, once for all tests."""
    return cache(lambda Classifier: Classifier(random_state=0).fit(frame, blobs[1]))


@parametrize_with_checks(
    [Classifier() for Classifier in CLASSIFIERS],
    expected_failed_checks=lambda classifier: EXPECTED_FAILURES,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "check",
    [check_sample_weight_equivalence_on_dense_data, check_sample_weight_equivalence_on_sparse_data],
)
def test_weight_is_a_number_of_rows_where_only_labels_count(check):
    check("RLS", tvsvm.RLS(kernel_params={"gamma": 0.2}))


@each_classifier
def test_clone_and_pickle(Classifier, fitted, frame, blobs):
    model, y = fitted(Classifier), blobs[1]
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(frame), model.predict_proba(frame))
    assert copy.get_params() == model.get_params()
    assert clone(model).fit(frame, y).score(frame, y) == model.score(frame, y)


def test_clone_with_a_graph(blobs):
    X, y = blobs
    model = LapRLS(graph=tvsvm.knn_graph(X, n_neighbors=5))
    assert clone(model).fit(X, y).graph_.n_edges == model.graph.n_edges


@each_classifier
def test_pipeline_and_grid_search(Classifier, blobs):
    X, y = blobs
    pipeline = make_pipeline(StandardScaler(), Classifier(random_state=0))
    name = Classifier.__name__.lower()
    search = GridSearchCV(pipeline, {f"{name}__lam": [0.01, 0.1]}, cv=2, error_score="raise")
    assert search.fit(X, y).best_score_ > 0.9


def test_neighbors_transformer_as_first_step(blobs):
    X, y = blobs
    y = np.where(np.arange(60) % 5 == 0, y, -1)
    transformer = KNeighborsTransformer(n_neighbors=5, mode="distance")
    pipeline = make_pipeline(transformer, tvsvm.TVRLS(graph=Graph.from_distances, random_state=0))
    assert pipeline.fit(X, y).score(X, blobs[1]) > 0.9


def test_precomputed_kernel_is_split_in_both_directions(blobs):
    X, y = blobs
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 10)
    assert cross_val_score(LapRLS(kernel="precomputed"), K, y, cv=3).min() >= 0.9


@each_classifier
def test_sample_weight_is_routed(Classifier, blobs):
    X, y = blobs
    weights = np.where(y == 2, 0.0, 1.0)
    with sklearn.config_context(enable_metadata_routing=True):
        step = Classifier(random_state=0).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        model = make_pipeline(scaler, step).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(model.classes_, [0, 1])


@each_classifier
def test_feature_names(Classifier, fitted, frame):
    model = fitted(Classifier)
    np.testing.assert_array_equal(model.feature_names_in_, ["a", "b"])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a"]])


@each_classifier
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix])
def test_sparse_is_dense(Classifier, container, fitted, frame, blobs):
    X, y = blobs
    thin = Classifier(random_state=0).fit(container(X), y)
    F = fitted(Classifier).decision_function(frame)
    np.testing.assert_allclose(thin.decision_function(container(X)), F, atol=1e-6)


@each_classifier
def test_every_parameter_is_validated(Classifier, blobs):
    for name in set(Classifier().get_params()) - {"unlabeled"}:
        with pytest.raises(ValueError, match=f"'{name}' parameter of {Classifier.__name__}"):
            Classifier(**{name: object()}).fit(*blobs)
    with pytest.raises(ValueError, match=r"`kernel_params` may hold gamma.* Got 'width'"):
        Classifier(kernel_params={"width": 1}).fit(*blobs)


@each_classifier
def test_documentation_is_complete(Classifier, fitted):
    document = inspect.getdoc(Classifier)
    parameters, attributes = document.split("Parameters\n----------")[1].split("\n\nAttributes\n")
    assert re.findall(r"^(\w+) : ", parameters, re.M) == list(
        inspect.signature(Classifier).parameters
    )
    stored = {name for name in vars(fitted(Classifier)) if name.endswith("_")}
    assert set(re.findall(r"^(\w+) : ", attributes, re.M)) == stored
    assert "min_" in document


def test_import_is_quick_and_complete():
    assert {C.__name__ for C in CLASSIFIERS} <= set(tvsvm.__all__) <= set(dir(tvsvm))
    assert re.match(r"\d+\.\d+", tvsvm.__version__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = tvsvm.nonsense
    loaded = "import sys, tvsvm; print({'numpy', 'numba', 'sklearn'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "set()"


def test_a_column_of_text_gets_one_clear_sentence():
    X = pd.DataFrame({"size": [1.0, 2.0], "colour": ["red", "blue"]})
    with pytest.raises(ValueError, match=r"`X` must hold numbers\. Got the text 'red'; drop"):
        tvsvm.RLS().fit(X, [0, 1])
