"""
Text, as sparse features
========================

What SciPy's functions say about themselves: from three functions of each module, find the module of
all others. The words of a text are a sparse row of many columns, taken as it is; texts are alike if
they point in the same direction, hence the cosine for graph and kernel.
"""

import inspect
from importlib import import_module

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import ConfusionMatrixDisplay

from tvsvm import RLS, TVRLS, LapRLS

MODULES = ("cluster.hierarchy", "linalg", "ndimage", "signal", "stats")
texts, modules = [], []
for module in MODULES:
    home = import_module(f"scipy.{module}")
    for name in home.__all__:
        text = inspect.getdoc(getattr(home, name))
        if callable(getattr(home, name)) and text and len(text) > 600:
            texts.append(text.split("Parameters\n")[0] + text[-400:])
            modules.append(module)
truth = np.array(modules)

X = TfidfVectorizer(sublinear_tf=True, token_pattern="[a-z]{4,}", min_df=2).fit_transform(texts)
print(f"{X.shape[0]} texts, {X.shape[1]} words, {X.nnz / X.shape[0]:.0f} of them in a text")

# %%
# Three labels a module. Missing values, here None, stand for unknown. Smooth functions do best
# here: modules share words, hence overlap, and the largest has ten times the functions of the
# smallest, to which a balanced cut then gives a part of them.

random = np.random.default_rng(1)
partial = np.full(len(truth), None)
for module in MODULES:
    chosen = random.choice(np.flatnonzero(truth == module), 3, replace=False)
    partial[chosen] = module

hidden = partial == None  # noqa: E711, element by element
options = {"kernel": "cosine", "random_state": 0}
models = [RLS(**options), LapRLS(metric="cosine", **options), TVRLS(metric="cosine", **options)]
figure, axes = plt.subplots(1, 3, figsize=(12.5, 4.6), layout="constrained")
for axis, model in zip(axes, models, strict=True):
    found = model.fit(X, partial).transduction_
    error = np.mean(found[hidden] != truth[hidden])
    print(f"{type(model).__name__:8s} {error:.1%} wrong")
    ConfusionMatrixDisplay.from_predictions(
        truth[hidden],
        found[hidden],
        ax=axis,
        cmap="Blues",
        colorbar=False,
        xticks_rotation=90,
    )
    axis.set(title=f"{type(model).__name__}: {error:.1%} wrong", xlabel="found", ylabel="")
axes[0].set_ylabel("true")
plt.show()
