"""Kernels: the functions of x that they span, and the systems that the methods solve there."""

from tvsvm.kernel.expansion import Expansion
from tvsvm.kernel.quadratic import Quadratic
from tvsvm.kernel.space import RKHS

__all__ = ["RKHS", "Expansion", "Quadratic"]
