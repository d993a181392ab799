"""An order of a graph's nodes in which neighbours are close: loops then find them in the cache."""

import numpy as np
from scipy.sparse import csr_array

from tvsvm._jit import kernel
from tvsvm.results import IntArray


def reverse_cuthill_mckee(W: csr_array) -> IntArray:
    """Node at each position of the reverse Cuthill-McKee order of a symmetric W.

    Nodes of a component follow each other. In time linear in the edges, also at a hub, where
    scipy's function of this name, which sorts a node's neighbours by insertion, is quadratic.
    """
    by_degree = np.argsort(np.diff(W.indptr), kind="stable")
    return np.ascontiguousarray(_breadth_first(W.indptr, W.indices, by_degree)[::-1])


@kernel
def _breadth_first(indptr: IntArray, indices: IntArray, by_degree: IntArray) -> IntArray:
    """Breadth-first order from nodes of low degree, neighbours of low degree first.

    `by_degree` lists the nodes by degree.
    """
    n_nodes = by_degree.size
    # The graph is symmetric, so walking the nodes by degree fills every neighbour list by degree.
    sorted_neighbors = np.empty_like(indices)
    fill = indptr[:-1].copy()
    for u in by_degree:
        for e in range(indptr[u], indptr[u + 1]):
            v = indices[e]
            sorted_neighbors[fill[v]] = u
            fill[v] += 1
    order = np.empty(n_nodes, np.int32)
    seen = np.zeros(n_nodes, np.bool_)
    n_seen = 0
    n_done = 0
    for start in by_degree:
        if seen[start]:
            continue
        seen[start] = True
        order[n_seen] = start
        n_seen += 1
        while n_done < n_seen:
            u = order[n_done]
            n_done += 1
            for e in range(indptr[u], indptr[u + 1]):
                v = sorted_neighbors[e]
                if not seen[v]:
                    seen[v] = True
                    order[n_seen] = v
                    n_seen += 1
    return order
