"""What all classifiers share: X and y in, one problem solved, labels and probabilities out."""

import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from tvsvm._telling import tell
from tvsvm._threads import one_blas_thread
from tvsvm.advice import Suggestion, SuspiciousLabel, suggest, suspicious_labels
from tvsvm.estimators.capacity import require_memory
from tvsvm.estimators.memory import Memory, fingerprints
from tvsvm.estimators.parameters import parameter, with_parameters
from tvsvm.estimators.stages import Stages, parts_told
from tvsvm.graph import Graph
from tvsvm.kernel import RKHS
from tvsvm.labels import Labels, codes_of, distributions_of, read_labels
from tvsvm.problem import MethodResult, Problem
from tvsvm.results import BoolArray, FloatArray, IntArray, Status

KERNELS = ("rbf", "laplacian", "poly", "sigmoid", "linear", "cosine", "precomputed")
KERNEL_PARAMS = ("gamma", "degree", "coef0")
POSITIVE = Interval(Real, 0, None, closed="neither")
NON_NEGATIVE = Interval(Real, 0, None, closed="left")
LARGEST_WEIGHT = 1e12  # of a label: with larger ones the systems lose all digits
AT_LEAST_ONE = Interval(Integral, 1, None, closed="left")


@with_parameters
class KernelClassifier(ClassifierMixin, BaseEstimator):
    """Classifier by functions of a kernel space; a subclass says which functions."""

    lam: float = parameter(
        0.1,
        [POSITIVE],
        "float\nλ, weight of the kernel norm: the larger, the smoother the functions of x.",
    )
    kernel: str | Callable | RKHS = parameter(
        "rbf",
        [StrOptions(set(KERNELS)), callable, RKHS],
        """str, callable or RKHS
"rbf", "laplacian", "poly", "sigmoid", "linear", "cosine", "precomputed" or a
function, scaled to a mean of 1 on its diagonal; see :class:`tvsvm.kernel.RKHS`.
With "precomputed" `X` is the kernel matrix, K(new, training) when predicting. An
`RKHS` of the same rows is taken as it is: so several fits share one.""",
    )
    kernel_params: dict[str, Any] | None = parameter(
        None,
        [dict, None],
        """dict or None
Parameters of the kernel by name: "gamma" (by default from the scale of the
data), "degree" (3) and "coef0" (1).""",
    )
    n_components: int | None = parameter(
        None,
        [AT_LEAST_ONE, None],
        """int or None
Number of landmark rows that carry the functions (Nyström). None: all rows up
to 2000, beyond that as many as memory suggests. Without a graph they are
labelled rows, since the others have no say.""",
    )
    unlabeled: Any = parameter(
        None,
        [object],
        """object
The value in `y` of a row whose class is unknown. None: -1, also where it became
a string as in ``np.array(["cat", -1])``, and "nan", as NaN becomes there. Missing values
(None, NaN, pd.NA, pd.NaT) are unknown in any case; pass NaN if nothing else is, because
-1 is a class.""",
    )
    random_state: Any = parameter(
        None,
        ["random_state"],
        "int, RandomState instance or None\nFor everything that is sampled, as the landmarks.",
    )
    warm_start: bool = parameter(
        False,
        ["boolean"],
        """bool
Keep what the next `fit` can use: if `X` and the parameters of kernel and graph
have not changed by then, the kernel space and the graph. Laplacian, TV and
Cheeger methods also go on from their functions, the last two as `n_init` says.
All this travels when the model is pickled.""",
    )
    verbose: int = parameter(
        0,
        ["verbose"],
        """int
1 for a line on stdout about each stage of `fit`, with its seconds; 2 for more lines,
each when something begins.""",
    )

    _attributes: ClassVar[dict[str, str]] = {
        "classes_": "ndarray of shape (n_classes,)\nThe classes, sorted.",
        "transduction_": """ndarray of shape (n_samples,)
The class of each training row: the given one, or the one found.""",
        "label_distributions_": """ndarray of shape (n_samples, n_classes)
Class probabilities of the training rows, those with a label being certain.""",
        "labeled_": "ndarray of shape (n_samples,), bool\nWhether the row came with a label.",
        "class_prior_": "ndarray of shape (n_classes,)\nShare of each class in `transduction_`.",
        "reachable_": """ndarray of shape (n_samples,), bool
Whether a label is in the row's component of the graph; the other rows are
classified by the kernel alone. All True without a graph.""",
        "agreement_": """float
Share of the training rows where `predict` gives `transduction_`, or of a sample of many.""",
        "dual_coef_": """ndarray of shape (n_landmarks, n_functions)
Coefficients a of f(x) = Σ_j k(x, z_j) a_j + intercept. One function for two
classes, otherwise one a class.""",
        "intercept_": "ndarray of shape (n_functions,)\nConstants added to the functions.",
        "X_fit_": """ndarray or sparse matrix of shape (n_landmarks, n_features)
The landmarks z_j; for a precomputed kernel their indices.""",
        "n_iter_": "int\nNumber of iterations.",
        "converged_": "bool\nWhether the iteration met its tolerance.",
        "energy_path_": """ndarray
Energy after each iteration; TV and Cheeger methods may have that of their start first.""",
        "n_features_in_": "int\nNumber of columns of `X`.",
        "feature_names_in_": """ndarray of shape (n_features_in_,)
Names of the columns of `X`, if all are strings.""",
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Find the class of every row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            All rows, labelled or not; the kernel matrix for ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            The class of each row, -1 or missing where unknown (see `unlabeled`). If only one
            class occurs, every row gets it, with probability 1.
        sample_weight : array-like of shape (n_samples,), optional
            Confidence of each label, 1 by default; a label of weight 0 counts as unknown. Not
            used where the class is unknown.

        Returns
        -------
        self
        """
        rng = check_random_state(self.random_state)
        X = self._validated(X, reset=True)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
        if weights.min() < 0:
            raise ValueError(
                f"`sample_weight` must not be negative. Got {weights.min()}; pass 0 for labels "
                "that are to be ignored."
            )
        if weights.max() > LARGEST_WEIGHT:
            raise ValueError(
                f"`sample_weight` must not be above {LARGEST_WEIGHT:g}. Got {weights.max():.3g}; "
                "divide all of them by the same number."
            )
        labels = read_labels(y, X.shape[0], unlabeled=self.unlabeled, ignore=weights == 0)
        if labels.doubt:
            warnings.warn(labels.doubt, UserWarning, stacklevel=3)
        with one_blas_thread(), parts_told(type(self).__name__, verbose=self.verbose):
            result = self._fit_labels(X, labels, weights[labels.rows], rng)
        if not result.converged:
            warnings.warn(
                f"{type(self).__name__} did not converge: after {result.n_iter} iterations its "
                f"certificate is {result.certificate:.2g}. {result.status.value}",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def fit_predict(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Find the class of every row, as `fit`, and return it: `transduction_`."""
        return self.fit(X, y, sample_weight=sample_weight).transduction_

    def decision_function(self, X: Any) -> FloatArray:
        """Values of the functions at the rows of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            New rows; K(new, training) for ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Two classes: positive for the second one. More: the largest column is the class.
        """
        F = self._values(X)
        return F if F.shape[1] > 1 else F[:, 0]

    def predict(self, X: Any) -> NDArray[Any]:
        """Classes of the rows of X, shape (n_samples,)."""
        F = self._values(X)
        return self.classes_[codes_of(F)]

    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities of the rows of X, shape (n_samples, n_classes).

        They are the point of the simplex next to the decision values. Far from all data an "rbf"
        or "laplacian" kernel vanishes, and they tell no more than `intercept_`: for the squared
        loss all classes are equally likely.
        """
        F = self._values(X)
        return distributions_of(F, len(self.classes_))

    def suggest(self, n: int = 20) -> list[Suggestion]:
        """Rows most worth labelling next, see :func:`tvsvm.advice.suggest`."""
        check_is_fitted(self)
        return suggest(self, n)

    def suspicious_labels(self) -> list[SuspiciousLabel]:
        """Labels that look wrong, see :func:`tvsvm.advice.suspicious_labels`."""
        check_is_fitted(self)
        return suspicious_labels(self)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = not tags.input_tags.pairwise
        return tags

    _loss: ClassVar[Any]  # of the classifier's other base, which holds its weight

    # What its memory depends on, see tvsvm.estimators.capacity.
    _family: ClassVar[str] = "supervised"
    # Parameters that, with X, decide the kernel space and the graph.
    _ground: ClassVar[tuple[str, ...]] = ("kernel", "kernel_params", "n_components", "random_state")
    # Parameters that decide neither those nor the functions.
    _aside: ClassVar[tuple[str, ...]] = ("warm_start", "verbose", "n_jobs", "unlabeled")

    def _validated(self, X: Any, *, reset: bool) -> Any:
        try:
            return validate_data(
                self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset
            )
        except ValueError as error:
            if "could not convert string to float" not in str(error):
                raise
            value = str(error).partition(":")[2].strip()
            raise ValueError(
                f"`X` must hold numbers. Got the text {value}; drop such columns or encode them, "
                "for example by sklearn.preprocessing.OneHotEncoder."
            ) from error

    def _fit_labels(
        self, X: Any, labels: Labels, weights: FloatArray, rng: np.random.RandomState
    ) -> MethodResult:
        stages = Stages(type(self).__name__, verbose=self.verbose)
        ground, method = self._fingerprints(X, labels) if self.warm_start else ({}, {})
        last: Memory | None = self.__dict__.pop("_memory", None)
        if last is not None and last.ground != ground:
            last = None
        if last is not None:
            space, graph = last.problem.space, last.problem.graph
            stages.kept("kernel space and graph")
        else:
            require_memory(self, X, labels)
            tell("kernel space")
            space = self._make_space(X, labels, rng)
            stages.made_space(space)
            tell("graph")
            graph = self._make_graph(X, rng)
            if graph is not None:
                stages.made_graph(graph)
        problem = Problem(space, labels.rows, labels.targets, weights, graph)
        if labels.n_classes == 1:
            result = _constant(problem)
        elif last is not None and last.method == method:
            result = self._resolve(problem, last)
        else:
            result = self._solve(problem)
        if last is not None and result is last.result:
            stages.kept("functions")
        else:
            stages.solved(result)
        self._store(problem, labels, result)
        if self.warm_start:
            self._memory = Memory(ground, method, problem, result)
        return result

    def _fingerprints(self, X: Any, labels: Labels) -> tuple[dict[str, Any], dict[str, Any]]:
        """What decides the kernel space and the graph, and what the functions besides."""
        data = {"X": X, "carriers": self._carriers(labels)}
        params = {**self.get_params(deep=False), "classes": labels.classes}
        return (
            fingerprints({**data, **params}, (*data, *self._ground)),
            fingerprints(params, params.keys() - {*self._ground, *self._aside}),
        )

    def _carriers(self, labels: Labels) -> IntArray | None:
        """Rows among which the landmarks are; None for all."""
        return None

    def _make_space(self, X: Any, labels: Labels, rng: np.random.RandomState) -> RKHS:
        params = self.kernel_params or {}
        if not set(params) <= set(KERNEL_PARAMS):
            raise ValueError(
                f"`kernel_params` may hold {', '.join(KERNEL_PARAMS)}. Got "
                f"{', '.join(map(repr, params))}; remove the others."
            )
        if isinstance(self.kernel, RKHS):
            return self._given_space(self.kernel, X)
        return RKHS(
            X,
            kernel=self.kernel,
            **params,
            among=self._carriers(labels),
            n_components=self.n_components,
            unit_diagonal=True,
            random_state=rng,
            **self._when_made(labels),
        )

    def _when_made(self, labels: Labels) -> dict[str, Any]:
        """When the kernel space is made, and in how many threads: see `RKHS`."""
        return {}

    def _given_space(self, space: RKHS, X: Any) -> RKHS:
        if self.kernel_params or self.n_components:
            raise ValueError(
                "`kernel_params` and `n_components` belong to the RKHS. Got them beside "
                "`kernel`; pass them to RKHS(...)."
            )
        if not space.holds(X):
            raise ValueError(
                f"`kernel` must be the RKHS of the rows of X. Got one of {space.n_points} other "
                f"rows for X of shape {X.shape}; pass RKHS(X, unit_diagonal=True)."
            )
        return space

    def _make_graph(self, X: Any, rng: np.random.RandomState) -> Graph | None:
        """Graph between all rows; None for a method without one."""
        return None

    @abstractmethod
    def _solve(self, problem: Problem) -> MethodResult:
        """Find the functions."""

    def _resolve(self, problem: Problem, last: Memory) -> MethodResult:
        """Find the functions when the last fit sought the same ones for other labels."""
        return self._solve(problem)

    def _store(self, problem: Problem, labels: Labels, result: MethodResult) -> None:
        self.reachable_ = _reachable(problem)
        F = result.solution
        if not self.reachable_.all():
            in_space = problem.space.values(result.coordinates) + result.intercept
            F = np.where(self.reachable_[:, None], F, in_space)
        self.label_distributions_ = distributions_of(F, labels.n_classes)
        self.label_distributions_[labels.rows] = np.eye(labels.n_classes)[labels.codes[labels.rows]]
        codes = self.label_distributions_.argmax(axis=1)

        self.classes_ = labels.classes
        self.labeled_ = labels.codes >= 0
        self.transduction_ = labels.classes[codes]
        self.class_prior_ = np.bincount(codes, minlength=labels.n_classes) / len(codes)
        rows, seen = problem.space.values_seen(result.coordinates)
        self.agreement_ = float(np.mean(codes_of(seen + result.intercept) == codes[rows]))

        expansion = problem.space.expansion(result.coordinates)
        # A copy: the caller may write to X later.
        self._expansion = replace(expansion, landmarks=expansion.landmarks.copy())
        self.X_fit_ = self._expansion.landmarks
        self.dual_coef_ = self._expansion.coef
        self.intercept_ = result.intercept
        self.n_iter_ = result.n_iter
        self.converged_ = result.converged
        self.energy_path_ = result.energy_path

    def _values(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        return self._expansion(self._validated(X, reset=False)) + self.intercept_


def _reachable(problem: Problem) -> BoolArray:
    """Rows in whose component of the graph there is a label."""
    if problem.graph is None:
        return np.ones(problem.space.n_points, dtype=bool)
    components = problem.graph.component_labels
    return np.isin(components, components[problem.rows])


def _constant(problem: Problem) -> MethodResult:
    """Answer for a single class: -1 everywhere, as for the first of two classes."""
    n_columns = problem.n_columns
    return MethodResult(
        solution=np.full((problem.space.n_points, n_columns), -1.0),
        status=Status.CONVERGED,
        n_iter=1,
        certificate=0.0,
        coordinates=np.zeros((problem.space.rank, n_columns)),
        intercept=np.full(n_columns, -1.0),
        energy_path=np.zeros(1),
    )
