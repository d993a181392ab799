"""Model selection with few labels: folds of the labelled rows, scores of the known labels."""

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.metrics import accuracy_score, get_scorer
from sklearn.utils import _safe_indexing, check_random_state

from tvsvm.labels import Labels, read_labels
from tvsvm.results import FloatArray, IntArray

__all__ = ["LabeledKFold", "LabeledScorer", "transduction_scores"]


@dataclass(frozen=True)
class LabeledKFold:
    """Folds of the labelled rows; rows without a label are in every training set.

    Labels are the scarce thing: rows of unknown class can be tested by nothing, and taking them
    away would change the graph that is being judged. The labels of each class are spread evenly
    over the folds, so that a class that is tested also has a label to learn from. The only label
    of a class is therefore never held out.

    The held-out rows are not in the training set at all, as scikit-learn wants it, hence they are
    predicted as new points. :func:`transduction_scores` keeps them there without their labels.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    shuffle : bool, default=False
        Whether the labels of a class are dealt to the folds at random, not in their order.
    random_state : int, RandomState instance or None, default=None
        For `shuffle`.
    unlabeled : object, default=None
        The value in `y` of a row whose class is unknown, as in the classifiers.

    Examples
    --------
    >>> from tvsvm.model_selection import LabeledKFold
    >>> y = ["cat", None, "dog", "cat", None, "dog"]
    >>> for train, test in LabeledKFold(2).split(None, y):
    ...     print(train, test)
    [1 3 4 5] [0 2]
    [0 1 2 4] [3 5]
    """

    n_splits: int = 5
    _: KW_ONLY
    shuffle: bool = False
    random_state: Any = None
    unlabeled: Any = None

    def split(
        self, X: Any, y: ArrayLike, groups: Any = None
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield the training rows and the test rows of every fold, ascending.

        Parameters
        ----------
        X, groups : object
            Not used, as scikit-learn has it.
        y : array-like of shape (n_samples,)
            The class of each row, -1 or missing where unknown.
        """
        labels = _read(y, self.unlabeled)
        rows = self._rows_to_deal(labels)
        for fold in range(self.n_splits):
            test = np.sort(rows[fold :: self.n_splits])
            yield np.setdiff1d(np.arange(labels.codes.size), test), test

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of folds."""
        return self.n_splits

    def _rows_to_deal(self, labels: Labels) -> IntArray:
        """Labelled rows in the order in which they are dealt, the rows of a class together.

        Any two rows of a class that follow each other go to different folds, hence no fold takes
        all of a class.
        """
        rows = labels.rows
        if self.shuffle:
            rows = check_random_state(self.random_state).permutation(rows)
        codes = labels.codes[rows]
        dealt = rows[np.argsort(codes, kind="stable")]
        dealt = dealt[np.bincount(codes)[labels.codes[dealt]] > 1]
        if not 2 <= self.n_splits <= dealt.size:
            raise ValueError(
                "`n_splits` must be between 2 and the number of labels of classes that have more "
                f"than one. Got {self.n_splits} for {dealt.size} such labels; "
                + (f"pass 2 to {dealt.size}." if dealt.size else "label a second row of a class.")
            )
        return dealt


@dataclass(frozen=True)
class LabeledScorer:
    """A scorer of scikit-learn that leaves out rows of unknown class.

    Parameters
    ----------
    scoring : str or callable, default="accuracy"
        A name that :func:`sklearn.metrics.get_scorer` knows, or a scorer
        ``f(estimator, X, y) -> float``.
    unlabeled : object, default=None
        The value in `y` of a row whose class is unknown, as in the classifiers.

    Examples
    --------
    >>> from tvsvm import RLS
    >>> from tvsvm.model_selection import LabeledScorer
    >>> X, y = [[0.0], [1.0], [4.0], [5.0]], [0, None, 1, None]
    >>> LabeledScorer("accuracy")(RLS().fit(X, y), X, y)
    1.0
    """

    scoring: str | Callable[..., float] = "accuracy"
    _: KW_ONLY
    unlabeled: Any = None

    def __call__(self, estimator: Any, X: Any, y: ArrayLike) -> float:
        """Score of the predictions for the rows of X whose class y tells."""
        labels = _read(y, self.unlabeled)
        scorer = get_scorer(self.scoring)
        return float(scorer(estimator, _safe_indexing(X, labels.rows), _known(labels)))


def transduction_scores(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    cv: Any = None,
    metric: Callable[[Any, Any], float] = accuracy_score,
) -> FloatArray:
    """Score of `transduction_` on held-out labels, their rows staying among the unlabelled ones.

    That is what such a classifier is for: all rows are there, some labels are not. It also works
    with a graph or a kernel matrix that is given for all rows.

    Parameters
    ----------
    estimator : classifier
        One of this package; it is cloned for every fold.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        All rows.
    y : array-like of shape (n_samples,)
        The class of each row, -1 or missing where unknown, as `estimator.unlabeled` has it.
    cv : object with `split`, optional
        Its test rows must be labelled; by default five folds of :class:`LabeledKFold`.
    metric : callable, default=accuracy_score
        ``metric(known, found) -> float``.

    Returns
    -------
    ndarray of shape (n_splits,)
        One score a fold.
    """
    labels = _read(y, estimator.unlabeled)
    cv = LabeledKFold(unlabeled=estimator.unlabeled) if cv is None else cv
    known = np.full(labels.codes.size, None, dtype=object)
    known[labels.rows] = _known(labels)
    scores = []
    for _, test in cv.split(X, y):
        if (labels.codes[test] < 0).any():
            raise ValueError(
                "`cv` must test labelled rows only. Got a fold with "
                f"{np.count_nonzero(labels.codes[test] < 0)} rows of unknown class; pass "
                "LabeledKFold()."
            )
        partial = known.copy()
        partial[test] = None
        found = clone(estimator).fit(X, partial).transduction_
        scores.append(metric(labels.classes[labels.codes[test]], found[test]))
    return np.array(scores)


def _read(y: Any, unlabeled: Any) -> Labels:
    return read_labels(y, len(y), unlabeled=unlabeled)


def _known(labels: Labels) -> NDArray[Any]:
    """Classes of the labelled rows, in the type of the classes."""
    return labels.classes[labels.codes[labels.rows]]
