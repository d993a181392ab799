"""CSV and TSV: the user's text is never rewritten, new cells are put at the end of each record."""

import codecs
import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from tvsvm.tables.base import (
    CHUNK_ROWS,
    Chunk,
    Columns,
    Progress,
    TableError,
    check_unchanged,
    stamp,
)
from tvsvm.tables.cells import as_text, each, object_array, plain

DELIMITERS = (",", ";", "\t", "|")
SNIFFED_RECORDS = 50
BOM = "\ufeff"
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+([eE][+-]?\d+)?\s*")
THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2},\d{3}\s*")
FEW_NAMES = 1000  # different numbers of a column that may be names of classes
# A record: the line where it starts, its cells, and its text with the line ending.
Record = tuple[int, list[str], str]
# Longest cell: an embedding of some thousand numbers must fit.
csv.field_size_limit(2**27)


class TextTable:
    """A file of delimited text with a header line, of any size."""

    place = "line"
    label = None

    def __init__(self, path: Path, *, encoding: str = "utf-8") -> None:
        self.path = path
        try:
            codecs.lookup(encoding)
        except LookupError as error:
            raise TableError(
                f"--encoding must be one that Python knows. Got {encoding!r}; pass for example "
                "utf-8, utf-16 or cp1252."
            ) from error
        self.encoding = encoding
        self._decimal = "."
        self._given: dict[str, str] = {}  # cells with a point by what they were with a comma
        self._stamp = stamp(path)
        self._size = max(path.stat().st_size, 1)
        self._delimiter = "\t" if path.suffix.lower() in (".tsv", ".tab") else self._sniffed()
        header = next(self._records(self._delimiter), None)
        if header is None:
            raise TableError(f"{path} is empty; it needs a header line and rows.")
        _, self.names, _ = header
        _check_header(self.names, path)

    def chunks(self) -> Iterator[Chunk]:
        """Read from the first row to the last; may be called again."""
        records = self._rows()
        read = 0
        while batch := list(islice(records, CHUNK_ROWS)):
            lines, rows, texts = zip(*batch, strict=True)
            read += sum(map(len, texts))
            columns: Iterable[tuple[str, ...]] = zip(*rows, strict=True)
            if self._delimiter != ",":
                columns = map(self._with_points, columns)
            cells = {
                name: object_array(column) for name, column in zip(self.names, columns, strict=True)
            }
            yield Chunk(np.array(lines), cells, min(read / self._size, 1.0))

    def write(self, path: Path, added: Columns, progress: Progress) -> None:
        """Write every record as it is, with the new cells after its last one."""
        check_unchanged(self.path, self._stamp)
        columns = [each(self._written, plain(cells)) for cells in added.values()]
        endings = map("".join, zip(*columns, strict=True))
        read = 0
        with self._decoded(), path.open("w", encoding=self.encoding, newline="") as out:
            records = self._records(self._delimiter)
            _, _, header = next(records)
            out.write(_extended(header, "".join(map(self._written, added))))
            for number, (_, cells, text) in enumerate(records):
                # A blank line stays one.
                out.write(_extended(text, next(endings)) if self._is_row(cells) else text)
                read += len(text)
                if number % CHUNK_ROWS == 0:
                    progress(min(read / self._size, 1.0))

    def _with_points(self, cells: tuple[str, ...]) -> tuple[str, ...]:
        """Numbers with a decimal comma as Python writes them; such a file gets such numbers."""
        numbers = {cell for cell in cells if "," in cell and DECIMAL_COMMA.fullmatch(cell)}
        # Beside semicolons commas are decimal; elsewhere they may part thousands.
        if not numbers or (self._delimiter != ";" and all(map(THOUSANDS.fullmatch, numbers))):
            return cells
        self._decimal = ","
        if len(numbers) <= FEW_NAMES:
            self._given |= {cell.replace(",", "."): cell for cell in numbers}
        return tuple(cell.replace(",", ".") if cell in numbers else cell for cell in cells)

    def _written(self, cell: Any) -> str:
        """Text of a new cell, with the delimiter in front of it."""
        text = as_text(cell)
        if isinstance(cell, float):
            text = text.replace(".", self._decimal)
        else:
            text = self._given.get(text, text)
        if any(mark in text for mark in (self._delimiter, '"', "\n", "\r")):
            text = '"' + text.replace('"', '""') + '"'
        return self._delimiter + text

    def _rows(self) -> Iterator[Record]:
        """Yield the records after the header, blank lines left out, all of the header's length."""
        records = self._records(self._delimiter)
        next(records)
        width = len(self.names)
        for line, cells, text in records:
            if not self._is_row(cells):
                continue
            if len(cells or [""]) != width:
                raise TableError(
                    f"{self.path}, line {line} must have {width} cells as the header has. Got "
                    f"{len(cells)}; correct the line, perhaps by quotes around a cell."
                )
            yield line, cells or [""], text

    def _is_row(self, cells: list[str]) -> bool:
        # A blank line is nothing, but in a file of one column it is an empty cell.
        return bool(cells) or len(self.names) == 1

    def _records(self, delimiter: str) -> Iterator[Record]:
        with self._decoded(), self.path.open(encoding=self.encoding, newline="") as file:
            taken: list[str] = []
            reader = csv.reader(_noting(file, taken), delimiter=delimiter, strict=True)
            line = 1
            try:
                for cells in reader:
                    text = "".join(taken)
                    taken.clear()
                    if line == 1 and text.startswith(BOM):
                        cells = next(csv.reader([text.removeprefix(BOM)], delimiter=delimiter), [])
                    yield line, cells, text
                    line = reader.line_num + 1
            except csv.Error as error:
                raise TableError(
                    f"{self.path}, line {line} cannot be read as delimited text ({error}); check "
                    "its quotes."
                ) from error

    @contextmanager
    def _decoded(self) -> Iterator[None]:
        try:
            yield
        except UnicodeError as error:
            raise TableError(
                f"{self.path} is not {self.encoding} text; pass --encoding, for example "
                "--encoding cp1252 for a file that Excel saved on Windows."
            ) from error

    def _sniffed(self) -> str:
        """Find the delimiter that cuts the first records into most cells, all alike if possible."""

        def quality(delimiter: str) -> tuple[bool, int]:
            widths: list[int] = []
            with suppress(TableError):  # told when the table is read
                for _, cells, _ in islice(self._records(delimiter), SNIFFED_RECORDS):
                    widths += [len(cells)] if cells else []
            first = widths[0] if widths else 0
            return first > 1 and set(widths) == {first}, first

        return max(DELIMITERS, key=quality)


def _noting(file: TextIO, taken: list[str]) -> Iterator[str]:
    for line in file:
        taken.append(line)
        yield line


def _extended(text: str, ending: str) -> str:
    body = text.rstrip("\r\n")
    return body + ending + text[len(body) :]


def _check_header(names: list[str], path: Path) -> None:
    if not names:
        raise TableError(f"The first line of {path} must hold the column names; it is blank.")
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise TableError(f"{path} has {times} columns called {name!r}; give each its own name.")
    if len(names) > 1 and all(_is_number(name) for name in names):
        raise TableError(
            f"The first line of {path} must hold the column names. Got numbers only, as in "
            f"{names[0]!r}; add a header line."
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
