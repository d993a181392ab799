"""Anderson's acceleration of an iteration that converges by itself, but slowly."""

from itertools import pairwise

import numpy as np
from scipy.linalg import norm

from tvsvm.results import FloatArray

MEMORY = 2  # steps looked back: more gain nothing, and cost memory
WORSE = 2.0  # times the distance of the step before, at which the past is forgotten
NEGLIGIBLE = 1e-10  # share of the past steps' squares that keeps their system regular


class Anderson:
    """Where to go on in z ← T(z): the mixture of the last steps that moves least, if linear.

    Whether it helps is seen at the next step: one twice as long as the last makes it forget.
    """

    def __init__(self) -> None:
        self._ends: list[FloatArray] = []
        self._moves: list[FloatArray] = []

    def forget(self) -> None:
        """Begin anew, as with another T."""
        self._ends, self._moves = [], []

    def next(self, z: FloatArray, end: FloatArray) -> FloatArray:
        """The next z, from the last one and its T(z)."""
        move = end - z
        if self._moves and norm(move) > WORSE * norm(self._moves[-1]):
            self.forget()
        self._ends = [*self._ends[-MEMORY:], end]
        self._moves = [*self._moves[-MEMORY:], move]
        if len(self._moves) == 1:
            return end
        changes = np.array([(b - a).ravel() for a, b in pairwise(self._moves)])
        squares = changes @ changes.T
        squares.flat[:: len(squares) + 1] += NEGLIGIBLE * np.trace(squares)
        if not squares[0, 0] > 0:
            return end
        shares = np.linalg.solve(squares, changes @ move.ravel())
        back = (share * (b - a) for share, (a, b) in zip(shares, pairwise(self._ends), strict=True))
        return end - sum(back)
