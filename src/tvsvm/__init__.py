"""Classification when almost nothing is labelled."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tvsvm.estimators import (
        RLS,
        SVM,
        TVRLS,
        TVSVM,
        AutoTV,
        CheegerRLS,
        CheegerSVM,
        LapRLS,
        LapSVM,
    )
    from tvsvm.graph import Graph, knn_graph
    from tvsvm.plots import plot_confidence, plot_energy, plot_map
    from tvsvm.solvers import graph_tv_prox

__all__ = [
    "RLS",
    "SVM",
    "TVRLS",
    "TVSVM",
    "AutoTV",
    "CheegerRLS",
    "CheegerSVM",
    "Graph",
    "LapRLS",
    "LapSVM",
    "graph_tv_prox",
    "knn_graph",
    "plot_confidence",
    "plot_energy",
    "plot_map",
]


# Where the public names live that are no classifiers.
_HOME = {
    **dict.fromkeys(("Graph", "knn_graph"), "tvsvm.graph"),
    **dict.fromkeys(("plot_confidence", "plot_energy", "plot_map"), "tvsvm.plots"),
    "graph_tv_prox": "tvsvm.solvers",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import tvsvm` is quick."""
    if name == "__version__":
        return import_module("importlib.metadata").version("tvsvm")
    if name in __all__:
        return getattr(import_module(_HOME.get(name, "tvsvm.estimators")), name)
    raise AttributeError(f"module 'tvsvm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
