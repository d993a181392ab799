"""Graphs to measure on, from the folder that TVSVM_DATA names."""

import os
from pathlib import Path

import numpy as np

from tvsvm.datasets import load
from tvsvm.graph import knn_graph


def folder():
    path = os.environ.get("TVSVM_DATA")
    if not path:
        raise SystemExit("Set TVSVM_DATA to the folder with the data sets, usps.npz and so on.")
    return Path(path)


def usps_graph(digits=(0, 1, 4, 9)):
    """Graph of some USPS digits, mean degree 1 a neighbour, and their classes."""
    dataset = load("usps", digits)
    return unit_weights(knn_graph(dataset.X)), dataset.y


def mnist_graph():
    """Graph of MNIST from its exact neighbours, and the classes."""
    dataset = load("mnist")
    return unit_weights(dataset.graph), dataset.y


def synthetic_graph(n_nodes, rng):
    """About seven edges a node: ten curved 3-dimensional sheets in 20 dimensions."""
    sheet = rng.integers(0, 10, n_nodes)
    base = rng.random((n_nodes, 3))
    frequencies = rng.standard_normal((10, 3, 20))
    X = np.sin(np.einsum("nd,ndk->nk", base, frequencies[sheet])) + sheet[:, None]
    return unit_weights(knn_graph(X.astype(np.float32))), sheet


def unit_weights(graph):
    """The graph scaled so that its mean edge weight is one."""
    return graph.scaled(mean_degree=2 * graph.n_edges / graph.n_nodes)


def regimes(y, rng):
    """Functions and strengths of shared/notes/tv_solver.md: name, z, strength."""
    n = len(y)
    sign = np.where(y == np.unique(y)[0], 1.0, -1.0)
    known = rng.choice(n, n // 50, replace=False)
    labels = 0.02 * rng.standard_normal(n)
    labels[known] = sign[known]
    functions = {
        "labels": labels,
        "pwc": sign + 0.05 * rng.standard_normal(n),
        "noisy": sign + rng.standard_normal(n),
    }
    for name, z in functions.items():
        for strength in (1e-3, 1e-2, 1e-1, 1.0, 10.0):
            yield f"{name} {strength:g}", z, strength
