"""Functions on a graph, and duals, in the order and scale of the graph-TV prox, and back.

Loops of our own, because numpy takes three to five times as long for few columns: as much as ten
sweeps with two threads.
"""

import numpy as np

from tvsvm._jit import kernel
from tvsvm.results import FloatArray, IntArray


def location_and_scale(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Per column: a value in its middle, and a power of two near its half-range."""
    low, high = _extremes(z)
    shift = low / 2 + high / 2
    half_range = high / 2 - low / 2
    exponent = np.minimum(np.frexp(half_range)[1], np.finfo(z.dtype).maxexp - 1)
    scale = np.ldexp(np.ones_like(half_range), exponent)
    usable = (half_range > 0) & np.isfinite(scale) & (scale > 0)
    return shift, np.where(usable, scale, np.ones_like(scale))


def rounding_floor(z: FloatArray) -> FloatArray:
    """Gap of each column that is rounding: relative gaps mean nothing for constant functions."""
    return float(np.finfo(z.dtype).eps) * 0.5 * _squares(z, z.mean(axis=0))


@kernel
def bring_in(
    z: FloatArray, order: IntArray, shift: FloatArray, scale: FloatArray, inside: FloatArray
) -> None:
    """Write ``((z - shift) / scale)[order]`` into `inside`."""
    for t in range(order.size):
        i = order[t]
        for k in range(z.shape[1]):
            inside[t, k] = (z[i, k] - shift[k]) / scale[k]


@kernel
def bring_out(
    inside: FloatArray, order: IntArray, shift: FloatArray, scale: FloatArray, z: FloatArray
) -> None:
    """Undo `bring_in`."""
    for t in range(order.size):
        i = order[t]
        for k in range(z.shape[1]):
            z[i, k] = inside[t, k] * scale[k] + shift[k]


@kernel
def clip_dual(
    dual: FloatArray,
    scale: FloatArray,
    weights: FloatArray,
    strength: FloatArray,
    shrink: float,
    p: FloatArray,
) -> None:
    """Write a dual from elsewhere over its scale into p, inside its bounds times `shrink`."""
    for e in range(dual.shape[0]):
        for k in range(dual.shape[1]):
            bound = weights[e] * strength[k] * shrink
            p[e, k] = min(max(dual[e, k] / scale[k], -bound), bound)


@kernel
def _extremes(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Lowest and highest value of each column."""
    low, high = z[0].copy(), z[0].copy()
    for i in range(1, z.shape[0]):
        for k in range(z.shape[1]):
            low[k] = min(low[k], z[i, k])
            high[k] = max(high[k], z[i, k])
    return low, high


@kernel
def _squares(z: FloatArray, centre: FloatArray) -> FloatArray:
    """Sum of squared distances from the centre, per column."""
    total = np.zeros_like(centre)
    for i in range(z.shape[0]):
        for k in range(z.shape[1]):
            total[k] += (z[i, k] - centre[k]) ** 2
    return total
