"""Links for small groups of rows that a graph of k neighbours leaves hanging by next to nothing.

A few more than k rows that lie close together have no neighbours but each other. What is around
them the graph does not tell, so that a cut puts them wherever the balance of classes likes them.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from tvsvm.graph import kernels
from tvsvm.graph.core import Graph
from tvsvm.results import FloatArray, IntArray

LOOSE = 0.01  # share of a group's weight that links it to others; less is raised to so much
LARGEST = 3  # times k rows: more are a cluster in its own right,
LARGEST_SHARE = 0.1  # as is such a share of all rows
N_BRIDGES = 5  # rows around the group that each of its rows is linked to
MOST_ROWS = 2000  # that are linked in all: their neighbours are searched among all rows


class Groups(NamedTuple):
    """Groups of rows: that of each row or -1, their weight and how much of it links to others."""

    of_row: IntArray
    weight: FloatArray
    linked: FloatArray


def bridged(graph: Graph, n_neighbors: int, search: Callable[[IntArray, int], IntArray]) -> Graph:
    """Graph with links from small loose groups to the nearest rows around them.

    Components stay what they are: a group without any link may be something of its own, and
    classifiers say which rows no label reaches. More than `MOST_ROWS` groups are no exceptions that
    need links, but what the graph is like; they stay what they are, too.

    Parameters
    ----------
    graph : Graph
        Of k neighbours.
    n_neighbors : int
        k.
    search : callable
        From (m,) rows and n to the (m, n) rows that are nearest to each, without itself.
    """
    largest = min(LARGEST * n_neighbors, int(LARGEST_SHARE * graph.n_nodes))
    groups = loose_groups(graph.affinity, largest)
    n_groups = groups.weight.size
    if not 0 < n_groups <= MOST_ROWS:
        return graph
    rows = _first_of_each(groups.of_row, MOST_ROWS // n_groups)
    mine = groups.of_row[rows]
    near = search(rows, largest - 1 + N_BRIDGES)  # so many that some are not of the same group
    components = graph.component_labels
    around = groups.of_row[near] != mine[:, None]
    around &= components[near] == components[rows][:, None]
    around &= np.cumsum(around, axis=1) <= N_BRIDGES
    start, end = np.nonzero(around)
    missing = LOOSE * groups.weight - groups.linked
    # A group may have only rows of other components around it: it stays as it is.
    each = missing / np.maximum(np.bincount(mine[start], minlength=n_groups), 1)
    W = graph.affinity
    links = csr_array(
        (each[mine[start]].astype(W.dtype), (rows[start], near[start, end])), shape=W.shape
    )
    return Graph(csr_array(W + links + links.T))


def loose_groups(affinity: csr_array, largest: int) -> Groups:
    """Groups of at most so many rows with some link to others, but less than `LOOSE` in all.

    Rows, then groups of them, join those that they have the strongest link to, until they are too
    large or hardly linked to any.
    """
    group: IntArray = np.arange(affinity.shape[0])
    between, sizes = affinity, np.ones(group.size)
    weight = np.asarray(affinity.sum(axis=1), dtype=np.float64)
    while True:
        linked = np.asarray(between.sum(axis=1), dtype=np.float64)
        small = (sizes <= largest) & (linked > 0)
        joining = np.flatnonzero(small & (linked >= LOOSE * weight))
        if joining.size == 0:
            break
        strongest = kernels.strongest(between.indptr, between.indices, between.data)
        pairs = coo_array(
            (np.ones(joining.size), (joining, strongest[joining])), shape=between.shape
        )
        n_groups, joined = connected_components(pairs, directed=False)
        weight = np.bincount(joined, weight, n_groups).astype(np.float64)
        sizes = np.bincount(joined, sizes, n_groups).astype(np.float64)
        links = between.tocoo()
        row, column = (joined[end] for end in links.coords)
        apart = row != column
        between = csr_array(
            (links.data[apart], (row[apart], column[apart])), shape=(n_groups, n_groups)
        )
        group = joined[group]
    number = np.where(small, np.cumsum(small) - 1, -1)
    return Groups(number[group], weight[small], linked[small])


def _first_of_each(group: IntArray, n: int) -> IntArray:
    """At most n rows of each group, -1 being none."""
    order = np.argsort(group, kind="stable")
    order = order[group[order] >= 0]
    starts = np.searchsorted(group[order], group[order])
    return order[np.arange(order.size) - starts < n]
