"""Cells: what a cell may hold, from text or from typed files, and how new cells are written."""

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tvsvm.results import FloatArray

T = TypeVar("T")

# Cells that hold nothing, in lower case.
MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "null", "none", "<na>", "nat", "?"})
# Dates besides ISO 8601 that can be read in one way only.
DATE_FORMATS = ("%d.%m.%Y", "%Y/%m/%d", "%Y/%m/%d %H:%M:%S", "%d.%m.%Y %H:%M")
SECONDS_A_DAY = 86400.0
EPOCH = datetime(1970, 1, 1)


def object_array(cells: Iterable[Any]) -> NDArray[Any]:
    """One-dimensional array of the cells, whatever they are."""
    return np.fromiter(cells, dtype=object)


def each(function: Callable[[Any], T], cells: Sequence[Any]) -> list[T]:
    """Apply a function to all cells, once to those that are the same."""
    try:
        results = {cell: function(cell) for cell in set(cells)}
    except TypeError:  # lists have no hash
        return [function(cell) for cell in cells]
    return [results[cell] for cell in cells]


def is_missing(cell: Any) -> bool:
    """Whether a cell holds nothing, or a word for nothing."""
    return is_empty(cell) or (isinstance(cell, str) and cell.strip().lower() in MISSING)


def is_empty(cell: Any) -> bool:
    """Whether a cell holds nothing."""
    if isinstance(cell, str):
        return not cell.strip()
    if isinstance(cell, list | np.ndarray | dict):
        return False
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or bool(cell != cell)


def numbers(cells: NDArray[Any]) -> FloatArray:
    """Finite numbers of cells; NaN where there is none."""
    import pandas as pd

    if cells.dtype.kind in "biuf":
        values = cells.astype(np.float64)
    elif cells.dtype.kind == "O":
        parsed = pd.to_numeric(pd.Series(cells, dtype=object), errors="coerce")
        values = parsed.to_numpy(dtype=np.float64, na_value=np.nan, copy=True)
    else:
        return np.full(len(cells), np.nan)
    values[np.isinf(values)] = np.nan
    return values


def day(cell: Any) -> float:
    """Days since 1970 of a date, NaN if the cell is none."""
    if isinstance(cell, str):
        cell = _parsed_date(cell.strip())
    if isinstance(cell, datetime):  # and pandas' Timestamp
        try:
            naive = cell.astimezone(UTC).replace(tzinfo=None) if cell.tzinfo else cell
        except OverflowError:  # the last day there is, for "never"
            naive = cell.replace(tzinfo=None)
        return (naive - EPOCH).total_seconds() / SECONDS_A_DAY
    return float((cell - EPOCH.date()).days) if isinstance(cell, date) else np.nan


def days(cells: NDArray[Any]) -> FloatArray:
    """Days since 1970 of dates; NaN where a cell is none."""
    if cells.dtype.kind == "M":
        values = cells.astype("datetime64[ms]")
        since = values.astype(np.int64) / (1000 * SECONDS_A_DAY)
        return np.where(np.isnat(values), np.nan, since)
    return np.array(each(day, cells.tolist()), dtype=np.float64)


def vector(cell: Any) -> FloatArray | None:
    """Numbers of a list, or of text such as "[0.1, 2]"; None if the cell is no such list."""
    if isinstance(cell, str):
        if not cell.lstrip().startswith("["):
            return None
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            return None
    if not isinstance(cell, list | tuple | np.ndarray) or not len(cell):
        return None
    try:
        values = np.asarray(cell, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return values if values.ndim == 1 and np.isfinite(values).all() else None


def text(cell: Any) -> str:
    """Text of a category or a class: 3 and 3.0 are the same; "" if the cell is missing."""
    if is_missing(cell):
        return ""
    if isinstance(cell, float | np.floating) and float(cell).is_integer():
        cell = int(cell)
    return str(cell).strip()


def as_text(cell: Any) -> str:
    """How a new cell is written in a text file."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def plain(cells: Sequence[Any] | NDArray[Any]) -> list[Any]:
    """Cells as Python's own numbers, booleans and strings."""
    return cells.tolist() if isinstance(cells, np.ndarray) else list(cells)


def _parsed_date(text: str) -> datetime | None:
    # At least a year, a month and a day: bare numbers are not dates.
    if len(text) < 8 or not text[0].isdigit() or text.isdigit():
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    for form in DATE_FORMATS:
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    return None
