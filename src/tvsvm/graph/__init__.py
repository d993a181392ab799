"""Graphs: what they offer and how they are made."""

from tvsvm.graph.core import Graph
from tvsvm.graph.knn import knn_graph

__all__ = ["Graph", "knn_graph"]
