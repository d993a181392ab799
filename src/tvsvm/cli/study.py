"""A table as commands need it: opened, looked at, its labels read and its features as numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvsvm.cli.console import Console
from tvsvm.cli.errors import UserError
from tvsvm.cli.estimates import check_memory
from tvsvm.results import BoolArray, IntArray
from tvsvm.tables import open_table
from tvsvm.tables.base import Table, told
from tvsvm.tables.cells import text
from tvsvm.tables.classes import (
    check_classes,
    count_classes,
    read_classes,
    words_for_nothing,
)
from tvsvm.tables.features import FeatureReader
from tvsvm.tables.profile import Profile, scan
from tvsvm.tables.roles import Roles, choose_roles, label_column

SHOWN_FEATURES = 8


@dataclass(frozen=True)
class Request:
    """What the user said about a table."""

    path: Path
    label: str | None = None
    labels_file: Path | None = None
    unlabeled: str | None = None
    features: Sequence[str] = ()
    ids: Sequence[str] = ()
    encoding: str = "utf-8"
    without_labels: bool = False


@dataclass(frozen=True)
class Study:
    """A table that is ready for a classifier.

    Attributes
    ----------
    table : Table
        The file.
    names : list of str
        All its columns.
    roles : Roles
        What each column is for.
    reader : FeatureReader
        The way from its columns to `X`.
    X : ndarray of shape (n_rows, n_features)
        The features.
    y : ndarray of shape (n_rows,)
        The labels, None where unknown.
    counts : dict
        Number of labels of each class; empty without labels.
    ids : list of str
        Name of each row; empty if no column names them.
    lines : ndarray of shape (n_rows,)
        Where each row is in the file.
    """

    table: Table
    names: list[str]
    roles: Roles
    reader: FeatureReader
    X: NDArray[np.float32]
    y: NDArray[Any]
    counts: dict[Any, int]
    ids: list[str]
    lines: IntArray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.X)

    @property
    def unlabelled(self) -> BoolArray:
        """Rows without a label."""
        return np.fromiter((label is None for label in self.y), bool, self.n_rows)

    def describe(self) -> list[str]:
        """What was found in the table, for people."""
        kinds = [f"{feature.name} ({feature.kind})" for feature in self.roles.features]
        if len(kinds) > SHOWN_FEATURES:
            kinds[SHOWN_FEATURES - 1 :] = [f"{len(kinds) - SHOWN_FEATURES + 1} more"]
        labels = (
            f"{sum(self.counts.values()):,} labels of {len(self.counts)} classes "
            f"in {self.roles.label!r}"
            if self.counts
            else "no labels yet"
        )
        return [
            f"{self.table.path}: {self.n_rows:,} rows, {labels}",
            f"features: {', '.join(kinds)}; {self.X.shape[1]:,} numbers a row",
        ]

    def columns(self, names: Sequence[str]) -> dict[str, list[Any]]:
        """Cells of some columns, read again."""
        cells: dict[str, list[Any]] = {name: [] for name in names}
        for chunk in self.table.chunks():
            for name in names:
                cells[name] += chunk.cells(name).tolist()
        return cells


def read_study(request: Request, console: Console, *, labels_needed: bool = True) -> Study:
    """Read a table: once to look at it, once to learn its scales, once for the numbers."""
    with console.stage("Opening") as progress:
        table = open_table(
            request.path,
            labels_file=request.labels_file,
            label=request.label,
            encoding=request.encoding,
            progress=progress,
        )
    with console.stage("Looking at the columns") as progress:
        profiles = scan(table, progress)
    label = None if request.without_labels else _label(request, table, profiles)
    if label is None and labels_needed:
        raise UserError(
            f"No column of {request.path} has gaps, so none can be the labels with unknown ones; "
            "empty the cells to be found, or name the column by --label or a file by --labels-file."
        )
    roles = choose_roles(profiles, label=label, ids=request.ids, features=request.features)
    if not request.features:
        for name, reason in roles.left_out.items():
            console.note(f"column {name!r} is left out: {reason}")
    n_rows = next(iter(profiles.values())).n_rows
    with console.stage("Learning scales") as progress:
        chunks = told(table.chunks(), progress)
        reader = FeatureReader(roles.features).learn(chunks, n_rows, table.place)
    study = _read_rows(request, table, list(profiles), roles, reader, n_rows, console)
    if roles.label is not None and (labels_needed or len(study.counts) > 1):
        check_classes(study.counts, roles.label)
    return study


def _label(request: Request, table: Table, profiles: dict[str, Profile]) -> str | None:
    if table.label is not None and (request.labels_file or request.label is None):
        return table.label
    return label_column(profiles, request.label)


def _read_rows(
    request: Request,
    table: Table,
    names: list[str],
    roles: Roles,
    reader: FeatureReader,
    n_rows: int,
    console: Console,
) -> Study:
    X: NDArray[np.float32] | None = None
    cells: list[Any] = []
    ids: list[str] = []
    lines = np.empty(n_rows, dtype=np.int64)
    start = 0
    with console.stage("Reading") as progress:
        for chunk in told(table.chunks(), progress):
            rows = slice(start, start + len(chunk))
            numbers = reader(chunk, table.place)
            if X is None:
                check_memory(n_rows, numbers.shape[1])
                X = np.empty((n_rows, numbers.shape[1]), dtype=np.float32)
            X[rows] = numbers
            lines[rows] = chunk.lines
            if roles.label is not None:
                cells += chunk.cells(roles.label).tolist()
            if roles.ids:
                ids += map(text, chunk.cells(roles.ids[0]).tolist())
            start = rows.stop
    assert X is not None  # a table without rows was refused
    if roles.label is None:
        cells = [None] * n_rows
    words = words_for_nothing(cells) if request.unlabeled is None else []
    if words:
        console.note(
            f"{', '.join(map(repr, words))} in column {roles.label!r} was read as no label, like "
            "empty cells; if it is a class, pass --unlabeled ''"
        )
    y = read_classes(cells, unlabeled=request.unlabeled)
    return Study(table, names, roles, reader, X, y, count_classes(y), ids, lines)
