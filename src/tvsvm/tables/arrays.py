"""NumPy files and whatever else is one array: each row a vector."""

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvsvm.tables.base import Chunk, Columns, Progress, TableError
from tvsvm.tables.cells import object_array

# Numbers in memory at a time, besides the array itself.
CHUNK_NUMBERS = 2**22
FEATURES = "X"
LABELS = ("given", "y", "label", "labels", "target")


class ArrayTable:
    """An array of at least two dimensions, and columns of the same length beside it.

    Parameters
    ----------
    path : Path
        Where it comes from.
    vectors : ndarray of shape (n_rows, ...)
        One vector a row, in any shape.
    columns : mapping of str to ndarray
        Other columns; one that is called "y" or "label" holds the labels.
    """

    place = "index"

    def __init__(
        self, path: Path, vectors: NDArray[Any], columns: Mapping[str, NDArray[Any]]
    ) -> None:
        self.path = path
        self.vectors = vectors
        self.columns = dict(columns)
        self.label = next((name for name in columns if name.lower() in LABELS), None)
        for name, cells in self.columns.items():
            if len(cells) != len(vectors):
                raise TableError(
                    f"The labels must be as many as the rows of {path}. Got {len(cells)} in "
                    f"{name!r} for {len(vectors)} rows; leave a cell empty where the class is "
                    "unknown, and begin a text file with a header line."
                )

    def chunks(self) -> Iterator[Chunk]:
        """Read from the first row to the last; may be called again."""
        n_rows = len(self.vectors)
        step = max(1, CHUNK_NUMBERS // max(1, self.vectors[:1].size))
        for start in range(0, n_rows, step):
            stop = min(start + step, n_rows)
            columns = {name: cells[start:stop] for name, cells in self.columns.items()}
            columns[FEATURES] = np.asarray(self.vectors[start:stop]).reshape(stop - start, -1)
            yield Chunk(np.arange(start, stop), columns, stop / n_rows)

    def write(self, path: Path, added: Columns, progress: Progress) -> None:
        """Write all arrays and the new ones into an .npz file, texts as NumPy's own strings."""
        arrays = {FEATURES: self.vectors} | self.columns | dict(added)
        with path.open("wb") as out:
            stored: dict[str, Any] = {name: _storable(cells) for name, cells in arrays.items()}
            np.savez(out, **stored)
        progress(1.0)


def read_numpy(path: Path, labels: Mapping[str, NDArray[Any]]) -> ArrayTable:
    """Open a .npy or .npz file; nothing in it is ever executed."""
    try:
        if path.suffix.lower() == ".npz":
            with np.load(path, allow_pickle=False) as archive:
                arrays = dict(archive)
        else:  # mapped, not read: it may be larger than memory
            arrays = {FEATURES: np.load(path, mmap_mode="r", allow_pickle=False)}
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise TableError(
            f"{path} is no NumPy file of numbers or strings; save plain arrays by np.save or "
            "np.savez."
        ) from error
    wide = [name for name, array in arrays.items() if array.ndim > 1]
    name = FEATURES if FEATURES in wide else wide[0] if len(wide) == 1 else None
    if name is None or arrays[name].dtype.kind not in "biuf":
        found = ", ".join(f"{key!r} {array.shape}" for key, array in arrays.items()) or "nothing"
        raise TableError(
            f"{path} must hold one array of numbers with a row for each object, called "
            f"{FEATURES!r} if there are several. Got {found}; save it as such."
        )
    vectors = arrays.pop(name)
    beside = {
        key: cells
        for key, cells in arrays.items()
        if cells.ndim == 1 and len(cells) == len(vectors)
    }
    return ArrayTable(path, vectors, beside | dict(labels))


def _storable(cells: Any) -> NDArray[Any]:
    array = np.asarray(cells)
    if array.dtype != object:
        return array
    return np.array(["" if cell is None else str(cell) for cell in object_array(array)])
