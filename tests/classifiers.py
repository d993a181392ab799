"""The classifiers that tests run through, and rows that all of them must get right."""

import numpy as np
import pytest

from tvsvm import estimators
from tvsvm.estimators.graph import GraphClassifier

CLASSIFIERS = [getattr(estimators, name) for name in estimators.__all__]
GRAPH_CLASSIFIERS = [C for C in CLASSIFIERS if issubclass(C, GraphClassifier)]
each_classifier = pytest.mark.parametrize("Classifier", CLASSIFIERS)
each_graph_classifier = pytest.mark.parametrize("Classifier", GRAPH_CLASSIFIERS)
two_and_three_classes = pytest.mark.parametrize("n_classes", [2, 3])


def make_rows(n_classes, *, n_per_class=14, n_labels=2, seed=0):
    """Compact classes at the corners of a polygon: rows, true classes, and y with few labels."""
    rng = np.random.default_rng(seed)
    angles = 2 * np.pi * np.arange(n_classes) / n_classes
    centers = 4 * np.column_stack([np.cos(angles), np.sin(angles)])
    truth = np.repeat(np.arange(n_classes), n_per_class)
    X = centers[truth] + 0.7 * rng.standard_normal((len(truth), 2))
    known = np.arange(len(truth)) % n_per_class < n_labels
    order = rng.permutation(len(truth))
    return X[order], truth[order], np.where(known, truth, -1)[order]
