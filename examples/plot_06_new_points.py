"""
New points
==========

The graph knows the rows it was made of. New rows are classified by a function of the kernel space
that was fitted along the way, without another fit and without a graph.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_circles

from tvsvm import TVRLS

X, y = make_circles(400, noise=0.07, factor=0.45, random_state=0)
X_new, y_new = make_circles(200, noise=0.07, factor=0.45, random_state=1)
partial = np.full(len(y), -1)
partial[[np.flatnonzero(y == 0)[0], np.flatnonzero(y == 1)[0]]] = 0, 1

model = TVRLS(random_state=0).fit(X, partial)
print(f"rows of the graph: {np.mean(model.transduction_ != y):.1%} wrong")
print(f"new rows:          {np.mean(model.predict(X_new) != y_new):.1%} wrong")
print(f"both answers agree on {model.agreement_:.1%} of the rows of the graph")

# %%
# Far from all rows the kernel vanishes and the probabilities go to one half: it does not pretend
# to know. Crosses are the new points.

side = np.linspace(-2.2, 2.2, 150)
plane = np.stack(np.meshgrid(side, side), axis=-1)
probability = model.predict_proba(plane.reshape(-1, 2))[:, 1].reshape(plane.shape[:2])

figure, axis = plt.subplots(figsize=(6.4, 5.2), layout="constrained")
shade = axis.contourf(side, side, probability, np.linspace(0, 1, 21), cmap="RdBu_r", alpha=0.6)
figure.colorbar(shade, label="probability of the inner circle")
colors = np.array(["#2166ac", "#b2182b"])
axis.scatter(*X.T, c=colors[model.transduction_], s=6)
axis.scatter(*X_new.T, c=colors[model.predict(X_new)], s=22, marker="x", linewidths=0.9)
known = partial >= 0
axis.scatter(*X[known].T, c=colors[y[known]], s=190, marker="*", edgecolors="black")
axis.set(title="Two labels, 200 new points", xticks=[], yticks=[], aspect="equal")
plt.show()
