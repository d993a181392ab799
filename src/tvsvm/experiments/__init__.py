"""Experiments: methods over label draws, resumable, with tables and pictures of what came out."""

from tvsvm.experiments.engine import Case, Method, plan, run
from tvsvm.experiments.store import Outcome, Store, Trial

__all__ = ["Case", "Method", "Outcome", "Store", "Trial", "plan", "run"]
