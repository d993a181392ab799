"""Folds of labelled rows, scores of known labels: markers, few labels, GridSearchCV."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tvsvm import RLS, TVRLS, LapRLS, knn_graph
from tvsvm.model_selection import LabeledKFold, LabeledScorer, transduction_scores

MARKED = {
    "minus one": np.array([0, -1, 1, 0, -1, 1, 1]),
    "NaN": np.array([0, np.nan, 1, 0, np.nan, 1, 1]),
    "None": np.array([0, None, 1, 0, None, 1, 1], dtype=object),
    "strings": np.array(["a", "-1", "b", "a", "-1", "b", "b"]),
    "list": ["a", None, "b", "a", float("nan"), "b", "b"],
    "pandas": pd.Series(["a", None, "b", "a", None, "b", "b"], dtype="category"),
}


def blobs(per_class, *, n=90, marker=-1):
    X, y = make_blobs(n, centers=[[0, 0], [6, 0], [0, 6]], cluster_std=0.6, random_state=0)
    known = np.concatenate([np.flatnonzero(y == k)[:per_class] for k in range(3)])
    partial = np.full(n, marker, dtype=object if marker is None else type(marker))
    partial[known] = y[known]
    return X, y, partial


@pytest.mark.parametrize("y", MARKED.values(), ids=MARKED)
def test_every_marker_of_the_unknown_is_kept_in_training(y):
    folds = list(LabeledKFold(2).split(None, y))
    assert [test.tolist() for _, test in folds] == [[0, 2, 6], [3, 5]]
    for train, test in folds:
        assert np.isin([1, 4], train).all()
        assert np.array_equal(np.sort(np.r_[train, test]), np.arange(7))


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    y=st.lists(st.integers(-1, 3), min_size=4, max_size=40),
    n_splits=st.integers(2, 6),
    shuffle=st.booleans(),
)
def test_folds_deal_every_label_once_and_leave_each_class_one(y, n_splits, shuffle):
    y = np.array(y)
    counts = np.bincount(y[y >= 0], minlength=4)
    dealt = np.flatnonzero((y >= 0) & (counts[y] > 1))
    cv = LabeledKFold(n_splits, shuffle=shuffle, random_state=0)
    if dealt.size < n_splits:
        with pytest.raises(ValueError, match=r"n_splits|must hold labels"):
            list(cv.split(None, y))
        return
    folds = list(cv.split(None, y))
    tests = [test for _, test in folds]
    assert len(folds) == cv.get_n_splits() == n_splits
    assert np.array_equal(np.sort(np.concatenate(tests)), dealt)
    assert np.ptp([test.size for test in tests]) <= 1
    for train, test in folds:
        assert set(y[test]) <= set(y[train])
        assert np.array_equal(np.sort(np.r_[train, test]), np.arange(y.size))
    per_class = [np.bincount(y[test], minlength=4) for test in tests]
    assert np.ptp(per_class, axis=0).max() <= 1


def test_shuffled_folds_follow_the_seed():
    y = np.repeat([0, 1, -1], 20)
    folds = [
        [test.tolist() for _, test in LabeledKFold(5, shuffle=True, random_state=s).split(None, y)]
        for s in (0, 0, 1)
    ]
    assert folds[0] == folds[1] != folds[2]


def test_too_few_labels_say_what_to_do():
    with pytest.raises(ValueError, match="for 0 such labels; label a second row"):
        next(LabeledKFold().split(None, [0, 1, -1]))
    with pytest.raises(ValueError, match="for 4 such labels; pass 2 to 4"):
        next(LabeledKFold().split(None, [0, 0, 1, 1, 2, -1]))
    with pytest.raises(ValueError, match="Got 1 for"):
        next(LabeledKFold(1).split(None, [0, 0, -1]))


@pytest.mark.parametrize("marker", [-1, float("nan"), None])
def test_grid_search_with_any_marker(marker):
    X, y, partial = blobs(4, marker=marker)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), LapRLS(random_state=0)),
        {"laprls__gamma": [0.1, 1.0]},
        cv=LabeledKFold(2),
        scoring=LabeledScorer(),
        error_score="raise",
    ).fit(X, partial)
    assert search.best_score_ == 1.0
    assert np.mean(search.best_estimator_[-1].transduction_ == y) == 1.0


def test_scorer_leaves_out_the_unknown():
    X, y, partial = blobs(5)
    partial[np.flatnonzero(partial == 2)[0]] = 0  # one label of fifteen is wrong
    model = RLS().fit(X, y)
    assert LabeledScorer()(model, X, partial) == pytest.approx(14 / 15)
    known = partial >= 0
    expected = balanced_accuracy_score(partial[known], y[known])
    assert LabeledScorer("balanced_accuracy")(model, X, partial) == pytest.approx(expected)
    assert LabeledScorer(lambda model, X, y: len(y))(model, X, partial) == 15.0


def test_scorer_serves_the_folds_of_scikit_learn():
    X, _, partial = blobs(10)
    cv = KFold(3, shuffle=True, random_state=0)
    scores = cross_val_score(RLS(), X, partial, cv=cv, scoring=LabeledScorer())
    assert np.all(scores == 1.0)


def test_own_marker():
    X, y, _ = blobs(4)
    partial = np.where(np.arange(len(y)) < 30, y - 1, 9)  # -1 is a class here
    cv, scorer = LabeledKFold(3, unlabeled=9), LabeledScorer(unlabeled=9)
    scores = cross_val_score(TVRLS(unlabeled=9), X, partial, cv=cv, scoring=scorer)
    assert np.all(scores == 1.0)
    assert np.all(transduction_scores(TVRLS(unlabeled=9), X, partial) == 1.0)


def test_transduction_keeps_rows_and_hides_labels():
    X, _, partial = blobs(3)
    swapped = partial.copy()
    row = np.flatnonzero(partial == 2)[0]
    swapped[row] = 0  # a wrong label counts as a miss, which it could not if the fit saw it
    model = TVRLS(graph=knn_graph(X), random_state=0)
    assert np.all(transduction_scores(model, X, partial, cv=LabeledKFold(3)) == 1.0)
    scores = transduction_scores(model, X, swapped, cv=LabeledKFold(9))
    assert scores.min() == 0.0
    assert not hasattr(model, "transduction_")


def test_transduction_refuses_folds_with_unknown_rows():
    X, _, partial = blobs(3)
    with pytest.raises(ValueError, match="pass LabeledKFold"):
        transduction_scores(RLS(), X, partial, cv=KFold(3))


def test_copies_and_pickles():
    for part in (LabeledKFold(3, shuffle=True, random_state=1), LabeledScorer("f1_macro")):
        assert pickle.loads(pickle.dumps(part)) == part
        assert clone(part, safe=False) == part
