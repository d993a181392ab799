"""Kernels: the functions of x that they span, and the systems that the methods solve there."""

from tvsvm.kernel.quadratic import Quadratic
from tvsvm.kernel.space import RKHS, Expansion

__all__ = ["RKHS", "Expansion", "Quadratic"]
