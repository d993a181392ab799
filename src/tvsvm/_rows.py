"""Lengths and directions of rows, dense or sparse, with entries of any size."""

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.extmath import row_norms

from tvsvm.results import FloatArray


def lengths(rows: Any) -> FloatArray:
    """Euclidean norms."""
    largest = _largest_entries(rows)
    return largest * row_norms(_divided(rows, largest))


def directions(rows: Any) -> Any:
    """Rows of length one; rows of zeros stay zero."""
    # First to the largest entry one, lest the squares of huge or tiny rows overflow or vanish.
    rows = _divided(rows, _largest_entries(rows))
    return _divided(rows, row_norms(rows))


def _largest_entries(rows: Any) -> FloatArray:
    largest = abs(rows).max(axis=1)
    return largest.toarray().ravel() if issparse(largest) else largest


def _divided(rows: Any, by: FloatArray) -> Any:
    """Each row over its number, in the precision of the rows; those over zero stay."""
    by = np.where(by == 0, 1, by).astype(rows.dtype)
    if not issparse(rows):
        return rows / by[:, None]
    data = rows.data / np.repeat(by, np.diff(rows.indptr))
    return type(rows)((data, rows.indices, rows.indptr), shape=rows.shape)
