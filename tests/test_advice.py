"""Advice: what to label next, and which labels look wrong."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from references import random_graph
from sklearn.datasets import load_digits, make_blobs

import tvsvm
from tvsvm._grouping import places_on, representatives
from tvsvm.advice import suggest, suggest_without_labels, suspicious_labels
from tvsvm.graph import Graph, knn_graph

CENTRES = np.array([[-9.0, 0.0], [0.0, 9.0], [9.0, 0.0]])


def fitted(graph, codes, labeled, confidence=1.0):
    """What advice reads of a model that found these classes with this confidence."""
    n_classes = int(np.max(codes)) + 1
    P = np.full((len(codes), n_classes), 0.0)
    P += ((1 - np.broadcast_to(confidence, len(codes))) / max(n_classes - 1, 1))[:, None]
    P[np.arange(len(codes)), codes] = confidence
    P[labeled] = np.eye(n_classes)[np.asarray(codes)[labeled]]
    components = graph.component_labels
    return SimpleNamespace(
        graph_=graph,
        label_distributions_=P,
        labeled_=labeled,
        reachable_=np.isin(components, components[labeled]),
        classes_=np.array([f"class {k}" for k in range(n_classes)]),
    )


def ring(n_nodes):
    rows = np.arange(n_nodes)
    W = np.zeros((n_nodes, n_nodes))
    W[rows, rows - 1] = W[rows - 1, rows] = 1.0
    return W


def block_diagonal(*blocks):
    size = sum(len(block) for block in blocks)
    W, start = np.zeros((size, size)), 0
    for block in blocks:
        W[start : start + len(block), start : start + len(block)] = block
        start += len(block)
    return W


def mask(n_rows, rows):
    return np.isin(np.arange(n_rows), rows)


class TestSuggest:
    def test_components_without_a_label_come_first_the_largest_before_others(self):
        graph = Graph(block_diagonal(ring(20), ring(8), ring(12), ring(3)))
        model = fitted(graph, np.zeros(43, int), mask(43, [0]))
        found = suggest(model, 6)
        assert [graph.component_labels[item.row] for item in found[:3]] == [2, 1, 3]
        assert "none of the 12 rows of its component has a label" in found[0].reason
        assert found[0].score == 12

    def test_small_components_do_not_crowd_out_the_rest(self):
        pairs = [ring(2)] * 50
        graph = Graph(block_diagonal(ring(200), *pairs))
        model = fitted(graph, np.zeros(300, int), mask(300, [0]))
        found = suggest(model, 5)  # a pair is less than a tenth of a fifth of the rows
        assert not any("component" in item.reason for item in found)

    def test_a_doubtful_row_is_asked_for_and_says_why(self):
        X, y = make_blobs(90, centers=CENTRES, random_state=0)
        X[40] = CENTRES[:2].mean(axis=0)
        codes = y.copy()
        graph = knn_graph(X, n_neighbors=5, weights="gaussian")  # a lone row counts as any other
        model = fitted(graph, codes, mask(90, [0, 1, 2]))
        P = model.label_distributions_
        P[40] = [0.5, 0.5, 0.0]
        found = {item.row: item.reason for item in suggest(model, 10)}
        assert 40 in found
        assert "class 0" in found[40]
        assert "class 1" in found[40]

    def test_near_duplicates_are_not_asked_for_twice(self):
        # Four heaps of equally doubtful rows: one suggestion for each.
        heaps = Graph(block_diagonal(*[np.ones((25, 25))] * 4) + 1e-3)
        model = fitted(heaps, np.arange(100) % 2, mask(100, [0]), confidence=0.5)
        rows = [item.row for item in suggest(model, 4)]
        assert len({row // 25 for row in rows}) >= 3

    def test_labels_keep_suggestions_away(self):
        heaps = Graph(block_diagonal(*[np.ones((25, 25))] * 4) + 1e-3)
        model = fitted(heaps, np.zeros(100, int), mask(100, [3, 30, 60]))
        assert [item.row // 25 for item in suggest(model, 1)] == [3]

    def test_better_than_random_on_digits(self):
        # Which classes are there is known from one label each; the rest is up to the advice.
        X, y = load_digits(return_X_y=True)
        graph = knn_graph(X)
        first = np.unique(y, return_index=True)[1]
        nearest = first[
            np.argmin(np.linalg.norm(X[:, None] - X[first], axis=2), axis=1)
        ]  # a poor model: the class of the nearest label
        model = fitted(graph, y[nearest], mask(len(y), first), confidence=0.8)
        rows = [item.row for item in suggest(model, 20)]
        wrong = np.mean(y[nearest] != y)
        assert np.mean(y[nearest][rows] != y[rows]) > wrong

    def test_half_is_asked_where_the_model_is_sure(self):
        X, y = make_blobs(90, centers=CENTRES, random_state=0)
        graph = knn_graph(X, weights="gaussian")
        model = fitted(graph, y, mask(90, np.unique(y, return_index=True)[1]))
        model.label_distributions_[y == 0] = 1 / 3  # all the doubt is in one class
        rows = [item.row for item in suggest(model, 6)]
        assert np.count_nonzero(y[rows] == 0) >= 3
        assert set(y[rows]) == {0, 1, 2}

    @pytest.mark.parametrize("name", ["RLS", "SVM", "LapSVM", "TVRLS", "CheegerRLS"])
    def test_of_every_kind_of_model(self, name):
        X, y = make_blobs(60, centers=CENTRES, random_state=0)
        partial = np.where(np.arange(60) < 9, y, -1)
        model = getattr(tvsvm, name)(random_state=0).fit(X, partial)
        found = model.suggest(7)
        assert len({item.row for item in found}) == 7
        assert not model.labeled_[[item.row for item in found]].any()
        assert found == model.suggest(7)

    def test_no_more_than_there_are(self):
        model = fitted(Graph(ring(5)), np.zeros(5, int), mask(5, [0, 1]))
        assert sorted(item.row for item in suggest(model, 20)) == [2, 3, 4]
        assert suggest(model, 0) == []

    def test_every_row_labelled(self):
        assert suggest(fitted(Graph(ring(4)), np.arange(4) % 2, np.ones(4, bool))) == []

    def test_negative_number(self):
        with pytest.raises(ValueError, match=r"Got -1; pass n >= 0"):
            suggest(fitted(Graph(ring(4)), np.zeros(4, int), mask(4, [0])), -1)


class TestSuggestWithoutLabels:
    def test_all_digits_are_among_twenty(self):
        X, y = load_digits(return_X_y=True)
        found = suggest_without_labels(knn_graph(X), 20)
        assert set(y[[item.row for item in found]]) == set(range(10))  # 9.0 at random
        assert np.isclose(sum(item.score for item in found), len(y))

    def test_every_large_component_has_one(self):
        graph = Graph(block_diagonal(ring(50), ring(10), ring(40), np.zeros((2, 2))))
        found = suggest_without_labels(graph, 6)
        components = [graph.component_labels[item.row] for item in found]
        assert {0, 1, 2} <= set(components)
        assert len(found) == 6

    @settings(deadline=None, derandomize=True, max_examples=25, database=None)
    @given(st.integers(0, 2**32 - 1), st.integers(0, 12))
    def test_any_graph(self, seed, n):
        rng = np.random.default_rng(seed)
        graph = random_graph(rng, int(rng.integers(1, 15)), density=rng.uniform(0, 0.6))
        rows = [item.row for item in suggest_without_labels(graph, n)]
        assert len(set(rows)) == len(rows) == min(n, graph.n_nodes)
        assert rows == [item.row for item in suggest_without_labels(graph, n)]


class TestSuspiciousLabels:
    def blobs(self, given):
        """Thirty rows of each class in turn; `given` are row and class of each label."""
        X, y = make_blobs(np.full(3, 30), centers=CENTRES, random_state=0, shuffle=False)
        partial = np.full(90, -1)
        partial[list(given)] = list(given.values())
        return X, partial, y

    @pytest.mark.parametrize("name", ["TVRLS", "CheegerRLS"])
    def test_a_wrong_label_is_found(self, name):
        right = {0: 0, 5: 0, 9: 0, 31: 1, 35: 1, 39: 1, 61: 2, 65: 2, 69: 2}
        X, partial, _ = self.blobs(right | {50: 0})
        (found,) = getattr(tvsvm, name)(random_state=0).fit(X, partial).suspicious_labels()
        assert (found.row, found.given, found.instead) == (50, 0, 1)
        assert found.confidence > 0.8
        assert "of its neighbours are 1" in found.reason

    @pytest.mark.parametrize("n_labels", [1, 2, 5])
    def test_right_labels_are_not_accused(self, n_labels):
        given = {30 * k + i: k for k in range(3) for i in range(n_labels)}
        X, partial, _ = self.blobs(given)
        assert tvsvm.TVRLS(random_state=0).fit(X, partial).suspicious_labels() == []

    def test_the_only_label_of_a_class_is_never_accused(self):
        codes = np.zeros(30, int)
        codes[7] = 1
        model = fitted(knn_graph(np.arange(30.0)[:, None], n_neighbors=4), codes, mask(30, [0, 7]))
        assert suspicious_labels(model) == []
        model.labeled_[20] = True  # a second label of that class, elsewhere
        model.label_distributions_[20] = [0.0, 1.0]
        assert [item.row for item in suspicious_labels(model)] == [7, 20]

    def test_a_class_without_a_label_in_the_component_is_no_evidence(self):
        graph = Graph(block_diagonal(ring(10), ring(10)))
        codes = np.repeat([0, 1], 10)
        codes[[3, 15]] = 1, 1  # labels: 3 says 1 amid 0 that no label of its component backs
        model = fitted(graph, codes, mask(20, [3, 15]))
        assert suspicious_labels(model) == []
        model.labeled_[8] = True
        assert [item.row for item in suspicious_labels(model)] == [3]

    def test_most_suspicious_first(self):
        X, y = make_blobs(120, centers=CENTRES, random_state=1)
        codes = y.copy()
        labeled = np.arange(120) < 60
        codes[:6] = (codes[:6] + 1) % 3
        found = suspicious_labels(fitted(knn_graph(X, n_neighbors=8), codes, labeled))
        assert {item.row for item in found} <= set(range(6))
        assert len(found) >= 4
        assert np.all(np.diff([item.confidence for item in found]) <= 0)

    def test_needs_a_graph(self):
        with pytest.raises(ValueError, match="Got RLS, which has no graph; fit TVSVM"):
            tvsvm.RLS().fit([[0.0], [1.0]], [0, 1]).suspicious_labels()


class TestGrouping:
    def test_places_are_the_leading_eigenvectors(self):
        # Cliques joined weakly: the leading space is that of functions constant on cliques.
        W = block_diagonal(*[np.ones((15, 15))] * 3) + 1e-3
        places = places_on(Graph(W))
        similarity = places @ places.T
        same = np.arange(45)[:, None] // 15 == np.arange(45) // 15
        assert similarity[same].mean() > similarity[~same].mean() + 0.1
        np.testing.assert_allclose(np.linalg.norm(places, axis=1), 1.0)

    def test_one_of_each_group_the_heaviest_first(self):
        rng = np.random.default_rng(0)
        groups = np.repeat([0, 1, 2], [10, 30, 20])
        places = np.eye(3)[groups] + 0.01 * rng.standard_normal((60, 3))
        rows, mass = representatives(places / 2, np.ones(60), 3)
        assert groups[rows].tolist() == [1, 2, 0]
        np.testing.assert_allclose(mass, [30, 20, 10])

    def test_a_heavy_row_at_the_border_does_not_stand_for_its_group(self):
        places = np.array([[0.0], [0.1], [0.2], [0.3], [0.9]])
        rows, mass = representatives(places, np.array([1.0, 1.0, 1.0, 1.0, 1.5]), 1)
        assert (rows.tolist(), mass.tolist()) == ([3], [5.5])

    def test_duplicates_fill_up_by_weight(self):
        rows, _ = representatives(np.ones((5, 2)) / 2, np.array([1.0, 0.0, 3.0, 2.0, 5.0]), 3)
        assert rows.tolist() == [4, 2, 3]

    def test_taken_places_are_left_alone(self):
        places = np.repeat(np.eye(2), [9, 3], axis=0)
        rows, mass = representatives(places, np.ones(12), 1, taken=places[:1])
        assert rows[0] >= 9
        assert mass[0] == 3
