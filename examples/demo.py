"""The eight methods on scikit-learn's digits, one label a class, as a table and a picture."""

import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.semi_supervised import LabelSpreading

import tvsvm

mpl.use("Agg")
import matplotlib.pyplot as plt

METHODS = ("RLS", "SVM", "LapRLS", "LapSVM", "TVRLS", "TVSVM", "CheegerRLS", "CheegerSVM")
CLASSES = (0, 1, 4, 9)
PICTURE = Path("demo.png")


def one_label_a_class(y, seed):
    """y with one random row of each class known, -1 elsewhere."""
    rng = np.random.default_rng(seed)
    known = [rng.choice(np.flatnonzero(y == k)) for k in np.unique(y)]
    partial = np.full(len(y), -1)
    partial[known] = y[known]
    return partial


def main():
    X, y = load_digits(return_X_y=True)
    kept = np.isin(y, CLASSES)
    X, y = X[kept], y[kept]
    partial = one_label_a_class(y, seed=3)
    hidden = partial == -1
    graph = tvsvm.knn_graph(X)
    print(f"{len(y)} images of {CLASSES}, {np.count_nonzero(~hidden)} labelled\n")
    print(f"{'method':12s} {'error':>7s} {'seconds':>8s}")
    found = {}
    peer = LabelSpreading(kernel="knn", n_neighbors=10, alpha=0.99)
    for name in (*METHODS, "LabelSpreading"):
        if name == "LabelSpreading":
            model = peer
        else:
            options = {} if name in ("RLS", "SVM") else {"graph": graph}
            model = getattr(tvsvm, name)(random_state=0, **options)
        start = time.perf_counter()
        found[name] = model.fit(X, partial).transduction_
        seconds = time.perf_counter() - start
        error = np.mean(found[name][hidden] != y[hidden])
        label = name if name in METHODS else "scikit-learn LabelSpreading"
        print(f"{label:12s} {error:7.1%} {seconds:8.2f}", flush=True)
    draw(X, y, partial, found)
    print(f"\npicture: {PICTURE.resolve()}")


def draw(X, y, partial, found):
    hidden = partial == -1
    layout = PCA(2).fit_transform(X)
    figure, axes = plt.subplots(2, 5, figsize=(15, 6.4), layout="constrained")
    panels = [("truth", y), *found.items()]
    for axis, (name, labels) in zip(axes.flat, panels, strict=True):
        error = np.mean(labels[hidden] != y[hidden])
        colours = np.searchsorted(CLASSES, labels)
        axis.scatter(*layout.T, c=colours, cmap="tab10", vmax=9, s=7, linewidths=0)
        axis.scatter(
            *layout[~hidden].T,
            c=colours[~hidden],
            cmap="tab10",
            vmin=0,
            vmax=9,
            s=130,
            marker="*",
            edgecolors="black",
        )
        axis.set(
            title=name if name == "truth" else f"{name}: {error:.1%} wrong", xticks=[], yticks=[]
        )
    figure.suptitle("Four digits, one label a class (stars); two principal directions")
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    main()
