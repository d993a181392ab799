"""
Two moons, two labels
=====================

Two classes that no straight line separates, and the first row of each is labelled. A support
vector machine sees the labels alone; ``LabelSpreading`` spreads them smoothly over a neighbour
graph; the Cheeger cut, and with it ``AutoTV`` here, looks for the cheapest balanced cut of that
graph that respects them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.semi_supervised import LabelSpreading

from tvsvm import SVM, AutoTV, CheegerSVM

models = {
    "SVM": SVM(),
    "LabelSpreading": LabelSpreading(kernel="knn", n_neighbors=10, alpha=0.99, max_iter=1000),
    "CheegerSVM": CheegerSVM(random_state=0),
    "AutoTV": AutoTV(random_state=0),
}


def moons(seed):
    """Rows, their classes, and the two that are known; -1 stands for unknown."""
    X, y = make_moons(500, noise=0.11, random_state=seed)
    partial = np.full(len(y), -1)
    for label in (0, 1):
        partial[np.flatnonzero(y == label)[0]] = label
    return X, y, partial


# %%
# ``transduction_`` is the class of every row. The classifiers of this package also know the whole
# plane, through their kernel: the shade is ``decision_function``.

X, y, partial = moons(0)
colors = np.array(["#4477aa", "#ee6677"])
figure, axes = plt.subplots(1, 4, figsize=(14, 3.2), layout="constrained")
x1, x2 = np.meshgrid(np.linspace(-1.5, 2.5, 120), np.linspace(-1.0, 1.5, 90))
plane = np.stack([x1.ravel(), x2.ravel()], axis=1)
for axis, (name, model) in zip(axes, models.items(), strict=True):
    found = model.fit(X, partial).transduction_
    if hasattr(model, "decision_function"):
        height = model.decision_function(plane).reshape(x1.shape)
        axis.contourf(x1, x2, np.clip(height, -1, 1), 20, cmap="RdBu_r", alpha=0.35)
        axis.contour(x1, x2, height, [0.0], colors="gray", linewidths=1)
    axis.scatter(*X.T, c=colors[found], s=9)
    known = partial >= 0
    axis.scatter(*X[known].T, c=colors[y[known]], s=190, marker="*", edgecolors="black")
    axis.set(title=f"{name}: {np.mean(found != y):.1%} wrong", xticks=[], yticks=[])
plt.show()

# %%
# One draw proves nothing, and two labels may lie badly. Errors on six draws:

draws = [moons(seed) for seed in range(6)]
for name, model in models.items():
    errors = [np.mean(model.fit(X, partial).transduction_ != y) for X, y, partial in draws]
    print(f"{name:15s}", " ".join(f"{error:6.1%}" for error in errors))
