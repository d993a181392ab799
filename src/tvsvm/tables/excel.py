"""Excel workbooks: the first sheet, its formats, formulas and the other sheets kept."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from tvsvm.tables.base import CHUNK_ROWS, Chunk, Columns, Progress, TableError, need
from tvsvm.tables.cells import object_array, plain


class ExcelTable:
    """The first sheet of a workbook, its first row the header; held in memory, as Excel does."""

    place = "row"
    label = None

    def __init__(self, path: Path) -> None:
        self.path = path
        self._openpyxl = need("openpyxl", "Reading Excel files")
        # Values, not formulas: what Excel last computed.
        with closing(self._workbook(read_only=True, data_only=True)) as workbook:
            rows = [
                (number, cells)
                for number, cells in enumerate(workbook.worksheets[0].values, 1)
                if any(cell is not None for cell in cells)
            ]
        if not rows:
            raise TableError(f"The first sheet of {path} is empty; put the table there.")
        (self._header, names), *self._rows = rows
        self.names = ["" if name is None else str(name) for name in names]
        while self.names and not self.names[-1]:  # columns that only have a format
            self.names.pop()
        if len(set(self.names)) < len(self.names):
            raise TableError(
                f"Columns of the first sheet of {path} have the same name in row {self._header}; "
                "give each its own."
            )

    def chunks(self) -> Iterator[Chunk]:
        """Read from the first row to the last; may be called again."""
        for start in range(0, len(self._rows), CHUNK_ROWS):
            batch = self._rows[start : start + CHUNK_ROWS]
            columns = {
                # A row may end before its last cells if they are empty.
                name: object_array(
                    cells[place] if place < len(cells) else None for _, cells in batch
                )
                for place, name in enumerate(self.names)
            }
            yield Chunk(
                np.array([number for number, _ in batch]),
                columns,
                (start + len(batch)) / len(self._rows),
            )

    def write(self, path: Path, added: Columns, progress: Progress) -> None:
        """Save the workbook with more columns in its first sheet."""
        with closing(self._workbook(keep_vba=self.path.suffix.lower() == ".xlsm")) as workbook:
            sheet = workbook.worksheets[0]
            for offset, (name, cells) in enumerate(added.items()):
                column = len(self.names) + 1 + offset
                sheet.cell(self._header, column, name)
                for (row, _), cell in zip(self._rows, plain(cells), strict=True):
                    sheet.cell(row, column, cell)
                progress((offset + 1) / len(added))
            workbook.save(path)

    def _workbook(self, **options: Any) -> Any:
        try:
            return self._openpyxl.load_workbook(self.path, **options)
        except Exception as error:  # openpyxl lets through whatever its parsers raise
            raise TableError(
                f"{self.path} is no Excel workbook, or it is damaged or protected by a password; "
                "save it again as .xlsx."
            ) from error
