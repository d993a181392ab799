"""Solvers: functions on arrays, each returning its certificate."""

from tvsvm.solvers.total_variation import TVProxResult, graph_tv_prox

__all__ = ["TVProxResult", "graph_tv_prox"]
