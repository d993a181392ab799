"""What may become a graph: square, finite, non-negative, symmetric up to rounding."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse

from tvsvm.results import FloatArray


def checked_csr(matrix: Any, name: str) -> csr_array:
    """Copy of `matrix` with sorted indices and no diagonal; explicit zeros stay."""
    if not issparse(matrix):
        matrix = np.asarray(matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise ValueError(
            f"`{name}` must be a square matrix with at least one row. Got shape {matrix.shape}; "
            "pass one row and one column a node."
        )
    if matrix.dtype.kind == "c":
        raise ValueError(f"`{name}` must be real. Got {matrix.dtype}; pass its absolute value.")
    dtype = np.float32 if matrix.dtype == np.float32 else np.float64
    csr = csr_array(matrix, dtype=dtype, copy=True)
    if max(csr.nnz, csr.shape[1]) < 2**31:  # half the memory, and one version of each loop
        csr.indices, csr.indptr = (
            i.astype(np.int32, copy=False) for i in (csr.indices, csr.indptr)
        )
    csr.sum_duplicates()
    if not np.isfinite(csr.data).all():
        raise ValueError(
            f"`{name}` must be finite. Got {np.count_nonzero(~np.isfinite(csr.data))} entries NaN "
            "or infinite; remove or replace them."
        )
    if csr.nnz and csr.data.min() < 0:
        raise ValueError(
            f"`{name}` must not be negative. Got {csr.data.min():g} as the smallest entry; "
            "pass values from 0 on."
        )
    return _without_diagonal(csr)


def _without_diagonal(csr: csr_array) -> csr_array:
    rows = row_numbers(csr)
    kept = rows != csr.indices
    if kept.all():
        return csr
    indptr = np.zeros_like(csr.indptr)
    np.cumsum(np.bincount(rows[kept], minlength=csr.shape[0]), out=indptr[1:])
    return csr_array((csr.data[kept], csr.indices[kept], indptr), shape=csr.shape)


def row_numbers(csr: csr_array) -> np.ndarray:
    """Row of each stored entry."""
    return np.repeat(np.arange(csr.shape[0], dtype=csr.indices.dtype), np.diff(csr.indptr))


def symmetric(csr: csr_array) -> csr_array:
    """`csr` without explicit zeros and, if rounding made it asymmetric, with the mean of both."""
    csr.eliminate_zeros()
    transposed = csr.T.tocsr()
    largest = abs(csr - transposed).max() if csr.nnz else 0.0
    if largest == 0.0:
        return csr
    # Affinities come from distances that lose half the digits when computed by inner products.
    if largest > np.sqrt(np.finfo(csr.dtype).eps) * csr.data.max():
        raise ValueError(
            f"`affinity` must be symmetric. Got entries that differ by up to {largest:.3g} from "
            "their mirror image; pass it to Graph.from_directed(affinity, symmetrize='mean')."
        )
    return csr_array(csr * 0.5 + transposed * 0.5)


def float_rows(values: ArrayLike, n_rows: int, name: str) -> FloatArray:
    """`values` as a contiguous float array with `n_rows` rows and one or two axes."""
    array = np.asarray(values)
    dtype = np.float32 if array.dtype == np.float32 else np.float64
    array = np.ascontiguousarray(array, dtype=dtype)
    if array.ndim not in (1, 2) or array.shape[0] != n_rows:
        raise ValueError(
            f"`{name}` must have shape ({n_rows},) or ({n_rows}, c). Got {array.shape}; "
            "pass one row a node (or one an edge, for the adjoint)."
        )
    return array


def read_only(array: Any) -> Any:
    """Make a dense or CSR array that nobody else holds read-only, and return it."""
    for part in (array.data, array.indices, array.indptr) if issparse(array) else (array,):
        part.flags.writeable = False
    return array
