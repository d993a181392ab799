"""What every kind of table can do: give its rows in chunks, write itself with new columns."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tvsvm.results import IntArray

# Rows in memory at a time.
CHUNK_ROWS = 20_000

Columns = Mapping[str, Sequence[Any] | NDArray[Any]]
Progress = Callable[[float], None]


class TableError(ValueError):
    """A table that cannot be used; the message is one sentence for its owner."""


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of a table.

    Attributes
    ----------
    lines : ndarray of shape (n_rows,)
        Where each row is in the file, as `Table.place` counts.
    columns : dict of str to ndarray
        Cells as they were read, of shape (n_rows,), or (n_rows, width) for vectors.
    share : float
        Share of the file that is read by now.
    """

    lines: IntArray
    columns: dict[str, NDArray[Any]]
    share: float

    def __len__(self) -> int:
        return len(self.lines)

    def cells(self, name: str) -> NDArray[Any]:
        """Cells of a column; gaps if it is a key that no line of a JSON file has in this chunk."""
        cells = self.columns.get(name)
        return np.full(len(self), None, dtype=object) if cells is None else cells

    def take(self, rows: Any) -> "Chunk":
        """Some of the rows, by a slice, mask or index."""
        return Chunk(
            self.lines[rows],
            {name: cells[rows] for name, cells in self.columns.items()},
            self.share,
        )


class Table(Protocol):
    """A file, or folder, of rows and named columns."""

    path: Path
    place: str  # what `Chunk.lines` count: "line" or "row" from 1, "index" from 0

    @property
    def label(self) -> str | None:
        """The column that is known to hold the labels."""

    def chunks(self) -> Iterator[Chunk]:
        """Read from the first row to the last; may be called again."""

    def write(self, path: Path, added: Columns, progress: Progress) -> None:
        """Write the table as it is to `path`, with more columns, as long as the table."""


def told(chunks: Iterable[Chunk], progress: Progress) -> Iterator[Chunk]:
    """Pass chunks on, and tell the share of the file when each is done."""
    for chunk in chunks:
        yield chunk
        progress(chunk.share)


def stamp(path: Path) -> tuple[int, int]:
    """What changes when a file is written to: its time and size."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def check_unchanged(path: Path, before: tuple[int, int]) -> None:
    """Refuse a file that was written to since it was opened: its rows may be others."""
    if stamp(path) != before:
        raise TableError(f"{path} was changed by another program meanwhile; run the command again.")


def need(package: str, purpose: str) -> Any:
    """Import an optional package, or say how to get it."""
    try:
        return import_module(package)
    except ImportError as error:
        name = package.partition(".")[0].replace("PIL", "pillow")
        raise TableError(
            f"{purpose} needs {name}, which is not installed; run: pip install 'tvsvm[tables]'."
        ) from error
