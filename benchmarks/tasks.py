"""What benchmarks.speed runs in fresh processes: data in, seconds, memory and classes out."""

import time
from importlib.util import find_spec

import numpy as np

from benchmarks.children import peak_bytes, resident_bytes
from benchmarks.classifiers import graph_learning
from benchmarks.data import named_rows, one_label_a_class

# Fits before the clock starts, so that compiling is not timed.
WARM_UP_ROWS = 3000


def timed(function):
    """Seconds and result."""
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def warm_up(X, y):
    """Fit to some rows, which loads and compiles what the fit of all of them needs."""
    import tvsvm

    some = np.random.default_rng(0).choice(len(y), min(len(y), WARM_UP_ROWS), replace=False)
    tvsvm.AutoTV(random_state=0).fit(X[some], one_label_a_class(y[some]))


def ours(data, n_rows, dtype="float32"):
    """AutoTV from raw rows: seconds, peak bytes beyond X, estimated bytes, classes found."""
    import tvsvm
    from tvsvm.estimators.capacity import demand

    X, y = named_rows(data, n_rows)
    X = X.astype(dtype)
    warm_up(X, y)
    before = resident_bytes()
    model = tvsvm.AutoTV(random_state=0)
    seconds, model = timed(lambda: model.fit(X, one_label_a_class(y)))
    n_classes = len(model.classes_)
    estimate = demand(
        model, X.shape, n_classes=n_classes, n_labels=n_classes, itemsize=X.itemsize
    ).bytes
    return seconds, peak_bytes() - before, estimate, model.transduction_


def label_spreading(data, n_rows):
    """scikit-learn's LabelSpreading from raw rows: seconds."""
    from sklearn.semi_supervised import LabelSpreading

    X, y = named_rows(data, n_rows)
    model = LabelSpreading(kernel="knn", n_neighbors=10, alpha=0.99)
    return timed(lambda: model.fit(X, one_label_a_class(y)))[0]


def poisson_with_annoy(data, n_rows):
    """GraphLearning's Poisson learning from raw rows, its own neighbour search: seconds."""
    import graphlearning
    from scipy.sparse.csgraph import connected_components

    X, y = named_rows(data, n_rows)
    rows = np.flatnonzero(one_label_a_class(y) >= 0)

    def run():
        W = graphlearning.weightmatrix.knn(X, 10)
        # Its default solver may not converge on several components: see benchmarks.classifiers.
        connected = connected_components(W, directed=False)[0] == 1
        solver = "conjugate_gradient" if connected else "gradient_descent"
        return graphlearning.ssl.poisson(W, solver=solver).fit_predict(rows, y[rows])

    return timed(run)[0]


def on_graph(case, rows, name, sizes, repeats):
    """A method of GraphLearning on the graph of the case: median seconds, classes found."""
    runs = [
        timed(lambda: graph_learning(case, rows, name=name, sizes=sizes)) for _ in range(repeats)
    ]
    return np.median([seconds for seconds, _ in runs]), runs[-1][1]


RAW_PEERS = {
    "scikit-learn LabelSpreading(knn)": (label_spreading, "sklearn"),
    "GraphLearning poisson with annoy": (poisson_with_annoy, "annoy"),
}


def peers_at_hand():
    """Peers from raw rows whose packages are installed; the others are named."""
    for name, (task, package) in RAW_PEERS.items():
        if find_spec(package) is None or find_spec("graphlearning") is None:
            print(f"{name}: not installed, pip install 'tvsvm[bench]'", flush=True)
        else:
            yield name, task


def predict(n_new, n_model_rows):
    """Rows a second and peak bytes of `predict` for rows of 784 columns, 479 landmarks."""
    import tvsvm

    rng = np.random.default_rng(0)
    # As pixels are: most of the variance in few directions, ten classes.
    y = rng.integers(0, 10, n_model_rows)
    directions = rng.standard_normal((40, 784), dtype=np.float32)
    centres = 2 * rng.standard_normal((10, 40), dtype=np.float32)
    X = (centres[y] + rng.standard_normal((n_model_rows, 40), dtype=np.float32)) @ directions
    shown = np.where(np.arange(n_model_rows) < 479, y, -1)  # each of them becomes a landmark
    model = tvsvm.RLS(random_state=0).fit(X, shown)
    new = np.tile(X, (-(-n_new // n_model_rows), 1))[:n_new]
    model.predict(new[:1000])
    before = resident_bytes()
    seconds = np.median([timed(lambda: model.predict(new))[0] for _ in range(3)])
    return n_new / seconds, peak_bytes() - before
