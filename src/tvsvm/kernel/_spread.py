"""The loop that chooses landmarks far apart: greedy k-means++ in the feature space."""

import numpy as np

from tvsvm._jit import kernel
from tvsvm.results import FloatArray, IntArray

ROUNDING = 1e-12


@kernel
def spread_out(K: FloatArray, first: int, draws: FloatArray, least: float) -> IntArray:
    """Rows of a kernel matrix far from each other, |x - z|² = k(x, x) + k(z, z) - 2 k(x, z).

    The next row is the best of several that are drawn by their distance to those chosen, by random
    numbers in [0, 1), one row of `draws` each time. It ends where all distances together are not
    above `least`.
    """
    n, n_trials = len(K), draws.shape[1]
    chosen = np.empty(len(draws) + 1, dtype=np.int64)
    chosen[0], count = first, 1
    distances, best_distances, trial = np.empty(n), np.empty(n), np.empty(n)
    diagonal = np.empty(n)
    for j in range(n):
        diagonal[j] = K[j, j]
    for j in range(n):
        distances[j] = max(diagonal[j] + diagonal[first] - 2 * K[first, j], 0.0)
    total = np.empty(n)
    for draw in draws:
        running = 0.0
        for j in range(n):
            running += distances[j]
            total[j] = running
        if running <= least:
            break
        best, lowest = -1, np.inf
        for t in range(n_trials):
            row = min(np.searchsorted(total, draw[t] * running, side="right"), n - 1)
            for j in range(n):
                trial[j] = min(distances[j], max(diagonal[j] + diagonal[row] - 2 * K[row, j], 0.0))
            # Four sums side by side: one would wait for itself at every term.
            a = b = c = d = 0.0
            whole = n - n % 4
            for j in range(0, whole, 4):
                a += trial[j]
                b += trial[j + 1]
                c += trial[j + 2]
                d += trial[j + 3]
            for j in range(whole, n):
                a += trial[j]
            left = (a + b) + (c + d)
            # Of two rows that are only near to each other, either will do: the first, and not
            # what rounding makes of it.
            if best < 0 or left < lowest * (1 - ROUNDING):
                best, lowest = row, left
                trial, best_distances = best_distances, trial
        chosen[count] = best
        count += 1
        distances, best_distances = best_distances, distances
    return chosen[:count]
