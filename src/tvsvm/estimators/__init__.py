"""Estimators: the only place that sees X and y, in scikit-learn's manner."""

from tvsvm.estimators.auto import AutoTV
from tvsvm.estimators.classifiers import (
    RLS,
    SVM,
    TVRLS,
    TVSVM,
    CheegerRLS,
    CheegerSVM,
    LapRLS,
    LapSVM,
)

__all__ = ["RLS", "SVM", "TVRLS", "TVSVM", "AutoTV", "CheegerRLS", "CheegerSVM", "LapRLS", "LapSVM"]
