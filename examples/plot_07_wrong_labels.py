"""
Finding wrong labels
====================

Labels are made by people, and some are wrong. Of 150 labelled digits we give ten a false class and
ask which labels look suspicious: those whose neighbours on the graph nearly all say otherwise.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from tvsvm import TVRLS

X, y = load_digits(return_X_y=True)
random = np.random.default_rng(0)
known = random.choice(len(y), 150, replace=False)
partial = np.full(len(y), -1)
partial[known] = y[known]
false = known[:10]
partial[false] = (y[false] + random.integers(1, 10, 10)) % 10

model = TVRLS(random_state=0).fit(X, partial)
suspicious = model.suspicious_labels()
rows = [label.row for label in suspicious]
print(
    f"{len(rows)} suspicious labels, {np.isin(rows, false).sum()} of the 10 false ones among them"
)
for label in suspicious[:3]:
    print(f"row {label.row}: labelled {label.given}; {label.reason}")

# %%
# Green: rightly suspected. Orange would be a label that was right after all.

figure, axes = plt.subplots(2, 6, figsize=(10, 4.2), layout="constrained")
for axis in axes.flat:
    axis.axis("off")
for axis, label in zip(axes.flat, suspicious, strict=False):
    axis.imshow(X[label.row].reshape(8, 8), cmap="gray_r")
    color = "#228833" if label.row in false else "#cc6600"
    axis.set_title(f"labelled {label.given}, looks like {label.instead}", color=color, fontsize=9)
figure.suptitle("The most suspicious labels first")
plt.show()
