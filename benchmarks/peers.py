"""What a user would otherwise run for the graph-TV prox, written as they would write it."""

import time

import numpy as np
import scipy.sparse as sp


def scipy_primal_dual(graph, z, strength, tol, seconds):
    """The paper's accelerated primal-dual with scipy.sparse; (time, relative gap)."""
    start = time.perf_counter()
    i, j = graph.edges.T
    n, m = graph.n_nodes, graph.n_edges
    rows = np.arange(m)
    D = sp.csr_array(
        (np.r_[np.ones(m), -np.ones(m)], (np.r_[rows, rows], np.r_[i, j])), shape=(m, n)
    )
    Dt = sp.csr_array(D.T)
    bound = strength * graph.edge_weights
    x, ahead, p = z.copy(), z.copy(), np.zeros(m)
    counts = np.bincount(graph.edges.ravel(), minlength=n)
    tau, sigma = 1.0, 1.0 / np.max(counts[i] + counts[j])
    done = 0
    while True:
        for _ in range(20):
            p = np.clip(p + sigma * (D @ ahead), -bound, bound)
            new = (x + tau * (z - Dt @ p)) / (1 + tau)
            theta = 1 / np.sqrt(1 + 2 * tau)
            tau, sigma = theta * tau, sigma / theta
            ahead = new + theta * (new - x)
            x = new
        done += 20
        primal = np.sum(bound * np.abs(D @ x)) + 0.5 * np.sum((x - z) ** 2)
        g = z - Dt @ p
        gap = (primal - 0.5 * np.sum((z - g) * (z + g))) / primal
        spent = time.perf_counter() - start
        if gap <= tol or spent > seconds:
            return spent, gap


def maxflow_divide_and_conquer(graph, z, strength):
    """Exact solution with PyMaxflow: cut at the mean, then both sides."""
    import maxflow

    solution = np.empty(graph.n_nodes)
    bound = strength * graph.edge_weights
    local = np.empty(graph.n_nodes, dtype=np.int64)
    pending = [(np.arange(graph.n_nodes), z.astype(float), graph.edges, bound)]
    while pending:
        nodes, values, edges, bounds = pending.pop()
        mean = values.mean()
        excess = values - mean
        solution[nodes] = mean
        if len(nodes) == 1 or np.abs(excess).max() < 1e-12:
            continue
        local[nodes] = np.arange(len(nodes))
        i, j = local[edges[:, 0]], local[edges[:, 1]]
        network = maxflow.GraphFloat(len(nodes), len(edges))
        ids = network.add_nodes(len(nodes))
        network.add_edges(i, j, bounds, bounds)
        network.add_grid_tedges(ids, np.maximum(excess, 0), np.maximum(-excess, 0))
        flow = network.maxflow()
        upper = ~network.get_grid_segments(ids)
        if flow >= np.maximum(excess, 0).sum() * (1 - 1e-12) or upper.all() or not upper.any():
            continue
        crossing = upper[i] != upper[j]
        side = np.where(upper[i], 1.0, -1.0)[crossing] * bounds[crossing]
        values = values.copy()
        np.subtract.at(values, i[crossing], side)
        np.add.at(values, j[crossing], side)
        for mask in (upper, ~upper):
            inside = mask[i] & mask[j]
            pending.append((nodes[mask], values[mask], edges[inside], bounds[inside]))
    return solution
