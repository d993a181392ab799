"""What a command tells: notes and progress on standard error, results on standard output."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import typer
from rich.console import Console as RichConsole
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text


class Report(Protocol):
    """How a stage tells the share that is done, if that is known, and the part it is at."""

    def __call__(self, share: float | None, part: str = "") -> None:
        """Tell it."""


# On a terminal of 80 columns it leaves room for what is being done.
BAR_WIDTH = 12


class TimeLeft(ProgressColumn):
    """Time left: from the share that is done, or from how long it should take."""

    def render(self, task: Task) -> Text:
        """Show it."""
        if task.elapsed is None:
            return Text("")
        expected = task.fields.get("expected")
        left = expected - task.elapsed if expected else task.time_remaining
        if left is None:
            return Text(f"{task.elapsed:.0f} s")
        # An estimate that has run out is none; then only the time so far is known.
        return Text(f"about {duration(left)} left" if left > 0 else f"{task.elapsed:.0f} s so far")


class Console:
    """The voice of one command.

    Parameters
    ----------
    quiet : bool
        No notes and no progress; errors only.
    as_json : bool
        The result as one JSON object instead of text, and no progress.
    """

    def __init__(self, *, quiet: bool, as_json: bool) -> None:
        self.quiet, self.as_json = quiet, as_json
        self.notes: list[str] = []
        self._stderr = RichConsole(stderr=True)
        self._started = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Time since the command started."""
        return time.perf_counter() - self._started

    def note(self, text: str) -> None:
        """Tell something by the way; it is part of the JSON result too."""
        self.notes.append(text)
        if not self.quiet:
            typer.echo(f"note: {text}", err=True)

    def aside(self, text: str) -> None:
        """Tell something that has nothing to do with the result, also while progress is shown."""
        if not self.quiet:
            self._stderr.print(f"note: {text}", markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def stage(self, title: str, *, expected: float | None = None) -> Iterator[Report]:
        """Show progress while the block runs; it tells it to what it is given."""
        if self.quiet or self.as_json or not self._stderr.is_terminal:
            yield lambda share, part="": None
            return
        with Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(BAR_WIDTH),
            TimeLeft(Column(no_wrap=True)),
            TextColumn("{task.fields[part]}", table_column=Column(ratio=1, no_wrap=True)),
            console=self._stderr,
            transient=True,
            expand=True,
        ) as bars:
            bars.add_task(title, total=None, expected=expected, part="")
            (task,) = bars.tasks

            def report(share: float | None, part: str = "") -> None:
                # Without a total the bar only pulses; `update` cannot take a total back.
                task.total = None if share is None else 1.0
                bars.update(task.id, completed=share or 0.0, part=part)

            yield report

    def result(self, lines: Sequence[str], values: Mapping[str, Any]) -> None:
        """Tell the result, as text or as JSON."""
        if self.as_json:
            typer.echo(json.dumps({**values, "notes": self.notes}, ensure_ascii=False, default=str))
        elif not self.quiet:
            typer.echo("\n".join(lines))


def duration(seconds: float) -> str:
    """Time in words."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def aligned(rows: Sequence[Sequence[object]]) -> list[str]:
    """Lines of a table with its columns aligned, numbers to the right."""
    cells = [[_shown(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    right = [isinstance(cell, int | float) for cell in rows[-1]]
    return [
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in cells
    ]


def _shown(cell: object) -> str:
    if isinstance(cell, float):
        return f"{cell:.3f}"
    return f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else str(cell)
