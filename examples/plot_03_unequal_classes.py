"""
Classes of very different size
==============================

Three classes with 85, 12 and 3 percent of the rows, two labels each. Labels say nothing about the
sizes, and methods that hold classes for equal take from the large one to feed the small ones.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs
from sklearn.metrics import balanced_accuracy_score
from sklearn.semi_supervised import LabelSpreading

from tvsvm import TVRLS, LapRLS

sizes = [1020, 144, 36]
X, y = make_blobs(sizes, centers=[[0, 0], [4.2, 0], [0, 4.4]], cluster_std=0.95, random_state=4)
partial = np.full(len(y), -1)
for label in range(3):
    partial[np.flatnonzero(y == label)[:2]] = label

models = {
    "LabelSpreading": LabelSpreading(kernel="knn", n_neighbors=10, alpha=0.99, max_iter=1000),
    "LapRLS": LapRLS(random_state=0),
    "TVRLS": TVRLS(random_state=0),
}

# %%
# Nobody told TVRLS the sizes: it finds them with the partition. If you know them roughly, say so
# with ``class_prior``, a hint and not a constraint.

colors = np.array(["#4477aa", "#ee6677", "#228833"])
figure, axes = plt.subplots(1, 3, figsize=(11, 3.7), layout="constrained")
for axis, (name, model) in zip(axes, models.items(), strict=True):
    found = model.fit(X, partial).transduction_
    score = balanced_accuracy_score(y, found)
    print(f"{name:20s} balanced accuracy {score:.3f}, sizes {np.bincount(found)}")
    axis.scatter(*X.T, c=colors[found], s=6)
    known = partial >= 0
    axis.scatter(*X[known].T, c=colors[y[known]], s=150, marker="*", edgecolors="black")
    axis.set(title=f"{name}: balanced accuracy {score:.3f}", xticks=[], yticks=[])
plt.show()
