"""Parquet and Feather, a batch of rows at a time through pyarrow, every type kept."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvsvm.tables.base import CHUNK_ROWS, Chunk, Columns, Progress, TableError, need
from tvsvm.tables.cells import object_array

NUMPY_TYPES = frozenset(
    ["bool", "float", "double", "halffloat"]
    + [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
)


class ArrowTable(ABC):
    """What the two formats share: batches of rows in and out."""

    place = "row"
    label = None

    def __init__(self, path: Path) -> None:
        self.path = path
        self._arrow = need("pyarrow", f"Reading {path.suffix} files")
        with self._readable():
            self._open()

    def chunks(self) -> Iterator[Chunk]:
        """Read from the first row to the last; may be called again."""
        start = 0
        for batch in self._batches():
            columns = {
                name: _cells(column)
                for name, column in zip(batch.schema.names, batch.columns, strict=True)
            }
            lines = np.arange(start + 1, start + 1 + batch.num_rows)
            start += batch.num_rows
            yield Chunk(lines, columns, start / max(self._n_rows(), 1))

    def write(self, path: Path, added: Columns, progress: Progress) -> None:
        """Write the same batches with more columns."""
        new = {name: self._arrow.array(list(cells)) for name, cells in added.items()}
        schema = self._schema()
        for name, cells in new.items():
            schema = schema.append(self._arrow.field(name, cells.type))
        start = 0
        with self._writer(path, schema) as writer:
            for batch in self._batches():
                stop = start + batch.num_rows
                arrays = [*batch.columns, *(cells[start:stop] for cells in new.values())]
                writer.write_batch(self._arrow.RecordBatch.from_arrays(arrays, schema=schema))
                start = stop
                progress(start / max(self._n_rows(), 1))

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except self._arrow.ArrowInvalid as error:
            raise TableError(
                f"{self.path} is no {self.path.suffix[1:]} file, or it is damaged; write it again."
            ) from error

    @abstractmethod
    def _open(self) -> None: ...

    @abstractmethod
    def _schema(self) -> Any: ...

    @abstractmethod
    def _n_rows(self) -> int: ...

    @abstractmethod
    def _batches(self) -> Iterator[Any]: ...

    @abstractmethod
    def _writer(self, path: Path, schema: Any) -> Any: ...


class ParquetTable(ArrowTable):
    """A Parquet file."""

    def _open(self) -> None:
        self._file = need("pyarrow.parquet", "Reading Parquet").ParquetFile(self.path)

    def _schema(self) -> Any:
        return self._file.schema_arrow

    def _n_rows(self) -> int:
        return self._file.metadata.num_rows

    def _batches(self) -> Iterator[Any]:
        with self._readable():
            yield from self._file.iter_batches(batch_size=CHUNK_ROWS)

    def _writer(self, path: Path, schema: Any) -> Any:
        metadata = self._file.metadata
        has_columns = metadata.num_row_groups and metadata.num_columns
        codec = metadata.row_group(0).column(0).compression if has_columns else "SNAPPY"
        parquet = need("pyarrow.parquet", "Writing Parquet")
        return parquet.ParquetWriter(path, schema, compression=codec)


class FeatherTable(ArrowTable):
    """A Feather file, that is the Arrow file format."""

    def _open(self) -> None:
        source = self._arrow.memory_map(str(self.path))
        self._file = need("pyarrow.ipc", "Reading Feather").open_file(source)
        self._rows = sum(batch.num_rows for batch in self._batches())

    def _schema(self) -> Any:
        return self._file.schema

    def _n_rows(self) -> int:
        return self._rows

    def _batches(self) -> Iterator[Any]:
        with self._readable():
            for number in range(self._file.num_record_batches):
                yield self._file.get_batch(number)

    def _writer(self, path: Path, schema: Any) -> Any:
        ipc = need("pyarrow.ipc", "Writing Feather")
        return ipc.new_file(str(path), schema, options=ipc.IpcWriteOptions(compression="lz4"))


def _cells(column: Any) -> NDArray[Any]:
    """Numbers without gaps and lists of one length as arrays, all else as Python objects."""
    kind = str(column.type)
    if column.null_count == 0:
        if kind in NUMPY_TYPES:
            return column.to_numpy(zero_copy_only=False)
        if kind.startswith(("list<", "large_list<", "fixed_size_list<")) and len(column):
            flat = column.flatten()
            lengths = np.asarray(column.value_lengths())
            if (lengths == lengths[0]).all() and lengths[0] and not flat.null_count:
                values = flat.to_numpy(zero_copy_only=False)
                if values.dtype.kind in "biuf":
                    return values.reshape(len(column), -1)
    return object_array(column.to_pylist())
