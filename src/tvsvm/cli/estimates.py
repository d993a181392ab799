"""How much memory and time a fit will take, roughly, before it is tried."""

from dataclasses import dataclass

from tvsvm.cli.console import duration
from tvsvm.cli.errors import UserError
from tvsvm.estimators import capacity
from tvsvm.estimators.base import KernelClassifier

# Measured with 100,000 rows, 15 columns and 4 classes, AutoTV with labels to hold back.
START_SECONDS = 2.0
SECONDS_A_ROW = {"RLS": 1e-5, "SVM": 1e-5, "LapRLS": 1.5e-4, "LapSVM": 1.5e-4}
SECONDS_A_ROW_AND_CLASS = 8e-5
# Of each row while a table is read, besides its numbers: its label, its line and its name.
BYTES_READING = 200


@dataclass(frozen=True)
class Estimate:
    """Memory and time."""

    bytes: float
    seconds: float

    def __str__(self) -> str:
        return f"about {capacity.size(self.bytes)} of memory and {duration(self.seconds)}"


def estimate(
    classifier: KernelClassifier, shape: tuple[int, int], *, n_classes: int, n_labels: int
) -> Estimate:
    """Memory, with the numbers of the table in float32, and time of a fit."""
    n_rows, n_columns = shape
    fit = capacity.demand(classifier, shape, n_classes=n_classes, n_labels=n_labels)
    method = type(classifier).__name__
    a_row = SECONDS_A_ROW.get(method, SECONDS_A_ROW_AND_CLASS * n_classes)
    return Estimate(
        bytes=_table_bytes(n_rows, n_columns) + fit.bytes,
        seconds=START_SECONDS + n_rows * (a_row + 2e-7 * n_columns),
    )


def check_memory(n_rows: int, n_columns: int) -> None:
    """Refuse a table whose numbers will not fit, before any of them is read."""
    needed = _table_bytes(n_rows, n_columns)
    available = capacity.available_memory()
    if available is not None and needed > available:
        raise UserError(
            f"{n_rows:,} rows of {n_columns:,} numbers need about {capacity.size(needed)} of "
            f"memory, and {capacity.size(available)} are free; use fewer rows or choose features "
            "by --features."
        )


def _table_bytes(n_rows: int, n_columns: int) -> float:
    return n_rows * (BYTES_READING + 4.0 * n_columns)
