"""Slow, obvious solutions to compare with, and small problems whose answer is known."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from scipy.optimize import minimize

from tvsvm.graph import Graph


def random_graph(rng, n_nodes, density=0.4, spread=1.0):
    """Random weights over `spread` decades, disconnected and isolated nodes included."""
    kept = np.triu(rng.random((n_nodes, n_nodes)) < density, 1)
    weights = kept * 10.0 ** (spread * rng.uniform(-1, 1, (n_nodes, n_nodes)))
    return Graph(weights + weights.T)


def tv_objective(graph, X, Z, strength):
    """Σ_k strength_k TV(x_k) + ½|X - Z|², edge by edge."""
    total = 0.5 * np.sum((X - Z) ** 2)
    for (i, j), w in zip(graph.edges, graph.edge_weights, strict=True):
        total += w * np.sum(strength * np.abs(X[i] - X[j]))
    return total


def tv_prox_by_dual(graph, z, strength):
    """One column of the TV prox from its box-constrained dual, by a general optimiser."""
    if graph.n_edges == 0:
        return z.copy()
    D = np.zeros((graph.n_edges, graph.n_nodes))
    for e, (i, j) in enumerate(graph.edges):
        D[e, i], D[e, j] = 1.0, -1.0
    bound = strength * graph.edge_weights
    found = minimize(
        lambda p: 0.5 * np.sum((z - D.T @ p) ** 2),
        np.zeros(graph.n_edges),
        jac=lambda p: -D @ (z - D.T @ p),
        bounds=list(zip(-bound, bound, strict=True)),
        method="L-BFGS-B",
        options={"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-12},
    )
    return z - D.T @ found.x


def tv_problem_with_known_solution(rng, graph, n_levels=3):
    """Build Z backwards from a piecewise constant G and a dual that certifies it."""
    G = rng.integers(0, n_levels, graph.n_nodes).astype(float)
    strength = float(rng.uniform(0.1, 2.0))
    bound = strength * graph.edge_weights
    steps = G[graph.edges[:, 0]] - G[graph.edges[:, 1]]
    p = np.where(steps != 0, np.sign(steps) * bound, rng.uniform(-1, 1, bound.size) * bound)
    Z = G + graph.difference_adjoint(p)
    return Z, strength, G, p


def grid(n):
    """Four-neighbour grid with unit weights: sweeps alone are slow on it."""
    index = np.arange(n * n).reshape(n, n)
    W = np.zeros((n * n, n * n))
    for a, b in ((index[:, :-1], index[:, 1:]), (index[:-1], index[1:])):
        W[a.ravel(), b.ravel()] = W[b.ravel(), a.ravel()] = 1.0
    return Graph(W)


def make_rows(seed, n=30, d=3):
    """Random rows of a table."""
    return np.random.default_rng(seed).standard_normal((n, d))


def path_laplacian(n):
    """Laplacian of a chain of n nodes."""
    weights = sparse.diags_array([np.ones(n - 1)] * 2, offsets=[-1, 1], shape=(n, n))
    return sparse.csr_array(sparse.diags_array(weights.sum(axis=1)) - weights)


def kernel_matrix(space):
    """K on the rows of a space, by its definition."""
    return space.apply(np.eye(space.n_points))


def agreement(W):
    """Cosine between all rows of an affinity, each with the mean degree on its diagonal."""
    rows = W + W.sum() / len(W) * np.eye(len(W))
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
    return rows @ rows.T


def affinities():
    """Small symmetric affinities with many zeros, as a strategy."""
    shape = st.integers(1, 12).map(lambda n: (n, n))
    values = st.sampled_from([0.0, 0.0, 0.0, 1.0, 0.5, 3.0])
    return hnp.arrays(np.float64, shape, elements=values).map(
        lambda A: np.triu(A, 1) + np.triu(A, 1).T
    )
