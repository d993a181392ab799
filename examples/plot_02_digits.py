"""
Ten digits, one label a class
=============================

1797 images of 8 × 8 pixels, and the first image of each digit is all that is labelled.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from tvsvm import AutoTV, plot_map

X, y = load_digits(return_X_y=True)
known = np.unique(y, return_index=True)[1]
partial = np.where(np.isin(np.arange(len(y)), known), y, -1)

model = AutoTV(random_state=0).fit(X, partial)
wrong = model.transduction_ != y
print(f"{wrong.mean():.1%} of {len(y)} images wrong")
print(model.report_["method"], model.report_["reason"], sep=": ")

# %%
# ``plot_map`` places the images so that neighbours are close; the stars are the ten labels. On the
# right are the mistakes it was least sure of, with what it took them for.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
plot_map(model, ax=left)

confidence = model.label_distributions_.max(axis=1)
shown = np.flatnonzero(wrong)[np.argsort(confidence[wrong])][:20]
board = np.full((4 * 12, 5 * 10), np.nan)
for place, row in enumerate(shown):
    top, edge = 12 * (place // 5), 10 * (place % 5)
    board[top : top + 8, edge : edge + 8] = X[row].reshape(8, 8)
    text = f"{y[row]}, not {model.transduction_[row]}"
    right.text(edge + 3.5, top + 9.3, text, ha="center", va="center", fontsize=8)
right.imshow(board, cmap="gray_r")
right.set(title="mistakes, the least sure first")
right.axis("off")
plt.show()
