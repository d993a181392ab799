"""Labels: y to class codes and targets, and values of functions back to classes."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import column_or_1d

from tvsvm.results import BoolArray, FloatArray, IntArray
from tvsvm.solvers import simplex_projection

# What stands for "unknown" by default, besides missing values: -1, and what NumPy makes of -1 and
# of NaN in an array of strings.
UNKNOWN = (-1, "-1", "nan")
PANDAS_MISSING = ("NAType", "NaTType")


@dataclass(frozen=True, eq=False)
class Labels:
    """Which rows are labelled, and how.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        The classes, sorted.
    codes : ndarray of shape (N,)
        Position in `classes` of each row's label, -1 where it is unknown.
    doubt : str
        A sentence if -1, which was taken for unknown, may be a class; else empty.
    """

    classes: NDArray[Any]
    codes: IntArray
    doubt: str = ""

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @cached_property
    def rows(self) -> IntArray:
        """The labelled rows, ascending."""
        return np.flatnonzero(self.codes >= 0)

    @property
    def targets(self) -> FloatArray:
        """What functions should be on `rows`: ±1 in one column, or one-hot for over two classes."""
        codes = self.codes[self.rows]
        return np.eye(self.n_classes)[codes] if self.n_classes > 2 else 2.0 * codes[:, None] - 1.0


def read_labels(
    y: ArrayLike, n_rows: int, *, unlabeled: Any = None, ignore: BoolArray | None = None
) -> Labels:
    """Read the class of each row from y.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Numbers, strings, booleans or a pandas Series or Categorical of them.
    n_rows : int
        Number of rows of X.
    unlabeled : object, optional
        The value that stands for an unknown class. By default -1, also where it became a string
        as in ``np.array(["cat", -1])``. Missing values (None, NaN, pd.NA, pd.NaT) are always
        unknown.
    ignore : boolean array of shape (n_rows,), optional
        Rows whose label does not count.

    Returns
    -------
    Labels
        With at least one class.
    """
    column = _as_column(y)
    if len(column) != n_rows:
        raise ValueError(
            f"`y` must have one entry for every row of X. Got {len(column)} for {n_rows} rows; "
            "pass -1 where the class is unknown."
        )
    is_unknown = _is_default_unknown if unlabeled is None else _is_equal_to(unlabeled)
    # Numbers are few different ones, and quickly told apart.
    numbers = column.dtype.kind in "biuf"
    values, place = np.unique(column, return_inverse=True) if numbers else (column, slice(None))
    given = values.tolist()
    missing = np.fromiter(map(_is_missing, given), bool, len(values))
    marked = np.fromiter(
        (not none and is_unknown(value) for value, none in zip(given, missing, strict=True)),
        bool,
        len(values),
    )
    known = ~(missing | marked)[place]
    if ignore is not None:
        known &= ~ignore
    if not known.any():
        raise ValueError(
            f"`y` must hold labels of positive weight. Got 0 labels for {n_rows} rows; label at "
            "least one row of each class."
        )
    codes = np.full(n_rows, -1)
    classes, codes[known] = np.unique(_as_classes(column[known]), return_inverse=True)
    doubt = (
        "" if unlabeled is not None else _doubt(classes, bool(missing.any()), bool(marked.any()))
    )
    return Labels(classes, codes, doubt)


def _doubt(classes: NDArray[Any], missing: bool, marked: bool) -> str:
    """A sentence if -1, which is `marked` as unknown by default, may be a class; else empty."""
    if not marked or classes.dtype.kind not in "biuf":
        return ""
    if missing:
        why = "`y` holds missing values, too"
    elif classes.tolist() == [1]:
        why = "the only other value in `y` is 1"
    else:
        return ""
    return (
        f"-1 in `y` was taken for an unknown class, but {why}. Pass unlabeled=float('nan') if -1 "
        "is a class, unlabeled=-1 if it is not."
    )


def codes_of(F: FloatArray) -> IntArray:
    """Class codes of values (N, c): the largest column, or for c = 1 whether it is positive."""
    return F.argmax(axis=1) if F.shape[1] > 1 else (F[:, 0] > 0).astype(np.intp)


def distributions_of(F: FloatArray, n_classes: int) -> FloatArray:
    """Class probabilities (N, n_classes) of values (N, c), the likeliest class being `codes_of`.

    The nearest point of the simplex: for c = 1 of ((1 - f)/2, (1 + f)/2), that is (1 + f)/2
    clipped to [0, 1]. Values that favour no class give equal probabilities.
    """
    scores = F if F.shape[1] > 1 else np.hstack([1.0 - F, 1.0 + F]) / 2.0
    P = simplex_projection(scores.astype(np.float64, copy=False))
    # Values that differ by less than rounding can share the first place after the projection.
    chosen = codes_of(F)
    tied = np.flatnonzero(P.argmax(axis=1) != chosen)
    P[tied, chosen[tied]] += np.finfo(np.float64).eps
    return P[:, :n_classes]


def _as_column(y: Any) -> NDArray[Any]:
    if y is None:
        raise ValueError(
            "A classifier requires y to be passed, but the target y is None; pass the class of "
            "each row, and -1 where it is unknown."
        )
    dtype = getattr(y, "dtype", None)
    if dtype is not None and not isinstance(dtype, np.dtype) and y.ndim == 1:
        # A pandas extension type: NumPy would turn integers and booleans with gaps into floats.
        return np.fromiter(y.tolist(), object, len(y))
    return column_or_1d(y, warn=True)


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in PANDAS_MISSING or bool(value != value)


def _is_default_unknown(value: Any) -> bool:
    return value in UNKNOWN


def _is_equal_to(unlabeled: Any) -> Callable[[Any], bool]:
    return lambda value: bool(value == unlabeled)


def _as_classes(known: NDArray[Any]) -> NDArray[Any]:
    """Return the known labels as an array that can be sorted; refuse what cannot be classes."""
    if known.dtype == object and not all(isinstance(value, str) for value in known):
        kinds = sorted({type(value).__name__ for value in known})
        given, known = known, np.array(known.tolist()) if "str" not in kinds else known
        if known.dtype.kind == "f" and len(np.unique(known)) < len(set(given.tolist())):
            raise ValueError(
                "`y` must hold classes that stay different as numbers of 64 bits. Got integers "
                "beyond; convert them, e.g. by y.astype(str)."
            )
        if known.dtype.kind not in "biuf" or known.ndim != 1:
            raise ValueError(
                f"Unknown label type: `y` must hold numbers, booleans or strings, all of one kind. "
                f"Got {', '.join(kinds)}; convert them, e.g. by y.astype(str)."
            )
    if known.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            broken = known[~(known % 1 == 0)]
        if len(broken):
            raise ValueError(
                f"Unknown label type: continuous; `y` must hold classes. Got {broken[0]}; pass "
                "integers or strings, e.g. from pandas.cut."
            )
    return known
