"""What a report may know besides the model: names, cells and pictures of the rows, settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tvsvm.graph import Graph
from tvsvm.report.png import thumbnail_uri

SHOWN_COLUMNS = 5
LONGEST_CELL = 80


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportContext:
    """What is known of the rows and of the run; everything may be left out.

    Attributes
    ----------
    title : str or None
        Heading, for example the name of the file; None: the name of the method.
    command : str or None
        The command that makes this report again.
    settings : mapping of str to object
        What was asked and chosen, shown in this order.
    seed : object
        The random seed; None: the `random_state` of the model.
    ids : sequence or None
        Name of each row; None: its number, from 0.
    table : mapping of str to sequence, or pandas DataFrame, or None
        Cells of the rows by column, of which the first few are shown.
    images : sequence or None
        ``images[row]`` are pixels of shape (height, width), (height, width, 3) or
        (height, width, 4), as uint8 or scaled to it.
    graph : Graph or None
        For models without a graph (RLS, SVM): what the map is drawn from.
    """

    title: str | None = None
    command: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: Any = None
    ids: Sequence[Any] | None = None
    table: Any = None
    images: Any = None
    graph: Graph | None = None


class Rows:
    """Names, cells and pictures of the rows as texts, none of them escaped."""

    def __init__(self, context: ReportContext, n_rows: int) -> None:
        self._ids = context.ids
        columns = {} if context.table is None else dict(context.table.items())
        columns = {str(name): columns[name] for name in list(columns)[:SHOWN_COLUMNS]}
        self.columns = list(columns)
        # By position, whatever the index of a DataFrame.
        self._cells = [getattr(cells, "array", cells) for cells in columns.values()]
        self._images = context.images
        given = {"ids": self._ids, "images": self._images, **columns}
        for name, values in given.items():
            if values is not None and len(values) != n_rows:
                raise ValueError(
                    f"The report needs an entry of `{name}` for every row. Got {len(values)} for "
                    f"{n_rows} rows; pass those that the model was fitted on."
                )

    @property
    def named(self) -> bool:
        """Whether the rows have names of their own."""
        return self._ids is not None

    @property
    def pictured(self) -> bool:
        """Whether the rows have pictures."""
        return self._images is not None

    def name(self, row: int) -> str:
        """Name of a row."""
        return f"row {row}" if self._ids is None else text_of(self._ids[row])

    def cells(self, row: int) -> list[str]:
        """Its first cells."""
        return [text_of(cells[row]) for cells in self._cells]

    def thumbnail(self, row: int) -> str:
        """Its picture as a data URI, empty if there is none."""
        return "" if self._images is None else thumbnail_uri(np.asarray(self._images[row]))


def text_of(value: Any, longest: int = LONGEST_CELL) -> str:
    """A value as text on one line, cut if it is long."""
    if isinstance(value, (float, np.floating)):
        return "" if np.isnan(value) else f"{value:.5g}"
    text = "" if value is None else " ".join(str(value).split())
    return text if len(text) <= longest else text[: longest - 1] + "…"
