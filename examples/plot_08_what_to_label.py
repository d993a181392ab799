"""
What to label next
==================

A label costs somebody's time. ``suggest`` names the rows worth it: parts of the graph that no label
reaches first, then doubtful rows that stand for many others. Here each round asks for ten more,
and a second model gets as many at random.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from tvsvm import TVRLS, plot_map
from tvsvm.layout import layout

X, y = load_digits(return_X_y=True)
X, y = X[::2], y[::2]
first = np.unique(y, return_index=True)[1]
random = np.random.default_rng(0)


def ask_suggested(model):
    return [suggestion.row for suggestion in model.suggest(10)]


def ask_random(model):
    return random.choice(np.flatnonzero(~model.labeled_), 10, replace=False)


# %%
# With ``warm_start`` graph and kernel are made once, and new labels that confirm what was found
# cost nothing.

errors = {}
for ask in (ask_suggested, ask_random):
    partial = np.full(len(y), -1)
    partial[first] = y[first]
    model = TVRLS(warm_start=True, random_state=0).fit(X, partial)
    path = [np.mean(model.transduction_ != y)]
    for _ in range(3):
        rows = ask(model)
        partial[rows] = y[rows]
        path.append(np.mean(model.fit(X, partial).transduction_ != y))
    errors[ask.__name__.removeprefix("ask_")] = path
    print(ask.__name__, " ".join(f"{error:.1%}" for error in path))

# %%
# Left: the first ten suggestions (circles) on the map of the first fit. Right: the errors. This is
# one run on half of the images: an illustration, no proof.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
start = np.full(len(y), -1)
start[first] = y[first]
model.fit(X, start)
positions = layout(model.graph_)
plot_map(model, positions=positions, ax=left)
left.scatter(
    *positions[ask_suggested(model)].T, s=160, facecolors="none", edgecolors="black", linewidths=1.5
)
left.set_title("ten labels (stars), ten suggestions (circles)")
for name, path in errors.items():
    right.plot(10 + 10 * np.arange(4), 100 * np.array(path), marker="o", label=name)
right.set(xlabel="labels", ylabel="% of the images wrong", ylim=(0, None), xticks=range(10, 41, 10))
right.legend(frameon=False)
plt.show()
