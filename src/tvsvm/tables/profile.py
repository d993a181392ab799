"""A first look at every column of a table: what it holds, and whether it has gaps."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvsvm.tables.base import Progress, Table, TableError, told
from tvsvm.tables.cells import day, is_missing, numbers, vector

# A column with more different texts than this holds no categories.
MOST_CATEGORIES = 1000
# A column is of a kind if this share of its cells is; the other cells are then mistakes.
ENOUGH = 0.9
# Texts that are tried as dates or vectors before a column is taken for text.
TRIED_TEXTS = 1000
# Longer texts that are all different are comments, not names of rows.
LONGEST_ID = 40
ID_NAME = re.compile(
    r"(.*[_\s.-])?(id|uuid|guid)"
    r"|unnamed: \d+|__index_level_\d+__|",  # as pandas calls an index, or ""
    re.IGNORECASE,
)
ROW_NAME = re.compile(r"index|key|row|file|filename|path|url", re.IGNORECASE)
CAMEL_ID = re.compile(r".*[a-z](Id|ID)")


@dataclass
class Profile:
    """What is known of a column after all its cells were seen.

    Attributes
    ----------
    n_rows, n_missing, n_numbers, n_dates, n_vectors, n_texts : int
        Cells, and how many of them are of each kind.
    values : set
        Different cells, up to one more than `MOST_CATEGORIES`.
    longest : int
        Length of the longest text.
    width : int
        Length of the first vector.
    counts : bool
        Whether each number is the one before plus one.
    """

    name: str
    n_rows: int = 0
    n_missing: int = 0
    n_numbers: int = 0
    n_dates: int = 0
    n_vectors: int = 0
    n_texts: int = 0
    values: set[Any] = field(default_factory=set)
    longest: int = 0
    width: int = 0
    counts: bool = True
    _last: float | None = None

    def add(self, cells: NDArray[Any]) -> None:
        """Look at the next cells."""
        self.n_rows += len(cells)
        if cells.ndim == 2:
            self._add_vectors(cells)
            return
        if cells.dtype.kind == "M":
            cells = cells.astype("datetime64[ms]").astype(object)
        values = numbers(cells)
        known = np.isfinite(values)
        self._add_numbers(values[known])
        for cell, count in _counted(cells[~known].tolist()):
            self._add_other(cell, count)
        if len(self.values) <= MOST_CATEGORIES and known.any():
            self.values.update(np.unique(values[known])[: MOST_CATEGORIES + 1].tolist())

    @property
    def n_present(self) -> int:
        """Cells that hold something."""
        return self.n_rows - self.n_missing

    @property
    def kind(self) -> str:
        """One of "empty", "number", "date", "vector", "category" and "text"."""
        if not self.n_present:
            return "empty"
        for kind, count in (
            ("number", self.n_numbers),
            ("date", self.n_dates),
            ("vector", self.n_vectors),
        ):
            if count >= ENOUGH * self.n_present:
                return kind
        repeats = len(self.values) <= max(2, self.n_present // 2)
        return "category" if len(self.values) <= MOST_CATEGORIES and repeats else "text"

    @property
    def is_id(self) -> bool:
        """Whether the column only names or numbers the rows."""
        if self.kind not in ("number", "text"):
            return False
        if ID_NAME.fullmatch(self.name) or CAMEL_ID.fullmatch(self.name):
            return True
        different = not self.n_missing and len(self.values) >= min(self.n_rows, MOST_CATEGORIES)
        if different and ROW_NAME.fullmatch(self.name):
            return True
        if self.kind == "text":
            return different and self.longest <= LONGEST_ID
        return self.counts and self.n_numbers == self.n_rows > 2

    @property
    def is_constant(self) -> bool:
        """Whether there is nothing to learn from the column."""
        return self.kind != "vector" and not self.n_missing and len(self.values) == 1

    def _add_numbers(self, values: NDArray[Any]) -> None:
        if not len(values):
            return
        self.n_numbers += len(values)
        steps = np.diff(values, prepend=values[0] - 1 if self._last is None else self._last)
        self.counts &= bool((steps == 1).all())
        self._last = float(values[-1])

    def _add_vectors(self, cells: NDArray[Any]) -> None:
        self.n_vectors += len(cells)
        self.width = cells.shape[1]

    def _add_other(self, cell: Any, count: int) -> None:
        if is_missing(cell):
            self.n_missing += count
            return
        values = None if self._is_text_column else vector(cell)
        if values is not None:
            self.n_vectors += count
            self.width = self.width or len(values)
            return
        if self._is_text_column or np.isnan(day(cell)):
            self.n_texts += count
        else:
            self.n_dates += count
        shown = cell if isinstance(cell, str) else repr(cell)
        self.longest = max(self.longest, len(shown))
        if len(self.values) <= MOST_CATEGORIES:
            self.values.add(shown)

    @property
    def _is_text_column(self) -> bool:
        return self.n_texts >= TRIED_TEXTS and not self.n_dates and not self.n_vectors


def _counted(cells: list[Any]) -> Iterable[tuple[Any, int]]:
    try:
        return Counter(cells).items()
    except TypeError:  # lists have no hash
        return ((cell, 1) for cell in cells)


def scan(table: Table, progress: Progress) -> dict[str, Profile]:
    """Look at every column of a table, in the order of the file."""
    profiles: dict[str, Profile] = {}
    n_rows = 0
    for chunk in told(table.chunks(), progress):
        for name, cells in chunk.columns.items():
            if name not in profiles:  # a key that earlier lines of a JSON file do not have
                profiles[name] = Profile(name, n_rows=n_rows, n_missing=n_rows)
            profiles[name].add(cells)
        n_rows += len(chunk)
        for profile in profiles.values():
            profile.n_missing += n_rows - profile.n_rows
            profile.n_rows = n_rows
    if not n_rows:
        raise TableError(f"{table.path} has no rows; it needs some of them with a label.")
    return profiles
