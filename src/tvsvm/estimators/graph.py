"""What the classifiers with a graph share: where the graph comes from."""

from collections.abc import Callable
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import csr_array

from tvsvm._threads import n_threads
from tvsvm.estimators.base import AT_LEAST_ONE, KernelClassifier
from tvsvm.estimators.parameters import parameter, with_parameters
from tvsvm.graph import Graph, knn_graph
from tvsvm.labels import Labels
from tvsvm.problem import MethodResult, Problem
from tvsvm.results import FloatArray


@with_parameters
class GraphClassifier(KernelClassifier):
    """Classifier by functions of a kernel space that vary little along the edges of a graph."""

    graph: Any = parameter(
        None,
        [Graph, "sparse matrix", "array-like", callable, None],
        """Graph, array or sparse matrix of shape (n_samples, n_samples), callable or None
The graph between all rows of `X`, or its symmetric affinity, or a function that
makes either from `X`. None: `knn_graph` of the rows with `bridges`. If only the graph is
known, ``kernel="precomputed"`` and ``X=np.eye(n_samples)`` leave all to it.""",
    )
    n_neighbors: int = parameter(
        10,
        [AT_LEAST_ONE],
        """int
Neighbours of a row if the graph is made from `X`; all rows if there are fewer.""",
    )
    metric: str | Callable = parameter(
        "euclidean",
        [str, callable],
        """str or callable
Distance of rows if the graph is made from `X`, as in
:func:`tvsvm.graph.knn_graph`. For a precomputed kernel, which says all there is
to know about `X`, the distance is always that of its feature space.""",
    )
    n_jobs: int | None = parameter(
        None,
        [Integral, None],
        """int or None
Threads for neighbours and functions, as in joblib; by default as many as BLAS has.
The result does not depend on it.""",
    )

    _family = "balanced"
    _ground = (*KernelClassifier._ground, "graph", "n_neighbors", "metric")
    _attributes: ClassVar[dict[str, str]] = {
        "graph_": "Graph\nThe graph, its weights scaled to a mean degree of 1.",
    }

    def _make_graph(self, X: Any, rng: np.random.RandomState) -> Graph:
        given = self.graph(X) if callable(self.graph) else self.graph
        if given is None:
            graph = self._neighbor_graph(X, rng)
        else:
            graph = given if isinstance(given, Graph) else Graph(given)
        n_rows = X.shape[0]
        if graph.n_nodes != n_rows:
            raise ValueError(
                f"`graph` must have one node for every row of X. Got {graph.n_nodes} nodes for "
                f"{n_rows} rows; pass the graph of these rows, or a function that makes it."
            )
        return graph.scaled(mean_degree=1.0) if graph.n_edges else graph

    def _when_made(self, labels: Labels) -> dict[str, Any]:
        # Beside the search for a partition, and only as far as it is needed.
        later = self._family == "balanced" and labels.n_classes > 2
        return {"later": later, "n_threads": effective_n_jobs(self._n_threads)}

    @property
    def _n_threads(self) -> int:
        return n_threads() if self.n_jobs is None else self.n_jobs

    def _neighbor_graph(self, X: Any, rng: np.random.RandomState) -> Graph:
        n_rows = X.shape[0]
        if n_rows == 1:
            return Graph(csr_array((1, 1)))
        precomputed = self.kernel == "precomputed"
        return knn_graph(
            _kernel_distances(X) if precomputed else X,
            metric="precomputed" if precomputed else self.metric,
            n_neighbors=min(self.n_neighbors, n_rows - 1),
            bridges=True,
            random_state=rng,
            n_jobs=self._n_threads,
        )

    def _store(self, problem: Problem, labels: Labels, result: MethodResult) -> None:
        super()._store(problem, labels, result)
        self.graph_ = problem.graph


def _kernel_distances(K: FloatArray) -> FloatArray:
    """|φ(x) - φ(z)| = √(k(x,x) + k(z,z) - 2 k(x,z)) between all rows."""
    diagonal = K.diagonal()
    return np.sqrt(np.maximum(diagonal[:, None] + diagonal - K - K.T, 0.0))
