"""Columns to numbers: parsing by kind, then scikit-learn's imputation, scaling and encoding."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler

from tvsvm.results import FloatArray, IntArray
from tvsvm.tables.base import Chunk, TableError
from tvsvm.tables.cells import days, each, is_missing, numbers, object_array, text, vector

# Columns for one category column: its most frequent values, and one for the others.
ONE_HOT_COLUMNS = 50
# New rows may be far from all that was learnt from; their squares stay finite in float32.
LARGEST = 1e15
# Rows that medians, scales and categories are learnt from, evenly spread over the table; fewer
# if they hold more numbers than this.
LEARNT_ROWS, LEARNT_NUMBERS = 100_000, 2**24


@dataclass(frozen=True)
class Feature:
    """A column to find classes from: its kind is one of `KINDS`, its width that of a vector."""

    name: str
    kind: str
    width: int = 1

    @property
    def parts(self) -> list[str]:
        """Names of the columns it becomes in a frame."""
        if self.kind != "vector":
            return [self.name]
        return [f"{self.name}[{position}]" for position in range(self.width)]


class BlockScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Centres all columns and divides them by one number, so that their mean variance is 1.

    The directions of an embedding, or of pixels, keep their proportions.
    """

    def fit(self, X: Any, y: None = None) -> Self:
        """Learn the centre and the common scale."""
        values = np.asarray(X, dtype=np.float64)
        self.n_features_in_ = values.shape[1]
        self.center_ = values.mean(axis=0)
        self.scale_ = float(np.sqrt(values.var(axis=0).mean())) or 1.0
        return self

    def transform(self, X: Any) -> FloatArray:
        """Centre and scale."""
        return (np.asarray(X, dtype=np.float64) - self.center_) / self.scale_


class FeatureReader:
    """Turns chunks of a table into rows of numbers.

    Parameters
    ----------
    features : sequence of Feature
        The columns.
    transformer : ColumnTransformer, optional
        What was learnt from an earlier table; `learn` makes it otherwise.
    """

    def __init__(
        self, features: Sequence[Feature], transformer: ColumnTransformer | None = None
    ) -> None:
        self.features = list(features)
        self.transformer = transformer

    def learn(self, chunks: Iterable[Chunk], n_rows: int, place: str) -> Self:
        """Learn medians, scales and categories from rows spread evenly over the table."""
        import pandas as pd

        width = sum(feature.width for feature in self.features)
        step = -(-n_rows // min(LEARNT_ROWS, max(1000, LEARNT_NUMBERS // width)))
        frames = [self._frame(chunk.take(slice(None, None, step)), place) for chunk in chunks]
        self.transformer = self._new_transformer().fit(pd.concat(frames, ignore_index=True))
        return self

    def __call__(self, chunk: Chunk, place: str) -> NDArray[np.float32]:
        """Rows of numbers, shape (n_rows, n_columns)."""
        assert self.transformer is not None
        values = self.transformer.transform(self._frame(chunk, place))
        return np.clip(values, -LARGEST, LARGEST).astype(np.float32)

    def missing_columns(self, names: Iterable[str]) -> list[str]:
        """Columns that a table with these names lacks."""
        present = set(names)
        return [feature.name for feature in self.features if feature.name not in present]

    def _new_transformer(self) -> ColumnTransformer:
        scaled = [f.name for f in self.features if f.kind in ("number", "date")]
        categories = [f.name for f in self.features if f.kind == "category"]
        scaling = make_pipeline(
            SimpleImputer(strategy="median", keep_empty_features=True),
            MaxAbsScaler(),  # lest the squares of huge numbers overflow
            StandardScaler(),
        )
        one_hot = OneHotEncoder(
            handle_unknown="infrequent_if_exist",
            max_categories=ONE_HOT_COLUMNS,
            sparse_output=False,
            dtype=np.float32,
        )
        blocks = [("numbers", scaling, scaled), ("categories", one_hot, categories)]
        blocks += [(f.name, BlockScaler(), f.parts) for f in self.features if f.kind == "vector"]
        return ColumnTransformer([block for block in blocks if block[2]], sparse_threshold=0)

    def _frame(self, chunk: Chunk, place: str) -> Any:
        """Parse the columns; an unreadable cell is an error with its line."""
        import pandas as pd

        parts: dict[str, Any] = {}
        for feature in self.features:
            where = _Where(feature, chunk.lines, place)
            values = KINDS[feature.kind](chunk.cells(feature.name), where)
            if feature.kind == "vector":
                parts |= dict(zip(feature.parts, values.T, strict=True))
            else:
                parts[feature.name] = values
        return pd.DataFrame(parts)


@dataclass(frozen=True)
class _Where:
    """Where cells are, for the sentence about one that cannot be read."""

    feature: Feature
    lines: IntArray
    place: str

    def unreadable(self, row: int, cell: Any, wanted: str) -> TableError:
        name, kind = self.feature.name, self.feature.kind
        return TableError(
            f"Column {name!r} must hold {wanted}. Got {_shortened(cell)} in {self.place} "
            f"{self.lines[row]}; correct the cell"
            + (
                ", or choose other columns by --features."
                if kind == "vector"
                else f" or empty it, or pass --features with {name}:category, or without {name}."
            )
        )


def _read_numbers(cells: NDArray[Any], where: _Where) -> FloatArray:
    return _checked(numbers(cells), cells, where, "finite numbers")


def _read_days(cells: NDArray[Any], where: _Where) -> FloatArray:
    return _checked(days(cells), cells, where, "dates as 2024-03-31")


def _read_categories(cells: NDArray[Any], where: _Where) -> NDArray[Any]:
    return object_array(each(text, cells.tolist()))


def _read_vectors(cells: NDArray[Any], where: _Where) -> FloatArray:
    width = where.feature.width
    if cells.ndim == 2:
        bad = np.flatnonzero(~np.isfinite(cells).all(axis=1))
        if cells.shape[1] != width or len(bad):
            row = int(bad[0]) if len(bad) else 0
            raise where.unreadable(row, cells[row].tolist(), f"{width} finite numbers a row")
        return cells.astype(np.float64)
    matrix = np.empty((len(cells), width))
    for row, cell in enumerate(cells.tolist()):
        values = vector(cell)
        if values is None or len(values) != width:
            raise where.unreadable(row, cell, f"lists of {width} finite numbers")
        matrix[row] = values
    return matrix


def _checked(values: FloatArray, cells: NDArray[Any], where: _Where, wanted: str) -> FloatArray:
    for row in np.flatnonzero(np.isnan(values)).tolist():
        if not is_missing(cells[row]):
            raise where.unreadable(row, cells[row], wanted)
    return values


def _shortened(cell: Any) -> str:
    shown = repr(cell if not isinstance(cell, np.generic) else cell.item()).replace("\n", " ")
    return shown if len(shown) <= 40 else shown[:37] + "..."


KINDS: dict[str, Callable[[NDArray[Any], _Where], Any]] = {
    "number": _read_numbers,
    "category": _read_categories,
    "date": _read_days,
    "vector": _read_vectors,
}
