"""Graphs to measure on, from the folder that TVSVM_DATA names."""

import os
from pathlib import Path

import numpy as np

from tvsvm.datasets import draw_labels, load
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
    X, sheet = sheets(n_nodes, rng, n_columns=20)
    return unit_weights(knn_graph(X + sheet[:, None].astype(np.float32))), sheet


def sheets(n_rows, rng, *, n_columns):
    """Ten curved 3-dimensional sheets that meet in a corner, and the sheet of each row."""
    sheet = rng.integers(0, 10, n_rows)
    base = rng.random((n_rows, 3), dtype=np.float32)
    frequencies = rng.standard_normal((10, 3, n_columns), dtype=np.float32)
    X = np.empty((n_rows, n_columns), dtype=np.float32)
    for k in range(10):
        X[sheet == k] = np.sin(base[sheet == k] @ frequencies[k])
    return X, sheet


def repeated(X, y, n_rows, rng):
    """Rows of X again and again, each time with noise of a tenth of the columns' spread."""
    chosen = np.arange(n_rows) % len(y)
    noise = rng.standard_normal((n_rows, X.shape[1]), dtype=np.float32)
    return X[chosen] + 0.1 * X.std(axis=0) * noise, y[chosen]


def named_rows(name, n_rows):
    """So many rows of "sheets" in 32 dimensions, or of a data set, and their classes."""
    rng = np.random.default_rng(0)
    if name == "sheets":
        return sheets(n_rows, rng, n_columns=32)
    dataset = load(name)
    X, y = dataset.X.astype(np.float32), dataset.y
    return (X, y) if n_rows == len(y) else repeated(X, y, n_rows, rng)


def one_label_a_class(y):
    """The class of one random row of each class, -1 elsewhere."""
    shown = np.full(len(y), -1)
    rows = draw_labels(y, 1, 0)
    shown[rows] = y[rows]
    return shown


def at_hand(name):
    """Whether a data set is in the folder; a line says so if it is not."""
    path = Path(os.environ.get("TVSVM_DATA") or ".") / f"{name}.npz"
    if not os.environ.get("TVSVM_DATA") or not path.exists():
        print(f"{name}.npz is not in the folder TVSVM_DATA: left out", flush=True)
        return False
    return True


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
