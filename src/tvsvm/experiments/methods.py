"""The classifiers of this package, as methods of an experiment."""

import hashlib
from functools import partial
from pathlib import Path

import numpy as np

import tvsvm
from tvsvm.experiments.engine import Case, Method
from tvsvm.results import IntArray

NAMES = ("RLS", "SVM", "LapRLS", "LapSVM", "TVRLS", "TVSVM", "CheegerRLS", "CheegerSVM")
# A file that is missing here costs no more than a run anew when it changes.
NOT_NUMERICAL = {
    *("_grouping.py", "_palette.py", "advice.py", "cli", "datasets.py", "experiments", "layout.py"),
    *("model_selection.py", "persistence.py", "plots.py", "report", "tables"),
}


def classifier(name: str) -> Method:
    """A classifier of this package with its defaults, on the graph of the case."""
    version = f"tvsvm {tvsvm.__version__} {_code()}"
    return Method(name, partial(fit_predict, name=name), version)


def fit_predict(case: Case, rows: IntArray, *, name: str) -> np.ndarray:
    """Classes that the classifier finds for all rows."""
    model = getattr(tvsvm, name)(random_state=0)
    if "graph" in model.get_params():
        model.set_params(graph=case.graph, kernel=case.space)
    return model.fit_predict(case.X, case.shown(rows))


def _code() -> str:
    """Digest of the sources that decide what the classifiers find, defaults included."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] not in NOT_NUMERICAL:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:8]
