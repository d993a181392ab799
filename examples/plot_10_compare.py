"""
Beside scikit-learn
===================

Digits with 1, 3 and 10 labels a class, three draws of labels each. Nothing is tuned;
``LabelSpreading`` gets a neighbour graph too.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier
from sklearn.semi_supervised import LabelSpreading, SelfTrainingClassifier
from sklearn.svm import SVC

from tvsvm import AutoTV, LapRLS, knn_graph
from tvsvm.datasets import draw_labels

X, y = load_digits(return_X_y=True)
X, y = X[:600], y[:600]
graph = knn_graph(X, bridges=True)
methods = {
    "SVC on the labels": lambda: SVC(),
    "self-training, 1-NN": lambda: SelfTrainingClassifier(KNeighborsClassifier(1)),
    "LabelSpreading": lambda: LabelSpreading(
        kernel="knn", n_neighbors=10, alpha=0.99, max_iter=1000
    ),
    "LapRLS": lambda: LapRLS(graph=graph, random_state=0),
    "AutoTV": lambda: AutoTV(graph=graph, random_state=0),
}


def error(make, known):
    """Share of the other rows that a new model gets wrong."""
    partial = np.full(len(y), -1)
    partial[known] = y[known]
    hidden = partial < 0
    model = make()
    if isinstance(model, SVC):
        found = model.fit(X[known], y[known]).predict(X)
    elif isinstance(model, SelfTrainingClassifier):
        found = model.fit(X, partial).predict(X)
    else:
        found = model.fit(X, partial).transduction_
    return np.mean(found[hidden] != y[hidden])


# %%
# The fewer the labels, the more the graph matters, and how it is used.

counts = (1, 3, 10)
figure, axis = plt.subplots(figsize=(6.8, 4.4), layout="constrained")
for name, make in methods.items():
    errors = [[error(make, draw_labels(y, n, draw)) for draw in range(3)] for n in counts]
    means = 100 * np.mean(errors, axis=1)
    print(f"{name:20s}", " ".join(f"{mean:5.1f} %" for mean in means))
    axis.plot(counts, means, marker="o", label=name)
axis.set(xscale="log", xticks=counts, xticklabels=counts, xlabel="labels a class")
axis.set(ylabel="% wrong, mean of three draws", ylim=(0, None))
axis.legend(frameon=False)
axis.minorticks_off()
plt.show()
