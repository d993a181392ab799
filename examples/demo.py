"""The eight methods on scikit-learn's digits, one label a class, as a table and a picture."""

import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.datasets import load_digits
from sklearn.manifold import TSNE
from sklearn.semi_supervised import LabelSpreading

import tvsvm

mpl.use("Agg")
import matplotlib.pyplot as plt

METHODS = ("RLS", "SVM", "LapRLS", "LapSVM", "TVRLS", "TVSVM", "CheegerRLS", "CheegerSVM")
PICTURE = Path("demo.png")


def main():
    X, y = load_digits(return_X_y=True)
    known = np.unique(y, return_index=True)[1]  # the first image of each digit
    partial = np.where(np.isin(np.arange(len(y)), known), y, -1)
    hidden = partial == -1
    graph = tvsvm.knn_graph(X, bridges=True)
    print(f"{len(y)} images of ten digits, {np.count_nonzero(~hidden)} of them labelled\n")
    print(f"{'method':12s} {'error':>7s} {'seconds':>8s}")
    found = {}
    peer = LabelSpreading(kernel="knn", n_neighbors=10, alpha=0.99, max_iter=1000)
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
    layout = TSNE(init="pca", random_state=0).fit_transform(X)
    figure, axes = plt.subplots(2, 5, figsize=(15, 6.4), layout="constrained")
    panels = [("truth", y), *found.items()]
    for axis, (name, labels) in zip(axes.flat, panels, strict=True):
        error = np.mean(labels[hidden] != y[hidden])
        axis.scatter(*layout.T, c=labels, cmap="tab10", vmin=0, vmax=9, s=7, linewidths=0)
        axis.scatter(
            *layout[~hidden].T,
            c=labels[~hidden],
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
    figure.suptitle("Ten digits, one label a class (stars); t-SNE layout")
    figure.savefig(PICTURE, dpi=110)


if __name__ == "__main__":
    main()
