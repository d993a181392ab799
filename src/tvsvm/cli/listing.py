"""Lists of rows of a table, for people and for scripts."""

from collections.abc import Sequence
from typing import Any

from tvsvm.cli.console import Console, aligned
from tvsvm.cli.study import Study


def listing(
    title: str, study: Study, rows: Sequence[tuple[int, dict[str, Any]]], console: Console
) -> None:
    """Tell rows by their place in the file and their id, with what is to be said of each."""
    place = study.table.place
    entries = [
        {place: int(study.lines[row])} | ({"id": study.ids[row]} if study.ids else {}) | about
        for row, about in rows
    ]
    lines = study.describe()
    if entries:
        lines += aligned([list(entries[0]), *(list(entry.values()) for entry in entries)])
    else:
        lines.append(f"no {title}")
    values = {
        "input": str(study.table.path),
        "rows": study.n_rows,
        title.replace(" ", "_"): entries,
    }
    console.result(lines, values)
