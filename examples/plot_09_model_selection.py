"""
Model selection with few labels
===============================

Thirty labels, 500 images, and a graph weight to choose. Folds of all rows thin the graph and count
every unlabelled row as an error; ``LabeledKFold`` folds the labels and keeps all other rows in
training.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, KFold

from tvsvm import LapRLS
from tvsvm.model_selection import LabeledKFold, LabeledScorer

X, y = load_digits(return_X_y=True)
X, y = X[:500], y[:500]
random = np.random.default_rng(0)
partial = np.full(len(y), -1)
for label in range(10):
    chosen = random.choice(np.flatnonzero(y == label), 3, replace=False)
    partial[chosen] = label

gammas = [0.001, 0.01, 0.1, 1.0, 10.0, 100.0]
searches = {
    "folds of all rows": {"cv": KFold(3)},
    "folds of the labels": {"cv": LabeledKFold(3), "scoring": LabeledScorer()},
}

# %%
# Both searches see the same labels. The truth is what the refitted model gets right among the rows
# without a label, which only we know.

hidden = partial < 0
truth = [
    np.mean(LapRLS(gamma=gamma, random_state=0).fit_predict(X, partial)[hidden] == y[hidden])
    for gamma in gammas
]
figure, axis = plt.subplots(figsize=(6.6, 4.2), layout="constrained")
axis.plot(gammas, truth, color="black", marker="o", label="truth")
for (name, options), style in zip(searches.items(), ("s--", "D-"), strict=True):
    search = GridSearchCV(LapRLS(random_state=0), {"gamma": gammas}, **options).fit(X, partial)
    axis.plot(gammas, search.cv_results_["mean_test_score"], style, label=name)
    print(f"{name}: {search.best_params_}, score {search.best_score_:.2f}")
axis.set(xscale="log", xlabel="gamma", ylabel="accuracy", ylim=(0, 1))
axis.legend(frameon=False, loc="center left", bbox_to_anchor=(0.0, 0.45))
plt.show()
