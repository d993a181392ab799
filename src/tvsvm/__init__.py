"""Classification when almost nothing is labelled."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tvsvm.estimators import RLS, SVM, LapRLS, LapSVM
    from tvsvm.graph import Graph, knn_graph

# Where each public name lives. It is imported when first used, so that `import tvsvm` is quick.
_HOME = {
    **dict.fromkeys(("RLS", "SVM", "LapRLS", "LapSVM"), "tvsvm.estimators"),
    **dict.fromkeys(("Graph", "knn_graph"), "tvsvm.graph"),
}

__all__ = ["RLS", "SVM", "Graph", "LapRLS", "LapSVM", "knn_graph"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("tvsvm")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'tvsvm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
