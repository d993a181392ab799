"""JSON lines: one object a line, its text kept as it is, new keys put before the closing brace."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

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
from tvsvm.tables.cells import object_array, plain


class JsonLinesTable:
    """A file with one JSON object a line, of any size."""

    place = "line"
    label = None

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp = stamp(path)
        self._size = max(path.stat().st_size, 1)

    def chunks(self) -> Iterator[Chunk]:
        """Read from the first row to the last; may be called again."""
        rows = self._rows()
        read = 0
        while batch := list(islice(rows, CHUNK_ROWS)):
            read += sum(length for _, length, _ in batch)
            names = dict.fromkeys(name for _, _, row in batch for name in row)
            yield Chunk(
                np.array([line for line, _, _ in batch]),
                {name: object_array(row.get(name) for _, _, row in batch) for name in names},
                min(read / self._size, 1.0),
            )

    def write(self, path: Path, added: Columns, progress: Progress) -> None:
        """Write every line as it is, with the new keys at the end of its object."""
        check_unchanged(self.path, self._stamp)
        new_cells = zip(*map(plain, added.values()), strict=True)
        read = 0
        with path.open("w", encoding="utf-8", newline="") as out:
            for number, line in enumerate(self._lines(), 1):
                if line.strip().removeprefix("\ufeff"):
                    keys = dict(zip(added, next(new_cells), strict=True))
                    out.write(_extended(line, keys))
                else:
                    out.write(line)
                read += len(line)
                if number % CHUNK_ROWS == 0:
                    progress(min(read / self._size, 1.0))

    def _lines(self) -> Iterator[str]:
        try:
            with self.path.open(encoding="utf-8", newline="") as file:
                yield from file
        except UnicodeError as error:
            raise TableError(
                f"{self.path} is not utf-8 text, as JSON must be; convert it."
            ) from error

    def _rows(self) -> Iterator[tuple[int, int, dict[str, Any]]]:
        """Yield line number, length and object of each line that is not blank."""
        for number, line in enumerate(self._lines(), 1):
            text = line.strip().removeprefix("\ufeff")
            if not text:
                continue
            try:
                row = json.loads(text)
            except json.JSONDecodeError as error:
                raise TableError(
                    f"{self.path}, line {number} is not JSON ({error.msg} at character "
                    f"{error.colno}); correct the line."
                ) from error
            if not isinstance(row, dict):
                raise TableError(
                    f"{self.path}, line {number} must hold an object such as "
                    f'{{"x": 1, "label": null}}. Got {text[:40]}; write one object a line.'
                )
            yield number, len(line), row


def _extended(line: str, keys: dict[str, Any]) -> str:
    body = line.rstrip()
    new = json.dumps(keys, ensure_ascii=False)[1:]  # without the brace that is open already
    opened = body[:-1].rstrip()
    comma = "" if opened.endswith("{") else ", "
    return opened + comma + new + line[len(body) :]
