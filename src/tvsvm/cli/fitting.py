"""From the user's choices to a fitted classifier."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sklearn.neighbors import VALID_METRICS

from tvsvm._jit import compiling_told_by
from tvsvm._telling import told_by
from tvsvm.cli.console import Console
from tvsvm.cli.errors import UserError
from tvsvm.cli.estimates import Estimate, estimate
from tvsvm.cli.options import Method, parse_prior
from tvsvm.cli.study import Study
from tvsvm.estimators.base import KernelClassifier
from tvsvm.graph import Graph, knn_graph

# The classifiers' own default.
NEIGHBORS = 10


@dataclass(frozen=True)
class Choices:
    """What the user said about the classifier."""

    method: Method
    neighbors: int | None
    metric: str | None
    prior: str | None
    jobs: int | None
    seed: int

    def classifier(self, classes: Sequence[Any]) -> KernelClassifier:
        """The classifier, not yet fitted."""
        import tvsvm

        family = getattr(tvsvm, self.method.value)
        known = set(family().get_params())
        asked = {
            "n_neighbors": ("--neighbors", self.neighbors),
            "metric": ("--metric", self.metric),
            "class_prior": ("--prior", _shares(self.prior, classes)),
        }
        for name, (option, value) in asked.items():
            if value is not None and name not in known:
                raise UserError(
                    f"{option} means nothing to {self.method.value}; leave it out or pass "
                    f"--method {_methods_with(name)}."
                )
        _check_metric(self.metric)
        if self.jobs == 0:
            raise UserError("--jobs must be positive, or -1 for all cores. Got 0; correct it.")
        parameters: dict[str, Any] = {
            name: value for name, (_, value) in asked.items() if value is not None
        }
        if "n_jobs" in known:
            parameters["n_jobs"] = self.jobs
        # Unknown is None: the table knows what its unknown cells are, and -1 may be a class of it.
        return family(random_state=self.seed, unlabeled="", **parameters)


def fit(study: Study, choices: Choices, console: Console) -> KernelClassifier:
    """Fit the classifier to all rows; what it warns of becomes a note."""
    classifier = choices.classifier(list(study.counts))
    expected = expected_of(study, classifier).seconds
    with (
        console.stage(f"Fitting {choices.method.value}", expected=expected) as report,
        told_by(lambda part, share: report(share, part)),
        compiling_told_by(console.aside),
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        try:
            classifier.fit(study.X, study.y)
        # Parameters out of range, or too many rows; the sentence is for the user.
        except (ValueError, MemoryError) as error:
            raise UserError(str(error)) from error
    for warning in caught:
        if issubclass(warning.category, UserWarning):
            console.note(str(warning.message))
    return classifier


def expected_of(study: Study, classifier: KernelClassifier) -> Estimate:
    """Memory and time that the fit will take."""
    return estimate(
        classifier,
        study.X.shape,
        n_classes=len(study.counts),
        n_labels=sum(study.counts.values()),
    )


def neighbor_graph(study: Study, choices: Choices, console: Console) -> Graph:
    """Graph of all rows, as the classifier would make it."""
    options: dict[str, Any] = {} if choices.metric is None else {"metric": choices.metric}
    if study.n_rows < 2:
        raise UserError("One row has no neighbours. Got 1 row; add rows.")
    with (
        console.stage("Searching neighbours") as report,
        told_by(lambda _, share: report(share)),
        compiling_told_by(console.aside),
    ):
        return knn_graph(
            study.X,
            n_neighbors=min(choices.neighbors or NEIGHBORS, study.n_rows - 1),
            bridges=True,
            random_state=choices.seed,
            n_jobs=choices.jobs,
            **options,
        )


def _methods_with(parameter: str) -> str:
    """Methods that have a parameter: "A, B or C"."""
    import tvsvm

    names = [method for method in Method if parameter in getattr(tvsvm, method)().get_params()]
    *others, last = [name.value for name in names]
    return f"{', '.join(others)} or {last}" if others else last


def _check_metric(metric: str | None) -> None:
    # The others need more than rows: distances, a matrix, variances.
    useless = {"precomputed", "mahalanobis", "seuclidean"}
    known = sorted({"euclidean", "cosine", *VALID_METRICS["brute"]} - useless)
    if metric is not None and metric not in known:
        raise UserError(f"--metric must be one of {', '.join(known)}. Got {metric!r}; correct it.")


def _shares(prior: str | None, classes: Sequence[Any]) -> str | list[float] | None:
    shares = parse_prior(prior)
    if not isinstance(shares, dict):
        return shares
    names = [str(name) for name in classes]
    if set(shares) != set(names):
        odd = min(set(shares) ^ set(names))
        raise UserError(
            "--prior must give the share of every class that has a label, and of no other. "
            f"Got {odd!r} {'without a label' if odd in shares else 'without a share'}; the classes "
            f"are {', '.join(names)}."
        )
    return [shares[name] for name in names]
