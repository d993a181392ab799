"""The graph every method works on: symmetric affinity, edges in a cache-friendly order, TV."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, diags_array, issparse
from scipy.sparse.csgraph import connected_components

from tvsvm._ordering import reverse_cuthill_mckee
from tvsvm.graph import kernels
from tvsvm.graph.checks import checked_csr, float_rows, read_only, symmetric
from tvsvm.graph.weights import (
    Weights,
    affinity_from_distances,
    agreement,
    heavier_where_dense,
    symmetrized,
)
from tvsvm.results import BoolArray, FloatArray, IntArray

SAME_SCALE = 45.0  # relative differences of scale, in units of rounding, that are none
SMOOTHING = 10  # sweeps by which positions of nodes are averaged before they are cut in two


class Graph:
    """Weighted undirected graph, immutable.

    TV(f) = Σ_e w_e |f_i - f_j|,  Dirichlet(f) = Σ_e w_e (f_i - f_j)² = fᵀ L f,
    each undirected edge counted once.

    Parameters
    ----------
    affinity : sparse or dense array of shape (N, N)
        Weights: finite, non-negative and symmetric up to rounding (then averaged with its
        transpose). The diagonal and explicit zeros are dropped. float32 stays float32, everything
        else becomes float64. The array is copied.
    masses : array-like of shape (N,), optional
        What each node counts in a mean over nodes, not negative. By default its degree: nodes that
        hang by little are often strays.

    See Also
    --------
    knn_graph : From the rows of a data matrix.
    Graph.from_distances : From scikit-learn's `kneighbors_graph` or `KNeighborsTransformer`.
    Graph.from_directed : From an affinity that is not symmetric.
    Graph.from_networkx : From a NetworkX graph.

    Examples
    --------
    >>> from tvsvm.graph import Graph
    >>> path = Graph([[0, 1, 0], [1, 0, 2], [0, 2, 0]])
    >>> path.n_edges, path.total_variation([0.0, 1.0, 3.0])
    (2, 5.0)
    """

    _affinity: csr_array
    _masses: FloatArray | None

    def __init__(self, affinity: Any, *, masses: ArrayLike | None = None) -> None:
        W = read_only(symmetric(checked_csr(affinity, "affinity")))
        self.__dict__["_affinity"] = W
        self.__dict__["_masses"] = None if masses is None else _checked_masses(masses, W.shape[0])

    @classmethod
    def from_directed(cls, affinity: Any, *, symmetrize: str = "mean") -> Self:
        """Graph of an affinity whose row i holds the weights of the edges that leave i.

        Parameters
        ----------
        affinity : sparse or dense array of shape (N, N)
            For example `kneighbors_graph(X, 10, mode="connectivity")`.
        symmetrize : {"mean", "max", "mutual"}
            "mean" (W + Wᵀ)/2; "max" the larger of the two; "mutual" the smaller of the two, which
            keeps an edge only if it goes both ways.
        """
        return cls(symmetrized(checked_csr(affinity, "affinity"), symmetrize))

    @classmethod
    def from_distances(
        cls, distances: Any, *, weights: Weights = "density", symmetrize: str = "mean"
    ) -> Self:
        """Graph of the distances from every row to its neighbours.

        Parameters
        ----------
        distances : sparse array of shape (N, N)
            Row i holds the distances from i to its neighbours, as `kneighbors_graph(X, 10,
            mode="distance")` and `KNeighborsTransformer` give them. The diagonal (a row as its own
            neighbour) is dropped; an explicit zero elsewhere is a duplicate row and a real edge.
        weights : {"density", "gaussian", "selftuning", "uniform", "distance"} or callable
            How a distance becomes a weight, see `knn_graph`.
        symmetrize : {"mean", "max", "mutual"}
            How the two directions become one, see `from_directed`.
        """
        if not issparse(distances):
            raise ValueError(
                "`distances` must be a sparse matrix, whose stored entries are the neighbours. "
                f"Got {type(distances).__name__}; pass kneighbors_graph(X, 10, mode='distance')."
            )
        checked = checked_csr(distances, "distances")
        affinity = affinity_from_distances(checked, weights)
        graph = cls.from_directed(affinity, symmetrize=symmetrize)
        return graph.where_dense(checked) if weights == "density" else graph

    @classmethod
    def from_networkx(cls, graph: Any, *, weight: str | None = "weight") -> Self:
        """Graph of an undirected NetworkX graph, its nodes in the order of `graph.nodes`.

        Parameters
        ----------
        graph : networkx.Graph or networkx.MultiGraph
            Parallel edges add up, loops are dropped.
        weight : str or None
            Edge attribute with the weight; an edge without it, and None, count 1.
        """
        try:
            import networkx
        except ImportError as error:
            raise ImportError(
                "Graph.from_networkx needs networkx, which is not installed: pip install networkx."
            ) from error
        if len(graph) == 0:
            raise ValueError("`graph` must have at least one node. Got 0; add nodes to it.")
        return cls(networkx.to_scipy_sparse_array(graph, weight=weight, dtype=None))

    @property
    def affinity(self) -> csr_array:
        """Symmetric weights W, shape (N, N): indices sorted, diagonal empty, read-only."""
        return self._affinity

    @property
    def n_nodes(self) -> int:
        """Number of nodes N."""
        return int(self._affinity.shape[0])

    @property
    def n_edges(self) -> int:
        """Number of undirected edges E."""
        return self._affinity.nnz // 2

    @cached_property
    def degrees(self) -> FloatArray:
        """Sum of the weights at each node, shape (N,)."""
        return read_only(np.asarray(self._affinity.sum(axis=1)))

    @property
    def masses(self) -> FloatArray:
        """What each node counts in a mean over nodes, shape (N,)."""
        return self.degrees if self._masses is None else self._masses

    @cached_property
    def laplacian(self) -> csr_array:
        """L = diag(degrees) - W, shape (N, N), read-only."""
        return read_only(csr_array(diags_array(self.degrees) - self._affinity))

    @property
    def order(self) -> IntArray:
        """Node at each position, shape (N,): two halves, each in reverse Cuthill-McKee order.

        Nodes of a component follow each other.
        """
        return self._halves[0]

    @property
    def middle(self) -> int:
        """Position in `order` where the second half begins: few edges lead there from the first."""
        return self._halves[1]

    @cached_property
    def _halves(self) -> tuple[IntArray, int]:
        indptr, indices = self._affinity.indptr, self._affinity.indices
        degrees = np.diff(indptr)
        order = reverse_cuthill_mckee(self._affinity)
        # Few edges must lead from half to half. This order cut in the middle cuts 16 % of the
        # edges of images; averaged over neighbours first, positions cut 3 to 5 %.
        smooth = kernels.smoothed(indptr, indices, order, SMOOTHING)
        # Of the components, which follow each other in the order, one at most is cut.
        component = np.cumsum(np.diff(self.component_labels[order], prepend=-1) != 0)
        by_value = np.lexsort((smooth[order], component))
        work = np.cumsum(degrees[order[by_value]])
        second = np.empty(order.size, dtype=bool)
        second[by_value] = work > work[-1] / 2
        order = np.concatenate((order[~second], order[second]))
        return read_only(order), int(order.size - second.sum())

    @cached_property
    def crossing(self) -> IntArray:
        """First edge of each position before `middle` that leads behind it, shape (middle,)."""
        return read_only(kernels.crossing(self.indptr, self.heads, self.middle))

    @cached_property
    def late(self) -> BoolArray:
        """Which positions from `middle` on can wait for the edges between the halves.

        Their edges touch no node that those lead to, and are about as much work;
        shape (N - middle,).
        """
        return read_only(kernels.late(self.indptr, self.heads, self.crossing))

    @cached_property
    def _upper(self) -> tuple[IntArray, IntArray, FloatArray]:
        W = self._affinity
        indptr, heads, weights = kernels.upper_edges(W.indptr, W.indices, W.data, self.order)
        return read_only(indptr), read_only(heads), read_only(weights)

    @property
    def indptr(self) -> IntArray:
        """Edges indptr[p]:indptr[p + 1] start at position p of `order`, shape (N + 1,)."""
        return self._upper[0]

    @property
    def heads(self) -> IntArray:
        """Position in `order` where each edge ends, behind the one where it starts, shape (E,)."""
        return self._upper[1]

    @property
    def edge_weights(self) -> FloatArray:
        """Weight of each edge, shape (E,)."""
        return self._upper[2]

    @cached_property
    def edges(self) -> IntArray:
        """Nodes (i, j) of each edge, i before j in `order`, sorted by position; shape (E, 2)."""
        return read_only(kernels.endpoints(self.indptr, self.heads, self.order))

    @property
    def n_components(self) -> int:
        """Number of connected components."""
        return self._components[0]

    @property
    def component_labels(self) -> IntArray:
        """Component of each node, numbered from 0 by their first node, shape (N,)."""
        return self._components[1]

    @cached_property
    def _components(self) -> tuple[int, IntArray]:
        n_components, labels = connected_components(self._affinity, directed=False)
        return int(n_components), read_only(labels)

    def total_variation(self, F: ArrayLike) -> float | FloatArray:
        """Σ_e w_e |f_i - f_j|: a number for F of shape (N,), shape (c,) for (N, c)."""
        return self._energy(kernels.total_variation, F)

    def dirichlet(self, F: ArrayLike) -> float | FloatArray:
        """Σ_e w_e (f_i - f_j)²: a number for F of shape (N,), shape (c,) for (N, c)."""
        return self._energy(kernels.dirichlet, F)

    def _energy(
        self, energy: Callable[[IntArray, FloatArray, FloatArray], FloatArray], F: ArrayLike
    ) -> float | FloatArray:
        values = float_rows(F, self.n_nodes, "F")
        total = energy(self.edges, self.edge_weights, values.reshape(self.n_nodes, -1))
        return float(total[0]) if values.ndim == 1 else total

    def difference(self, F: ArrayLike) -> FloatArray:
        """f_i - f_j along `edges`, without weights: (N, c) → (E, c), (N,) → (E,)."""
        values = float_rows(F, self.n_nodes, "F")
        steps = kernels.difference(self.edges, values.reshape(self.n_nodes, -1))
        return steps.reshape(self.n_edges, *values.shape[1:])

    def difference_adjoint(self, P: ArrayLike) -> FloatArray:
        """Transpose of `difference`: (E, c) → (N, c), (E,) → (N,)."""
        values = float_rows(P, self.n_edges, "P")
        columns = values[:, None] if values.ndim == 1 else values
        sums = kernels.difference_adjoint(self.edges, columns, self.n_nodes)
        return sums.reshape(self.n_nodes, *values.shape[1:])

    def scaled(self, *, mean_degree: float) -> Self:
        """Graph with all weights multiplied so that the mean of `degrees` is `mean_degree`."""
        if not 0 < mean_degree < np.inf:
            raise ValueError(
                f"`mean_degree` must be positive and finite. Got {mean_degree}; pass e.g. 1.0."
            )
        if self.n_edges == 0:
            raise ValueError(
                "A graph without edges has no scale. Got 0 edges; add edges before scaling it."
            )
        W = self._affinity
        relative = W.data / W.data.max()  # first to at most 1: the mean of huge weights overflows
        factor = mean_degree * self.n_nodes / relative.sum(dtype=np.float64)
        # What others made of this graph (its Laplacian, a kernel space's share of it) stays good.
        if abs(factor - W.data.max()) <= SAME_SCALE * np.finfo(W.dtype).eps * factor:
            return self
        data = (relative * factor).astype(W.dtype, copy=False)
        return self._like(csr_array((data, W.indices, W.indptr), shape=W.shape), self._masses)

    @cached_property
    def squared(self) -> Self:
        """Graph with squared weights and the same mean degree, masses and components.

        Its Dirichlet energy is to this graph's total variation what a sum of squares is to one of
        absolute values, of the same weighted differences w_e (f_i - f_j).
        """
        return self._times(lambda affinity: affinity.data)

    @cached_property
    def confirmed(self) -> Self:
        """Graph with weights times the agreement of the neighbourhoods at both ends of an edge.

        Agreement is the cosine between two rows of the affinity, each with the mean degree on its
        diagonal: large if the edge is heavy, or if both ends have heavy edges to the same nodes.
        An edge from one cluster to another seldom has either. Mean degree, masses and components
        stay the same.
        """
        return self._times(agreement)

    def _times(self, factor: Callable[[csr_array], FloatArray]) -> Self:
        """Graph with weights times a factor, made of weights the largest of which is 1."""
        W = self._affinity
        if W.nnz == 0:
            return self
        largest, limits = float(W.data.max()), np.finfo(W.dtype)
        relative = W.data.astype(np.float64) / largest
        products = relative * factor(csr_array((relative, W.indices, W.indptr), shape=W.shape))
        with np.errstate(over="ignore"):
            data = products * (largest * (relative.sum() / products.sum()))
        data = np.clip(data, limits.tiny, limits.max).astype(W.dtype)  # no edge vanishes
        graph = self._like(csr_array((data, W.indices, W.indptr), shape=W.shape), self.masses)
        # What depends on which nodes have edges, and not on weights, is the same for both.
        known = {"_components", "_halves"} & self.__dict__.keys()
        graph.__dict__.update({name: self.__dict__[name] for name in known})
        return graph

    def where_dense(self, distances: csr_array, *, dimension: float = 0.0) -> Self:
        """Graph with edges the heavier the denser the place, see "density" in `knn_graph`.

        Parameters
        ----------
        distances : csr_array of shape (N, N)
            From each node to its nearest neighbours. Nodes keep their masses, since how dense a
            place is says nothing about how typical its rows are.
        dimension : float
            In how many dimensions the rows spread, if that is known.
        """
        return self._like(heavier_where_dense(self._affinity, distances, dimension), self.masses)

    def _like(self, affinity: csr_array, masses: FloatArray | None) -> Self:
        return type(self)(affinity, masses=masses)

    def subgraph(self, nodes: ArrayLike) -> Self:
        """Graph of some nodes and the edges between them.

        Parameters
        ----------
        nodes : array of distinct node numbers, or boolean mask of shape (N,)
            Node k of the result is `nodes[k]` here.
        """
        chosen = np.asarray(nodes)
        if chosen.dtype == bool and chosen.shape == (self.n_nodes,):
            chosen = np.flatnonzero(chosen)
        numbers = np.unique(chosen)
        if (
            numbers.dtype.kind not in "iu"
            or chosen.shape != numbers.shape
            or not 0 < numbers.size <= numbers[-1] + 1 <= self.n_nodes
            or numbers[0] < 0
        ):
            raise ValueError(
                f"`nodes` must be distinct node numbers below {self.n_nodes}, or a mask with one "
                f"boolean a node. Got {chosen!r}; pass e.g. np.unique(nodes)."
            )
        masses = None if self._masses is None else self._masses[chosen]
        return self._like(self._affinity[chosen][:, chosen], masses)

    def __reduce__(self) -> tuple[Callable[..., "Graph"], tuple[csr_array, FloatArray | None]]:
        # Only the affinity and masses travel: the rest is quickly made again, and pickling would
        # make the arrays writeable.
        return _restored, (self._affinity, self._masses)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"A Graph is immutable: `{name}` cannot be set; make a new Graph.")

    def __repr__(self) -> str:
        return (
            f"Graph(n_nodes={self.n_nodes}, n_edges={self.n_edges}, dtype={self._affinity.dtype})"
        )


def _restored(affinity: csr_array, masses: FloatArray | None) -> Graph:
    return Graph(affinity, masses=masses)


def _checked_masses(masses: ArrayLike, n_nodes: int) -> FloatArray:
    values = np.array(masses, dtype=np.float64)
    if values.shape != (n_nodes,) or not (np.isfinite(values).all() and (values >= 0).all()):
        raise ValueError(
            "`masses` must hold one number a node, finite and not negative. Got shape "
            f"{values.shape} for {n_nodes} nodes, smallest {values.min(initial=np.inf)}; pass None "
            "for the degrees."
        )
    return read_only(values)
