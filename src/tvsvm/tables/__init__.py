"""Tables: files of many kinds read in chunks, turned into numbers, and written with new columns."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tvsvm.tables.base import Progress, Table, TableError, need

TEXT = (".csv", ".tsv", ".tab", ".txt")
JSON_LINES = (".jsonl", ".ndjson", ".json")
PARQUET = (".parquet", ".pq")
FEATHER = (".feather", ".arrow")
EXCEL = (".xlsx", ".xlsm")
NUMPY = (".npy", ".npz")


def open_table(
    path: Path,
    *,
    labels_file: Path | None = None,
    label: str | None = None,
    encoding: str = "utf-8",
    progress: Progress = lambda share: None,
) -> Table:
    """Open a table of any kind, by its suffix, or a folder of images.

    Parameters
    ----------
    path : Path
        File or folder.
    labels_file : Path, optional
        Labels of a NumPy file (one a row) or of images (file names and labels).
    label : str, optional
        Column of `labels_file`, the last one by default.
    encoding : str
        Of text files.
    progress : callable
        Told the share of the images that is read.
    """
    need("pandas", "Reading tables")
    if not path.exists():
        raise TableError(f"{path} does not exist; check the name.")
    if path.is_file() and not path.stat().st_size:
        raise TableError(f"{path} is empty; it needs columns and rows.")
    if path.is_dir():
        from tvsvm.tables.images import read_images
        from tvsvm.tables.label_files import labels_by_name

        labels = labels_file and labels_by_name(open_table(labels_file, encoding=encoding), label)
        return read_images(path, labels or None, progress)
    suffix = path.suffix.lower()
    if suffix in NUMPY:
        from tvsvm.tables.arrays import read_numpy
        from tvsvm.tables.label_files import labels_by_row

        beside = labels_by_row(labels_file, label, encoding) if labels_file else {}
        return read_numpy(path, beside)
    if labels_file is not None:
        raise TableError(
            "--labels-file is for .npy and .npz files and folders of images. Got the table "
            f"{path}; put the labels into a column of it."
        )
    return _opener(suffix, path, encoding)(path)


def _opener(suffix: str, path: Path, encoding: str) -> Callable[[Path], Table]:
    if suffix in TEXT:
        from tvsvm.tables.text import TextTable

        return lambda path: TextTable(path, encoding=encoding)
    if suffix in JSON_LINES:
        from tvsvm.tables.jsonlines import JsonLinesTable

        return JsonLinesTable
    if suffix in PARQUET + FEATHER:
        from tvsvm.tables.arrow import FeatherTable, ParquetTable

        return ParquetTable if suffix in PARQUET else FeatherTable
    if suffix in EXCEL:
        from tvsvm.tables.excel import ExcelTable

        return ExcelTable
    known: Any = (*TEXT, *JSON_LINES, *PARQUET, *FEATHER, *EXCEL, *NUMPY)
    raise TableError(
        f"{path} is of no kind that can be read. Got {suffix or 'no suffix'}; pass a folder of "
        f"images or one of {', '.join(known)}."
    )
