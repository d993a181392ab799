"""Advice on labels: which rows to label next, and which labels look wrong."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tvsvm._grouping import places_on, representatives
from tvsvm.graph import Graph
from tvsvm.results import BoolArray, FloatArray, IntArray

MOST_TAKEN = 500  # labelled rows that keep suggestions away, if there are more labels
COVER = 0.1  # what a row counts that is not doubtful, beside 1 for one that is a toss-up
DOUBTFUL = 0.2
SMALL_SHARE = 0.1  # a component is worth a label of its own from this part of N/n rows on
CONTRADICTED = 0.8  # share of the neighbours that makes a label suspicious
NO_LABEL_NEAR = "typical of rows with no label near them"


@dataclass(frozen=True)
class Suggestion:
    """A row worth labelling.

    Attributes
    ----------
    row : int
        Position of the row.
    reason : str
        Why, in a few words.
    score : float
        About how many rows its label would help to decide.
    """

    row: int
    reason: str
    score: float


@dataclass(frozen=True)
class SuspiciousLabel:
    """A label that the neighbours of its row contradict.

    Attributes
    ----------
    row : int
        Position of the row.
    given : object
        Its label.
    instead : object
        The class of most of its neighbours.
    confidence : float
        Share of the neighbours, by weight, that are of that class.
    reason : str
        The evidence, in a few words.
    """

    row: int
    given: Any
    instead: Any
    confidence: float
    reason: str


def suggest(model: Any, n: int = 20) -> list[Suggestion]:
    """Rows most worth labelling next, the most useful first; always the same ones.

    First a typical row of every large component of the graph without a label, the largest first.
    Then the rows are grouped by their place on the graph, away from the labels there are, and the
    row in the middle of each group is taken, so that near-duplicates are not asked for twice. Half
    of the groups stand for rows that no label is near to, the others for doubtful rows: with few
    labels a model may well be sure and wrong.

    Parameters
    ----------
    model : fitted classifier
        Without a graph (RLS, SVM) rows are grouped by their class probabilities.
    n : int
        Most suggestions.

    Returns
    -------
    list of Suggestion
        Fewer than `n` if fewer rows are without a label.
    """
    _check_count(n)
    graph: Graph | None = getattr(model, "graph_", None)
    P = model.label_distributions_
    free = ~model.labeled_
    if graph is None:
        places, component_rows = P, []
    else:
        places, P = places_on(graph), (P + _neighbor_mean(graph, P)) / 2
        component_rows = _components(graph, ~model.reachable_, _worth_a_label(graph, n))[:n]
    chosen = [_in_component(places, rows) for rows in component_rows]
    free[[suggestion.row for suggestion in chosen]] = False
    doubt, left = _doubt(P), n - len(chosen)
    found: list[Suggestion] = []
    for weight, count in ((np.full(len(P), COVER), left // 2), (doubt + COVER, left - left // 2)):
        taken = places[_evenly(np.flatnonzero(~free), MOST_TAKEN)]
        rows, mass = representatives(places, weight * free, count, taken=taken)
        free[rows] = False
        for row, score in zip(rows, mass, strict=True):
            reason = _either(model.classes_, P[row]) if doubt[row] > DOUBTFUL else NO_LABEL_NEAR
            found.append(Suggestion(int(row), reason, float(score)))
    return chosen + _best_first(found)


def suggest_without_labels(graph: Graph, n: int = 20) -> list[Suggestion]:
    """Rows to label first, when no row has a label yet; always the same ones.

    Every large component of the graph gets its share of the suggestions, and so do the small ones
    together. In a component the rows are grouped by their place on the graph, and a row with many
    neighbours in the middle of each group stands for it.

    Parameters
    ----------
    graph : Graph
        As of `knn_graph`.
    n : int
        Most suggestions.

    Returns
    -------
    list of Suggestion
        The largest group first; fewer than `n` if there are fewer rows.
    """
    _check_count(n)
    groups = _groups(graph, n)
    shares = _shares(np.array([rows.size for rows in groups]), n)
    places, crowd = places_on(graph), _crowd(graph)
    found: list[Suggestion] = []
    for group, count in zip(groups, shares, strict=True):
        rows, mass = representatives(places[group], crowd[group], count)
        size = mass / crowd[group].sum() * group.size
        found += [
            Suggestion(int(group[row]), f"stands for about {about:,.0f} rows like it", float(about))
            for row, about in zip(rows, size, strict=True)
        ]
    return _best_first(found)


def suspicious_labels(model: Any) -> list[SuspiciousLabel]:
    """Labels that the neighbours of their rows contradict, the most suspicious first.

    A label is listed if at least four fifths of its row's neighbours, by weight, are found to be
    of other classes, most of them of one class that has a label in the same component. Its own
    pull on the neighbours speaks for it, so what is listed is contradicted in spite of that; the
    total variation and Cheeger methods find most wrong labels, the Laplacian methods, where a
    label wins its neighbours over, few. The only label of a class is never listed: nothing else
    says what that class is.

    Parameters
    ----------
    model : fitted classifier
        One with a graph, that is not RLS or SVM.

    Returns
    -------
    list of SuspiciousLabel
    """
    graph: Graph | None = getattr(model, "graph_", None)
    if graph is None:
        raise ValueError(
            "Suspicious labels are found by the neighbours of their rows. Got "
            f"{type(model).__name__}, which has no graph; fit TVSVM or another method with one."
        )
    codes = model.label_distributions_.argmax(axis=1)
    one_hot = np.eye(len(model.classes_))
    rows = np.flatnonzero(model.labeled_)
    given = codes[rows]
    votes = _neighbor_mean(graph, one_hot[codes])[rows]
    against = 1.0 - votes[np.arange(rows.size), given]
    instead, share = votes.argmax(axis=1), votes.max(axis=1)
    component = graph.component_labels[rows]
    backed = set(zip(component.tolist(), given.tolist(), strict=True))
    has_another = one_hot[given].sum(axis=0)[given] > 1
    found = [
        SuspiciousLabel(
            int(rows[k]),
            model.classes_[given[k]],
            model.classes_[instead[k]],
            float(share[k]),
            f"{share[k]:.0%} of its neighbours are {model.classes_[instead[k]]}, "
            f"{1.0 - against[k]:.0%} are {model.classes_[given[k]]}",
        )
        for k in np.flatnonzero((against >= CONTRADICTED) & (share >= 0.5) & has_another)
        if (component[k], instead[k]) in backed
    ]
    return sorted(found, key=lambda label: (-label.confidence, label.row))


def _check_count(n: int) -> None:
    if n < 0:
        raise ValueError(
            f"`n` must be a number of suggestions. Got {n}; pass n >= 0, for example 20."
        )


def _best_first(suggestions: list[Suggestion]) -> list[Suggestion]:
    return sorted(suggestions, key=lambda suggestion: (-suggestion.score, suggestion.row))


def _either(classes: Any, probabilities: FloatArray) -> str:
    first, second = np.argsort(-probabilities, kind="stable")[:2]
    return (
        f"might be {classes[first]} ({probabilities[first]:.0%}) "
        f"or {classes[second]} ({probabilities[second]:.0%})"
    )


def _evenly(rows: IntArray, most: int) -> IntArray:
    return rows[np.linspace(0, rows.size - 1, min(rows.size, most)).astype(np.intp)]


def _in_component(places: FloatArray, rows: IntArray) -> Suggestion:
    centre, _ = representatives(places[rows], np.ones(rows.size), 1)
    reason = f"none of the {rows.size:,} rows of its component has a label"
    return Suggestion(int(rows[centre[0]]), reason, float(rows.size))


def _worth_a_label(graph: Graph, n: int) -> int:
    return max(2, int(SMALL_SHARE * graph.n_nodes / max(n, 1)))


def _components(graph: Graph, among: BoolArray, at_least: int) -> list[IntArray]:
    """Rows of each component whose rows are `among` them and many enough, the largest first."""
    labels = graph.component_labels
    sizes = np.bincount(labels[among], minlength=graph.n_components)
    large = [k for k in np.argsort(-sizes, kind="stable") if sizes[k] >= at_least]
    return [np.flatnonzero(labels == k) for k in large]


def _groups(graph: Graph, n: int) -> list[IntArray]:
    """Rows to divide `n` suggestions among: large components, and the small ones together."""
    at_least = _worth_a_label(graph, n)
    groups = _components(graph, np.ones(graph.n_nodes, dtype=bool), at_least)[:n]
    covered = np.concatenate([*groups, np.empty(0, dtype=np.intp)])
    rest = np.setdiff1d(np.arange(graph.n_nodes), covered)
    wanted = rest.size >= at_least or covered.size < n
    return [*groups, rest] if rest.size and wanted and len(groups) < n else groups


def _shares(sizes: IntArray, n: int) -> IntArray:
    """Divide `n` among groups by their sizes: one each, the rest where it is missing most."""
    shares = np.ones(sizes.size, dtype=int)
    for _ in range(n - sizes.size):
        shares[np.argmax(np.where(shares < sizes, sizes / shares, 0.0))] += 1
    return np.minimum(shares, sizes)


def _crowd(graph: Graph) -> FloatArray:
    """How central each node is among its neighbours, positive."""
    degrees = graph.degrees.astype(np.float64) / max(float(graph.degrees.max()), 1e-300)
    return (degrees + _neighbor_mean(graph, degrees[:, None])[:, 0]) / 2 + 1e-3


def _doubt(P: FloatArray) -> FloatArray:
    """1 - (the largest - the second largest) probability of each row."""
    if P.shape[1] == 1:
        return np.zeros(len(P))
    second, first = np.partition(P, -2, axis=1)[:, -2:].T
    return np.clip(1.0 - (first - second), 0.0, 1.0)


def _neighbor_mean(graph: Graph, P: FloatArray) -> FloatArray:
    """Mean of the neighbours' rows by weight; a node without neighbours keeps its own."""
    degrees = graph.degrees[:, None].astype(np.float64)
    alone = degrees == 0
    return np.where(alone, P, graph.affinity @ P / np.where(alone, 1.0, degrees))
