"""Finished trials on disk, one JSON line each, so that an interrupted run can go on."""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path


@dataclass(frozen=True)
class Trial:
    """What is done: a method on a set of labelled rows.

    Attributes
    ----------
    case : str
        The data, as `Case.name`.
    method : str
        Name of the method.
    settings : str
        Changes whenever the method would give other results.
    labels : int
        Labels a class, or labelled rows in all for an official split.
    official : bool
        Whether the labelled rows are an official split.
    draw, seed : int
        Which drawn set of labelled rows; `seed` is 0 for an official split.
    """

    case: str
    method: str
    settings: str
    labels: int
    official: bool
    draw: int
    seed: int


@dataclass(frozen=True)
class Outcome:
    """What came out: error in % on the unlabelled rows, wall seconds, and what went wrong."""

    trial: Trial
    error: float
    seconds: float
    note: str = ""


class Store:
    """File of outcomes: lines are only ever added, each in one write.

    Parameters
    ----------
    path : path
        The file; it and its folder are made when the first outcome is added.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def read(self) -> dict[Trial, Outcome]:
        """Outcome of each trial; a line that is torn or of another make is left out."""
        return {outcome.trial: outcome for outcome in self._outcomes()}

    def add(self, outcome: Outcome) -> None:
        """Append an outcome."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        record = asdict(outcome.trial) | asdict(outcome)
        del record["trial"]
        line = json.dumps(record) + "\n"
        # Unbuffered, so that the line is one write; and a line that an interruption tore must not
        # swallow this one.
        with self.path.open("a+b", buffering=0) as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    line = "\n" + line
            file.write(line.encode())

    def clear(self) -> None:
        """Forget everything."""
        self.path.unlink(missing_ok=True)

    def _outcomes(self) -> Iterator[Outcome]:
        names = [item.name for item in fields(Trial)]
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        for line in lines:
            try:
                record = json.loads(line)
                trial = Trial(**{name: record.pop(name) for name in names})
                yield Outcome(trial, **record)
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
