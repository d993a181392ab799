"""The label column: cells to classes, None where a row has no label."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvsvm.tables.base import TableError
from tvsvm.tables.cells import each, is_empty, is_missing, object_array

# Beyond, fractions are measurements, and labels that are all different are no classes.
MOST_FRACTIONS = 20
MOST_SINGLES = 100


def read_classes(cells: Sequence[Any], *, unlabeled: str | None = None) -> NDArray[Any]:
    """Class of each row, None where it has none.

    An empty cell is no label, nor is the text `unlabeled`. If that is not given, words such as "NA"
    are none either and, if all cells hold something else, -1, as scikit-learn has it.
    """
    missing = is_missing if unlabeled is None else is_empty
    known = each(lambda cell: None if missing(cell) else _plain(cell), cells)
    if unlabeled is not None:
        known = [None if cell is not None and str(cell) == unlabeled else cell for cell in known]
    if unlabeled is None and None not in known:
        known = [None if cell in (-1, "-1") else cell for cell in known]
    kinds = {type(cell) for cell in known if cell is not None}
    if len(kinds) > 1:  # as 1 and "1b" in a sheet
        known = [None if cell is None else str(cell) for cell in known]
    return object_array(known)


def words_for_nothing(cells: Sequence[Any]) -> list[str]:
    """Words such as "none" that stand beside empty cells, and might be classes."""
    different = {cell for cell in cells if isinstance(cell, str)}
    words = sorted({cell.strip() for cell in different if is_missing(cell)} - {""})
    return words if any(map(is_empty, cells)) else []


def count_classes(y: NDArray[Any]) -> dict[Any, int]:
    """Number of labels of each class, sorted by class."""
    labelled = [cell for cell in y.tolist() if cell is not None]
    classes, sizes = np.unique(np.array(labelled), return_counts=True)
    return dict(zip(classes.tolist(), sizes.tolist(), strict=True))


def check_classes(counts: dict[Any, int], column: str) -> None:
    """Refuse labels that nothing can be learnt from."""
    if not counts:
        raise TableError(
            f"Column {column!r} holds no labels; label at least one row of each class (`tvsvm "
            "suggest` says which)."
        )
    if len(counts) == 1:
        raise TableError(
            f"Column {column!r} holds one class only, {next(iter(counts))!r} in "
            f"{sum(counts.values()):,} rows; label at least one row of another class."
        )
    fractions = [name for name in counts if _is_fraction(name)]
    if len(counts) > MOST_FRACTIONS and len(fractions) > len(counts) // 2:
        raise TableError(
            f"Column {column!r} must hold classes. Got numbers such as {fractions[0]}, "
            f"{len(counts):,} different ones; choose another column by --label, or put the "
            "numbers into classes first."
        )
    if len(counts) > MOST_SINGLES and len(counts) == sum(counts.values()):
        raise TableError(
            f"Column {column!r} must hold classes. Got {len(counts):,} labels, all different; "
            "choose another column by --label."
        )


def _plain(cell: Any) -> Any:
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    return cell if isinstance(cell, bool | int | float) else str(cell).strip()


def _is_fraction(cell: Any) -> bool:
    try:
        return not float(cell).is_integer()
    except (ValueError, OverflowError):
        return False
