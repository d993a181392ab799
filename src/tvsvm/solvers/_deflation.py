"""Conjugate gradients with a coarse space, for graphs along which a sweep travels slowly.

A Gauss-Seidel sweep carries a value from a node to its neighbours. Along moons, rolls and chains it
takes hundreds of them from one end to the other; functions that are constant on groups of nodes
carry the rest at once: every direction is made conjugate to all of these (R. A. Nicolaides,
"Deflation of conjugate gradients with applications to boundary value problems", SIAM J. Numer.
Anal. 24 (1987)).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import csr_array

from tvsvm._jit import kernel
from tvsvm.results import FloatArray, IntArray
from tvsvm.solvers._conjugate_gradients import (
    LOOK_EVERY,
    Scaled,
    advance,
    backward,
    forward,
    residual_lengths,
)
from tvsvm.solvers._partition_kernels import contract, match

GROUPS, MOST_GROUPS = 2.0, 2000  # for each root of the number of nodes; their matrix is dense
# Times the lowest residual: where parts hang together by next to nothing, rounding in the coarse
# space grows without end after the residual was low.
ASTRAY = 1e3
SHRINKS = 0.95  # merging ends when more than this share of the groups is left


class Coarse(NamedTuple):
    """Functions Z that are constant, but for the scaling, on one group of nodes each."""

    group: IntArray  # of each node, `size` if it is in none
    value: FloatArray  # of its function there
    image: csr_array  # (I - F - Fᵀ) Z
    above: csr_array  # Fᵀ Z
    factor: tuple[FloatArray, bool]  # Cholesky, of Zᵀ (I - F - Fᵀ) Z
    size: int

    @classmethod
    def of(
        cls, graph: Scaled, W: csr_array, root: FloatArray, components: IntArray
    ) -> Coarse | None:
        """Groups of nodes merged along heavy edges; None if they are no help.

        The largest group of every component is left out: all together would be the constants,
        which a Laplacian cannot tell from zero.
        """
        n = root.size
        wanted = int(min(GROUPS * np.sqrt(n), MOST_GROUPS))
        group = merged(W, wanted)
        sizes = np.bincount(group)
        where = np.empty(sizes.size, dtype=np.int64)
        where[group] = components
        largest = np.lexsort((-sizes, where))
        first = np.append(True, np.diff(where[largest]) > 0)
        sizes[largest[first]] = 0
        # Where components are many, the small ones need no help.
        kept = np.argsort(-sizes, kind="stable")[: 2 * wanted]
        kept = kept[sizes[kept] > 1]
        if kept.size == 0:
            return None
        names = np.full(sizes.size, kept.size)
        names[kept] = np.arange(kept.size)
        group = names[group]
        value = np.divide(1.0, root, out=np.zeros(n), where=root > 0)
        value[group == kept.size] = 0.0
        inside = np.flatnonzero(value)
        Z = csr_array((value[inside], (inside, group[inside])), shape=(n, kept.size))
        links = csr_array((graph.weights, graph.indices, graph.indptr), shape=(n, n))
        image, size = Z - links @ Z, Z + links @ Z
        # Inside a group all cancels but for rounding.
        image = image.multiply(abs(image) > 8 * np.finfo(float).eps * size).tocsr()
        image.eliminate_zeros()
        rows = np.repeat(np.arange(n, dtype=graph.indices.dtype), np.diff(graph.indptr))
        upper = graph.indices > rows
        above = csr_array((graph.weights[upper], (rows[upper], graph.indices[upper])), (n, n)) @ Z
        try:
            factor = cho_factor((Z.T @ image).toarray())
        except LinAlgError:  # weights of too different sizes
            return None
        return cls(group, value, image, above, factor, kept.size)

    def part(self, rows: FloatArray) -> FloatArray:
        """Coordinates of the function of the space that has the same products with the Z."""
        products = np.zeros((self.size + 1, rows.shape[1]))
        np.add.at(products, self.group, self.value[:, None] * rows)
        return self._solved(products[:-1])

    def along(self, t: FloatArray) -> FloatArray:
        """Coordinates of the part of t that is not conjugate to the Z."""
        return self._solved(self.image.T @ t)

    def _solved(self, products: FloatArray) -> FloatArray:
        """With a row of zeros for nodes in no group.

        One by one: together, the digits of a column would depend on how many there are.
        """
        solved = np.zeros((self.size + 1, products.shape[1]))
        for k in range(products.shape[1]):
            solved[:-1, k] = cho_solve(self.factor, products[:, k], check_finite=False)
        return solved


def deflated_gradients(
    graph: Scaled,
    coarse: Coarse,
    root: FloatArray,
    R: FloatArray,
    goal: FloatArray,
    max_iter: int,
) -> tuple[FloatArray, int]:
    """As `conjugate_gradients`, with directions conjugate to a coarse space, the best iterate.

    There t = (I - Fᵀ)⁻¹ p belongs to a direction p, and here s = p - t = -Fᵀ t, too: with z the
    solution for the residual r, t ← z - Zμ + βt and s ← r - z + FᵀZμ + βs.
    """
    solution = np.zeros_like(R)
    columns = np.arange(R.shape[1])
    R *= root[:, None]
    start = coarse.part(R)
    x = np.where(root > 0, 1.0, 0.0)[:, None] * start[coarse.group]
    R -= coarse.image @ start[:-1]
    z, t, s, y, r = (np.zeros_like(R) for _ in range(5))
    forward(*graph, R, t, r)
    beta: FloatArray = np.zeros(columns.size)
    above = coarse.above
    rr = np.einsum("ik,ik->k", r, r)
    floor = 1e-24 * rr
    solution[:], lowest = x, residual_lengths(*graph, root, r)
    for n_iter in range(1, max_iter + 1):
        backward(*graph, r, np.zeros_like(beta), y, z)
        mu = coarse.along(z)
        pq = _direct(
            *graph,
            coarse.group,
            coarse.value,
            above.indptr,
            above.indices,
            above.data,
            mu,
            beta,
            r,
            z,
            t,
            s,
            y,
        )
        alpha = np.divide(rr, pq, out=np.zeros_like(rr), where=(rr > floor) & (pq > 0))
        before, rr = rr, advance(root, alpha, t, y, x, r)
        beta = np.divide(rr, before, out=np.zeros_like(rr), where=before > 0)
        if n_iter % LOOK_EVERY == 0:
            length = residual_lengths(*graph, root, r)
            lower = length < lowest
            solution[:, columns[lower]] = x[:, lower]
            lowest = np.minimum(length, lowest)
            going = (rr > floor) & (length > goal[columns]) & (length < ASTRAY * lowest)
            if not going.all():
                columns = columns[going]
                rr, beta, floor, lowest = (v[going] for v in (rr, beta, floor, lowest))
                x, z, t, s, y, r = (np.ascontiguousarray(v[:, going]) for v in (x, z, t, s, y, r))
            if columns.size == 0:
                break
    return solution, n_iter


def merged(W: csr_array, wanted: int) -> IntArray:
    """Nodes merged in pairs, again and again, until about so many groups are left."""
    n = W.shape[0]
    edges = W.indptr.astype(np.uint64), W.indices.astype(np.uint32), W.data.astype(np.float32)
    sizes, group = np.ones(n), np.arange(n)
    random = np.random.RandomState(0)
    while sizes.size > wanted:
        one_class = np.zeros(sizes.size, dtype=np.int32)
        coarse, count = match(
            *edges, sizes, one_class, random.permutation(sizes.size), 2.0 * n / wanted
        )
        if count > SHRINKS * sizes.size:
            break
        edges = contract(*edges, coarse, count)
        sizes = np.bincount(coarse, sizes, count).astype(np.float64)
        group = coarse[group]
    return group


@kernel
def _direct(
    indptr: IntArray,
    split: IntArray,
    indices: IntArray,
    weights: FloatArray,
    group: IntArray,
    value: FloatArray,
    above_indptr: IntArray,
    above_indices: IntArray,
    above: FloatArray,
    mu: FloatArray,
    beta: FloatArray,
    r: FloatArray,
    z: FloatArray,
    t: FloatArray,
    s: FloatArray,
    y: FloatArray,
) -> FloatArray:
    """Next t and s, y = (I - F)⁻¹ s, and return Σ p (t + y) of each column with p = s + t."""
    pq = np.zeros(len(beta))
    if len(beta) == 1:  # sums stay in a register
        for i in range(len(r)):
            t[i, 0] = z[i, 0] - value[i] * mu[group[i], 0] + beta[0] * t[i, 0]
            total = r[i, 0] - z[i, 0] + beta[0] * s[i, 0]
            for e in range(above_indptr[i], above_indptr[i + 1]):
                total += above[e] * mu[above_indices[e], 0]
            s[i, 0] = total
            for e in range(indptr[i], split[i]):
                total += weights[e] * y[indices[e], 0]
            y[i, 0] = total
            pq[0] += (s[i, 0] + t[i, 0]) * (t[i, 0] + total)
        return pq
    for i in range(len(r)):
        for k in range(len(beta)):
            t[i, k] = z[i, k] - value[i] * mu[group[i], k] + beta[k] * t[i, k]
            s[i, k] = r[i, k] - z[i, k] + beta[k] * s[i, k]
        for e in range(above_indptr[i], above_indptr[i + 1]):
            for k in range(len(beta)):
                s[i, k] += above[e] * mu[above_indices[e], k]
        for k in range(len(beta)):
            y[i, k] = s[i, k]
        for e in range(indptr[i], split[i]):
            for k in range(len(beta)):
                y[i, k] += weights[e] * y[indices[e], k]
        for k in range(len(beta)):
            pq[k] += (s[i, k] + t[i, k]) * (t[i, k] + y[i, k])
    return pq
