"""Labels that are kept in a file of their own, beside a NumPy file or a folder of images."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvsvm.tables import open_table
from tvsvm.tables.base import Table, TableError
from tvsvm.tables.cells import object_array

COLUMN = "given"


def labels_by_row(path: Path, label: str | None, encoding: str) -> dict[str, NDArray[Any]]:
    """Column of labels, one a row: an .npy file, or a column of a table."""
    if path.suffix.lower() == ".npy":
        try:
            labels = np.load(path, allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise TableError(
                f"{path} is no NumPy file of numbers or strings; save plain labels by np.save."
            ) from error
        if labels.ndim != 1:
            raise TableError(
                f"{path} must hold one label a row. Got shape {labels.shape}; save an array of "
                "one dimension."
            )
        return {COLUMN: labels}
    columns = _columns(open_table(path, encoding=encoding))
    return {COLUMN: columns[_chosen(columns, label, path)]}


def labels_by_name(table: Table, label: str | None) -> dict[str, Any]:
    """Label by file name: the names in the first column, the labels in the given or last one."""
    columns = _columns(table)
    if len(columns) < 2:
        raise TableError(
            f"{table.path} must have a column of file names and one of labels. Got "
            f"{len(columns)} column; write for example the header file,label."
        )
    names = next(iter(columns.values()))
    return dict(zip(map(str, names), columns[_chosen(columns, label, table.path)], strict=True))


def _columns(table: Table) -> dict[str, NDArray[Any]]:
    chunks = list(table.chunks())
    if not chunks:
        raise TableError(f"{table.path} has no rows; it needs a header line and labels.")
    return {
        name: object_array(cell for chunk in chunks for cell in chunk.columns[name].tolist())
        for name in chunks[0].columns
    }


def _chosen(columns: dict[str, NDArray[Any]], label: str | None, path: Path) -> str:
    name = list(columns)[-1] if label is None else label
    if name not in columns:
        raise TableError(
            f"{path} has no column {name!r}; pass --label with one of {', '.join(columns)}."
        )
    return name
