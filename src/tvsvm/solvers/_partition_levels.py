"""Graphs whose nodes stand for many rows: merging nodes, the ratio of a partition, moves."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from tvsvm.results import BoolArray, FloatArray, IntArray
from tvsvm.solvers._partition_kernels import (
    balance_of,
    climb,
    contract,
    descend,
    match,
    statistics,
)

# Nodes for each class up to which moves go uphill, too, and numbers that this may take.
FEW, MOST_LINKS = 100, 2**22
PASSES = 10  # over all nodes of a level, at most
SHRINKS = 0.95  # merging in pairs ends when it keeps more than this share of the nodes
LEAST_GAIN = 1e-4
PATIENCE = 20  # uphill moves in a row


class Level(NamedTuple):
    """A graph of nodes that stand for `sizes` rows each; `_partition_kernels` says how."""

    indptr: IntArray
    indices: IntArray
    weights: FloatArray
    sizes: FloatArray


def finest_level(affinity: csr_array) -> tuple[Level, float]:
    """The level on which each node is a row, and the unit of its weights.

    In single precision: levels, of two cycles at a time, are what takes the memory. Scaling by a
    power of two changes no digit.
    """
    unit = 2.0 ** int(np.frexp(float(affinity.data.max(initial=0.0)))[1] - 1)
    level = Level(
        affinity.indptr.astype(np.uint64),
        affinity.indices.astype(np.uint32),
        (affinity.data / unit).astype(np.float32),
        np.ones(affinity.shape[0]),
    )
    return level, unit


def merged_in_pairs(
    level: Level, part: IntArray, random: np.random.RandomState, largest: float
) -> tuple[Level, IntArray] | None:
    """Pairs of nodes of one class as one node, up to a largest size, and the new node of each.

    None if hardly any can be merged.
    """
    n = level.sizes.size
    coarse, count = match(*level, part, random.permutation(n), largest)
    if count > SHRINKS * n:
        return None
    sizes: FloatArray = np.bincount(coarse, level.sizes, count).astype(np.float64)
    edges = contract(level.indptr, level.indices, level.weights, coarse, count)
    return Level(*edges, sizes), coarse


def partition_ratio(level: Level, part: IntArray, c: int) -> float:
    """Energy of a partition; infinite if a class is empty."""
    cut, size = statistics(*level, part, c)
    if (size == 0).any():
        return np.inf
    total = float(size.sum())
    return float(sum(cut[k] / balance_of(size[k], total, c) for k in range(c)))


def lowered(level: Level, part: IntArray, fixed: BoolArray, c: int) -> None:
    """Move single nodes to where the energy falls, and if there are few uphill, too; in place."""
    descend(*level, part, fixed, c, PASSES)
    if part.size > FEW * c or part.size * c > MOST_LINKS:
        return
    # By energies computed afresh: what moves add up is rounding where weights differ by 1e15.
    before, now = np.inf, partition_ratio(level, part, c)
    while now < before * (1 - LEAST_GAIN):
        climb(*level, part, fixed, c, PATIENCE)
        before, now = now, partition_ratio(level, part, c)
